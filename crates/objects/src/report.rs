//! A decision as JSON: the answer in the words of a test's `expect`, and why. `apiVersion` changes when the shape does.

use std::collections::BTreeMap;

use reprieve_engine::choose::{Cost, Plan};
use reprieve_engine::explanation::{Explanation, Reason, Spared, SparedUnit};
use reprieve_engine::filters::Misfit;
use reprieve_engine::fit::{Ask, Preemptor, Shortage};
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kueue::Ground;
use reprieve_engine::{Decision, NodeId, Outcome, PodId, QueueId, TextId, UnitId};
use serde::Serialize;

use crate::answer::Answer;
use crate::budget_report::{BudgetReport, Violations};
use crate::cycle::admission;
use crate::kueue::AdmissionSpec;
use crate::load::{Loaded, time};
use crate::place_report::Places;
use crate::quantity::written;
use crate::question::{Question, policy_name};
use crate::queue_report::{QueueReport, queues};
use crate::quota_report::{QuotaReport, quotas};
use crate::words::{self, Words};

/// A decision and its explanation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// `reprieve.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Decision`.
    pub kind: &'static str,
    /// Under which policy.
    pub policy: &'static str,
    /// At what time.
    pub now: String,
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationReport {
    /// In one sentence.
    pub summary: String,
    /// The law that refuses the preemptor or makes it wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law: Option<LawReport>,
    /// What the plan costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostReport>,
    /// The disruption budgets that the plan violates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// For each victim, why it could not be reprieved.
    pub victims: Vec<VictimReport>,
    /// For each unit that is not taken, why.
    pub spared: Vec<SparedReport>,
    /// For each node, what landing there means to a pod.
    pub nodes: Vec<PlaceReport>,
    /// For each domain, what landing there means to a group.
    pub domains: Vec<PlaceReport>,
    /// Under Koordinator and Kueue, what is to be carried out, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carry_out: Vec<ActionReport>,
    /// For a workload, each flavor that was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flavors: Vec<FlavorReport>,
    /// For a workload, what its `status.admission` will say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionSpec>,
    /// For a workload, its tree of quotas before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<QuotaReport>,
    /// The quota tree before and after, under a policy that has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueReport>,
}

/// Something to be done once the decision stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionReport {
    /// `Label`, `Delete`, `Event`, `Nominate`, `Requeue` or `Terminate`.
    pub action: &'static str,
    /// The pod that it is done to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The workload that it is done to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The label and its value, the event's message, or the node.
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
#[derive(Clone, Debug, Serialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The scheduling gates that the preemptor waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The field that is not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    /// Its pods.
    pub pods: Vec<String>,
    /// Their nodes, each once.
    pub nodes: Vec<String>,
    /// The workload that it is, under a policy that preempts workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The group that it is, if it yields whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The queue whose quota it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its priority when it is asked to yield.
    pub priority: i32,
    /// When its oldest pod started, or since when it holds its quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
}

/// Why a victim is one.
#[derive(Clone, Debug, Serialize)]
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
}

/// What landing in a place means.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceReport {
    /// The node or the domain.
    pub name: String,
    /// `Chosen`, `Dearer` or `Refused`.
    pub verdict: &'static str,
    /// The filter or law that refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<&'static str>,
    /// Whether the decision may depend on the place or on what runs there.
    pub decisive: bool,
    /// Whether landing there costs the same as in the chosen place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub equal_cost: bool,
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

/// Decides a question and explains the decision.
pub fn report(question: &Question, loaded: &mut Loaded) -> Report {
    let (decision, explanation) = question.decide_and_explain(loaded);
    explained(question, loaded, &decision, &explanation)
}

