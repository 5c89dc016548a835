//! Builds the report of a decision: `plan`, `compare` and `demo` show it, and the simulator keeps the reports of the scheduler for its
//! HTML page.

use jiff::Timestamp;
use reprieve_engine::explanation::Explanation;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::{Decision, EvictionReason, Outcome, Policy, UnitId};

use crate::action_rows;
use crate::answer;
use crate::budget_report::Violations;
use crate::cycle::admission;
use crate::placement_report::Places;
use crate::plural::count;
use crate::queue_report::queues;
use crate::quota_report::quotas;
use reprieve_loader::time::time;
use reprieve_loader::{Loaded, Question, policy_name};

use crate::decision::{DecisionReport, ExplanationReport, LawReport, PreemptorKind, PreemptorReport, VictimReport};
use crate::report_builder::{ReportBuilder, cost};

/// Decides a question and returns the report of the decision. Deciding tries changes on the snapshot of `loaded` and undoes them.
pub fn decide_and_report(question: &Question, loaded: &mut Loaded) -> DecisionReport {
    let (decision, explanation) = question.decide_and_explain(loaded);
    report_decision(question, loaded, &decision, &explanation)
}

/// Returns the report of a decision that the caller has made. `decision` and `explanation` come from one call of
/// [`Question::decide_and_explain`] for this question, and `loaded` has not changed since. A trial on the snapshot is undone.
pub fn report_decision(
    question: &Question,
    loaded: &mut Loaded,
    decision: &Decision,
    explanation: &Explanation,
) -> DecisionReport {
    let Decision { outcome, assignment } = decision;
    let preemptor = question.preemptor(loaded);
    let actions = action_rows::report_actions(loaded, &question.policy, &preemptor, outcome);
    let loaded = &*loaded;
    let builder = ReportBuilder { loaded };
    let preemptor_report = builder.preemptor(&preemptor);
    let common = builder.common_explanation(&preemptor, &preemptor_report, outcome, explanation);
    let budget_warnings = common.budgets.iter().map(|budget| budget.sentence("the plan"));
    DecisionReport {
        api_version: "reprieve.dev/v1alpha1",
        kind: "Decision",
        policy: policy_name(&question.policy),
        // A time after the year 9999 is reported as the last representable time.
        now: time(question.now).unwrap_or(Timestamp::MAX),
        answer: answer::named(loaded, &preemptor.members, outcome),
        warnings: loaded.warnings.iter().map(ToString::to_string).chain(budget_warnings).collect(),
        explanation: ExplanationReport {
            // Kueue reports its queues as `quotas`; Kubernetes has no queues.
            queues: match question.policy {
                Policy::Kubernetes(_) | Policy::Kueue(_) => Vec::new(),
                Policy::YuniKorn(_) | Policy::Koordinator(_) => queues(loaded, &preemptor.members, outcome),
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
            actions,
            ..common
        },
        preemptor: preemptor_report,
        // Filled by `reprieve plan --assume`.
        assumed: Vec::new(),
    }
}

impl ReportBuilder<'_> {
    /// The explanation without queues, admission, quotas and actions, which `report_decision` adds.
    fn common_explanation(
        &self,
        preemptor: &Preemptor,
        preemptor_report: &PreemptorReport,
        outcome: &Outcome,
        explanation: &Explanation,
    ) -> ExplanationReport {
        let (law, plan) = match outcome {
            Outcome::Wait(law) | Outcome::Unschedulable(Some(law)) => (Some(self.law(law)), None),
            Outcome::Preempt(plan) => (None, Some(plan)),
            Outcome::Schedule(_) | Outcome::Unschedulable(None) => (None, None),
        };
        let violations = Violations::of(self.loaded, plan.map_or(&[], |plan| &plan.victims));
        let with_budgets = |victim: VictimReport, unit| VictimReport { violates: violations.by(unit), ..victim };
        let with_return = |victim: VictimReport, unit| {
            let returns = self.returns(&explanation.returns, unit);
            VictimReport { returns, ..with_budgets(victim, unit) }
        };
        let places = Places { builder: self, chosen: plan, preemptor: preemptor_report };
        ExplanationReport {
            budgets: violations.reports(),
            summary: self.summary(preemptor_report, outcome, law.as_ref()),
            law,
            cost: plan.map(cost),
            judging_ended: explanation.judging_ended,
            // A workload is a victim because of quota, as the plan says; a pod because of what the preemptor would lack, as the explanation
            // says.
            victims: match plan {
                Some(plan) if matches!(plan.reasons.first(), Some(EvictionReason::Quota(_))) => {
                    let own = self.queue_of_preemptor(preemptor);
                    let victims = plan.victims.iter().zip(&plan.reasons);
                    let quota = |(&unit, reason): (&UnitId, &EvictionReason)| match *reason {
                        EvictionReason::Quota(why) => Some(with_budgets(self.workload_victim(own, unit, why), unit)),
                        _ => None,
                    };
                    victims.filter_map(quota).collect()
                }
                _ => explanation.victims.iter().map(|reason| with_return(self.victim(reason), reason.unit)).collect(),
            },
            spared: explanation.spared.iter().map(|entry| self.spared(preemptor.id, entry)).collect(),
            nodes: places.nodes(&explanation.nodes),
            domains: places.domains(&explanation.domains),
            flavors: explanation.flavors.iter().map(|attempt| self.flavor(attempt)).collect(),
            ..ExplanationReport::default()
        }
    }

    /// The outcome in one sentence. A law is a named rule that refuses the preemptor or makes it wait; an obstacle is a law about the
    /// preemptor itself, which neither free resources nor victims would change.
    fn summary(&self, preemptor: &PreemptorReport, outcome: &Outcome, law: Option<&LawReport>) -> String {
        let name = &preemptor.name;
        let members = |pods: usize| match preemptor.kind {
            PreemptorKind::PodGroup => format!(" with {pods} of {} pods", preemptor.pods.len()),
            PreemptorKind::Pod | PreemptorKind::Workload => String::new(),
        };
        match (outcome, law) {
            (Outcome::Schedule(placement), _) => format!("{name} fits{} without preemption", members(placement.len())),
            (Outcome::Preempt(plan), _) if preemptor.kind == PreemptorKind::Workload => {
                let nodes = if plan.placement.is_empty() { "" } else { ", with a node for every pod," };
                let victims = count(plan.victims.len(), "workload", "workloads");
                format!("{name} can be admitted{nodes} after evicting {victims}")
            }
            (Outcome::Preempt(plan), _) => {
                let (fitting, nodes) = (members(plan.placement.len()), self.nodes_of(plan));
                let second = plan.second_order.as_ref().map_or(0, |second| second.pods);
                let second =
                    if second > 0 { format!("; returning victims would evict {second} more") } else { String::new() };
                format!(
                    "{name} fits{fitting} on {nodes} after evicting {}{second}",
                    count(plan.cost.pods, "pod", "pods")
                )
            }
            (Outcome::Wait(_), Some(law)) => format!("{name} waits: {}", law.text),
            (Outcome::Unschedulable(Some(engine_law)), Some(law)) if engine_law.is_obstacle() => {
                format!("{name} cannot be scheduled: {}", law.text)
            }
            (Outcome::Unschedulable(_), Some(law)) => format!("{name} may not preempt: {}", law.text),
            // Only `Unschedulable(None)`: `common_explanation` passes the law of the others.
            (Outcome::Wait(_) | Outcome::Unschedulable(_), None) => {
                format!("no set of victims that the policy allows makes {name} fit")
            }
        }
    }
}
