//! A decision as JSON: the answer in the words of a test's `expect`, and why. `apiVersion` changes when the shape does.

use std::collections::BTreeMap;

use jiff::Timestamp;
use reprieve_api::answer::Answer;
use reprieve_api::kueue::AdmissionSpec;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::budget_report::BudgetReport;
use crate::queue_report::QueueReport;
use crate::quota_report::CohortReport;

/// A decision and its explanation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionReport {
    /// `reprieve.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Decision`.
    pub kind: &'static str,
    /// Under which policy.
    pub policy: &'static str,
    /// At what time.
    pub now: Timestamp,
    /// Who asked.
    pub preemptor: PreemptorReport,
    /// Outcome, victims, nominations.
    #[serde(flatten)]
    pub answer: Answer,
    /// Requirements of the preemptor that were taken for met: `volumes`, `claims`, `features`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<&'static str>,
    /// Why.
    pub explanation: ExplanationReport,
    /// What is odd about the input, and the budgets that the plan violates.
    pub warnings: Vec<String>,
}

/// Who asked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptorReport {
    /// `Pod` or `PodGroup`.
    pub kind: &'static str,
    /// `namespace/name`.
    pub name: String,
    /// Its priority when it asks.
    pub priority: i32,
    /// Its pods that need a place.
    pub pods: Vec<String>,
    /// How many of them must find one.
    pub needed: usize,
}

/// Why the decision is as it is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationReport {
    /// In one sentence.
    pub summary: String,
    /// The law that refuses the preemptor or makes it wait.
    pub law: Option<LawReport>,
    /// What the plan costs.
    pub cost: Option<CostReport>,
    /// The disruption budgets that the plan violates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// For each victim, why it could not be reprieved.
    pub victims: Vec<VictimReport>,
    /// For each unit that is not taken, why.
    pub spared: Vec<SparedReport>,
    /// For each node, what landing there means to a pod.
    pub nodes: Vec<PlacementReport>,
    /// For each domain, what landing there means to a group.
    pub domains: Vec<PlacementReport>,
    /// What the scheduler does to carry the plan out, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionReport>,
    /// For a workload, each flavor that was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flavors: Vec<FlavorReport>,
    /// For a workload, what its `status.admission` will say.
    pub admission: Option<AdmissionSpec>,
    /// For a workload, its tree of quotas before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<CohortReport>,
    /// The quota tree before and after, under a policy that has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueReport>,
}

/// Something to be done once the decision stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionReport {
    /// `Bind`, `Nominate`, `Mark`, `Unmark`, `Label`, `Delete`, `Event`, `Requeue`, `Terminate`, `Suspend`, `Admit` or `Start`.
    pub action: &'static str,
    /// The pod that it is done to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The workload that it is done to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The group, the job or the Job that it is done to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The node, the ClusterQueue, the message of a condition, the label and its value, or the reason and the message of an event.
    pub text: String,
}

/// A flavor that was looked at.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavorReport {
    /// Which pod set, from 0.
    pub pod_set: usize,
    /// The flavor.
    pub name: String,
    /// `Fit`, `Reclaim`, `Preempt`, `NoCandidates`, `NoFit` or `Closed`.
    pub mode: String,
    /// How many cohorts up the queue would borrow.
    pub borrowing_level: usize,
    /// Whether it was taken.
    pub chosen: bool,
    /// By resource that does not fit as things are: how much more is asked for than is available, in the queue and by borrowing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub short: BTreeMap<String, String>,
}

/// A law.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LawReport {
    /// Its name.
    pub name: &'static str,
    /// In words.
    pub text: String,
    /// The pods that the preemptor waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// When the wait ends at the latest.
    pub until: Option<String>,
    /// The scheduling gates that the preemptor waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The field that is not evaluated.
    pub field: Option<String>,
}

/// What a plan costs; less is better, in the order of the fields.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostReport {
    /// Pods taken against a disruption budget.
    pub budget_violations: usize,
    /// The highest priority among the victims.
    pub highest_priority: i32,
    /// The sum over all pods of (priority + 2^31).
    pub priority_sum: i64,
    /// How many pods are taken.
    pub pods: usize,
    /// The earliest start among the victims of the highest priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_start: Option<String>,
}

/// A unit: a pod, or the running pods of a group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    /// Its pods.
    pub pods: Vec<String>,
    /// Their nodes, each once.
    pub nodes: Vec<String>,
    /// The workload that it is, under a policy that preempts workloads.
    pub workload: Option<String>,
    /// The group that it is, if it yields whole.
    pub group: Option<String>,
    /// The queue whose quota it uses.
    pub queue: Option<String>,
    /// Its priority when it is asked to yield.
    pub priority: i32,
    /// When its oldest pod started, or since when it holds its quota.
    pub started: Option<Timestamp>,
}

/// Why a victim is one.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimReport {
    /// Who.
    #[serde(flatten)]
    pub unit: UnitReport,
    /// The pod that would not fit if it stayed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// Where that pod is placed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// For a workload, the queues and cohorts by which it was reached, from the preemptor's to its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The filter that would refuse it, or the ground on which a workload is taken.
    pub filter: &'static str,
    /// In words.
    pub text: String,
    /// Where resources are why: each that would be short, and by how much.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub short: BTreeMap<String, String>,
    /// The disruption budgets that the plan violates and that count a pod of this victim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violates: Vec<String>,
}

/// Why a unit is not taken.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SparedReport {
    /// Who.
    #[serde(flatten)]
    pub unit: UnitReport,
    /// The law, or `Reprieved`.
    pub law: &'static str,
    /// Whether taking it instead of a victim would cost the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub equal_cost: bool,
    /// Whether the decision may depend on it: removing every entry that is not decisive changes nothing.
    pub decisive: bool,
    /// In words.
    pub text: String,
    /// In words about several units that the law spares, where they are other words.
    #[serde(skip)]
    pub of_many: Option<String>,
    /// Whether the search looked at it.
    #[serde(skip)]
    pub reached: bool,
}

impl SparedReport {
    /// In words about several units that the law spares.
    pub fn text_of_many(&self) -> &str {
        self.of_many.as_ref().unwrap_or(&self.text)
    }
}

/// What landing in a place means.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReport {
    /// The node or the domain.
    pub name: String,
    /// Whether it is chosen, and if not why.
    pub verdict: PlaceResult,
    /// The filter or law that refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<&'static str>,
    /// Whether the decision may depend on the place or on what runs there.
    pub decisive: bool,
    /// In words.
    pub text: String,
    /// Where resources are why it is refused: each that is short, and by how much.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub short: BTreeMap<String, String>,
    /// Whom landing there would take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
    /// Where a member finds no place: each node, and why not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, String>,
}

/// What a place is to a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PlaceResult {
    /// The preemptor lands there.
    Chosen,
    /// Landing there costs more than in the chosen place.
    HigherCost,
    /// Landing there costs as much as in the chosen place.
    EqualCost,
    /// The preemptor cannot land there.
    Infeasible,
}
