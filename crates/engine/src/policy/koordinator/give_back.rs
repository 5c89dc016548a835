//! docs/rules/koordinator.md#q11, docs/rules/koordinator.md#qa1: gives candidates back that need not be evicted, and counts the victims that
//! remain.

use std::collections::{BTreeMap, BTreeSet};

use super::Search;
use super::gangs::{GangId, RunningGang, give_back_order};
use super::quota::{over_quota, quota_failure};
use super::removed::{RemovedPod, RemovedPods};
use crate::candidates::Candidate;
use crate::explanation::VictimReason;
use crate::filters::FilterFailure;
use crate::fit::Placement;
use crate::ids::{NodeId, PodId, QueueId, ShapeId, UnitId};
use crate::reprieve::ReprieveTrial;

/// Candidates that are given back one by one, or not at all: the pods of one gang, or a single pod.
struct Part {
    pods: Vec<RemovedPod>,
    gang: Option<RunningGang>,
}

impl Part {
    /// Returns all pods that are victims if these are.
    fn victims(&self, taken: Vec<PodId>) -> Vec<PodId> {
        match &self.gang {
            Some(gang) if !gang.allows(&taken) => {
                let others = taken.into_iter().filter(|pod| !gang.pods.contains(pod));
                others.chain(gang.pods.iter().copied()).collect()
            }
            Some(_) | None => taken,
        }
    }
}

impl Search<'_, '_, '_> {
    /// The candidates in the order in which they are given back; the pods of a gang follow its first.
    fn parts(&self, mut removed: Vec<RemovedPod>) -> Vec<Part> {
        removed.sort_unstable_by_key(|victim| give_back_order(self.snapshot(), victim));
        let mut parts: Vec<Part> = Vec::new();
        let mut known: BTreeMap<GangId, usize> = BTreeMap::new();
        for pod in removed {
            let gang = self.gang(pod.pod).and_then(|id| Some((id, self.running(id)?)));
            match gang {
                None => parts.push(Part { pods: vec![pod], gang: None }),
                Some((id, running)) => match known.get(&id) {
                    Some(&part) => parts[part].pods.push(pod),
                    None => {
                        known.insert(id, parts.len());
                        parts.push(Part { pods: vec![pod], gang: Some(running) });
                    }
                },
            }
        }
        parts
    }

    /// Puts pods back, by priority, job and name, if all placed pods still fit and every limit holds. A gang of which too few pods would
    /// stay is taken whole. Returns the units of the others.
    pub(super) fn assign_back(
        &mut self,
        placement: &Placement,
        removed: Vec<RemovedPod>,
        reasons: Option<&mut Vec<VictimReason>>,
    ) -> Vec<Candidate> {
        let parts = self.parts(removed);
        let tree = self.snapshot().queues();
        let own: Vec<QueueId> = self.queue().map(|queue| tree.path(queue).collect()).unwrap_or_default();
        let mut victims: BTreeSet<UnitId> = BTreeSet::new();
        let mut recorded = Vec::new();
        let records = reasons.is_some();
        let mut trial = ReprieveTrial::new(self.what_if, self.preemptor, placement, records.then_some(&mut recorded));
        for part in &parts {
            let mark = trial.mark();
            let mut taken = Vec::new();
            for &RemovedPod { pod, .. } in &part.pods {
                if !returns(&mut trial, placement, pod, &own) {
                    taken.push(pod);
                }
            }
            if taken.is_empty() {
                continue;
            }
            let n_taken = taken.len();
            let all = part.victims(taken);
            if all.len() > n_taken {
                trial.back_to(mark);
                all.iter().for_each(|&pod| trial.take(pod));
            }
            victims.extend(all.iter().filter_map(|&pod| trial.snapshot().unit_of(pod)));
            trial.record_for_all(&all);
        }
        if let Some(reasons) = reasons {
            let mut known = BTreeSet::new();
            recorded.retain(|reason| victims.contains(&reason.unit) && known.insert(reason.unit));
            reasons.extend(recorded);
        }
        victims.into_iter().map(|unit| Candidate { unit, violations: 0 }).collect()
    }

    /// docs/rules/koordinator.md#qa1: of these nodes of equal cost, the first by name with the fewest further victims if the pod is placed
    /// there.
    pub(super) fn node_with_fewest_victims(
        &mut self,
        pod: PodId,
        nodes: Vec<NodeId>,
        removed_pods: &RemovedPods,
        counts: &mut VictimCounts,
    ) -> NodeId {
        let first = nodes[0];
        if !self.policy.whole_gangs {
            return first;
        }
        let shape = self.snapshot().pod(pod).shape;
        // A pod needs a victim on any node if nothing was placed yet and quota is not short: otherwise it would have been placed before.
        let least = usize::from(!counts.is_quota_short && counts.on_chosen.is_empty());
        let mut best: Option<(usize, NodeId)> = None;
        for node in nodes {
            let known = counts.known.get(&(shape, node)).copied();
            let count = known.unwrap_or_else(|| self.victims_if_placed(pod, node, removed_pods));
            counts.known.insert((shape, node), count);
            let Some(count) = count else { continue };
            let more = count.saturating_sub(counts.on_chosen.get(&node).copied().unwrap_or_default());
            if best.is_none_or(|(fewest, _)| more < fewest) {
                best = Some((more, node));
            }
            if more <= least {
                break;
            }
        }
        let node = best.map_or(first, |(_, node)| node);
        let count = counts.known.get(&(shape, node)).copied().flatten();
        counts.on_chosen.insert(node, count.unwrap_or_default());
        counts.known.retain(|(_, known), _| *known != node);
        node
    }

    /// The number of pods that must go if the pod is placed on a node, apart from quota; `None` if it does not fit there.
    fn victims_if_placed(&mut self, pod: PodId, node: NodeId, removed_pods: &RemovedPods) -> Option<usize> {
        let parts = self.parts(removed_pods.on(node).to_vec());
        let mark = self.what_if.mark();
        for candidate in removed_pods.on(node) {
            if self.snapshot().pod(candidate.pod).node.is_some() {
                self.what_if.remove(candidate.pod);
            }
        }
        if self.filter_failure(pod, node).is_some() {
            self.what_if.back_to(mark);
            return None;
        }
        self.what_if.place(pod, node);
        let placement = vec![(pod, node)];
        let mut trial = ReprieveTrial::new(self.what_if, self.preemptor, &placement, None);
        let mut count = 0;
        for part in &parts {
            let mut taken = Vec::new();
            for candidate in &part.pods {
                let unit = trial.snapshot().unit_of(candidate.pod);
                if !unit.is_some_and(|unit| trial.return_pod(unit, candidate.pod)) {
                    taken.push(candidate.pod);
                }
            }
            let n_taken = taken.len();
            let all = if n_taken == 0 { taken } else { part.victims(taken) };
            if all.len() > n_taken {
                part.pods.iter().for_each(|candidate| trial.take(candidate.pod));
            }
            count += all.len();
        }
        self.what_if.back_to(mark);
        Some(count)
    }
}

