//! Whoever waits is in the scheduler's queue, or waits for something that can end.

use std::collections::BTreeSet;

use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_scheduler::UnitRef;

use super::Held;
use crate::virtual_cluster::VirtualCluster;

/// By then everything that happened has been heard of, at the latest by a list.
const HEARD_MICROS: i64 = 150_000_000;

#[derive(Default)]
pub(super) struct EveryPendingUnitIsTracked {
    looked: Option<Timestamp>,
    /// By uid: who was taken to be leaving, and was not, when it was looked last.
    suspected: BTreeSet<String>,
}

impl EveryPendingUnitIsTracked {
    /// Whoever waits for somebody to leave waits for somebody who does.
    fn knows_who_is_leaving(&mut self, world: &VirtualCluster, pod: &Pod) -> Held {
        let name = NamespacedName::from_meta(&pod.metadata);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let taken = world.scheduler().live().pod(&name).is_some_and(|seen| seen.metadata.deletion_timestamp.is_some());
        if !taken || pod.metadata.deletion_timestamp.is_some() {
            self.suspected.remove(&uid);
            return Ok(());
        }
        match self.suspected.insert(uid) {
            true => Ok(()),
            false => Err(format!("the scheduler takes {name} to be leaving, and it is not")),
        }
    }

    pub fn check(&mut self, world: &VirtualCluster) -> Held {
        let now = world.now();
        if self.looked.is_some_and(|looked| now < looked.plus_micros(HEARD_MICROS)) {
            return Ok(());
        }
        self.looked = Some(now);
        let waiting: BTreeSet<&UnitRef> = world.scheduler().waiting().map(|(unit, _)| unit).collect();
        if now.0 - world.process.started.0 < HEARD_MICROS {
            return Ok(());
        }
        for pod in world.api.pods() {
            self.knows_who_is_leaving(world, pod)?;
            let bound = pod.node_name.is_some();
            let created = pod.metadata.creation_timestamp.as_ref().map_or(i64::MIN, |at| at.0.as_microsecond());
            let recently = now.0 - created < HEARD_MICROS;
            if bound || recently || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let unit = UnitRef::of(pod, &world.setup.policy);
            let known = world.scheduler().live().pod(&NamespacedName::from_meta(&pod.metadata));
            let assumed = known.is_some_and(|pod| pod.node_name.is_some());
            if !assumed && !waiting.contains(&unit) {
                return Err(format!("{unit} waits, and the scheduler does not know"));
            }
        }
        Ok(())
    }
}
