//! The YuniKorn policy: queues with guarantees, fences and seven laws. Victims are taken one by one, each allowed given those taken before
//! it, until the pod fits; victims that are not needed are then given back. All victims are on the chosen node, except for the rest of gangs
//! that go as a whole. With `compatibility: "1.8"` they are on any node if a node has room already and only quota is short.

mod candidates;
mod daemon;
mod gangs;
mod laws;
mod nominated;
mod settings;
mod take;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::decision::{Difference, Outcome, Plan};
use crate::decisive::Closed;
use crate::explanation::{Decisive, NoRecorder, Recorder};
use crate::filters::FilterFailure;
use crate::fit::{self, Preemptor};
use crate::ids::{NodeId, PodId, QueueId, ResourceId, Timestamp};
use crate::laws::{Law, never};
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;
use candidates::opted_out;
use laws::under_guarantee::GuaranteeCheck;
use laws::{fence, under_guarantee};

pub use settings::YuniKorn;

/// Decides for one pod.
pub(crate) fn decide<R: Recorder>(
    snapshot: &mut Snapshot,
    settings: &YuniKorn,
    preemptor: &Preemptor,
    pod: PodId,
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    let mut what_if = preemptor.what_if(snapshot);
    let outcome = Search::new(&mut what_if, settings, preemptor, pod, now).outcome(recorder);
    report_decisive(&mut what_if, preemptor, recorder);
    outcome
}

/// Reports what the outcome may depend on: pods in a queue, an application or a gang, victims that leave, and pods on nodes where the preemptor might be placed. Every
/// node is decisive, because the total of all nodes is the limit of the root queue.
fn report_decisive<R: Recorder>(what_if: &mut WhatIf<'_>, preemptor: &Preemptor, recorder: &mut R) {
    let Some(closed) = Closed::new::<R>(what_if, preemptor) else { return };
    let snapshot = what_if.snapshot();
    let is_needed =
        |pod: &Pod| pod.queue.is_some() || pod.application.is_some() || pod.group.is_some() || pod.marked_for.is_some();
    let mut decisive = Decisive::with(snapshot, closed.others(snapshot, preemptor), is_needed, &[], &closed);
    decisive.nodes.fill(true);
    recorder.decisive(decisive);
}

/// The plan for each node where the pod can be placed with preemption.
pub(crate) fn node_plans(
    snapshot: &mut Snapshot,
    settings: &YuniKorn,
    preemptor: &Preemptor,
    now: Timestamp,
) -> Vec<(NodeId, Plan)> {
    let mut what_if = preemptor.what_if(snapshot);
    let mut search = Search::new(&mut what_if, settings, preemptor, preemptor.members[0], now);
    let nodes = search.what_if.snapshot().node_ids();
    nodes.filter_map(|node| Some((node, search.plan_on(node, &mut NoRecorder, None).ok()?))).collect()
}

/// docs/rules/yunikorn.md#y6, docs/rules/yunikorn.md#y17: tells of a pod whether its priority, through the offsets and fences of the queues,
/// allows the preemptor to take it.
pub(crate) fn priority_allows(snapshot: &Snapshot, preemptor: PodId) -> impl Fn(PodId) -> bool {
    let scope = fence::FenceScope::new(snapshot, preemptor);
    move |candidate| {
        let (preemptor, candidate) = (snapshot.pod(preemptor), snapshot.pod(candidate));
        match candidate.queue {
            _ if preemptor.daemon => candidate.priority <= preemptor.priority,
            Some(queue) => scope.allows(queue, candidate.priority),
            None => false,
        }
    }
}

/// The search for one pod.
struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    settings: &'a YuniKorn,
    preemptor: &'a Preemptor,
    pod: PodId,
    now: Timestamp,
    /// The queue of the pod; a pod without one is limited only by nodes.
    queue: Option<QueueId>,
    scope: fence::FenceScope,
    /// By queue: whether a law spares its pods before any is taken, once computed.
    queue_laws: Vec<OnceCell<Result<(), Law>>>,
}

/// docs/rules/yunikorn.md#y14: the rank of a plan; the least is best: no victim opted out, no originator, the fewest victims, the first
/// node by name, which is the order of the ids.
type Rank = (bool, bool, usize, NodeId);

impl<'w, 's, 'a> Search<'w, 's, 'a> {
    fn new(
        what_if: &'w mut WhatIf<'s>,
        settings: &'a YuniKorn,
        preemptor: &'a Preemptor,
        pod: PodId,
        now: Timestamp,
    ) -> Self {
        if !settings.follows_code {
            nominated::hold_quota(what_if, pod);
        }
        let snapshot = what_if.snapshot();
        let queue = snapshot.pod(pod).queue;
        let scope = fence::FenceScope::new(snapshot, pod);
        let queue_laws = vec![OnceCell::new(); snapshot.queues().ids().len()];
        Self { what_if, settings, preemptor, pod, now, queue, scope, queue_laws }
    }

