//! The JSON form of a decision: the outcome as in a test file's `expect`, and the explanation. A change of the fields needs a new
//! `apiVersion`; `docs/reference/decision.md` describes them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use reprieve_api::answer::Answer;
use reprieve_api::kueue::AdmissionSpec;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::budget_report::BudgetReport;
use crate::gpu_hours::LostWork;
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
    /// The name of the policy.
    pub policy: &'static str,
    /// The time of the decision.
    pub now: Timestamp,
    /// The unit that the decision is for.
    pub preemptor: PreemptorReport,
    /// Outcome, victims, nominations.
    #[serde(flatten)]
    pub answer: Answer,
    /// Requirements of the preemptor that are assumed to be satisfied: `volumes`, `claims`, `features`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<&'static str>,
    /// The reasons of the decision.
    pub explanation: ExplanationReport,
    /// Problems of the input, and the budgets that the plan violates.
    pub warnings: Vec<String>,
}

/// The unit that a decision is for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptorReport {
    /// The kind of the object.
    pub kind: PreemptorKind,
    /// `namespace/name`.
    pub name: String,
    /// The priority of the preemptor.
    pub priority: i32,
    /// The pods that need a node.
    pub pods: Vec<String>,
    /// How many of the pods must fit.
    pub needed: usize,
}

/// The kind of a preemptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are the kinds")]
pub enum PreemptorKind {
    Pod,
    PodGroup,
    Workload,
}

/// The reasons of a decision.
// Fields: those of the JSON output, most of them for one policy or one kind of preemptor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationReport {
    /// The decision in one sentence.
    pub summary: String,
    /// The law that refuses the preemptor or makes it wait.
    pub law: Option<LawReport>,
    /// The cost of the plan.
    pub cost: Option<CostReport>,
    /// Whether a cheaper plan was not judged, because enough plans were judged with the evictions that returning victims cause.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judging_ended: bool,
    /// The work that the victims lose, if they have GPUs. `reprieve plan` fills it in.
    pub lost_work: Option<LostWork>,
    /// The disruption budgets that the plan violates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// For each victim, why it could not be reprieved.
    pub victims: Vec<VictimReport>,
    /// For each unit that is not evicted, the law or the reason that spares it.
    pub spared: Vec<SparedReport>,
    /// For a pod, the result of each node.
    pub nodes: Vec<PlacementReport>,
    /// For a group, the result of each domain.
    pub domains: Vec<PlacementReport>,
    /// The actions by which the scheduler carries out the decision, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionReport>,
    /// For a workload, each flavor that the search evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flavors: Vec<FlavorReport>,
    /// For a workload, the `status.admission` that it gets.
    pub admission: Option<AdmissionSpec>,
    /// For a workload, its quota tree before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<CohortReport>,
    /// The queue tree before and after, under YuniKorn and Koordinator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueReport>,
}

/// An action on one object. Exactly one of `pod`, `workload` and `group` is set.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionReport {
    /// `Bind`, `Nominate`, `Mark`, `Unmark`, `Label`, `Delete`, `Event`, `Requeue`, `Terminate`, `Suspend`, `Admit` or `Start`.
    pub action: &'static str,
    /// The pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The workload.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The PodGroup, the Koordinator job or the `batch/v1` Job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The node, the ClusterQueue, the message of a condition, the label and its value, or the reason and the message of an event.
    pub text: String,
}

/// A flavor that the search evaluated.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavorReport {
    /// The index of the pod set, from 0.
    pub pod_set: usize,
    /// The flavor.
    pub name: String,
    /// `Fit`, `Reclaim`, `Preempt`, `NoCandidates`, `NoFit` or `Closed`.
    pub mode: String,
    /// How many levels of cohorts up the queue would borrow.
    pub borrowing_level: usize,
    /// Whether the workload gets this flavor.
    pub chosen: bool,
    /// The resources that do not fit, each with the amount by which the request exceeds the quota of the queue and what it can borrow.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub short: BTreeMap<String, String>,
}

/// A law.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LawReport {
    /// The name of the law.
    pub name: &'static str,
    /// The reason as a sentence.
    pub text: String,
    /// The victims that are still terminating.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The latest time at which the wait ends.
    pub until: Option<String>,
    /// The scheduling gates of the preemptor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The field that Reprieve does not evaluate, for the law `Unsupported`.
    pub field: Option<String>,
}

