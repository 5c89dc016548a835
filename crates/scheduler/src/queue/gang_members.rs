//! The pending pods of gangs, kept up to date pod by pod, so that the queue does not iterate over all pods of a gang when one changes.

use std::collections::BTreeMap;

use reprieve_api::Pod;
use reprieve_engine::{Priority, Timestamp};
use reprieve_loader::timestamp;
use reprieve_report::unit_ref::UnitRef;

/// For each gang, the number of pending pods by priority and creation time.
#[derive(Default)]
pub(super) struct PendingMembers(BTreeMap<UnitRef, BTreeMap<(Priority, Timestamp), usize>>);

/// The pending pods of a unit, summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingSummary {
    /// The highest priority among them.
    pub priority: Priority,
    /// The creation time of the oldest.
    pub since: Timestamp,
    pub count: usize,
}

impl PendingSummary {
    pub fn of_pod(pod: &Pod) -> Self {
        let created = pod.metadata.creation_timestamp.as_ref();
        Self {
            priority: Priority(pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)),
            since: created.map_or(Timestamp(0), |created| timestamp(created.0)),
            count: 1,
        }
    }
}

impl PendingMembers {
    /// Adds a pending pod of a gang; a unit of a single pod is not tracked here.
    pub fn add(&mut self, unit: &UnitRef, pod: &Pod) {
        if matches!(unit, UnitRef::Pod(_)) {
            return;
        }
        let PendingSummary { priority, since, .. } = PendingSummary::of_pod(pod);
        *self.0.entry(unit.clone()).or_default().entry((priority, since)).or_default() += 1;
    }

    pub fn remove(&mut self, unit: &UnitRef, pod: &Pod) {
        let PendingSummary { priority, since, .. } = PendingSummary::of_pod(pod);
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

    /// The pending pods of a gang; `None` if it has none.
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
    fn a_gang_has_its_highest_priority_and_the_age_of_its_oldest_pod() {
        let pod = |priority: i32, second: u32| -> Pod {
            let created = format!("2026-01-01T00:00:{second:02}Z");
            let pod =
                json!({"metadata": {"creationTimestamp": created}, "spec": {"priority": priority, "containers": []}});
            serde_json::from_value(pod).expect("a pod")
        };
        let unit = UnitRef::Group(NamespacedName::new("", "gang"));
        let mut members = PendingMembers::default();
        let (first, urgent) = (pod(1, 1), pod(5, 3));
        for pod in [&first, &first, &urgent] {
            members.add(&unit, pod);
        }
        let all = PendingSummary { priority: Priority(5), since: PendingSummary::of_pod(&first).since, count: 3 };
        assert_eq!(members.summary(&unit), Some(all));
        members.remove(&unit, &urgent);
        assert_eq!(members.summary(&unit), Some(PendingSummary { priority: Priority(1), count: 2, ..all }));
        members.remove(&unit, &first);
        members.remove(&unit, &first);
        assert_eq!(members.summary(&unit), None);
    }
}