    fn outcome<R: Recorder>(&mut self, recorder: &mut R) -> Outcome {
        if let Some(node) = self.free_node() {
            return Outcome::Schedule(vec![(self.pod, node)]);
        }
        if let Some(law) = self.gate() {
            return match law {
                Law::PreemptionInProgress { .. } | Law::PreemptionDelay { .. } => Outcome::Wait(law),
                _ => Outcome::Unschedulable(Some(law)),
            };
        }
        match self.best(recorder) {
            Ok(plan) => Outcome::Preempt(plan),
            Err(law) => Outcome::Unschedulable(law),
        }
    }

    fn snapshot(&self) -> &Snapshot {
        self.what_if.snapshot()
    }

    fn requests(&self) -> &[i64] {
        self.snapshot().requests(self.snapshot().pod(self.pod).shape)
    }

    fn is_daemon(&self) -> bool {
        self.snapshot().pod(self.pod).daemon
    }

    /// Every maximum that the pod would exceed, from its queue upwards. The capacity of the cluster, which limits the root, is no obstacle
    /// for the pod of a DaemonSet.
    fn all_over_limit(&self) -> impl Iterator<Item = (QueueId, ResourceId, i64)> {
        let (queues, requests) = (self.snapshot().queues(), self.requests());
        let ignores_root = self.is_daemon() && !self.settings.follows_code;
        let path = self.queue.into_iter().flat_map(|queue| queues.path(queue));
        let limited = path.filter(move |&id| !ignores_root || queues.get(id).parent.is_some());
        limited.flat_map(|id| queues.all_over_limit(id, requests).map(move |(resource, over)| (id, resource, over)))
    }

    /// The maximum of a queue that the pod would exceed.
    fn over_limit(&self) -> Option<FilterFailure> {
        let (queue, resource, over) = self.all_over_limit().next()?;
        Some(FilterFailure::QueueLimit { queue, resource, over })
    }

    /// The reason why the pod does not fit on the node: first what eviction cannot change, then what is in the way now. Nominated pods are
    /// left out, because [`Self::reserved`] excludes their nodes.
    fn node_failure(&self, node: NodeId) -> Option<FilterFailure> {
        self.preemptor
            .node_failure(self.snapshot(), self.pod, node)
            .or_else(|| fit::filter_failure_without_nominees(self.what_if, self.pod, node))
    }

    fn is_free(&self, node: NodeId) -> bool {
        self.reserved(node).is_none() && self.node_failure(node).is_none()
    }

    /// docs/rules/yunikorn.md#y2: the node where the pod fits without victims, within the limits of its queues.
    fn free_node(&self) -> Option<NodeId> {
        self.over_limit().is_none().then(|| self.node_with_room())?
    }

    fn node_with_room(&self) -> Option<NodeId> {
        let nominated = self.snapshot().pod(self.pod).nominated;
        nominated.into_iter().chain(self.snapshot().node_ids()).find(|&node| self.is_free(node))
    }

    /// docs/rules/yunikorn.md#y3: the law by which the pod may not preempt now.
    fn gate(&mut self) -> Option<Law> {
        let snapshot = self.snapshot();
        if !snapshot.queues().enabled {
            return Some(Law::PreemptionDisabled);
        }
        never::refuses(snapshot, self.preemptor)
            .or_else(|| match self.settings.follows_code {
                true => laws::in_progress(snapshot, snapshot.pod(self.pod).nominated, &self.scope),
                false => laws::own_victims_leave(snapshot, self.preemptor, self.pod),
            })
            .or_else(|| laws::delay(snapshot, self.pod, self.now))
    }

    /// The best plan. Without one, the law that excludes every plan, or `None` if no law alone does. The guarantee does not apply to pods
    /// of a DaemonSet (docs/rules/yunikorn.md#y17).
    fn best<R: Recorder>(&mut self, recorder: &mut R) -> Result<Plan, Option<Law>> {
        let follows_code = self.settings.follows_code;
        if !self.is_daemon() {
            if let Some(law) = self.not_under_guarantee(recorder) {
                return Err(Some(law));
            }
        } else if let Some(FilterFailure::QueueLimit { queue, .. }) = self.over_limit().filter(|_| follows_code) {
            return Err(Some(Law::QueueLimit { queue }));
        }
        if follows_code
            && !self.is_daemon()
            && self.over_limit().is_some()
            && let Some(node) = self.node_with_room()
        {
            return self.best_for_quota(node, recorder).ok_or(None);
        }
        self.best_node(recorder).ok_or(None)
    }