/// Puts a pod back if the placement stays valid and every limit holds, else records why not. Returns whether it did.
fn returns(trial: &mut ReprieveTrial<'_, '_>, placement: &Placement, pod: PodId, own: &[QueueId]) -> bool {
    let Some(unit) = trial.snapshot().unit_of(pod) else { return true };
    let Some(failure) = quota_failure(trial.snapshot(), pod, own) else { return trial.return_pod(unit, pod) };
    let Some(&(first_member, node)) = placement.first() else { return false };
    trial.record(|snapshot| {
        let shortages = match failure {
            FilterFailure::QueueLimit { queue, .. } => over_quota(snapshot, pod, queue),
            _ => Vec::new(),
        };
        VictimReason { unit, pod: first_member, node, failure, shortages }
    });
    false
}

/// How many pods must go if a pod is placed on a node.
pub(super) struct VictimCounts {
    is_quota_short: bool,
    /// By shape of the pod and node; `None` if the pod does not fit there.
    known: BTreeMap<(ShapeId, NodeId), Option<usize>>,
    /// By node that was chosen for a pod: how many pods must go for all pods placed there.
    on_chosen: BTreeMap<NodeId, usize>,
}

impl VictimCounts {
    pub(super) fn new(is_quota_short: bool) -> Self {
        Self { is_quota_short, known: BTreeMap::new(), on_chosen: BTreeMap::new() }
    }
}
