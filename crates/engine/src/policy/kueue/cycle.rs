//! The cycle: the pending workloads of all queues at once. Every queue's head is decided on the same snapshot; then they are gone
//! through, those that borrow least first, or under fair sharing those with the least share, and each gets what it was decided
//! only if those before it leave it room. (Rules 20 and 21 of the flat cohorts.)
//!
//! It admits and evicts nobody: whoever calls it carries out what it says. A preemptor is admitted in a later cycle, when its
//! victims are gone; what it asks for is kept for it in this one.

use std::collections::BTreeMap;

use crate::decision::Outcome;
use crate::explanation::NoRecorder;
use crate::fit::Placement;
use crate::ids::{PodId, QueueId, Timestamp, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::fair_order::FairOrder;
use crate::policy::kueue::joint::{self, Nodes};
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{Assignment, Decision, HeadDecision, Kueue};
use crate::snapshot::Snapshot;
use crate::workloads::QueueingStrategy;

/// A workload that the cycle looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleEntry {
    /// The workload.
    pub workload: WorkloadId,
    /// What comes of it.
    pub result: CycleResult,
    /// What it is given, or will be once its victims are gone; `None` where it gets nothing in this cycle.
    pub assignment: Option<Assignment>,
}

/// What comes of a workload in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CycleResult {
    /// As if it had asked alone.
    Decided(Outcome),
    /// It could have had what it asks for, had it not been for those before it. It may ask again in the next cycle.
    Skipped(SkipReason),
}

/// Why a workload is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its cohort may not borrow any more in this cycle.
    BorrowingBlocked {
        /// The first workload of the cohort that needs no borrowing.
        by: WorkloadId,
    },
    /// Somebody whom it would preempt is preempted already.
    VictimTaken {
        /// For this workload.
        by: WorkloadId,
        /// That victim.
        victim: WorkloadId,
    },
    /// What it asks for was given, or kept, for those before it.
    QuotaTaken,
}

/// Decides for the heads of all queues; `pending` may be in any order, and those in it that hold quota already, are in no queue or
/// were deactivated are passed over. The answers are in the order in which the heads were considered.
pub fn run_cycle(snapshot: &Snapshot, policy: &Kueue, pending: &[WorkloadId], now: Timestamp) -> Vec<CycleEntry> {
    run_cycle_with_progress(snapshot, policy, pending, now, &mut |_| {})
}

/// The same. `note` hears of each workload before anything is decided about it, so that it is known about whom a fault is.
pub fn run_cycle_with_progress(
    snapshot: &Snapshot,
    policy: &Kueue,
    pending: &[WorkloadId],
    now: Timestamp,
    note: &mut dyn FnMut(WorkloadId),
) -> Vec<CycleEntry> {
    let mut ground = joint::scratch_snapshot(snapshot, policy);
    let mut quota = QuotaUsage::new(snapshot);
    let mut heads = heads(&mut quota, policy, pending, now, ground.as_mut(), note);
    heads.sort_by_key(|head| {
        let borrowing = head.decision.requested.as_ref().map_or(usize::MAX, |asks| asks.borrowing);
        (borrowing, snapshot.workload(head.workload).queue_order())
    });
    let mut room =
        CycleState { quota, nodes: ground, borrowing_stopped_by: BTreeMap::new(), victim_of: BTreeMap::new(), note };
    if policy.fair_sharing.is_none() {
        return heads.into_iter().map(|head| room.consider(head)).collect();
    }
    let (contenders, others): (Vec<Head>, Vec<Head>) = heads.into_iter().partition(|head| room.reserves_quota(head));
    let mut turns = FairOrder::new(&mut room.quota, contenders);
    let mut considered = Vec::new();
    while let Some(head) = turns.next(&room.quota) {
        let victims = head.decision.victims.iter().filter_map(|&victim| snapshot.workload(victim).queue);
        let queues: Vec<QueueId> = victims.chain([head.queue]).collect();
        considered.push(room.consider(head));
        turns.update_shares(&mut room.quota, &queues);
    }
    considered.extend(others.into_iter().map(|head| room.consider(head)));
    considered
}

pub(super) struct Head {
    pub workload: WorkloadId,
    pub queue: QueueId,
    pub decision: HeadDecision,
}

impl Head {
    fn is_admissible(&self) -> bool {
        matches!(self.decision.outcome, Outcome::Schedule(_) | Outcome::Preempt(_))
    }

    /// Whether no quota would help it: then it holds up nothing behind it.
    fn is_obstructed(&self) -> bool {
        matches!(&self.decision.outcome, Outcome::Unschedulable(Some(law)) if law.is_obstacle())
    }

    /// Whether it has only to wait for pods that leave for it. What they left must not go to others: it would have to preempt again.
    fn is_awaited(&self) -> bool {
        matches!(self.decision.outcome, Outcome::Wait(Law::PreemptionInProgress { .. }))
    }
}

