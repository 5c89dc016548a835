//! Gangs of which too few pods are bound to run: what they hold is idle. Such gangs occur under policies that place pods one by one, and while
//! a gang that was evicted in part terminates.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::NamespacedName;
use reprieve_engine::Timestamp;

/// By job: what its gang holds. Jobs are indices.
#[derive(Default)]
pub(crate) struct IncompleteGangs(BTreeMap<usize, HeldByGang>);

/// What a gang holds.
#[derive(Default)]
struct HeldByGang {
    /// Its pods that are bound and neither finished nor terminating.
    pods: BTreeSet<NamespacedName>,
    /// How many pods it needs to run.
    needed: usize,
    /// Since when it has been incomplete and has held nodes.
    since: Option<Timestamp>,
    /// The time up to which `idle_micros` is counted.
    counted: Timestamp,
    /// The time for which its pods were idle, added up.
    idle_micros: i64,
}

impl IncompleteGangs {
    /// Notes whether a pod of a gang holds a node.
    pub fn update(&mut self, job: usize, needed: usize, pod: &NamespacedName, holds: bool, now: Timestamp) {
        let held = self.0.entry(job).or_default();
        held.needed = needed;
        held.count_until(now);
        match holds {
            true => held.pods.insert(pod.clone()),
            false => held.pods.remove(pod),
        };
        held.since = held.is_incomplete().then(|| held.since.unwrap_or(now));
    }

    /// The pod-time for which the gang of a job held nodes without running, up to the end of the run.
    pub fn idle_micros(&mut self, job: usize, ended: Timestamp) -> i64 {
        let Some(held) = self.0.get_mut(&job) else { return 0 };
        held.count_until(ended);
        held.idle_micros
    }

    /// How many pods an incomplete gang has on nodes, and since when; `None` if it is complete or holds nothing.
    pub fn held(&self, job: usize) -> Option<(usize, Timestamp)> {
        let held = self.0.get(&job)?;
        held.since.map(|since| (held.pods.len(), since))
    }
}

impl HeldByGang {
    fn is_incomplete(&self) -> bool {
        !self.pods.is_empty() && self.pods.len() < self.needed
    }

    fn count_until(&mut self, now: Timestamp) {
        if self.is_incomplete() {
            let pods = i64::try_from(self.pods.len()).unwrap_or(i64::MAX);
            self.idle_micros += (now.0 - self.counted.0).max(0).saturating_mul(pods);
        }
        self.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_of_an_incomplete_gang_is_idle() {
        let mut gangs = IncompleteGangs::default();
        let pod = |name: &str| NamespacedName::new("default", name);
        for (name, holds, at) in [("a", true, 10), ("b", true, 30), ("b", false, 100), ("a", false, 104)] {
            gangs.update(0, 2, &pod(name), holds, Timestamp(at));
        }
        assert_eq!((gangs.held(0), gangs.idle_micros(0, Timestamp(200))), (None, 20 + 4));
        gangs.update(0, 2, &pod("c"), true, Timestamp(300));
        assert_eq!((gangs.held(0), gangs.held(1)), (Some((1, Timestamp(300))), None));
        assert_eq!(gangs.idle_micros(0, Timestamp(310)), 24 + 10);
    }
}