/// The report of a decision that was made with its explanation.
pub fn explained(question: &Question, loaded: &Loaded, decision: &Decision, explanation: &Explanation) -> Report {
    let Decision { outcome, assignment } = decision;
    let ask = question.ask(loaded);
    let naming = Naming { loaded };
    let preemptor = naming.preemptor(&ask);
    let explained = naming.explanation(&preemptor, &ask, outcome, explanation);
    let violated = explained.budgets.iter().map(|budget| budget.sentence("the plan"));
    Report {
        api_version: "reprieve.dev/v1alpha1",
        kind: "Decision",
        policy: policy_name(&question.policy),
        now: words::moment(question.now),
        answer: Answer::new(loaded, &ask.members, outcome),
        warnings: loaded.warnings.iter().cloned().chain(violated).collect(),
        explanation: ExplanationReport {
            queues: match question.policy {
                Policy::Kubernetes(_) | Policy::Kueue(_) => Vec::new(),
                Policy::YuniKorn | Policy::Koordinator(_) => queues(loaded, &ask.members, outcome),
            },
            admission: match (question.preemptor, assignment) {
                (Preemptor::Workload(id), Some(given)) => Some(admission(loaded, id, given)),
                _ => None,
            },
            quotas: match (&question.policy, question.preemptor) {
                (Policy::Kueue(policy), Preemptor::Workload(id)) => {
                    quotas(loaded, policy, id, outcome, assignment.as_ref())
                }
                _ => Vec::new(),
            },
            carry_out: match question.policy {
                Policy::Koordinator(policy) => naming.carry_out(&policy, &preemptor, &ask, outcome),
                Policy::Kueue(_) => naming.evictions(&preemptor, outcome),
                Policy::Kubernetes(_) | Policy::YuniKorn => Vec::new(),
            },
            ..explained
        },
        preemptor,
        assumed: Vec::new(),
    }
}

/// Puts names to what the engine decided.
pub(crate) struct Naming<'a> {
    pub(crate) loaded: &'a Loaded,
}

