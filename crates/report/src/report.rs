//! The report of a decision.

use jiff::Timestamp;
use reprieve_engine::explanation::Explanation;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::PreemptionReason;
use reprieve_engine::{Decision, Outcome, UnitId};

use crate::answer::named;
use crate::budget_report::Violations;
use crate::cycle::admission;
use crate::placement_report::Places;
use crate::planned_actions;
use crate::plural::count;
use crate::queue_report::queues;
use crate::quota_report::quotas;
use reprieve_loader::time::time;
use reprieve_loader::{Loaded, Question, policy_name};

use crate::decision::{DecisionReport, ExplanationReport, LawReport, PreemptorReport, VictimReport};
use crate::report_builder::{ReportBuilder, cost};

/// Decides a question and explains the decision.
pub fn report(question: &Question, loaded: &mut Loaded) -> DecisionReport {
    let (decision, explanation) = question.decide_and_explain(loaded);
    explained(question, loaded, &decision, &explanation)
}

/// The report of a decision that was made with its explanation.
pub fn explained(
    question: &Question,
    loaded: &Loaded,
    decision: &Decision,
    explanation: &Explanation,
) -> DecisionReport {
    let Decision { outcome, assignment } = decision;
    let ask = question.ask(loaded);
    let naming = ReportBuilder { loaded };
    let preemptor = naming.preemptor(&ask);
    let explained = naming.explanation(&preemptor, &ask, outcome, explanation);
    let violated = explained.budgets.iter().map(|budget| budget.sentence("the plan"));
    DecisionReport {
        api_version: "reprieve.dev/v1alpha1",
        kind: "Decision",
        policy: policy_name(&question.policy),
        now: time(question.now).unwrap_or(Timestamp::MAX),
        answer: named(loaded, &ask.members, outcome),
        warnings: loaded.warnings.iter().cloned().chain(violated).collect(),
        explanation: ExplanationReport {
            queues: match question.policy {
                Policy::Kubernetes(_) | Policy::Kueue(_) => Vec::new(),
                Policy::YuniKorn | Policy::Koordinator(_) => queues(loaded, &ask.members, outcome),
            },
            admission: match (question.preemptor, assignment) {
                (PreemptorId::Workload(id), Some(given)) => Some(admission(loaded, id, given)),
                _ => None,
            },
            quotas: match (&question.policy, question.preemptor) {
                (Policy::Kueue(policy), PreemptorId::Workload(id)) => {
                    quotas(loaded, policy, id, outcome, assignment.as_ref())
                }
                _ => Vec::new(),
            },
            actions: planned_actions::carry_out(loaded, &question.policy, &ask, outcome),
            ..explained
        },
        preemptor,
        assumed: Vec::new(),
    }
}

impl ReportBuilder<'_> {
    fn explanation(
        &self,
        preemptor: &PreemptorReport,
        ask: &Preemptor,
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
                Outcome::Preempt(plan) if !plan.reasons.is_empty() => {
                    let grounds = plan.victims.iter().zip(&plan.reasons);
                    let own = self.own_queue(ask);
                    let victim = |(unit, ground): (&UnitId, &PreemptionReason)| {
                        violating(self.workload_victim(own, *unit, *ground), *unit)
                    };
                    grounds.map(victim).collect()
                }
                _ => explanation.victims.iter().map(|reason| violating(self.victim(reason), reason.unit)).collect(),
            },
            spared: explanation.spared.iter().map(|entry| self.spared(entry)).collect(),
            nodes: places.nodes(&explanation.nodes),
            domains: places.domains(&explanation.domains),
            flavors: explanation.flavors.iter().map(|tried| self.flavor(tried)).collect(),
            ..ExplanationReport::default()
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
}
