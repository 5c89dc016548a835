//! The kubelets: start bound pods and stop deleted ones. Also the loss and return of nodes.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_loader::time::time;

use super::VirtualCluster;
use super::sim_event::{RESTART_MICROS, SimEvent};
use crate::faults::Fault;
use crate::rng::Rng;
use crate::usage::{PodUsage, is_soft_evicted};

impl VirtualCluster {
    /// Schedules the start of a bound pod, and the end of a pod that was deleted or soft-evicted.
    pub(super) fn follow_pod(&mut self, pod: &Pod, before: &PodUsage) {
        let name = NamespacedName::from_meta(&pod.metadata);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let node = pod.node_name.as_ref().map(|node| ObjectKey::new(Kind::Node, NamespacedName::new("", node)));
        if let Some(node) = node.filter(|_| before.node.is_none()) {
            let (pod, uid) = (name.clone(), uid.clone());
            if self.api.get(&node).is_none() {
                // The pod garbage collector removes pods on nodes that do not exist.
                self.timeline.add_after(RESTART_MICROS, SimEvent::Stop { pod, uid });
            } else {
                let micros = self.jobs.owner(&name).map_or(0, |(job, _)| job.submission.startup_micros);
                self.timeline.add_after(micros, SimEvent::Start { pod, uid });
            }
        }
        if pod.metadata.deletion_timestamp.is_some() && !before.terminating {
            self.stop_later(name, uid);
        } else if is_soft_evicted(pod) && !before.soft_evicted {
            let micros = self.setup.soft_eviction_micros;
            self.timeline.add_after(micros, SimEvent::SoftEvict { pod: name, uid });
        }
    }

    fn stop_later(&mut self, pod: NamespacedName, uid: String) {
        let now = self.timeline.now();
        let is_slow = self.faults.draw_fault(Fault::SlowVictim, &pod.to_string());
        let mut micros = is_slow.map_or(0, |mut rng| rng.range(60_000_000, 600_000_000));
        if let Some((job, part)) = self.jobs.owner(&pod) {
            micros += job.submission.stop_micros;
            job.interrupt(part, now);
        }
        self.timeline.add_after(micros, SimEvent::Stop { pod, uid });
    }

    fn pod(&self, name: &NamespacedName, uid: &str) -> Option<&Arc<Pod>> {
        self.api.pod(name).filter(|pod| pod.metadata.uid.as_deref() == Some(uid))
    }

    /// Marks a pod as running, unless it was deleted or has finished.
    pub(super) fn start(&mut self, name: &NamespacedName, uid: &str) {
        let now = self.timeline.now();
        if self.pod(name, uid).is_none_or(|pod| pod.metadata.deletion_timestamp.is_some() || pod.is_finished()) {
            return;
        }
        self.api.change(name, |pod| {
            let status = pod.status.get_or_insert_default();
            status.phase = Some("Running".to_owned());
            status.start_time = time(now).map(Time);
        });
        self.jobs.started(&mut self.timeline, name);
    }

    pub(super) fn stop(&mut self, pod: &NamespacedName, uid: &str) {
        if self.pod(pod, uid).is_some() {
            self.api.remove(&ObjectKey::new(Kind::Pod, pod.clone()));
        }
    }

    /// Deletes a soft-evicted pod, as another operator would.
    pub(super) fn delete_soft_evicted(&mut self, pod: &NamespacedName, uid: &str) {
        if self.pod(pod, uid).is_some() {
            self.api.delete(pod, self.timeline.now());
        }
    }

    /// Removes a random node and its pods, and adds the node again later.
    pub(super) fn lose_node(&mut self, mut rng: Rng) {
        let nodes: Vec<Object> = self.api.of_kind(Kind::Node).cloned().collect();
        if nodes.len() < 2 {
            return;
        }
        let index = usize::try_from(rng.below(nodes.len() as u64)).expect("below the length");
        let node = nodes[index].clone();
        self.statistics.usage.capacity -= self.statistics.usage.capacity_of(&node);
        self.api.remove(&node.key());
        for pod in self.statistics.usage.pods_on(&node.key().name.name) {
            self.api.remove(&ObjectKey::new(Kind::Pod, pod));
        }
        self.deliver_changes();
        let absence = rng.range(60_000_000, 600_000_000);
        self.timeline.add_after(absence, SimEvent::NodeBack(Box::new(node)));
    }
}
