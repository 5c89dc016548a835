//! Finds what keeps a pending pod from being placed, apart from room: another scheduler, scheduling gates, unsupported fields.

use std::collections::BTreeMap;

use reprieve_api::{NamespacedName, ObjectSet, Pod, job_of};
use reprieve_engine::snapshot::{Obstacle, QueueRefusal};
use reprieve_engine::{Policy, TextId};

use crate::Interner;
use crate::schedulers::Schedulers;
use crate::unsupported::{field_of_job, field_of_pod};

/// The scheduling gate that Kueue sets on the pods of a workload, and removes when it admits the workload.
const ADMISSION_GATE: &str = "kueue.x-k8s.io/admission";

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
}

fn unsupported_jobs(objects: &ObjectSet) -> BTreeMap<NamespacedName, String> {
    let groups = objects.koordinator_pod_groups.iter().map(|group| (group.name(), field_of_job(&group.object)));
    groups.filter_map(|(name, field)| Some((name.clone(), format!("PodGroup {name}: {}", field?)))).collect()
}
