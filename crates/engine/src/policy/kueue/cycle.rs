//! docs/rules/kueue.md#k20, docs/rules/kueue.md#k21, docs/rules/kueue.md#ka1: one admission cycle over the pending workloads of all queues.
//! The head of every queue is decided on the same snapshot. The heads are then considered in order of borrowing level or, under fair
//! sharing, of share, and each gets its decision only if the heads before it leave enough quota.
//!
//! The cycle changes nothing; the scheduler executes its result. A preemptor is admitted in a later cycle, after its victims are gone; this
//! cycle reserves the quota for it.

use std::collections::BTreeMap;

use crate::decision::Outcome;
use crate::explanation::NoRecorder;
use crate::fit::Placement;
use crate::ids::{PodId, QueueId, Timestamp, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::fair_order::FairOrder;
use crate::policy::kueue::joint::{self, Nodes};
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{Assignment, Decision, HeadDecision, Kueue, Request};
use crate::snapshot::Snapshot;
use crate::workloads::QueueingStrategy;

/// The result of a cycle for one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleEntry {
    /// The workload.
    pub workload: WorkloadId,
    /// The result.
    pub result: CycleResult,
    /// The quota that it gets now or after its victims are evicted; `None` if it gets none in this cycle.
    pub assignment: Option<Assignment>,
}

/// The result of a cycle for one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CycleResult {
    /// The decision for the workload alone.
    Decided(Outcome),
    /// The decision does not hold beside those of the heads before it. The next cycle tries again.
    Skipped(SkipReason),
}

/// Why a workload is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The workload needs to borrow, and a head of its cohort that does not need to borrow goes first, or waits for its quota.
    BorrowingBlocked {
        /// The first workload of the cohort that does not borrow.
        by: WorkloadId,
    },
    /// One of its victims is preempted for another workload.
    VictimTaken {
        /// The workload for which it is preempted.
        by: WorkloadId,
        /// The victim.
        victim: WorkloadId,
    },
    /// The quota is taken by, or reserved for, heads before it.
    QuotaTaken,
}

/// Decides for the heads of all queues. `pending` may be in any order; workloads in it that are admitted, in no queue or deactivated are
/// ignored. The results are in the order in which the heads were considered.
pub fn run_cycle(snapshot: &Snapshot, policy: &Kueue, pending: &[WorkloadId], now: Timestamp) -> Vec<CycleEntry> {
    run_cycle_with_progress(snapshot, policy, pending, now, &mut |_| {})
}

/// Like [`run_cycle`]. `note` is called with each workload before its decision, so that a panic can be attributed to it.
pub fn run_cycle_with_progress(
    snapshot: &Snapshot,
    policy: &Kueue,
    pending: &[WorkloadId],
    now: Timestamp,
    note: &mut dyn FnMut(WorkloadId),
) -> Vec<CycleEntry> {
    let mut scratch = joint::scratch_snapshot(snapshot, policy);
    let mut quota = QuotaUsage::new(snapshot);
    let mut heads = heads(&mut quota, policy, pending, now, scratch.as_mut(), note);
    heads.sort_by_key(|head| {
        let borrowing = head.decision.requested.as_ref().map_or(usize::MAX, |requested| requested.borrowing);
        (borrowing, snapshot.workload(head.workload).queue_order())
    });
    let mut state = CycleState {
        quota,
        nodes: scratch,
        borrowing_stopped_by: BTreeMap::new(),
        victim_of: BTreeMap::new(),
        kept: BTreeMap::new(),
        note,
    };
    if policy.fair_sharing.is_none() {
        return heads.into_iter().map(|head| state.consider(head)).collect();
    }
    let (reserving, others): (Vec<Head>, Vec<Head>) =
        heads.into_iter().partition(|head| head.quota_use != QuotaUse::None);
    let mut order = FairOrder::new(&mut state.quota, reserving);
    let mut considered = Vec::new();
    while let Some(head) = order.next(&state.quota) {
        let victims = head.decision.victims.iter().filter_map(|&victim| snapshot.workload(victim).queue);
        let queues: Vec<QueueId> = victims.chain([head.queue]).collect();
        considered.push(state.consider(head));
        order.update_shares(&mut state.quota, &queues);
    }
    considered.extend(others.into_iter().map(|head| state.consider(head)));
    considered
}

pub(super) struct Head {
    pub workload: WorkloadId,
    pub queue: QueueId,
    pub decision: HeadDecision,
    quota_use: QuotaUse,
}

