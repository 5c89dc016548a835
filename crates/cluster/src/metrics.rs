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
use prometheus_client::registry::{Metric, Registry, Unit};
use reprieve_api::kinds::{Kind, Resource};
use reprieve_scheduler::{Step, StepOutcome};

use crate::watch::LastContact;

/// The labels of a metric, each with its value.
type Labels<const N: usize> = [(&'static str, &'static str); N];

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
    attempts: Family<Labels<2>, Counter>,
    victims: Histogram,
    violations: Counter,
    evaluation: Family<Labels<1>, Histogram, fn() -> Histogram>,
    pending: Family<PendingLabels, Gauge>,
    actions: Family<Labels<2>, Histogram, fn() -> Histogram>,
    undecodable: Family<Labels<2>, Gauge>,
    age: Gauge<f64, AtomicU64>,
    leader: Gauge,
    /// Decisions that failed by a fault of the scheduler.
    pub faults: Counter,
    pulses: Mutex<BTreeMap<Kind, LastContact>>,
    /// Whether this replica can do its part: it stands by, or everything was listed.
    serving: AtomicBool,
}

fn micros_to_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 2.0, 20))
}

fn millis_to_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// Registers a metric, and hands it to whoever counts.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// The same for a metric in seconds.
fn add_timed<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("reprieve");
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What was built", build);
        let preemption = registry.sub_registry_with_prefix("preemption");
        let few_to_many = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
        let victims = Histogram::new(few_to_many);
        let violated = "Victims taken although a PodDisruptionBudget asks to spare them";
        let deciding = Family::new_with_constructor(micros_to_seconds as fn() -> Histogram);
        let acting = Family::new_with_constructor(millis_to_seconds as fn() -> Histogram);
        let silent =
            "How long ago the API server last said anything about the kind it has been silent about the longest";
        Self {
            attempts: add(preemption, "attempts", "Decisions by policy and outcome", Family::default()),
            victims: add(preemption, "victims", "Pods or workloads that yield in one preemption", victims),
            violations: add(preemption, "pdb_violations", violated, Counter::default()),
            evaluation: add_timed(preemption, "evaluation_duration", "How long a decision takes", deciding),
            pending: add(
                &mut registry,
                "pending_units",
                "Units that wait, by profile, queue and reason",
                Family::default(),
            ),
            actions: add_timed(&mut registry, "action_duration", "How long the API server takes for an action", acting),
            age: add_timed(&mut registry, "snapshot_age", silent, Gauge::default()),
            undecodable: add(
                &mut registry,
                "undecodable_objects",
                "Objects that cannot be decoded and are left out",
                Family::default(),
            ),
            leader: add(&mut registry, "leader", "Whether this replica schedules", Gauge::default()),
            faults: add(
                &mut registry,
                "decision_faults",
                "Decisions that failed by a fault of the scheduler",
                Counter::default(),
            ),
            pulses: Mutex::default(),
            serving: AtomicBool::new(false),
            registry,
        }
    }

    /// A step was taken.
    pub fn decided(&self, policy: &'static str, step: &Step, took: Duration) {
        let (outcome, victims) = match &step.outcome {
            StepOutcome::Housekeeping => return,
            StepOutcome::Bind { .. } => ("scheduled", 0),
            StepOutcome::MarkVictims { .. } => ("victims_marked", 0),
            StepOutcome::Evict { victims, .. } => ("preempted", victims.len()),
            StepOutcome::Wait { .. } => ("waiting", 0),
            StepOutcome::Unschedulable { .. } => ("unschedulable", 0),
        };
        self.attempts.get_or_create(&[("policy", policy), ("outcome", outcome)]).inc();
        self.evaluation.get_or_create(&[("policy", policy)]).observe(took.as_secs_f64());
        if victims > 0 {
            self.victims.observe(victims as f64);
            self.violations.inc_by(u64::try_from(step.violations).unwrap_or(0));
        }
    }

    /// An action was carried out, or was not.
    pub fn acted(&self, action: &'static str, result: &'static str, took: Duration) {
        self.actions.get_or_create(&[("action", action), ("result", result)]).observe(took.as_secs_f64());
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
    pub fn pulse(&self, kind: Kind) -> LastContact {
        self.pulses.lock().expect("nobody panics with it").entry(kind).or_default().clone()
    }

    /// How many objects of a kind cannot be decoded.
    pub fn undecodable(&self, kind: Kind) -> Gauge {
        let Resource { kind, group, .. } = kind.resource();
        self.undecodable.get_or_create_owned(&[("kind", kind), ("group", group)])
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        let ages = self.pulses.lock().expect("nobody panics with it");
        let oldest = ages.values().filter_map(LastContact::age_seconds).fold(0.0, f64::max);
        self.age.set(oldest);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes everything");
        text
    }
}
