//! Why a decision is as it is.

use super::Search;
use crate::decision::{Difference, Plan};
use crate::explanation::{Explanation, NodeEntry, NodeRefusal, NodeVerdict, Spared, SparedUnit};
use crate::filters::Misfit;
use crate::ids::{NodeId, PodId, UnitId};
use crate::laws::{Law, under_guarantee};

impl Search<'_, '_, '_> {
    pub(super) fn explain_nodes(&mut self, explanation: &mut Explanation, plan: Option<&Plan>) {
        let chosen = plan.and_then(|plan| plan.placement.first()).map(|&(_, node)| node);
        // A chosen node that has room means that only quota was short: any node with room would do, with the same victims.
        let quota_only = chosen.is_some_and(|node| self.is_free(node));
        for node in self.snapshot().node_ids() {
            let is_chosen = chosen == Some(node);
            let reasons = is_chosen.then_some(&mut explanation.victims);
            let mut shortages = Vec::new();
            let found = if quota_only && self.is_free(node) {
                self.plan_for_quota(node, reasons).ok_or(NodeRefusal::NoCandidate(Misfit::NodeSelection))
            } else {
                self.plan_on(node, reasons, Some(&mut shortages))
            };
            let verdict = match found {
                Ok(_) if is_chosen => NodeVerdict::Chosen,
                Ok(other) => {
                    let difference = plan.zip(chosen).map(|(plan, chosen)| match quota_only {
                        true if !self.is_free(node) => Difference::NoRoom,
                        true if self.snapshot().pod(self.pod).nominated == Some(chosen) => Difference::Nominated,
                        true => Difference::FirstByName,
                        false => self.difference((&other, node), (plan, chosen)),
                    });
                    NodeVerdict::Dearer(other, difference)
                }
                Err(refusal) => NodeVerdict::Refused(refusal, shortages),
            };
            explanation.nodes.push(NodeEntry { node, verdict, decisive: true });
        }
    }

    /// The first criterion of the rank in which a plan differs from the chosen one.
    fn difference(&self, other: (&Plan, NodeId), chosen: (&Plan, NodeId)) -> Difference {
        let (opted_out, originator, pods, _) = self.rank(other.0, other.1);
        let least = self.rank(chosen.0, chosen.1);
        if opted_out != least.0 {
            Difference::OptedOut
        } else if originator != least.1 {
            Difference::Originator
        } else if pods != least.2 {
            Difference::Pods
        } else {
            Difference::FirstByName
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
            let spared = match self.spares(pod).or_else(|| self.too_large(pod)) {
                Some(law) => Spared::Law(law),
                None if self.snapshot().home(pod) == chosen => Spared::Reprieved,
                None => continue,
            };
            explanation.spared.push(SparedUnit { unit, spared, decisive: true });
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