/// What a head does with quota in the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuotaUse {
    /// It gets its request now, or after its victims are evicted.
    Takes,
    /// It reserves what is available of its request: it waits only for its victims to terminate, and would have to preempt again without
    /// the quota that they free; or it blocks a `StrictFIFO` queue.
    Reserves,
    /// docs/rules/kueue.md#ka1: it waits for nominal quota of its queue that others borrow, and keeps what is available of it from other
    /// queues. The workloads behind it in its `BestEffortFIFO` queue may still take it.
    Keeps,
    /// It leaves all quota to others.
    None,
}

impl QuotaUse {
    /// What a workload does with quota. `quota` is that before the cycle.
    fn of(quota: &QuotaUsage<'_>, queue: QueueId, decision: &HeadDecision, strategy: QueueingStrategy) -> Self {
        let Some(requested) = &decision.requested else { return Self::None };
        let waits_for_quota = !quota.fits(queue, &requested.usage, true);
        match (&decision.outcome, strategy) {
            (Outcome::Schedule(_) | Outcome::Preempt(_), _) => Self::Takes,
            (Outcome::Wait(Law::PreemptionInProgress { .. }), _) => Self::Reserves,
            (Outcome::Wait(_) | Outcome::Unschedulable(_), QueueingStrategy::StrictFifo) => Self::Reserves,
            (Outcome::Wait(_) | Outcome::Unschedulable(_), QueueingStrategy::BestEffortFifo) => {
                if requested.borrowing == 0 && waits_for_quota { Self::Keeps } else { Self::None }
            }
        }
    }
}

impl Head {
    /// Whether no quota would help it, so that it does not block the workloads behind it.
    fn is_obstructed(&self) -> bool {
        matches!(&self.decision.outcome, Outcome::Unschedulable(Some(law)) if law.is_obstacle())
    }

    /// Whether the workloads behind it in a `BestEffortFIFO` queue are not considered.
    fn ends_the_search(&self) -> bool {
        match self.quota_use {
            QuotaUse::Takes | QuotaUse::Reserves => true,
            QuotaUse::Keeps | QuotaUse::None => false,
        }
    }
}

/// The head of each queue; under `BestEffortFIFO`, if the head cannot be admitted, also the following workloads up to the first that can. A
/// workload whose namespace the queue does not select blocks no other. At most one workload of a queue keeps quota.
fn heads(
    quota: &mut QuotaUsage<'_>,
    policy: &Kueue,
    pending: &[WorkloadId],
    now: Timestamp,
    mut scratch: Option<&mut Snapshot>,
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
        let strategy = snapshot.quota_rules().queues[queue.index()].queueing;
        let mut has_kept = false;
        for workload in workloads {
            note(workload);
            let decision = HeadDecision::new(quota, policy, workload, now, scratch.as_deref_mut(), &mut NoRecorder);
            let mut quota_use = QuotaUse::of(quota, queue, &decision, strategy);
            if quota_use == QuotaUse::Keeps && std::mem::replace(&mut has_kept, true) {
                quota_use = QuotaUse::None;
            }
            let head = Head { workload, queue, decision, quota_use };
            let may_block = snapshot.workload(workload).namespace_fits && !head.is_obstructed();
            let ends = head.ends_the_search() || (strategy == QueueingStrategy::StrictFifo && may_block);
            heads.push(head);
            if ends {
                break;
            }
        }
    }
    heads
}

/// The state of a cycle: what the heads considered so far leave.
struct CycleState<'a> {
    /// The quota without the victims, and with what was given or reserved.
    quota: QuotaUsage<'a>,
    /// The scratch snapshot for placements under joint placement.
    nodes: Option<Snapshot>,
    /// By root cohort: the first head that does not borrow, after which no other head may.
    borrowing_stopped_by: BTreeMap<QueueId, WorkloadId>,
    /// By victim: the workload for which it is preempted.
    victim_of: BTreeMap<WorkloadId, WorkloadId>,
    /// By queue: what a waiting workload keeps of its quota.
    kept: BTreeMap<QueueId, KeptQuota>,
    note: &'a mut dyn FnMut(WorkloadId),
}

/// The nominal quota that is kept for a waiting workload. docs/rules/kueue.md#ka1
struct KeptQuota {
    requested: Vec<Request>,
    /// The part that is charged to its queue.
    charged: Vec<Request>,
}

