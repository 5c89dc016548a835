//! Who of the units of several pods need a place: what is asked of a unit does not take a walk over its pods.

use std::collections::BTreeMap;

use reprieve_api::pod::Pod;
use reprieve_engine::{Priority, Timestamp};
use reprieve_loader::time::timestamp;
use reprieve_report::unit_ref::UnitRef;

/// By unit: how many of its pods have this priority and age.
#[derive(Default)]
pub(super) struct PendingMembers(BTreeMap<UnitRef, BTreeMap<(Priority, Timestamp), usize>>);

/// Those of a unit that need a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingSummary {
    /// The highest of their priorities.
    pub priority: Priority,
    /// Since when the first of them is there.
    pub since: Timestamp,
    pub count: usize,
}

impl PendingSummary {
    /// One pod.
    pub fn one(pod: &Pod) -> Self {
        let created = pod.metadata.creation_timestamp.as_ref();
        Self {
            priority: Priority(pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)),
            since: created.map_or(Timestamp(0), |created| timestamp(created.0)),
            count: 1,
        }
    }
}

impl PendingMembers {
    /// A pod of the unit needs a place. One that is alone is not on the pending_members.
    pub fn add(&mut self, unit: &UnitRef, pod: &Pod) {
        if matches!(unit, UnitRef::Pod(_)) {
            return;
        }
        let PendingSummary { priority, since, .. } = PendingSummary::one(pod);
        *self.0.entry(unit.clone()).or_default().entry((priority, since)).or_default() += 1;
    }

    /// It does not any more.
    pub fn remove(&mut self, unit: &UnitRef, pod: &Pod) {
        let PendingSummary { priority, since, .. } = PendingSummary::one(pod);
        let Some(pods) = self.0.get_mut(unit) else { return };
        if let Some(count) = pods.get_mut(&(priority, since)) {
            *count -= 1;
            if *count == 0 {
                pods.remove(&(priority, since));
            }
        }
        if pods.is_empty() {
            self.0.remove(unit);
        }
    }

    /// Those of the unit; `None` where there are none.
    pub fn summary(&self, unit: &UnitRef) -> Option<PendingSummary> {
        let pods = self.0.get(unit)?;
        let since = pods.keys().map(|(_, since)| *since).min()?;
        let (&(priority, _), _) = pods.last_key_value()?;
        Some(PendingSummary { priority, since, count: pods.values().sum() })
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::meta::NamespacedName;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_highest_priority_and_the_first_pod_speak_for_all() {
        let pod = |priority: i32, second: u32| -> Pod {
            let created = format!("2026-01-01T00:00:{second:02}Z");
            let pod =
                json!({"metadata": {"creationTimestamp": created}, "spec": {"priority": priority, "containers": []}});
            serde_json::from_value(pod).expect("a pod")
        };
        let unit = UnitRef::Group(NamespacedName::new("", "gang"));
        let mut pending_members = PendingMembers::default();
        let (first, urgent) = (pod(1, 1), pod(5, 3));
        for pod in [&first, &first, &urgent] {
            pending_members.add(&unit, pod);
        }
        let all = PendingSummary { priority: Priority(5), since: PendingSummary::one(&first).since, count: 3 };
        assert_eq!(pending_members.summary(&unit), Some(all));
        pending_members.remove(&unit, &urgent);
        assert_eq!(pending_members.summary(&unit), Some(PendingSummary { priority: Priority(1), count: 2, ..all }));
        pending_members.remove(&unit, &first);
        pending_members.remove(&unit, &first);
        assert_eq!(pending_members.summary(&unit), None);
    }
}