/// The cost of a plan: fields are compared in this order, and less is better.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostReport {
    /// The number of victims that violate a disruption budget.
    pub budget_violations: usize,
    /// The highest priority among the victims.
    pub highest_priority: i32,
    /// The sum over all pods of (priority + 2^31).
    pub priority_sum: i64,
    /// The number of evicted pods.
    pub pods: usize,
    /// The earliest start among the victims of the highest priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_start: Option<String>,
    /// What the returning victims evict; these amounts are added to the others when plans are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_order: Option<SecondOrderReport>,
}

/// The cost of second-order evictions.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecondOrderReport {
    /// The number of pods that violate a disruption budget.
    pub budget_violations: usize,
    /// The sum over all pods of (priority + 2^31).
    pub priority_sum: i64,
    /// The number of evicted pods.
    pub pods: usize,
}

/// A unit: a pod, or the running pods of a group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    /// The pods of the unit.
    pub pods: Vec<String>,
    /// The nodes of the pods, each once.
    pub nodes: Vec<String>,
    /// The workload, under policy Kueue.
    pub workload: Option<String>,
    /// The group, if it is only evicted as a whole.
    pub group: Option<String>,
    /// The owner of the pods, if it and no PodGroup forms the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The queue whose quota the unit uses.
    pub queue: Option<String>,
    /// The priority of the unit as a candidate.
    pub priority: i32,
    /// The start of the oldest pod, or the time at which the workload got its quota.
    pub started: Option<Timestamp>,
}

/// A victim and the reason why it is not spared.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimReport {
    /// The unit.
    #[serde(flatten)]
    pub unit: UnitReport,
    /// The pod of the preemptor that would not fit if the victim stayed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The node of that pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// For a workload, the queues and cohorts from the preemptor's queue to the victim's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The filter that would refuse the pod, or the reason for which a workload is preempted.
    pub filter: &'static str,
    /// The reason as a sentence.
    pub text: String,
    /// The resources that would be short, with the missing amount.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub short: BTreeMap<String, String>,
    /// The disruption budgets that the plan violates and that select a pod of this victim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violates: Vec<String>,
    /// What follows its eviction, if the cost of the plan includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<ReturnReport>,
}

/// What follows the eviction of a victim.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnReport {
    /// `NotRecreated`, `Terminating`, `NotDecided`, `Fits`, `Evicts` or `Waits`.
    pub result: &'static str,
    /// The nodes on which its new pods fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The pods that its new pods would evict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evicts: Vec<String>,
    /// The result as a phrase.
    pub text: String,
}

/// A unit that is not evicted, and the reason.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SparedReport {
    /// The unit.
    #[serde(flatten)]
    pub unit: UnitReport,
    /// The code of the law, or `Reprieved`, `NotEnough` or `NotReached`.
    pub law: &'static str,
    /// Whether evicting the unit instead of a victim would cost the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub equal_cost: bool,
    /// Whether the decision may depend on the unit: removing every unit that is not decisive does not change the decision.
    pub decisive: bool,
    /// The reason as a sentence.
    pub text: String,
    /// The sentence about several units, if it differs from `text`.
    #[serde(skip)]
    pub of_many: Option<String>,
    /// Whether the search evaluated the unit.
    #[serde(skip)]
    pub reached: bool,
    /// Whether a law spares the unit; without one, `law` is the name of another reason.
    #[serde(skip)]
    pub is_lawful: bool,
}

impl SparedReport {
    /// The sentence about several units that the same law spares.
    pub fn text_of_many(&self) -> &str {
        self.of_many.as_ref().unwrap_or(&self.text)
    }
}

/// A node or a domain, and whether the preemptor can land there.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReport {
    /// The name of the node or of the domain.
    pub name: String,
    /// Whether the place is chosen.
    pub result: PlaceResult,
    /// The filter or law that makes the place infeasible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<&'static str>,
    /// Whether the decision may depend on the place or on the pods there.
    pub decisive: bool,
    /// The reason as a sentence.
    pub text: String,
    /// The resources that are short, with the missing amount.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub short: BTreeMap<String, String>,
    /// The pods that would be evicted there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
    /// If a member of the group fits on no node: the reason of each node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, String>,
}

/// The result of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PlaceResult {
    /// The preemptor lands there.
    Chosen,
    /// Landing there costs more than in the chosen place.
    HigherCost,
    /// Landing there costs as much as in the chosen place.
    EqualCost,
    /// Enough plans were judged with the evictions that returning victims cause before this one.
    NotJudged,
    /// The preemptor cannot land there.
    Infeasible,
}
