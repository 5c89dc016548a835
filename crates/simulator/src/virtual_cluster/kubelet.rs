//! The kubelets: what becomes of pods once they are bound or deleted, and of the nodes.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_loader::time::time;

use super::VirtualCluster;
use super::sim_event::{RESTART_MICROS, SimEvent};
use crate::faults::Fault;
use crate::rng::Rng;
use crate::usage::{Counted, is_soft_evicted};

impl VirtualCluster {
    /// A pod was changed: one that is bound starts after a while, one that is deleted or labelled for eviction stops.
    pub(super) fn follow_pod(&mut self, pod: &Pod, before: &Counted) {
        let name = NamespacedName::from_meta(&pod.metadata);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let node = pod.node_name.as_ref().map(|node| ObjectKey::new(Kind::Node, NamespacedName::new("", node)));
        if let Some(node) = node.filter(|_| before.node.is_none()) {
            let (pod, uid) = (name.clone(), uid.clone());
            if self.api.get(&node).is_none() {
                // Bound to a node that is gone: the collector of such pods takes it away.
                self.timeline.after(RESTART_MICROS, SimEvent::Stop { pod, uid });
            } else {
                let micros = self.jobs.owner(&name).map_or(0, |(job, _)| job.submission.startup_micros);
                self.timeline.after(micros, SimEvent::Start { pod, uid });
            }
        }
        if pod.metadata.deletion_timestamp.is_some() && !before.leaving {
            self.stop_later(name, uid);
        } else if is_soft_evicted(pod) && !before.soft {
            let micros = self.setup.soft_eviction_micros;
            self.timeline.after(micros, SimEvent::EvictSoftly { pod: name, uid });
        }
    }

    fn stop_later(&mut self, pod: NamespacedName, uid: String) {
        let now = self.timeline.now();
        let slow = self.faults.draw_fault(Fault::SlowVictim, &pod.to_string());
        let mut micros = slow.map_or(0, |mut chance| chance.range(60_000_000, 600_000_000));
        if let Some((job, part)) = self.jobs.owner(&pod) {
            micros += job.submission.stop_micros;
            job.interrupt(part, now);
        }
        self.timeline.after(micros, SimEvent::Stop { pod, uid });
    }

    fn pod(&self, name: &NamespacedName, uid: &str) -> Option<&Arc<Pod>> {
        self.api.pod(name).filter(|pod| pod.metadata.uid.as_deref() == Some(uid))
    }

    /// A pod has started, unless it is gone or being deleted.
    pub(super) fn start(&mut self, name: &NamespacedName, uid: &str) {
        let now = self.timeline.now();
        if self.pod(name, uid).is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()) {
            return;
        }
        self.api.change(name, |pod| {
            let status = pod.status.get_or_insert_default();
            status.phase = Some("Running".to_owned());
            status.start_time = time(now).map(Time);
        });
        self.jobs.started(&mut self.timeline, name);
    }

    /// A pod has stopped.
    pub(super) fn stop(&mut self, pod: &NamespacedName, uid: &str) {
        if self.pod(pod, uid).is_some() {
            self.api.remove(&ObjectKey::new(Kind::Pod, pod.clone()));
        }
    }

    /// Another operator deletes a pod that was labelled for it.
    pub(super) fn evict_softly(&mut self, pod: &NamespacedName, uid: &str) {
        if self.pod(pod, uid).is_some() {
            self.api.delete(pod, self.timeline.now());
        }
    }

    /// A node vanishes with all that is on it, and comes back empty.
    pub(super) fn lose_node(&mut self, mut chance: Rng) {
        let nodes: Vec<Object> = self.api.of_kind(Kind::Node).cloned().collect();
        if nodes.len() < 2 {
            return;
        }
        let at = usize::try_from(chance.below(nodes.len() as u64)).expect("it is an index");
        let node = nodes[at].clone();
        self.statistics.usage.capacity -= self.statistics.usage.offered(&node);
        self.api.remove(&node.key());
        for pod in self.statistics.usage.pods_on(&node.key().name.name) {
            self.api.remove(&ObjectKey::new(Kind::Pod, pod));
        }
        self.deliver_changes();
        let back = chance.range(60_000_000, 600_000_000);
        self.timeline.after(back, SimEvent::NodeBack(Box::new(node)));
    }
}
