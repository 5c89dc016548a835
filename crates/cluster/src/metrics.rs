//! What can be counted from outside, in the words of Prometheus.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use reprieve_api::kinds::{Kind, Resource};
use reprieve_scheduler::{Step, Verdict};

use crate::watch::Pulse;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    policy: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    policy: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
    group: &'static str,
}

/// What tells those who wait from each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct PendingLabels {
    pub profile: String,
    pub queue: String,
    pub reason: String,
}

/// All metrics, one field each.
pub struct Metrics {
    registry: Registry,
    attempts: Family<AttemptLabels, Counter>,
    victims: Histogram,
    violations: Counter,
    evaluation: Family<PolicyLabels, Histogram, fn() -> Histogram>,
    pending: Family<PendingLabels, Gauge>,
    actions: Family<ActionLabels, Histogram, fn() -> Histogram>,
    undecodable: Family<KindLabels, Gauge>,
    age: Gauge<f64, AtomicU64>,
    leader: Gauge,
    /// Decisions that failed by a fault of the scheduler.
    pub faults: Counter,
    pulses: Mutex<BTreeMap<Kind, Pulse>>,
    /// Whether this replica can do its part: it stands by, or everything was listed.
    serving: AtomicBool,
}

fn micros_to_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 2.0, 20))
}

fn millis_to_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("reprieve");
        let metrics = Self {
            attempts: Family::default(),
            victims: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
            violations: Counter::default(),
            evaluation: Family::new_with_constructor(micros_to_seconds),
            pending: Family::default(),
            actions: Family::new_with_constructor(millis_to_seconds),
            undecodable: Family::default(),
            age: Gauge::default(),
            leader: Gauge::default(),
            faults: Counter::default(),
            pulses: Mutex::default(),
            serving: AtomicBool::new(false),
            registry: Registry::default(),
        };
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What was built", build);
        let preemption = registry.sub_registry_with_prefix("preemption");
        preemption.register("attempts", "Decisions by policy and outcome", metrics.attempts.clone());
        preemption.register("victims", "Pods or workloads that yield in one preemption", metrics.victims.clone());
        preemption.register(
            "pdb_violations",
            "Victims taken although a PodDisruptionBudget asks to spare them",
            metrics.violations.clone(),
        );
        preemption.register_with_unit(
            "evaluation_duration",
            "How long a decision takes",
            Unit::Seconds,
            metrics.evaluation.clone(),
        );
        registry.register("pending_units", "Units that wait, by profile, queue and reason", metrics.pending.clone());
        registry.register_with_unit(
            "action_duration",
            "How long the API server takes for an action",
            Unit::Seconds,
            metrics.actions.clone(),
        );
        registry.register_with_unit(
            "snapshot_age",
            "How long ago the API server last said anything about the kind it has been silent about the longest",
            Unit::Seconds,
            metrics.age.clone(),
        );
        registry.register(
            "undecodable_objects",
            "Objects that cannot be decoded and are left out",
            metrics.undecodable.clone(),
        );
        registry.register("leader", "Whether this replica schedules", metrics.leader.clone());
        registry.register(
            "decision_faults",
            "Decisions that failed by a fault of the scheduler",
            metrics.faults.clone(),
        );
        Self { registry, ..metrics }
    }

    /// A step was taken.
    pub fn decided(&self, policy: &'static str, step: &Step, took: Duration) {
        let (outcome, victims) = match &step.verdict {
            Verdict::FollowUp => return,
            Verdict::Schedule { .. } => ("scheduled", 0),
            Verdict::Prepare { .. } => ("prepared", 0),
            Verdict::Preempt { victims, .. } => ("preempted", victims.len()),
            Verdict::Wait { .. } => ("waits", 0),
            Verdict::Unschedulable { .. } => ("unschedulable", 0),
        };
        self.attempts.get_or_create(&AttemptLabels { policy, outcome }).inc();
        self.evaluation.get_or_create(&PolicyLabels { policy }).observe(took.as_secs_f64());
        if victims > 0 {
            self.victims.observe(victims as f64);
            self.violations.inc_by(u64::try_from(step.violations).unwrap_or(0));
        }
    }

    /// An action was carried out, or was not.
    pub fn acted(&self, action: &'static str, result: &'static str, took: Duration) {
        self.actions.get_or_create(&ActionLabels { action, result }).observe(took.as_secs_f64());
    }

    /// How many wait.
    pub fn set_pending(&self, pending: BTreeMap<PendingLabels, i64>) {
        self.pending.clear();
        for (labels, count) in pending {
            self.pending.get_or_create(&labels).set(count);
        }
    }

    /// Whether this replica schedules.
    pub fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Whether this replica can do its part.
    pub fn set_serving(&self, serving: bool) {
        self.serving.store(serving, Ordering::Relaxed);
    }

    /// Whether this replica can do its part.
    pub fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Relaxed)
    }

    /// Who knows when the API was last heard of a kind.
    pub fn pulse(&self, kind: Kind) -> Pulse {
        self.pulses.lock().expect("nobody panics with it").entry(kind).or_default().clone()
    }

    /// How many objects of a kind cannot be decoded.
    pub fn undecodable(&self, kind: Kind) -> Gauge {
        let Resource { kind, group, .. } = kind.resource();
        self.undecodable.get_or_create_owned(&KindLabels { kind, group })
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        let ages = self.pulses.lock().expect("nobody panics with it");
        let oldest = ages.values().filter_map(Pulse::age_seconds).fold(0.0, f64::max);
        self.age.set(oldest);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes everything");
        text
    }
}
