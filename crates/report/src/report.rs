//! Builds the report of a decision: `plan` prints the report, the scheduler keeps it for its status and its log.

use jiff::Timestamp;
use reprieve_engine::explanation::Explanation;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::Policy;
use reprieve_engine::{Decision, Outcome};

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

use crate::decision::{DecisionReport, ExplanationReport, LawReport, PreemptorKind, PreemptorReport, VictimReport};
use crate::report_builder::{ReportBuilder, cost};

/// Decides a question and explains the decision.
pub fn report(question: &Question, loaded: &mut Loaded) -> DecisionReport {
    let (decision, explanation) = question.decide_and_explain(loaded);
    explained(question, loaded, &decision, &explanation)
}

/// The report of a decision that the caller has made, with the explanation that the engine recorded.
pub fn explained(
    question: &Question,
    loaded: &Loaded,
    decision: &Decision,
    explanation: &Explanation,
) -> DecisionReport {
    let Decision { outcome, assignment } = decision;
    let ask = question.ask(loaded);
    let builder = ReportBuilder { loaded };
    let preemptor = builder.preemptor(&ask);
    let explained = builder.explanation(&preemptor, &ask, outcome, explanation);
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
                (PreemptorId::Workload(id), Some(assignment)) => Some(admission(loaded, id, assignment)),
                _ => None,
            },
            quotas: match (&question.policy, question.preemptor) {
                (Policy::Kueue(policy), PreemptorId::Workload(id)) => {
                    quotas(loaded, policy, id, outcome, assignment.as_ref())
                }
                _ => Vec::new(),
            },
            actions: planned_actions::report_actions(loaded, &question.policy, &ask, outcome),
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
        let (law, plan) = match outcome {
            Outcome::Wait(law) | Outcome::Unschedulable(Some(law)) => (Some(self.law(law)), None),
            Outcome::Preempt(plan) => (None, Some(plan)),
            Outcome::Schedule(_) | Outcome::Unschedulable(None) => (None, None),
        };
        let violations = Violations::of(self.loaded, plan.map_or(&[], |plan| &plan.victims));
        let violating = |victim: VictimReport, unit| VictimReport { violates: violations.by(unit), ..victim };
        let places = Places { builder: self, chosen: plan, preemptor };
        ExplanationReport {
            budgets: violations.reports(),
            summary: self.summary(preemptor, outcome, law.as_ref()),
            law,
            cost: plan.map(|plan| cost(&plan.cost)),
            victims: match plan {
                Some(plan) if !plan.reasons.is_empty() => {
                    let own = self.own_queue(ask);
                    let victims = plan.victims.iter().zip(&plan.reasons);
                    victims.map(|(&unit, &why)| violating(self.workload_victim(own, unit, why), unit)).collect()
                }
                _ => explanation.victims.iter().map(|reason| violating(self.victim(reason), reason.unit)).collect(),
            },
            spared: explanation.spared.iter().map(|entry| self.spared(entry)).collect(),
            nodes: places.nodes(&explanation.nodes),
            domains: places.domains(&explanation.domains),
            flavors: explanation.flavors.iter().map(|attempt| self.flavor(attempt)).collect(),
            ..ExplanationReport::default()
        }
    }

    fn summary(&self, preemptor: &PreemptorReport, outcome: &Outcome, law: Option<&LawReport>) -> String {
        let name = &preemptor.name;
        let placed = |pods: usize| match preemptor.kind {
            PreemptorKind::PodGroup => format!(" with {pods} of {} pods", preemptor.pods.len()),
            PreemptorKind::Pod | PreemptorKind::Workload => String::new(),
        };
        match (outcome, law) {
            (Outcome::Schedule(placement), _) => format!("{name} fits{} without preemption", placed(placement.len())),
            (Outcome::Preempt(plan), _) if preemptor.kind == PreemptorKind::Workload => {
                let nodes = if plan.placement.is_empty() { "" } else { ", with a node for every pod," };
                let victims = count(plan.victims.len(), "workload", "workloads");
                format!("{name} can be admitted{nodes} after evicting {victims}")
            }
            (Outcome::Preempt(plan), _) => {
                let (placed, nodes) = (placed(plan.placement.len()), self.nodes_of(plan));
                format!("{name} fits{placed} on {nodes} after evicting {}", count(plan.cost.pods, "pod", "pods"))
            }
            (Outcome::Wait(_), Some(law)) => format!("{name} waits: {}", law.text),
            (Outcome::Unschedulable(Some(law)), Some(report)) if law.is_obstacle() => {
                format!("{name} cannot be scheduled: {}", report.text)
            }
            (Outcome::Unschedulable(_), Some(law)) => format!("{name} may not preempt: {}", law.text),
            (Outcome::Wait(_) | Outcome::Unschedulable(_), None) => {
                format!("no set of victims that the policy allows makes {name} fit")
            }
        }
    }
}
