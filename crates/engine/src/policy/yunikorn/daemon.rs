//! docs/rules/yunikorn.md#y17: the order in which a DaemonSet pod takes the pods on its node.

use super::Search;
use super::candidates::{OPTED_OUT, UNLAWFUL};
use super::gangs::Take;
use super::laws;
use crate::ids::NodeId;

impl Search<'_, '_, '_> {
    /// First the pods that no law spares, then originators, then the pods whose removal breaks YuniKorn's law 2 or 3, then those that opted
    /// out. Whether law 2 is broken depends on the pods taken before. Pods that do not help come last.
    pub(super) fn lawful_first(&mut self, node: NodeId, takes: Vec<Take>) -> Vec<Take> {
        let mark = self.what_if.mark();
        let mut lacks = self.lacks(node);
        let (mut helping, mut others) = (Vec::new(), Vec::new());
        let (mut unlawful, mut opted_out) = (Vec::new(), Vec::new());
        let mut take = |search: &mut Self, take: Take| {
            let list = if search.helps(&take, node, &mut lacks) { &mut helping } else { &mut others };
            list.push(take);
        };
        for candidate in takes {
            if candidate.kind == OPTED_OUT {
                opted_out.push(candidate);
            } else if candidate.kind == UNLAWFUL || self.breaks_guarantee(&candidate) {
                unlawful.push(Take { kind: UNLAWFUL, ..candidate });
            } else {
                take(self, candidate);
            }
        }
        unlawful.sort_by_cached_key(|candidate| self.order_in_kind(candidate.pod));
        for candidate in unlawful.into_iter().chain(opted_out) {
            take(self, candidate);
        }
        self.what_if.back_to(mark);
        helping.extend(others);
        helping
    }

    /// Whether the removal reduces what the pod lacks, which is then updated; without effect if it does not.
    fn helps(&mut self, take: &Take, node: NodeId, lacks: &mut super::take::Lacks) -> bool {
        let mark = self.what_if.mark();
        take.pods().for_each(|pod| self.what_if.remove(pod));
        let left = self.lacks(node);
        let helps = left != *lacks;
        if helps {
            *lacks = left;
        } else {
            self.what_if.back_to(mark);
        }
        helps
    }

    /// Whether the removal leaves a queue with less than its guarantee.
    fn breaks_guarantee(&mut self, take: &Take) -> bool {
        let mark = self.what_if.mark();
        let breaks = take.pods().any(|pod| {
            let breaks = laws::would_break_guarantee(self.what_if, pod, &self.scope).is_some();
            self.what_if.remove(pod);
            breaks
        });
        self.what_if.back_to(mark);
        breaks
    }
}
