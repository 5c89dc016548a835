//! The findings of the checker, with the text that the tests print.

use crate::filter_failure::FilterFailure;

/// A violation of the rules by a decision, with the names of pods and nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// An object has an invalid field.
    #[error("{object}: {field} cannot be read")]
    Unreadable { object: String, field: String },
    /// The preemptor does not exist or needs no node.
    #[error("{kind} {name} does not exist or needs no node")]
    NoPreemptor { kind: String, name: String },
    /// The answer names an unknown object.
    #[error("the answer names {name}, which is not in the cluster")]
    Unknown { name: String },
    /// The answer nominates a pod that is no pending pod of the preemptor.
    #[error("pod {pod} is nominated, and is no pending pod of the preemptor")]
    NotOfThePreemptor { pod: String },
    /// The nominations are not the expected ones.
    #[error("{}", nominations(.expected))]
    Nominations { expected: Vec<(String, String)> },
    /// A pod is placed where it does not fit.
    #[error("pod {pod} does not fit on node {node}: {failure}")]
    DoesNotFit { pod: String, node: String, failure: FilterFailure },
    /// The pod fits on a node without victims.
    #[error("pod {pod} fits on node {node} with no victim")]
    FitsNow { pod: String, node: String },
    /// Enough members of the group fit without victims.
    #[error("{members} members fit with no victim, which is enough")]
    GroupFitsNow { members: usize },
    /// The pod fits on its nominated node, and another was chosen.
    #[error("the nominated node {node} fits, and another was chosen")]
    NominatedNodeSkipped { node: String },
    /// Fewer members run and are placed than the group needs.
    #[error("{running} members run and {placed} are placed; the group needs {min_count}, at least one of them new")]
    TooFewPlaced { running: usize, placed: usize, min_count: usize },
    /// A member that fits on a node is not placed.
    #[error("member {pod} fits on node {node} and is not placed")]
    MemberLeftOut { pod: String, node: String },
    /// No possible domain contains all placed members: they are in several, or not in that of the running members.
    #[error("the members are not in one domain of {}", .keys.join(", "))]
    OutsideDomain { keys: Vec<String> },
    /// Victims without a preemption.
    #[error("nothing is preempted, yet victims are named: {}", list(.victims))]
    NeedlessVictims { victims: Vec<String> },
    /// A preemption without victims.
    #[error("the answer preempts without a victim")]
    NoVictim,
    /// A victim that is not bound.
    #[error("victim {pod} is bound to no node")]
    VictimNotBound { pod: String },
    /// A victim that belongs to the preemptor.
    #[error("victim {pod} is the preemptor's own")]
    OwnVictim { pod: String },
    /// A victim whose priority is not below the preemptor's.
    #[error("victim {pod} has priority {priority}, which is not below the preemptor's {preemptor}")]
    VictimNotLower { pod: String, priority: i64, preemptor: i64 },
    /// A victim that tolerates the preemptor.
    #[error("victim {pod} tolerates the preemptor")]
    VictimTolerates { pod: String },
    /// A victim whose priority class opted out.
    #[error("victim {pod} opted out of preemption")]
    VictimOptedOut { pod: String },
    /// A victim in a protected namespace.
    #[error("victim {pod} is in a protected namespace")]
    VictimProtected { pod: String },
    /// A victim whose priority class is not defined, so that its tolerations are unknown.
    #[error("the priority class of victim {pod} is not defined")]
    VictimOfUnknownClass { pod: String },
    /// A node is used that has a lower pod with an undefined priority class.
    #[error("node {node} is used, and its pod {pod} is lower and of a priority class that is not defined")]
    UnknownClassOnNode { node: String, pod: String },
    /// Only part of a unit is taken.
    #[error("victim {taken} is taken without {left} of the same unit")]
    TakenInPart { taken: String, left: String },
    /// A victim that is not needed.
    #[error("the placement is valid without evicting {}", list(.pods))]
    SpareVictim { pods: Vec<String> },
    /// A victim of a pod has no pod on the pod's node.
    #[error("no pod of the victim {} is on node {node}", list(.pods))]
    VictimElsewhere { pods: Vec<String>, node: String },
    /// The rules give other victims on this node.
    #[error("the victims on node {node} should be {}", list(.expected))]
    WrongVictims { node: String, expected: Vec<String> },
    /// The rules give other victims for this placement.
    #[error("the victims of this placement should be {}", list(.expected))]
    WrongVictimsOfPlacement { expected: Vec<String> },
    /// Another node is better.
    #[error("node {best} is better: it costs only {}", list(.victims))]
    WrongNode { best: String, victims: Vec<String> },
    /// A victim's priority lies above the cut.
    #[error("victim {pod} of priority {priority} is above the cut: taking lower units is enough")]
    AboveTheCut { pod: String, priority: i64 },
    /// The preemptor is not to be placed: it has scheduling gates, or a requirement that is not evaluated.
    #[error("pod {pod} has scheduling gates or a requirement that is not evaluated, and must be refused")]
    NotToBePlaced { pod: String },
    /// The preemptor may not preempt.
    #[error("{pod} may not preempt")]
    MayNotPreempt { pod: String },
    /// A group whose members differ from it must be refused.
    #[error("pod {pod} differs from its group in priority or preemptionPolicy: the group must be refused")]
    MembersDiffer { pod: String },
    /// A victim of an earlier preemption still terminates on the nominated node, so the preemptor must wait.
    #[error("a preemption is in progress: pod {pod} still terminates on the nominated node {node}")]
    StillTerminating { pod: String, node: String },
    /// All victims terminate already, preempted for the same preemptor, which must wait for them.
    #[error("all victims were preempted for the preemptor before: it must wait for them")]
    OnlyPreemptedPods,
    /// The preemptor waits without a preemption in progress.
    #[error("the preemptor waits, but no preemption for it is in progress")]
    NothingInProgress,
    /// The preemptor is claimed to be unschedulable, and a plan exists.
    #[error("the preemptor would fit on node {node} after evicting {}", list(.victims))]
    LawfulPlan { node: String, victims: Vec<String> },
    /// A group is claimed to be unschedulable, and enough members fit without all candidates.
    #[error("{members} members would fit without all candidates, which is enough")]
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
