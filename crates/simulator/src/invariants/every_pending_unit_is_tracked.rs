//! Every pending unit, but those of the hostile tenant, is in the queue of the scheduler, and the scheduler takes no pod to be terminating
//! that is not.

use std::collections::BTreeSet;

use reprieve_api::{NamespacedName, Pod};
use reprieve_engine::Timestamp;
use reprieve_scheduler::UnitRef;

use super::{CheckResult, ensure};
use crate::hostile::TENANT;
use crate::virtual_cluster::VirtualCluster;

/// The time after which the scheduler has received every change, at the latest by a list.
const DELIVERED_MICROS: i64 = 150_000_000;

#[derive(Default)]
pub(super) struct EveryPendingUnitIsTracked {
    checked: Option<Timestamp>,
    /// The uids of pods that the scheduler took to be terminating, wrongly, at the last check.
    suspected: BTreeSet<String>,
}

impl EveryPendingUnitIsTracked {
    /// A pod that the scheduler takes to be terminating for two checks is terminating.
    fn check_terminating(&mut self, cluster: &VirtualCluster, pod: &Pod) -> CheckResult {
        let name = NamespacedName::from_meta(&pod.metadata);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let is_assumed =
            cluster.scheduler().live().pod(&name).is_some_and(|known| known.metadata.deletion_timestamp.is_some());
        if !is_assumed || pod.metadata.deletion_timestamp.is_some() {
            self.suspected.remove(&uid);
            return Ok(());
        }
        ensure(self.suspected.insert(uid), || format!("the scheduler wrongly takes pod {name} to be terminating"))
    }

    pub fn check(&mut self, cluster: &VirtualCluster) -> CheckResult {
        let now = cluster.now();
        if self.checked.is_some_and(|checked| now < checked.plus_micros(DELIVERED_MICROS)) {
            return Ok(());
        }
        self.checked = Some(now);
        let waiting: BTreeSet<&UnitRef> = cluster.scheduler().waiting().map(|(unit, _)| unit).collect();
        if now.0 - cluster.process.started.0 < DELIVERED_MICROS {
            return Ok(());
        }
        for pod in cluster.api.pods().filter(|pod| pod.metadata.namespace.as_deref() != Some(TENANT)) {
            self.check_terminating(cluster, pod)?;
            let bound = pod.node_name.is_some();
            let created = pod.metadata.creation_timestamp.as_ref().map_or(i64::MIN, |at| at.0.as_microsecond());
            let recently = now.0 - created < DELIVERED_MICROS;
            if bound || recently || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let unit = UnitRef::of(pod, &cluster.setup.policy);
            let known = cluster.scheduler().live().pod(&NamespacedName::from_meta(&pod.metadata));
            let assumed = known.is_some_and(|pod| pod.node_name.is_some());
            if !assumed && !waiting.contains(&unit) {
                return Err(format!("{unit} is pending and not in the queue of the scheduler"));
            }
        }
        Ok(())
    }
}