impl Naming<'_> {
    pub(crate) fn pod(&self, pod: PodId) -> String {
        self.loaded.names.pod(pod).to_string()
    }

    fn preemptor(&self, ask: &Ask) -> PreemptorReport {
        let (kind, name) = match ask.preemptor {
            Preemptor::Pod(pod) => ("Pod", self.pod(pod)),
            Preemptor::Group(group) => ("PodGroup", self.loaded.names.group(group).to_string()),
            Preemptor::Workload(workload) => ("Workload", self.loaded.names.workload(workload).to_string()),
        };
        let pods = ask.members.iter().map(|&pod| self.pod(pod)).collect();
        PreemptorReport { kind, name, priority: ask.priority.0, pods, needed: ask.needed }
    }

    fn explanation(
        &self,
        preemptor: &PreemptorReport,
        ask: &Ask,
        outcome: &Outcome,
        explanation: &Explanation,
    ) -> ExplanationReport {
        let law = match outcome {
            Outcome::Wait(law) | Outcome::Unschedulable(Some(law)) => Some(self.law(law)),
            Outcome::Schedule(_) | Outcome::Preempt(_) | Outcome::Unschedulable(None) => None,
        };
        let plan = match outcome {
            Outcome::Preempt(plan) => Some(plan),
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => None,
        };
        let violations = Violations::of(self.loaded, plan.map_or(&[], |plan| &plan.victims));
        let violating = |victim: VictimReport, unit| VictimReport { violates: violations.by(unit), ..victim };
        let places = Places { naming: self, chosen: plan, preemptor };
        ExplanationReport {
            budgets: violations.reports(),
            summary: self.summary(preemptor, outcome, law.as_ref()),
            law,
            cost: plan.map(|plan| cost(&plan.cost)),
            victims: match outcome {
                Outcome::Preempt(plan) if !plan.grounds.is_empty() => {
                    let grounds = plan.victims.iter().zip(&plan.grounds);
                    let own = self.own_queue(ask);
                    let victim = |(unit, ground): (&UnitId, &Ground)| {
                        violating(self.workload_victim(own, *unit, *ground), *unit)
                    };
                    grounds.map(victim).collect()
                }
                _ => explanation.victims.iter().map(|reason| violating(self.victim(reason), reason.unit)).collect(),
            },
            spared: explanation.spared.iter().map(|entry| self.spared(entry)).collect(),
            nodes: places.nodes(&explanation.nodes),
            domains: places.domains(&explanation.domains),
            queues: Vec::new(),
            admission: None,
            quotas: Vec::new(),
            carry_out: Vec::new(),
            flavors: explanation.flavors.iter().map(|tried| self.flavor(tried)).collect(),
        }
    }

    fn summary(&self, preemptor: &PreemptorReport, outcome: &Outcome, law: Option<&LawReport>) -> String {
        let name = &preemptor.name;
        let placed = |n: usize| match preemptor.kind {
            "PodGroup" => format!(", {n} of {} pods", preemptor.pods.len()),
            _ => String::new(),
        };
        match (outcome, law) {
            (Outcome::Schedule(placement), _) => format!("{name} fits now, with no victim{}", placed(placement.len())),
            (Outcome::Preempt(plan), _) => {
                if preemptor.kind == "Workload" {
                    let n = plan.victims.len();
                    let nodes = if plan.placement.is_empty() { "" } else { ", and a node for every pod," };
                    let gone = count(n, "workload is", "workloads are");
                    return format!("{name} gets its quota{nodes} once {gone} gone");
                }
                let (pods, nodes) = (plan.cost.pods, self.nodes_of(plan));
                format!(
                    "{name} fits once {} gone{} on {nodes}",
                    count(pods, "pod is", "pods are"),
                    placed(plan.placement.len())
                )
            }
            (Outcome::Wait(_), Some(law)) => format!("{name} waits: {}", law.text),
            (Outcome::Unschedulable(Some(law)), Some(said)) if law.is_obstacle() => {
                format!("{name} cannot be scheduled: {}", said.text)
            }
            (Outcome::Unschedulable(_), Some(law)) => format!("{name} may not preempt: {}", law.text),
            (Outcome::Wait(_) | Outcome::Unschedulable(_), None) => {
                format!("no lawful set of victims makes {name} fit")
            }
        }
    }

    fn nodes_of(&self, plan: &Plan) -> String {
        let mut nodes: Vec<NodeId> = plan.placement.iter().map(|&(_, node)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        match nodes.as_slice() {
            [node] => self.loaded.names.node(*node).to_owned(),
            nodes => format!("{} nodes", nodes.len()),
        }
    }

    /// Victims are labelled for another operator, or deleted; an event says for whom; the job's pods are nominated. (Rule 13 of
    /// Koordinator.)
    fn carry_out(
        &self,
        policy: &Koordinator,
        preemptor: &PreemptorReport,
        ask: &Ask,
        outcome: &Outcome,
    ) -> Vec<ActionReport> {
        let Outcome::Preempt(plan) = outcome else {
            return Vec::new();
        };
        let job = ask.members.first().and_then(|&pod| self.loaded.snapshot.pod(pod).job);
        let job =
            job.map_or_else(|| format!("pod {}", preemptor.name), |job| format!("job {}", self.loaded.names.job(job)));
        let message = format!("preempted by {job}");
        let mut actions = Vec::new();
        for &pod in plan.victims.iter().flat_map(|&unit| &self.loaded.snapshot.unit(unit).pods) {
            let pod = self.pod(pod);
            actions.push(if policy.deletes_victims {
                on_pod("Delete", pod.clone(), message.clone())
            } else {
                let text = format!("scheduling.koordinator.sh/soft-eviction: {message}");
                on_pod("Label", pod.clone(), text)
            });
            actions.push(on_pod("Event", pod, format!("Preempted: {message}")));
        }
        for &(pod, node) in &plan.placement {
            let text = self.loaded.names.node(node).to_owned();
            actions.push(on_pod("Nominate", self.pod(pod), text));
        }
        actions
    }

    /// A workload that is taken: on what ground, and by which way it was reached.
    fn law(&self, law: &Law) -> LawReport {
        let Words { name, text } = words::law(law, &self.loaded.names);
        let (waits_for, until) = match law {
            Law::Underway { leaving, until, .. } => {
                (leaving.iter().map(|&pod| self.pod(pod)).collect(), Some(words::moment(*until)))
            }
            Law::Delay { until } => (Vec::new(), Some(words::moment(*until))),
            _ => (Vec::new(), None),
        };
        let named = |&text: &TextId| self.loaded.names.text(text).to_owned();
        let (gates, field) = match law {
            Law::SchedulingGates { gates, .. } => (gates.iter().map(named).collect(), None),
            Law::Unsupported { field, .. } => (Vec::new(), Some(named(field))),
            _ => (Vec::new(), None),
        };
        LawReport { name, text, waits_for, until, gates, field }
    }

    pub(crate) fn unit(&self, id: UnitId) -> UnitReport {
        let snapshot = &self.loaded.snapshot;
        let unit = snapshot.unit(id);
        let group = unit.pods.first().and_then(|&pod| snapshot.pod(pod).group);
        let whole = group.filter(|&group| snapshot.group(group).mode == reprieve_engine::snapshot::DisruptionMode::All);
        let mut nodes: Vec<NodeId> = unit.pods.iter().filter_map(|&pod| snapshot.home(pod)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        UnitReport {
            pods: unit.pods.iter().map(|&pod| self.pod(pod)).collect(),
            nodes: nodes.into_iter().map(|node| self.loaded.names.node(node).to_owned()).collect(),
            workload: unit.workload.map(|workload| self.loaded.names.workload(workload).to_string()),
            group: whole.map(|group| self.loaded.names.group(group).to_string()),
            queue: self.queue_of(id).map(|queue| self.loaded.names.queue(queue).to_owned()),
            priority: unit.priority.0,
            started: time(unit.start).map(|time| time.to_string()),
        }
    }

    pub(crate) fn queue_of(&self, id: UnitId) -> Option<QueueId> {
        let (snapshot, unit) = (&self.loaded.snapshot, self.loaded.snapshot.unit(id));
        match unit.workload {
            Some(workload) => snapshot.workload(workload).queue,
            None => unit.pods.first().and_then(|&pod| snapshot.pod(pod).queue),
        }
    }

    fn victim(&self, reason: &Reason) -> VictimReport {
        let names = &self.loaded.names;
        let (pod, node) = (self.pod(reason.pod), names.node(reason.node).to_owned());
        let Words { name, text } = words::misfit(&reason.misfit, &reason.shortages, names);
        let text = format!("{pod} would not fit on {node}: {text}");
        VictimReport {
            unit: self.unit(reason.unit),
            pod,
            node,
            path: Vec::new(),
            filter: name,
            text,
            short: self.short(&reason.misfit, &reason.shortages),
            violates: Vec::new(),
        }
    }

    /// By resource that is short on a node: how much is missing.
    pub(crate) fn short(&self, misfit: &Misfit, shortages: &[Shortage]) -> BTreeMap<String, String> {
        if !matches!(misfit, Misfit::Resource { .. } | Misfit::Ports) {
            return BTreeMap::new();
        }
        let amount = |shortage: &Shortage| {
            let name = self.loaded.names.resource(shortage.resource);
            (name.to_owned(), written(name, shortage.amount))
        };
        shortages.iter().map(amount).collect()
    }

    fn spared(&self, entry: &SparedUnit) -> SparedReport {
        let &SparedUnit { unit, ref spared, decisive } = entry;
        let Words { name, text } = match spared {
            Spared::Law(Law::Delay { until }) => {
                Words { name: "Delay", text: format!("the preemptor may preempt from {} on", words::moment(*until)) }
            }
            Spared::Law(law) => words::law(law, &self.loaded.names),
            Spared::InVain => {
                Words { name: "InVain", text: "nobody is taken for a preemptor that would still not fit".to_owned() }
            }
            Spared::Reprieved => Words { name: "Reprieved", text: "the preemptor fits without taking it".to_owned() },
            Spared::NotReached => {
                Words { name: "NotReached", text: "the search ended before it looked at it".to_owned() }
            }
            Spared::EqualCost(victim) => Words { name: "Reprieved", text: self.equal_cost(unit, *victim) },
        };
        let equal_cost = matches!(spared, Spared::EqualCost(_));
        SparedReport { unit: self.unit(unit), law: name, equal_cost, decisive, text }
    }

    /// A unit that could be taken instead of this victim is spared.
    fn equal_cost(&self, spared: UnitId, victim: UnitId) -> String {
        let fits = "the preemptor fits without taking it";
        let unit = self.loaded.snapshot.unit(victim);
        match (unit.workload, unit.pods.first()) {
            (Some(workload), _) => {
                let victim = self.loaded.names.workload(workload);
                format!("{fits}; equal cost to {victim}, the order of uids decides")
            }
            (None, Some(&pod)) => format!("{fits}; equal cost to {}{}", self.pod(pod), self.first_node(spared, victim)),
            (None, None) => fits.to_owned(),
        }
    }

    /// Where the victim's node comes before that of the spared unit, this is what decides.
    fn first_node(&self, spared: UnitId, victim: UnitId) -> String {
        let snapshot = &self.loaded.snapshot;
        let node = |unit: UnitId| snapshot.unit(unit).pods.first().and_then(|&pod| snapshot.home(pod));
        let names = node(victim).zip(node(spared)).map(|(one, two)| [one, two].map(|id| self.loaded.names.node(id)));
        match names {
            Some([chosen, other]) if chosen < other => format!(", first by name is {chosen}"),
            _ => String::new(),
        }
    }
}

pub(crate) fn on_pod(action: &'static str, pod: String, text: String) -> ActionReport {
    ActionReport { action, pod, workload: String::new(), text }
}

fn cost(cost: &Cost) -> CostReport {
    CostReport {
        budget_violations: cost.violations,
        highest_priority: cost.top.0,
        priority_sum: cost.weight,
        pods: cost.pods,
        oldest_start: time(cost.oldest.0).map(|time| time.to_string()),
    }
}

/// `1 pod is`, `2 pods are`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
