//! Whether this replica is ready, for `/readyz`: it serves, and it can read what its decisions depend on. For the metrics also the time of
//! the last contact with the API server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reprieve_api::Kind;

/// The time of the last response of the API server about a kind, in milliseconds since the epoch; 0 before the first.
#[derive(Clone, Debug, Default)]
pub struct LastContact(Arc<AtomicI64>);

impl LastContact {
    /// Notes a response.
    pub fn touch(&self) {
        self.0.store(jiff::Timestamp::now().as_millisecond(), Ordering::Relaxed);
    }

    /// Seconds since the last response; `None` before the first.
    pub fn age_seconds(&self) -> Option<f64> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            last => Some((jiff::Timestamp::now().as_millisecond() - last).max(0) as f64 / 1000.0),
        }
    }
}

/// What a replica reads from the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// All objects of a kind.
    Kind(Kind),
    /// The ConfigMap with the queues of the profiles.
    Queues,
}

/// The readiness of this replica.
#[derive(Debug, Default)]
pub struct Readiness {
    /// Whether this replica is a follower that reaches the API server, or a leader that has listed every kind.
    serving: AtomicBool,
    /// What cannot be read at the moment, and why.
    unreadable: Mutex<BTreeMap<Source, String>>,
}

impl Readiness {
    pub fn set_serving(&self, serving: bool) {
        self.serving.store(serving, Ordering::Relaxed);
    }

    /// Notes that the last attempt to read succeeded.
    pub fn set_readable(&self, source: Source) {
        self.unreadable().remove(&source);
    }

    /// Notes that the last attempt to read failed.
    pub fn set_unreadable(&self, source: Source, why: impl Into<String>) {
        self.unreadable().insert(source, why.into());
    }

    /// Forgets what could not be read, because nothing is read any more.
    pub fn forget(&self) {
        self.unreadable().clear();
    }

    /// Why this replica is not ready; `None` if it is.
    pub fn problem(&self) -> Option<String> {
        if !self.serving.load(Ordering::Relaxed) {
            return Some("waiting for the API server or for the first list of every kind".to_owned());
        }
        let unreadable = self.unreadable();
        let named = |(source, why): (&Source, &String)| match source {
            Source::Kind(kind) => format!("cannot read {}: {why}", kind.resource().plural),
            Source::Queues => format!("cannot read the queues: {why}"),
        };
        let problems: Vec<String> = unreadable.iter().map(named).collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    fn unreadable(&self) -> MutexGuard<'_, BTreeMap<Source, String>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replica_is_ready_while_it_serves_and_reads_everything() {
        let readiness = Readiness::default();
        assert!(readiness.problem().is_some_and(|problem| problem.contains("first list")));
        readiness.set_serving(true);
        assert_eq!(readiness.problem(), None);
        readiness.set_unreadable(Source::Kind(Kind::Node), "forbidden");
        readiness.set_unreadable(Source::Queues, "it is missing");
        let problem = "cannot read nodes: forbidden; cannot read the queues: it is missing";
        assert_eq!(readiness.problem().as_deref(), Some(problem));
        readiness.set_readable(Source::Kind(Kind::Node));
        assert!(readiness.problem().is_some());
        readiness.set_readable(Source::Queues);
        assert_eq!(readiness.problem(), None);
    }
}