impl CycleState<'_> {
    fn consider(&mut self, head: Head) -> CycleEntry {
        (self.note)(head.workload);
        let Head { workload, queue, decision, quota_use } = head;
        let Some(requested) = &decision.requested else { return decided(workload, decision) };
        if quota_use == QuotaUse::None {
            return decided(workload, decision);
        }
        let root = self.quota.tree.root(queue);
        if requested.borrowing == 0 {
            self.borrowing_stopped_by.entry(root).or_insert(workload);
        } else if let (Some(&by), QuotaUse::Takes) = (self.borrowing_stopped_by.get(&root), quota_use) {
            return skipped(workload, SkipReason::BorrowingBlocked { by });
        }
        match quota_use {
            QuotaUse::Takes => {
                let kept = self.release(queue);
                let entry = self.take(workload, queue, decision);
                self.keep(queue, kept);
                entry
            }
            QuotaUse::Reserves => {
                let reserved = self.available_of(queue, &requested.usage);
                self.quota.charge(queue, &reserved, 1);
                self.occupy(&[], &decision.reserved_placement);
                decided(workload, decision)
            }
            QuotaUse::Keeps => {
                self.keep(queue, Some(requested.usage.clone()));
                decided(workload, decision)
            }
            QuotaUse::None => decided(workload, decision),
        }
    }

    /// Gives a head its quota and, under joint placement, its nodes, if the heads before it leave enough.
    fn take(&mut self, workload: WorkloadId, queue: QueueId, mut decision: HeadDecision) -> CycleEntry {
        let Some(requested) = &decision.requested else { return decided(workload, decision) };
        let already_taken = decision.victims.iter().find_map(|victim| Some((*victim, *self.victim_of.get(victim)?)));
        if let Some((victim, by)) = already_taken {
            return skipped(workload, SkipReason::VictimTaken { by, victim });
        }
        for &victim in &decision.victims {
            self.quota.take(victim);
        }
        let fits = self.quota.fits(queue, &requested.usage, true);
        let Some(places) = self.places(workload, &decision.victims, requested).filter(|_| fits) else {
            for &victim in &decision.victims {
                self.quota.put_back(victim);
            }
            return skipped(workload, SkipReason::QuotaTaken);
        };
        self.quota.charge(queue, &requested.usage, 1);
        self.occupy(&decision.victims, &places);
        match &mut decision.outcome {
            Outcome::Schedule(placement) => *placement = places,
            Outcome::Preempt(plan) => plan.placement = places,
            Outcome::Wait(_) | Outcome::Unschedulable(_) => {}
        }
        self.victim_of.extend(decision.victims.iter().map(|&victim| (victim, workload)));
        decided(workload, decision)
    }

    /// Keeps nominal quota of a queue for these requests, as far as it is available. More would block other queues from quota that they do
    /// not lend.
    fn keep(&mut self, queue: QueueId, requested: Option<Vec<Request>>) {
        let Some(requested) = requested else { return };
        let mut charged = self.available_of(queue, &requested);
        for (pair, amount) in &mut charged {
            *amount = (*amount).min((self.quota.nominal(queue, *pair) - self.quota.used(queue, *pair)).max(0));
        }
        self.quota.charge(queue, &charged, 1);
        self.kept.insert(queue, KeptQuota { requested, charged });
    }

    /// Releases the quota that is kept in a queue, for another workload of the queue. Returns for what it was kept.
    fn release(&mut self, queue: QueueId) -> Option<Vec<Request>> {
        let KeptQuota { requested, charged } = self.kept.remove(&queue)?;
        self.quota.charge(queue, &charged, -1);
        Some(requested)
    }

    /// What is available of each request.
    fn available_of(&self, queue: QueueId, requests: &[Request]) -> Vec<Request> {
        let available = |&(pair, amount): &Request| (pair, amount.min(self.quota.available(queue, pair).max(0)));
        requests.iter().map(available).collect()
    }

    /// The placement beside the heads before it; empty without joint placement.
    fn places(&mut self, workload: WorkloadId, victims: &[WorkloadId], requested: &Assignment) -> Option<Placement> {
        match &mut self.nodes {
            None => Some(Placement::new()),
            Some(scratch) => Nodes::new(scratch, workload, requested).placement(victims),
        }
    }

    fn occupy(&mut self, victims: &[WorkloadId], places: &Placement) {
        let Some(scratch) = &mut self.nodes else { return };
        let pods: Vec<PodId> = victims.iter().flat_map(|&victim| joint::pods_of(scratch, victim)).collect();
        for pod in pods {
            scratch.move_to(pod, None);
        }
        for &(pod, node) in places {
            scratch.move_to(pod, Some(node));
        }
    }
}

fn decided(workload: WorkloadId, decision: HeadDecision) -> CycleEntry {
    let Decision { outcome, assignment } = decision.into_decision();
    CycleEntry { workload, result: CycleResult::Decided(outcome), assignment }
}

fn skipped(workload: WorkloadId, skip: SkipReason) -> CycleEntry {
    CycleEntry { workload, result: CycleResult::Skipped(skip), assignment: None }
}
