//! What can be wrong with a decision, in the words of the house plan.

use crate::misfit::Misfit;

/// One thing that is wrong with a decision, by the rules. Pods and nodes are named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// The objects cannot be read.
    #[error("{object}: {field} cannot be read")]
    Unreadable { object: String, field: String },
    /// Nobody of this kind and name needs a place.
    #[error("there is no {kind} {name} that needs a place")]
    NoPreemptor { kind: String, name: String },
    /// The answer names what is not there.
    #[error("the answer names {name}, which is not in the cluster")]
    Unknown { name: String },
    /// It nominates a pod that is no pending pod of the preemptor.
    #[error("pod {pod} is nominated, and is no pending pod of the preemptor")]
    NotOfThePreemptor { pod: String },
    /// It nominates other nodes than it should: those that are kept, or the one place of a pod.
    #[error("{}", nominations(.expected))]
    Nominations { expected: Vec<(String, String)> },
    /// A pod is put where it does not fit.
    #[error("pod {pod} does not fit on node {node}: {misfit}")]
    DoesNotFit { pod: String, node: String, misfit: Misfit },
    /// A node fits on which nothing would have to be taken.
    #[error("pod {pod} fits on node {node} with no victim")]
    FitsNow { pod: String, node: String },
    /// A group of which enough members fit with nobody taken.
    #[error("{members} members fit with no victim, which is enough")]
    GroupFitsNow { members: usize },
    /// The nominated node fits, and another was chosen.
    #[error("the nominated node {node} fits, and another was chosen")]
    NominatedNodePassedOver { node: String },
    /// Fewer members run and are placed than the group needs.
    #[error("{running} members run and {placed} are placed; the group needs {min_count}, and a new one")]
    TooFewPlaced { running: usize, placed: usize, min_count: usize },
    /// A member was left out that fits on a node.
    #[error("member {pod} fits on node {node} and is not placed")]
    MemberLeftOut { pod: String, node: String },
    /// The members are not in one topology domain, or not in the one of those that run.
    #[error("the members are not in one domain of {}", .keys.join(", "))]
    SeveralDomains { keys: Vec<String> },
    /// Victims, though nothing is preempted.
    #[error("nothing is preempted, yet victims are named: {}", list(.victims))]
    NeedlessVictims { victims: Vec<String> },
    /// Preempt without a victim.
    #[error("it preempts without a victim")]
    NoVictim,
    /// A victim that holds no room.
    #[error("victim {pod} is bound to no node")]
    VictimNotBound { pod: String },
    /// A victim that is the preemptor itself.
    #[error("victim {pod} is the preemptor's own")]
    OwnVictim { pod: String },
    /// A victim whose priority is not below the preemptor's.
    #[error("victim {pod} has priority {priority}, which is not below the preemptor's {preemptor}")]
    VictimNotLower { pod: String, priority: i64, preemptor: i64 },
    /// A victim that tolerates the preemptor.
    #[error("victim {pod} tolerates the preemptor")]
    VictimTolerates { pod: String },
    /// A victim whose class opted out.
    #[error("victim {pod} opted out of preemption")]
    VictimOptedOut { pod: String },
    /// A victim in a namespace in which nobody is to be taken.
    #[error("victim {pod} is in a protected namespace")]
    VictimProtected { pod: String },
    /// A victim whose class nobody defined, so that its rights are unknown.
    #[error("the priority class of victim {pod} is not defined")]
    VictimOfUnknownClass { pod: String },
    /// A node is used that has a lower pod of a class that nobody defined.
    #[error("node {node} is used, and its pod {pod} is lower and of a priority class that is not defined")]
    UnknownClassOnNode { node: String, pod: String },
    /// Part of a unit is taken and part is left.
    #[error("victim {taken} is taken without {left}, and both are of one unit")]
    TakenInPart { taken: String, left: String },
    /// A victim without which the placement stands.
    #[error("the placement stands without taking {}", list(.pods))]
    SpareVictim { pods: Vec<String> },
    /// A unit is taken for a pod though none of its pods is on the pod's node.
    #[error("no pod of the victim {} is on node {node}", list(.pods))]
    VictimElsewhere { pods: Vec<String>, node: String },
    /// The victims on this node are others, by the rules.
    #[error("the victims on node {node} should be {}", list(.expected))]
    WrongVictims { node: String, expected: Vec<String> },
    /// The victims of this placement are others, by the rules.
    #[error("the victims of this placement should be {}", list(.expected))]
    WrongVictimsOfPlacement { expected: Vec<String> },
    /// Another node is better.
    #[error("node {best} is better: it costs only {}", list(.victims))]
    WrongNode { best: String, victims: Vec<String> },
    /// A victim's priority lies above the cut.
    #[error("victim {pod} of priority {priority} is above the cut: taking lower units is enough")]
    AboveTheCut { pod: String, priority: i64 },
    /// The preemptor is not to be placed: it has scheduling gates, or asks for what is not evaluated.
    #[error("pod {pod} has scheduling gates, or asks for what is not evaluated, and must be refused")]
    NotToBePlaced { pod: String },
    /// The preemptor may not preempt.
    #[error("{pod} may not preempt")]
    MayNotPreempt { pod: String },
    /// A group whose pods differ from it must be refused.
    #[error("pod {pod} differs from its group in priority or preemptionPolicy: the group must be refused")]
    MembersDiffer { pod: String },
    /// A preemption for it is under way: it must wait.
    #[error("a preemption is under way: pod {pod} still leaves the nominated node {node}")]
    UnderWay { pod: String, node: String },
    /// It waits, and nothing is under way.
    #[error("it waits, and no preemption for it is under way")]
    NothingUnderWay,
    /// It is said to be unschedulable, and a lawful plan exists.
    #[error("it would fit on node {node} by taking {}", list(.victims))]
    LawfulPlan { node: String, victims: Vec<String> },
    /// A group is said to be unschedulable, and enough members fit once all lawful victims are gone.
    #[error("{members} members would fit once all lawful victims are gone, which is enough")]
    LawfulPlanForGroup { members: usize },
}

fn nominations(expected: &[(String, String)]) -> String {
    if expected.is_empty() {
        return "there should be no nomination".to_owned();
    }
    let pairs: Vec<String> = expected.iter().map(|(pod, node)| format!("{pod} to {node}")).collect();
    format!("the nominations should be {}", pairs.join(", "))
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "no victim".to_owned() } else { names.join(", ") }
}
