//! The kubelets: what becomes of pods once they are bound or deleted, and of the nodes.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::kinds::{Key, Kind, Object};
use reprieve_api::meta::FullName;
use reprieve_api::pod::Pod;
use reprieve_loader::time::time;

use super::World;
use super::happening::{Happening, RESTART_MICROS};
use crate::chance::Chance;
use crate::faults::Fault;
use crate::usage::{Counted, is_soft_evicted};

impl World {
    /// A pod was changed: one that is bound starts after a while, one that is deleted or labelled for eviction stops.
    pub(super) fn follow_pod(&mut self, pod: &Pod, before: &Counted) {
        let name = FullName::of(&pod.metadata);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let node = pod.node_name.as_ref().map(|node| Key::new(Kind::Node, FullName::new("", node)));
        if let Some(node) = node.filter(|_| before.node.is_none()) {
            let (pod, uid) = (name.clone(), uid.clone());
            if self.api.get(&node).is_none() {
                // Bound to a node that is gone: the collector of such pods takes it away.
                self.timeline.after(RESTART_MICROS, Happening::Stop { pod, uid });
            } else {
                let micros = self.jobs.owner(&name).map_or(0, |(job, _)| job.submission.startup_micros);
                self.timeline.after(micros, Happening::Start { pod, uid });
            }
        }
        if pod.metadata.deletion_timestamp.is_some() && !before.leaving {
            self.stop_later(name, uid);
        } else if is_soft_evicted(pod) && !before.soft {
            let micros = self.setup.soft_eviction_micros;
            self.timeline.after(micros, Happening::EvictSoftly { pod: name, uid });
        }
    }

    fn stop_later(&mut self, pod: FullName, uid: String) {
        let now = self.timeline.now();
        let slow = self.faults.strikes(Fault::SlowVictim, &pod.to_string());
        let mut micros = slow.map_or(0, |mut chance| chance.within(60_000_000, 600_000_000));
        if let Some((job, part)) = self.jobs.owner(&pod) {
            micros += job.submission.stop_micros;
            job.interrupt(part, now);
        }
        self.timeline.after(micros, Happening::Stop { pod, uid });
    }

    fn pod(&self, name: &FullName, uid: &str) -> Option<&Arc<Pod>> {
        self.api.pod(name).filter(|pod| pod.metadata.uid.as_deref() == Some(uid))
    }

    /// A pod has started, unless it is gone or being deleted.
    pub(super) fn start(&mut self, name: &FullName, uid: &str) {
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
    pub(super) fn stop(&mut self, pod: &FullName, uid: &str) {
        if self.pod(pod, uid).is_some() {
            self.api.remove(&Key::new(Kind::Pod, pod.clone()));
        }
    }

    /// Another operator deletes a pod that was labelled for it.
    pub(super) fn evict_softly(&mut self, pod: &FullName, uid: &str) {
        if self.pod(pod, uid).is_some() {
            self.api.delete(pod, self.timeline.now());
        }
    }

    /// A node vanishes with all that is on it, and comes back empty.
    pub(super) fn lose_node(&mut self, mut chance: Chance) {
        let nodes: Vec<Object> = self.api.of_kind(Kind::Node).cloned().collect();
        if nodes.len() < 2 {
            return;
        }
        let at = usize::try_from(chance.below(nodes.len() as u64)).expect("it is an index");
        let node = nodes[at].clone();
        self.statistics.usage.capacity -= self.statistics.usage.offered(&node);
        self.api.remove(&node.key());
        for pod in self.statistics.usage.pods_on(&node.key().name.name) {
            self.api.remove(&Key::new(Kind::Pod, pod));
        }
        self.spread_news();
        let back = chance.within(60_000_000, 600_000_000);
        self.timeline.after(back, Happening::NodeBack(Box::new(node)));
    }
}
