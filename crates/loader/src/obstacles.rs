//! Finds what keeps a pending pod from being placed, apart from room: another scheduler, scheduling gates, unsupported fields. Also whether a
//! bound pod would be such a pending pod after its eviction.

use std::collections::BTreeMap;

use reprieve_api::{NamespacedName, ObjectSet, Pod, job_of};
use reprieve_engine::policy::kubernetes::Cascades;
use reprieve_engine::snapshot::{Obstacle, QueueRefusal, Recreation};
use reprieve_engine::{Policy, TextId};

use crate::Interner;
use crate::schedulers::Schedulers;
use crate::unsupported::{field_of_job, field_of_pod};
use crate::untrusted::Untrusted;

/// The scheduling gate that Kueue sets on the pods of a workload, and removes when it admits the workload.
const ADMISSION_GATE: &str = "kueue.x-k8s.io/admission";

/// The annotation with which a pod denies that its controller creates it again.
pub const RETURNS: &str = "reprieve.dev/returns";

/// The kinds of controllers whose pods belong to one node.
const PER_NODE: [&str; 2] = ["DaemonSet", "Node"];

/// The obstacles of pending pods under one policy and for one scheduler.
pub struct Obstacles {
    policy: Policy,
    pub schedulers: Schedulers,
    /// The field of each Koordinator job that no decision evaluates.
    unsupported_jobs: BTreeMap<NamespacedName, String>,
}

impl Obstacles {
    pub fn new(objects: &ObjectSet, policy: &Policy, scheduler_name: Option<&str>) -> Self {
        let schedulers = Schedulers::new(objects, policy, scheduler_name);
        Self { policy: *policy, schedulers, unsupported_jobs: unsupported_jobs(objects) }
    }

    /// Returns what keeps a pending pod from being placed; `refused_queue` is the queue that it names and may not use.
    pub fn find(
        &self,
        pod: &Pod,
        refused_queue: Option<(String, QueueRefusal)>,
        texts: &mut Interner,
    ) -> Option<Obstacle> {
        if self.schedulers.names_other_scheduler(pod, &self.policy) {
            return Some(Obstacle::OtherScheduler);
        }
        let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
        let gates = gates.into_iter().flatten().map(|gate| gate.name.as_str());
        // Kueue removes its own gate when it admits the workload, so under policy Kueue that gate is no obstacle.
        let ignored = matches!(self.policy, Policy::Kueue(_)).then_some(ADMISSION_GATE);
        let gates: Vec<TextId> =
            gates.filter(|gate| Some(*gate) != ignored).map(|gate| TextId(texts.id(gate))).collect();
        if !gates.is_empty() {
            return Some(Obstacle::Gates(gates));
        }
        if let Some((queue, cause)) = refused_queue {
            return Some(Obstacle::QueueRefused { queue: TextId(texts.id(&queue)), cause });
        }
        let of_job = || {
            let job = job_of(pod).filter(|_| matches!(self.policy, Policy::Koordinator(_)))?;
            self.unsupported_jobs.get(&job).cloned()
        };
        let field = field_of_pod(pod, &self.policy).or_else(of_job)?;
        Some(Obstacle::Unsupported(TextId(texts.id(&field))))
    }

    /// Returns what follows the eviction of a bound pod; always `Never` under a policy that does not ask for it. Anyone who creates a pod can
    /// write its owner and its annotations: they only count in the cost of plans that evict this very pod.
    pub fn recreation(&self, pod: &Pod) -> Recreation {
        let is_read = matches!(self.policy, Policy::Kubernetes(policy) if policy.cascades == Cascades::Include);
        let is_bound = pod.node_name.as_ref().is_some_and(|node| !node.is_empty());
        let annotation = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(RETURNS));
        let is_denied = Untrusted::new(annotation).check(|value| value.is_some_and(|value| value == "false"));
        let mut owners = pod.metadata.owner_references.iter().flatten().map(Untrusted::new);
        let is_controlled = |kind: &str| !PER_NODE.contains(&kind);
        if !is_read
            || !is_bound
            || is_denied
            || !owners.any(|owner| owner.check(|owner| owner.controller == Some(true) && is_controlled(&owner.kind)))
        {
            return Recreation::Never;
        }
        let is_decided = !self.schedulers.is_foreign(pod) && field_of_pod(pod, &self.policy).is_none();
        if is_decided { Recreation::Decided } else { Recreation::NotDecided }
    }
}

fn unsupported_jobs(objects: &ObjectSet) -> BTreeMap<NamespacedName, String> {
    let groups = objects.koordinator_pod_groups.iter().map(|group| (group.name(), field_of_job(&group.object)));
    groups.filter_map(|(name, field)| Some((name.clone(), format!("PodGroup {name}: {}", field?)))).collect()
}
