//! Why a decision is as it is.

use super::Search;
use crate::choose::Plan;
use crate::explain::{Explanation, NodeVerdict, Spared};
use crate::filters::Misfit;
use crate::ids::{PodId, UnitId};
use crate::laws::{Law, under_guarantee};
use crate::one_node::NodeRefusal;

impl Search<'_, '_, '_> {
    pub(super) fn explain_nodes(&mut self, explanation: &mut Explanation, plan: Option<&Plan>) {
        let chosen = plan.and_then(|plan| plan.placement.first()).map(|&(_, node)| node);
        for node in self.snapshot().node_ids() {
            let is_chosen = chosen == Some(node);
            let reasons = is_chosen.then_some(&mut explanation.victims);
            let quota_only = is_chosen && self.is_free(node);
            let found = if quota_only {
                self.plan_for_quota(node, reasons).ok_or(NodeRefusal::NoCandidate(Misfit::NodeSelection))
            } else {
                self.plan_on(node, reasons)
            };
            let verdict = match found {
                Ok(_) if is_chosen => NodeVerdict::Chosen,
                Ok(plan) => NodeVerdict::Dearer(plan),
                Err(refusal) => NodeVerdict::Refused(refusal),
            };
            explanation.nodes.push((node, verdict));
        }
    }

    pub(super) fn explain_spared(&mut self, explanation: &mut Explanation, plan: Option<&Plan>) {
        let chosen = plan.and_then(|plan| plan.placement.first()).map(|&(_, node)| node);
        let units: Vec<UnitId> = self.snapshot().unit_ids().collect();
        for unit in units {
            if plan.is_some_and(|plan| plan.victims.contains(&unit)) {
                continue;
            }
            let &pod = self.snapshot().unit(unit).pods.first().expect("a unit has a pod");
            match self.spares(pod).or_else(|| self.too_large(pod)) {
                Some(law) => explanation.spared.push((unit, Spared::Law(law))),
                None if self.snapshot().home(pod) == chosen => explanation.spared.push((unit, Spared::Reprieved)),
                None => {}
            }
        }
    }

    /// Whether it alone is larger than what is left of the guarantee; a DaemonSet's pod takes without one.
    fn too_large(&mut self, pod: PodId) -> Option<Law> {
        if self.is_daemon() {
            return None;
        }
        let mark = self.what_if.mark();
        self.what_if.remove(pod);
        let law = under_guarantee::too_large(self.snapshot(), self.pod, pod);
        self.what_if.back_to(mark);
        law
    }
}