/// Each queue's first; under `BestEffortFIFO`, where that can have nothing, those behind it too, up to the first that can. Whoever's
/// namespace is not for the queue is in nobody's way.
fn heads(
    quota: &mut QuotaUsage<'_>,
    policy: &Kueue,
    pending: &[WorkloadId],
    now: Timestamp,
    mut ground: Option<&mut Snapshot>,
    note: &mut dyn FnMut(WorkloadId),
) -> Vec<Head> {
    let snapshot = quota.snapshot;
    let mut waiting: BTreeMap<QueueId, Vec<WorkloadId>> = BTreeMap::new();
    for &id in pending {
        let workload = snapshot.workload(id);
        if let (Some(queue), None, true) = (workload.queue, &workload.admission, workload.active) {
            waiting.entry(queue).or_default().push(id);
        }
    }
    let mut heads = Vec::new();
    for (queue, mut workloads) in waiting {
        workloads.sort_by_key(|&id| snapshot.workload(id).queue_order());
        for workload in workloads {
            note(workload);
            let nomination = HeadDecision::new(quota, policy, workload, now, ground.as_deref_mut(), &mut NoRecorder);
            let head = Head { workload, queue, decision: nomination };
            let found = head.is_admissible() || head.is_awaited();
            let is_strict = snapshot.quota_rules().queues[queue.index()].queueing == QueueingStrategy::StrictFifo;
            let may_block = snapshot.workload(workload).namespace_fits && !head.is_obstructed();
            heads.push(head);
            if found || (is_strict && may_block) {
                break;
            }
        }
    }
    heads
}

/// What is left as the cycle goes on.
struct CycleState<'a> {
    /// With the victims gone, and with what was given or is kept for somebody.
    quota: QuotaUsage<'a>,
    /// The nodes in the same way, where they play a part.
    nodes: Option<Snapshot>,
    /// By cohort, that at the root: who stopped its borrowing.
    borrowing_stopped_by: BTreeMap<QueueId, WorkloadId>,
    /// By victim: for whom it is preempted.
    victim_of: BTreeMap<WorkloadId, WorkloadId>,
    note: &'a mut dyn FnMut(WorkloadId),
}

impl CycleState<'_> {
    /// Whether a head takes or keeps anything from those behind it.
    fn reserves_quota(&self, head: &Head) -> bool {
        let blocks = self.quota.rules.queues[head.queue.index()].queueing == QueueingStrategy::StrictFifo;
        head.decision.requested.is_some() && (head.is_admissible() || head.is_awaited() || blocks)
    }

    fn consider(&mut self, head: Head) -> CycleEntry {
        (self.note)(head.workload);
        let (gets, holds) = (head.is_admissible(), self.reserves_quota(&head));
        let Head { workload, queue, decision: mut nomination } = head;
        let Some(asks) = nomination.requested.as_ref().filter(|_| holds) else { return decided(workload, nomination) };
        let root = self.quota.tree.root(queue);
        if asks.borrowing == 0 {
            self.borrowing_stopped_by.entry(root).or_insert(workload);
        } else if let (Some(&by), true) = (self.borrowing_stopped_by.get(&root), gets) {
            return skipped(workload, SkipReason::BorrowingBlocked { by });
        }
        if !gets {
            self.keep(queue, asks);
            self.occupy(&[], &nomination.reserved_placement);
            return decided(workload, nomination);
        }
        let taken = nomination.victims.iter().find_map(|victim| Some((*victim, *self.victim_of.get(victim)?)));
        if let Some((victim, by)) = taken {
            return skipped(workload, SkipReason::VictimTaken { by, victim });
        }
        for &victim in &nomination.victims {
            self.quota.take(victim);
        }
        let fits = self.quota.fits(queue, &asks.usage, true);
        let Some(places) = self.places(workload, &nomination.victims, asks).filter(|_| fits) else {
            for &victim in &nomination.victims {
                self.quota.put_back(victim);
            }
            return skipped(workload, SkipReason::QuotaTaken);
        };
        self.quota.charge(queue, &asks.usage, 1);
        self.occupy(&nomination.victims, &places);
        match &mut nomination.outcome {
            Outcome::Schedule(placement) => *placement = places,
            Outcome::Preempt(plan) => plan.placement = places,
            Outcome::Wait(_) | Outcome::Unschedulable(_) => {}
        }
        self.victim_of.extend(nomination.victims.iter().map(|&victim| (victim, workload)));
        decided(workload, nomination)
    }

    /// Where its pods go beside those of the heads before it; nowhere, where nodes play no part.
    fn places(&mut self, workload: WorkloadId, victims: &[WorkloadId], asks: &Assignment) -> Option<Placement> {
        match &mut self.nodes {
            None => Some(Placement::new()),
            Some(ground) => Nodes::new(ground, workload, asks).placement(victims),
        }
    }

    fn occupy(&mut self, victims: &[WorkloadId], places: &Placement) {
        let Some(ground) = &mut self.nodes else { return };
        let gone: Vec<PodId> = victims.iter().flat_map(|&victim| joint::pods_of(ground, victim)).collect();
        for pod in gone {
            ground.move_to(pod, None);
        }
        for &(pod, node) in places {
            ground.move_to(pod, Some(node));
        }
    }

    /// A head that waits for others to leave, or that is of a `StrictFIFO` queue, keeps what there is of what it asks for.
    fn keep(&mut self, queue: QueueId, asks: &Assignment) {
        for &(pair, amount) in &asks.usage {
            let kept = amount.min(self.quota.available(queue, pair).max(0));
            self.quota.charge(queue, &[(pair, kept)], 1);
        }
    }
}

fn decided(workload: WorkloadId, nomination: HeadDecision) -> CycleEntry {
    let Decision { outcome, assignment } = nomination.into_decision();
    CycleEntry { workload, result: CycleResult::Decided(outcome), assignment }
}

fn skipped(workload: WorkloadId, skip: SkipReason) -> CycleEntry {
    CycleEntry { workload, result: CycleResult::Skipped(skip), assignment: None }
}
