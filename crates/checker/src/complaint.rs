//! What can be wrong with a decision, in the words of the house plan.

use std::fmt;

use crate::misfit::Misfit;

/// One thing that is wrong with a decision, by the rules. Pods and nodes are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// The objects cannot be read.
    Unreadable { object: String, field: String },
    /// Nobody of this kind and name needs a place.
    NoPreemptor { kind: String, name: String },
    /// The answer names what is not there.
    Unknown { name: String },
    /// It nominates a pod that is no pending pod of the preemptor.
    NotOfThePreemptor { pod: String },
    /// It nominates other nodes than it should: those that are kept, or the one place of a pod.
    Nominations { expected: Vec<(String, String)> },
    /// A pod is put where it does not fit.
    DoesNotFit { pod: String, node: String, misfit: Misfit },
    /// A node fits on which nothing would have to be taken.
    FitsNow { pod: String, node: String },
    /// A group of which enough members fit with nobody taken.
    GroupFitsNow { members: usize },
    /// The nominated node fits, and another was chosen.
    NominatedNodePassedOver { node: String },
    /// Fewer members run and are placed than the group needs.
    TooFewPlaced { running: usize, placed: usize, min_count: usize },
    /// A member was left out that fits on a node.
    MemberLeftOut { pod: String, node: String },
    /// The members are not in one topology domain, or not in the one of those that run.
    SeveralDomains { keys: Vec<String> },
    /// Victims, though nothing is preempted.
    NeedlessVictims { victims: Vec<String> },
    /// Preempt without a victim.
    NoVictim,
    /// A victim that holds no room.
    VictimNotBound { pod: String },
    /// A victim that is the preemptor itself.
    OwnVictim { pod: String },
    /// A victim whose priority is not below the preemptor's.
    VictimNotLower { pod: String, priority: i64, preemptor: i64 },
    /// A victim that tolerates the preemptor.
    VictimTolerates { pod: String },
    /// A victim whose class opted out.
    VictimOptedOut { pod: String },
    /// A victim in a namespace in which nobody is to be taken.
    VictimProtected { pod: String },
    /// A victim whose class nobody defined, so that its rights are unknown.
    VictimOfUnknownClass { pod: String },
    /// A node is used that has a lower pod of a class that nobody defined.
    UnknownClassOnNode { node: String, pod: String },
    /// Part of a unit is taken and part is left.
    TakenInPart { taken: String, left: String },
    /// A victim without which the placement stands.
    SpareVictim { pods: Vec<String> },
    /// A unit is taken for a pod though none of its pods is on the pod's node.
    VictimElsewhere { pods: Vec<String>, node: String },
    /// The victims on this node are others, by the rules.
    WrongVictims { node: String, expected: Vec<String> },
    /// The victims of this placement are others, by the rules.
    WrongVictimsOfPlacement { expected: Vec<String> },
    /// Another node is better.
    WrongNode { best: String, victims: Vec<String> },
    /// A victim's priority lies above the cut.
    AboveTheCut { pod: String, priority: i64 },
    /// The preemptor is not to be placed: it has scheduling gates, or asks for what is not evaluated.
    NotToBePlaced { pod: String },
    /// The preemptor may not preempt.
    MayNotPreempt { pod: String },
    /// A group whose pods differ from it must be refused.
    MembersDiffer { pod: String },
    /// A preemption for it is under way: it must wait.
    UnderWay { pod: String, node: String },
    /// It waits, and nothing is under way.
    NothingUnderWay,
    /// It is said to be unschedulable, and a lawful plan exists.
    LawfulPlan { node: String, victims: Vec<String> },
    /// A group is said to be unschedulable, and enough members fit once all lawful victims are gone.
    LawfulPlanForGroup { members: usize },
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { object, field } => write!(f, "{object}: {field} cannot be read"),
            Self::NoPreemptor { kind, name } => write!(f, "there is no {kind} {name} that needs a place"),
            Self::Unknown { name } => write!(f, "the answer names {name}, which is not in the cluster"),
            Self::NotOfThePreemptor { pod } => {
                write!(f, "pod {pod} is nominated, and is no pending pod of the preemptor")
            }
            Self::Nominations { expected } if expected.is_empty() => write!(f, "there should be no nomination"),
            Self::Nominations { expected } => {
                let pairs: Vec<String> = expected.iter().map(|(pod, node)| format!("{pod} to {node}")).collect();
                write!(f, "the nominations should be {}", pairs.join(", "))
            }
            Self::DoesNotFit { pod, node, misfit } => write!(f, "pod {pod} does not fit on node {node}: {misfit}"),
            Self::FitsNow { pod, node } => write!(f, "pod {pod} fits on node {node} with no victim"),
            Self::GroupFitsNow { members } => write!(f, "{members} members fit with no victim, which is enough"),
            Self::NominatedNodePassedOver { node } => {
                write!(f, "the nominated node {node} fits, and another was chosen")
            }
            Self::TooFewPlaced { running, placed, min_count } => {
                write!(f, "{running} members run and {placed} are placed; the group needs {min_count}, and a new one")
            }
            Self::MemberLeftOut { pod, node } => write!(f, "member {pod} fits on node {node} and is not placed"),
            Self::SeveralDomains { keys } => {
                write!(f, "the members are not in one domain of {}", keys.join(", "))
            }
            Self::NeedlessVictims { victims } => {
                write!(f, "nothing is preempted, yet victims are named: {}", list(victims))
            }
            Self::NoVictim => write!(f, "it preempts without a victim"),
            Self::VictimNotBound { pod } => write!(f, "victim {pod} is bound to no node"),
            Self::OwnVictim { pod } => write!(f, "victim {pod} is the preemptor's own"),
            Self::VictimNotLower { pod, priority, preemptor } => {
                write!(f, "victim {pod} has priority {priority}, which is not below the preemptor's {preemptor}")
            }
            Self::VictimTolerates { pod } => write!(f, "victim {pod} tolerates the preemptor"),
            Self::VictimProtected { pod } => write!(f, "victim {pod} is in a protected namespace"),
            Self::VictimOptedOut { pod } => write!(f, "victim {pod} opted out of preemption"),
            Self::VictimOfUnknownClass { pod } => write!(f, "the priority class of victim {pod} is not defined"),
            Self::UnknownClassOnNode { node, pod } => {
                write!(f, "node {node} is used, and its pod {pod} is lower and of a priority class that is not defined")
            }
            Self::TakenInPart { taken, left } => {
                write!(f, "victim {taken} is taken without {left}, and both are of one unit")
            }
            Self::SpareVictim { pods } => write!(f, "the placement stands without taking {}", list(pods)),
            Self::VictimElsewhere { pods, node } => write!(f, "no pod of the victim {} is on node {node}", list(pods)),
            Self::WrongVictims { node, expected } => {
                write!(f, "the victims on node {node} should be {}", list(expected))
            }
            Self::WrongVictimsOfPlacement { expected } => {
                write!(f, "the victims of this placement should be {}", list(expected))
            }
            Self::WrongNode { best, victims } => {
                write!(f, "node {best} is better: it costs only {}", list(victims))
            }
            Self::AboveTheCut { pod, priority } => {
                write!(f, "victim {pod} of priority {priority} is above the cut: taking lower units is enough")
            }
            Self::NotToBePlaced { pod } => {
                write!(f, "pod {pod} has scheduling gates, or asks for what is not evaluated, and must be refused")
            }
            Self::MayNotPreempt { pod } => write!(f, "{pod} may not preempt"),
            Self::MembersDiffer { pod } => {
                write!(f, "pod {pod} differs from its group in priority or preemptionPolicy: the group must be refused")
            }
            Self::UnderWay { pod, node } => {
                write!(f, "a preemption is under way: pod {pod} still leaves the nominated node {node}")
            }
            Self::NothingUnderWay => write!(f, "it waits, and no preemption for it is under way"),
            Self::LawfulPlan { node, victims } => {
                write!(f, "it would fit on node {node} by taking {}", list(victims))
            }
            Self::LawfulPlanForGroup { members } => {
                write!(f, "{members} members would fit once all lawful victims are gone, which is enough")
            }
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "no victim".to_owned() } else { names.join(", ") }
}
