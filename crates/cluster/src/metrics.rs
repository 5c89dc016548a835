//! The Prometheus metrics of `/metrics`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use reprieve_api::kinds::Resource;
use reprieve_api::{Kind, ProblemCode};
use reprieve_scheduler::{Step, StepOutcome};

use crate::readiness::{LastContact, Readiness};

/// The labels of a metric with their values.
type Labels<const N: usize> = [(&'static str, &'static str); N];
/// Histograms by labels.
type Durations<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The labels of `reprieve_pending_units`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct PendingLabels {
    pub profile: String,
    pub queue: String,
    pub reason: String,
}

/// The metrics of the process.
// Fields: one for each metric.
pub struct Metrics {
    registry: Registry,
    attempts: Family<Labels<2>, Counter>,
    victims: Histogram,
    violations: Counter,
    evaluation: Durations<1>,
    pending: Family<PendingLabels, Gauge>,
    actions: Durations<2>,
    undecodable: Family<Labels<2>, Gauge>,
    quarantined: Family<Labels<2>, Gauge>,
    age: Gauge<f64, AtomicU64>,
    queues_valid: Gauge,
    leader: Gauge,
    /// Decisions that ended with a panic.
    pub panics: Counter,
    contacts: Mutex<BTreeMap<Kind, LastContact>>,
    /// Whether this replica is ready.
    pub readiness: Arc<Readiness>,
}

/// 20 buckets from 10 µs to 5 s.
fn decision_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 2.0, 20))
}

/// 15 buckets from 1 ms to 16 s.
fn request_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

fn add_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl Metrics {
    pub fn new() -> Self {
        let mut root = Registry::with_prefix("reprieve");
        root.register("build", "Build information", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        let preemption = root.sub_registry_with_prefix("preemption");
        let victims = Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]);
        let evaluation = Durations::new_with_constructor(decision_buckets);
        let actions = Durations::new_with_constructor(request_buckets);
        let violations = "Victims evicted in violation of a PodDisruptionBudget";
        let pending = "Pending units (pods, gangs, workloads) by profile, queue and reason";
        let age = "Seconds since the last watch event or bookmark, for the kind with the oldest one";
        let quarantined = "Objects that are set aside because of a problem, by kind and class of the problem";
        let queues_valid = "1 if the current ConfigMap with the queues is in force, or if no profile has one";
        let valid = Gauge::<i64>::default();
        valid.set(1);
        let undecodable = "Objects that cannot be decoded and are left out";
        Self {
            attempts: add(preemption, "attempts", "Decisions by policy and outcome", Family::default()),
            victims: add(preemption, "victims", "Evicted pods or workloads per preemption", victims),
            violations: add(preemption, "pdb_violations", violations, Counter::default()),
            evaluation: add_seconds(preemption, "evaluation_duration", "Duration of a decision", evaluation),
            pending: add(&mut root, "pending_units", pending, Family::default()),
            actions: add_seconds(&mut root, "action_duration", "Duration of an API request", actions),
            age: add_seconds(&mut root, "snapshot_age", age, Gauge::default()),
            undecodable: add(&mut root, "undecodable_objects", undecodable, Family::default()),
            quarantined: add(&mut root, "quarantined", quarantined, Family::default()),
            queues_valid: add(&mut root, "queues_valid", queues_valid, valid),
            leader: add(&mut root, "leader", "1 if this replica is the leader", Gauge::default()),
            panics: add(&mut root, "decision_faults", "Decisions that ended with a panic", Counter::default()),
            contacts: Mutex::default(),
            readiness: Arc::default(),
            registry: root,
        }
    }

    /// Counts a step of the scheduler that lasted `duration`.
    pub fn record_step(&self, policy: &'static str, step: &Step, duration: Duration) {
        let (outcome, victims) = match &step.outcome {
            StepOutcome::Housekeeping => return,
            StepOutcome::Bind { .. } => ("scheduled", 0),
            StepOutcome::MarkVictims { .. } => ("victims_marked", 0),
            StepOutcome::Evict { victims, .. } => ("preempted", victims.len()),
            StepOutcome::Wait { .. } => ("waiting", 0),
            StepOutcome::Unschedulable { .. } => ("unschedulable", 0),
        };
        self.attempts.get_or_create(&[("policy", policy), ("outcome", outcome)]).inc();
        self.evaluation.get_or_create(&[("policy", policy)]).observe(duration.as_secs_f64());
        if victims > 0 {
            self.victims.observe(victims as f64);
            self.violations.inc_by(u64::try_from(step.violations).unwrap_or(0));
        }
    }

    /// Counts a request with its result.
    pub fn record_action(&self, action: &'static str, result: &'static str, duration: Duration) {
        self.actions.get_or_create(&[("action", action), ("result", result)]).observe(duration.as_secs_f64());
    }

    pub fn set_pending(&self, pending: BTreeMap<PendingLabels, i64>) {
        self.pending.clear();
        for (labels, count) in pending {
            self.pending.get_or_create(&labels).set(count);
        }
    }

    pub fn set_quarantined(&self, quarantined: BTreeMap<(Kind, ProblemCode), usize>) {
        self.quarantined.clear();
        for ((kind, code), count) in quarantined {
            let gauge = self.quarantined.get_or_create(&[("kind", kind.resource().kind), ("reason", code.as_str())]);
            gauge.inc_by(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub fn set_queues_valid(&self, valid: bool) {
        self.queues_valid.set(i64::from(valid));
    }

    pub fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// The time of the last contact about a kind, which its watch updates.
    pub fn last_contact(&self, kind: Kind) -> LastContact {
        self.contacts.lock().expect("no thread panics with the lock").entry(kind).or_default().clone()
    }

    /// The number of undecodable objects of a kind, which its watch updates.
    pub fn undecodable(&self, kind: Kind) -> Gauge {
        let Resource { kind, group, .. } = kind.resource();
        self.undecodable.get_or_create_owned(&[("kind", kind), ("group", group)])
    }

    /// All metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let contacts = self.contacts.lock().expect("no thread panics with the lock");
        self.age.set(contacts.values().filter_map(LastContact::age_seconds).fold(0.0, f64::max));
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}