    /// The plan with the least rank.
    fn best_node<R: Recorder>(&mut self, recorder: &mut R) -> Option<Plan> {
        let mut best: Option<(Rank, Plan)> = None;
        for node in self.snapshot().node_ids() {
            let least = best.as_ref().map(|(rank, _)| *rank);
            if !R::RECORDS {
                if least.is_some_and(|(opted_out, originator, n, _)| n == 1 && !opted_out && !originator) {
                    break; // no rank is lower, and of equal ranks the earlier node wins
                }
                if !self.may_rank_better(node, least) {
                    continue;
                }
            }
            let result = self.plan_on(node, recorder, None);
            recorder.node(node, &result);
            if let Ok(plan) = result {
                let rank = self.rank(&plan, node);
                if least.is_none_or(|least| rank < least) {
                    best = Some((rank, plan));
                }
            }
        }
        let (rank, plan) = best?;
        if R::RECORDS {
            let mut reasons = Vec::new();
            let (_, _, _, node) = rank;
            let _ = self.plan_on(node, recorder, Some(&mut reasons));
            recorder.victims(reasons);
            recorder.chosen(&plan, |other| self.difference(other, rank));
            self.report_again(&plan, recorder);
        }
        Some(plan)
    }

    /// The plan if `node` has room and only quota is short: the victims may run on any node.
    fn best_for_quota<R: Recorder>(&mut self, node: NodeId, recorder: &mut R) -> Option<Plan> {
        let mut without_room = BTreeMap::new();
        if R::RECORDS {
            for other in self.snapshot().node_ids().filter(|&other| !self.is_free(other)).collect::<Vec<_>>() {
                without_room.insert(other, self.plan_on(other, recorder, None));
            }
        }
        let mut reasons = Vec::new();
        let plan = self.plan_for_quota(node, recorder, R::RECORDS.then_some(&mut reasons))?;
        if R::RECORDS {
            recorder.victims(reasons);
            for other in self.snapshot().node_ids() {
                // Any node with room can be used with the same victims.
                let elsewhere = || Ok(Plan { placement: vec![(self.pod, other)], ..plan.clone() });
                recorder.node(other, &without_room.remove(&other).unwrap_or_else(elsewhere));
            }
            let is_nominated = self.snapshot().pod(self.pod).nominated == Some(node);
            recorder.chosen(&plan, |other| match other.placement.first() {
                Some(&(_, other)) if !self.is_free(other) => Difference::NoRoom,
                Some(_) | None if is_nominated => Difference::Nominated,
                Some(_) | None => Difference::FirstByName,
            });
            self.report_again(&plan, recorder);
        }
        Some(plan)
    }

    /// The first criterion of the rank in which a plan differs from the chosen one.
    fn difference(&self, other: &Plan, least: Rank) -> Difference {
        let (opted_out, originator, pods, _) = self.rank(other, least.3);
        Difference::first(&[
            (opted_out != least.0, Difference::OptedOut),
            (originator != least.1, Difference::Originator),
            (pods != least.2, Difference::Pods),
        ])
    }

    fn rank(&self, plan: &Plan, node: NodeId) -> Rank {
        let snapshot = self.snapshot();
        let pods = || plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods);
        let any = |matches: fn(&Pod) -> bool| pods().any(|&pod| matches(snapshot.pod(pod)));
        (any(opted_out), any(|pod| pod.originator), pods().count(), node)
    }

    /// Whether a plan on the node might exist and rank below `least`, by sums alone: its victims free what the node lacks, and each frees
    /// at most as much as the largest pod.
    fn may_rank_better(&self, node: NodeId, least: Option<Rank>) -> bool {
        let snapshot = self.snapshot();
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let requests = self.requests().iter().enumerate().filter(|(_, request)| **request > 0);
        requests
            .map(|(index, request)| (index, request + used[index] - allocatable[index]))
            .filter(|(_, short)| *short > 0)
            .all(|(index, short)| {
                let amounts = snapshot.bound_pods(node).iter().map(|bound| snapshot.requests(bound.shape)[index]);
                let (sum, largest) = amounts.fold((0, 0), |(sum, largest), amount| (sum + amount, amount.max(largest)));
                let fewest = |largest: i64| (short + largest - 1) / largest;
                sum >= short
                    && least.is_none_or(|(opted_out, originator, n, _)| {
                        opted_out || originator || i64::try_from(n).is_ok_and(|n| fewest(largest) < n)
                    })
            })
    }

    /// docs/rules/yunikorn.md#y10: the law that refuses a pod whose queue is not under its guarantee. As the code of YuniKorn, the pod must
    /// fit into what is left of the guarantee. If a queue above guarantees the amount, other queues share the guarantee, and the pod may
    /// fit after all candidates are removed.
    fn not_under_guarantee<R: Recorder>(&mut self, recorder: &mut R) -> Option<Law> {
        if !self.settings.follows_code {
            return under_guarantee::refuses(self.snapshot(), self.pod);
        }
        match under_guarantee::check(self.snapshot(), self.pod) {
            GuaranteeCheck::Suffices => None,
            GuaranteeCheck::Short(law) => Some(law),
            GuaranteeCheck::Shared(law) => {
                let candidates = self.all_eligible(recorder);
                (!under_guarantee::fits_after_removing(self.what_if, self.pod, &candidates)).then_some(law)
            }
        }
    }
}
