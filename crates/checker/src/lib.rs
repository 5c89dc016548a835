//! An independent check of decisions under policy Kubernetes: a direct implementation of the rules in docs/rules/kubernetes-pods.md,
//! docs/rules/kubernetes-groups.md and docs/rules/toleration.md on the raw objects. It shares no code with the engine or the loader, so
//! that it finds errors in both, and it is slow on purpose: it caches nothing.
//!
//! For a pod it tries every node and accepts only the one right answer, or one of several if a group among the victims returns. For a group it takes the placement as given and checks all that
//! follows from it; `group` says what it does not check. `reprieve test`, the simulator and property tests call [`check`].

mod affinity;
mod amount;
mod cascades;
mod claimed;
mod classes;
mod cluster;
mod filter_failure;
mod finding;
mod fit;
mod group;
mod groups;
mod lawful;
mod members;
mod obstacle;
mod occupancy;
mod owners;
mod pod;
mod pod_search;
mod reprieve;
mod selector;
mod settings;
mod spread;
mod term;

use reprieve_api::answer::Answer;
use reprieve_api::{ObjectSet, PreemptorRef};

use claimed::ClaimedAnswer;
use cluster::Cluster;
pub use filter_failure::FilterFailure;
pub use finding::Finding;
pub use selector::selects;
pub use settings::Settings;

/// A decision and its input.
pub struct Claim<'a> {
    /// The objects of the cluster.
    pub objects: &'a ObjectSet,
    /// The time of the decision.
    pub now: jiff::Timestamp,
    /// The preemptor.
    pub preemptor: &'a PreemptorRef,
    /// The settings of the policy.
    pub settings: Settings,
    /// The name of the scheduler; if not set, each group belongs to the scheduler that its members name.
    pub scheduler_name: Option<&'a str>,
    /// The decision.
    pub answer: &'a Answer,
}

/// What is wrong with the decision by the rules; empty if it is accepted.
pub fn check(claim: &Claim<'_>) -> Vec<Finding> {
    run(claim).unwrap_or_else(|finding| vec![finding])
}

fn run(claim: &Claim<'_>) -> Result<Vec<Finding>, Finding> {
    let cluster = Cluster::read(claim.objects, claim.settings, claim.scheduler_name)?;
    let claimed = ClaimedAnswer::read(&cluster, claim.answer)?;
    let name = claim.preemptor.full_name();
    let findings = match claim.preemptor.kind.as_str() {
        "Pod" if let Some(group) = cluster.gang_of(&name.to_string()) => {
            group::check(&cluster, &claimed, &group, claim.settings, claim.now)
        }
        "Pod" => cluster
            .pod(&name.to_string())
            .filter(|&pod| cluster.pods[pod].node.is_none() || cluster.pods[pod].resizing)
            .map(|pod| pod::check(&cluster, &claimed, pod, claim.settings, claim.now)),
        "PodGroup" => {
            // docs/rules/kubernetes-groups.md#g21: the group of a Workload may be named with dashes.
            let is_it = |group: &&reprieve_api::NamespacedName| {
                group.namespace == name.namespace && group.name.replace('/', "-") == name.name
            };
            let group =
                cluster.groups.keys().find(|group| **group == name).or_else(|| cluster.groups.keys().find(is_it));
            group::check(&cluster, &claimed, group.unwrap_or(&name), claim.settings, claim.now)
        }
        _ => None,
    };
    findings.ok_or_else(|| Finding::NoPreemptor { kind: claim.preemptor.kind.clone(), name: name.to_string() })
}
