//! An independent judge of decisions: a naive reading of the rules for policy Kubernetes, from the raw objects alone. It shares
//! no code with the engine or the loader, so that a fault in either shows here, and it is slow on purpose: whatever can be
//! worked out anew is worked out anew.
//!
//! For a pod it tries every node and accepts only the one right answer. For a group it takes the placement as claimed and checks
//! all that follows from it; see `group` for what it does not ask.

mod affinity;
mod amount;
mod claimed;
mod classes;
mod cluster;
mod finding;
mod fit;
mod group;
mod groups;
mod lawful;
mod members;
mod misfit;
mod obstacle;
mod occupancy;
mod pod;
mod reprieve;
mod selector;
mod spread;
mod term;

use reprieve_api::answer::Answer;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::test_file::PreemptorRef;

use claimed::ClaimedAnswer;
use cluster::Cluster;
pub use finding::Finding;
pub use misfit::Misfit;
pub use selector::selects;

/// A decision, and all that it was made from.
pub struct Claim<'a> {
    /// The cluster.
    pub objects: &'a ObjectSet,
    /// The decision's clock.
    pub now: jiff::Timestamp,
    /// Who asks.
    pub preemptor: &'a PreemptorRef,
    /// Whether groups are decided with the cut over priorities.
    pub priority_cut: bool,
    /// How far a group's preemption priority may lie above its scheduling priority.
    pub max_preemption_priority_excess: Option<u32>,
    /// The scheduler that decides; without it each group belongs to the scheduler that its members name.
    pub scheduler_name: Option<&'a str>,
    /// What was decided.
    pub answer: &'a Answer,
}

/// What is wrong with the decision, by the rules; empty if it is accepted.
pub fn check(claim: &Claim<'_>) -> Vec<Finding> {
    judge(claim).unwrap_or_else(|complaint| vec![complaint])
}

fn judge(claim: &Claim<'_>) -> Result<Vec<Finding>, Finding> {
    let cluster = Cluster::read(claim.objects, claim.max_preemption_priority_excess, claim.scheduler_name)?;
    let claimed = ClaimedAnswer::read(&cluster, claim.answer)?;
    let name = claim.preemptor.full_name();
    let outcome = claim.answer.outcome;
    let complaints = match claim.preemptor.kind.as_str() {
        "Pod" => cluster
            .pod(&name.to_string())
            .filter(|&pod| cluster.pods[pod].node.is_none() || cluster.pods[pod].resizing)
            .map(|pod| pod::judge(&cluster, &claimed, outcome, pod, claim.now)),
        "PodGroup" => group::judge(&cluster, &claimed, outcome, &name, claim.priority_cut, claim.now),
        _ => None,
    };
    complaints.ok_or_else(|| Finding::NoPreemptor { kind: claim.preemptor.kind.clone(), name: name.to_string() })
}
