//! Preemption without fair sharing: candidates are taken in order until the requests fit, with borrowing or without, and given back
//! where they are not needed. (Rules 13 to 18 of the flat cohorts and of the trees.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::{CellId, QueueId, WorkloadId};
use crate::policy::kueue::lanes::Lane;
use crate::policy::kueue::order::Order;
use crate::policy::kueue::quota::Quota;
use crate::policy::kueue::{Ground, Search, give_back};
use crate::workloads::{BorrowWithin, Reclaim};

/// How the candidates of a queue stand to the preemptor; those of one kind are taken before those of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The preemptor stays within the quota of the subtree that they share less its branch.
    Advantage,
    /// It would borrow.
    Other,
    /// At home.
    Own,
}

pub(super) fn victims<'a>(
    search: &Search<'a>,
    quota: &mut Quota<'a>,
    requests: &[(CellId, i64)],
    contested: &[CellId],
) -> Option<Vec<(WorkloadId, Ground)>> {
    let lanes = lanes(search, quota, requests, contested);
    if lanes.is_empty() {
        return None;
    }
    let never = quota.rules.queues[search.queue.index()].borrow == BorrowWithin::Never;
    let elsewhere = lanes.iter().any(|(kind, _)| *kind != Kind::Own);
    let advantage = lanes.iter().any(|(kind, _)| *kind == Kind::Advantage);
    let full = contested.iter().any(|&cell| quota.used(search.queue, cell) >= quota.quota(search.queue, cell));
    let passes: &[bool] = if !elsewhere || never && full {
        &[true]
    } else if never && !advantage {
        &[false, true]
    } else {
        &[true, false]
    };
    passes.iter().find_map(|&may_borrow| {
        let pass = Pass { search, lanes: &lanes, requests, contested, may_borrow };
        pass.run(quota)
    })
}

/// One walk over the candidates.
struct Pass<'p, 'a> {
    search: &'p Search<'a>,
    lanes: &'p [(Kind, Lane<'a>)],
    requests: &'p [(CellId, i64)],
    contested: &'p [CellId],
    may_borrow: bool,
}

/// The next candidate of a lane; the least is taken first. Evicted ones come before all others, and then those who are preferred;
/// within those, who holds what was lent, then who is low enough, then at home.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    not_evicted: bool,
    not_preferred: bool,
    kind: Kind,
    order: Order,
    lane: usize,
    at: usize,
}

impl Pass<'_, '_> {
    fn run(&self, quota: &mut Quota<'_>) -> Option<Vec<(WorkloadId, Ground)>> {
        let (search, requests) = (self.search, self.requests);
        let first = |lane: usize| self.next(lane, self.lanes[lane].1.first).map(Reverse);
        let mut nexts: BinaryHeap<Reverse<Next>> = (0..self.lanes.len()).filter_map(first).collect();
        let mut taken: Vec<(WorkloadId, Ground)> = Vec::new();
        while let Some(Reverse(Next { kind, lane, at, .. })) = nexts.pop() {
            let workload = self.lanes[lane].1.at(at);
            if kind != Kind::Own && !self.still_borrows(quota, self.lanes[lane].1.queue) {
                continue; // nor will it for those behind
            }
            quota.take(workload);
            taken.push((workload, self.ground(kind, workload)));
            if search.fits(quota, &taken, requests, self.may_borrow) {
                let fits = |quota: &Quota<'_>, gone: &[_]| search.fits(quota, gone, requests, self.may_borrow);
                let victims = give_back(quota, taken, fits);
                put_back(quota, &victims);
                return Some(victims);
            }
            nexts.extend(self.next(lane, at + 1).map(Reverse));
        }
        put_back(quota, &taken);
        None
    }

    /// The first of a lane, at this place or behind it, that this pass may take.
    fn next(&self, lane: usize, from: usize) -> Option<Next> {
        let (kind, candidates) = &self.lanes[lane];
        let borrow = self.search.snapshot.quota_rules().queues[self.search.queue.index()].borrow;
        let only_low = *kind == Kind::Other && self.may_borrow;
        if only_low && borrow == BorrowWithin::Never {
            return None;
        }
        let mut at = candidates.next(self.search, self.contested, from)?;
        while only_low && !self.is_low(candidates.at(at)) {
            at = candidates.next(self.search, self.contested, at + 1)?;
        }
        let order = self.search.order(candidates.at(at));
        Some(Next { not_evicted: order.0, not_preferred: order.1, kind: *kind, order, lane, at })
    }

    fn ground(&self, kind: Kind, workload: WorkloadId) -> Ground {
        match kind {
            Kind::Other if self.is_low(workload) => Ground::InCohortReclaimWhileBorrowing,
            Kind::Advantage | Kind::Other => Ground::InCohortReclamation,
            Kind::Own => Ground::InClusterQueue,
        }
    }

    /// Whether a workload may be taken even though the preemptor borrows.
    fn is_low(&self, workload: WorkloadId) -> bool {
        let Search { snapshot, workload: preemptor, queue, .. } = self.search;
        let priority = snapshot.workload(workload).priority;
        match snapshot.quota_rules().queues[queue.index()].borrow {
            BorrowWithin::Never => false,
            BorrowWithin::LowerPriority { threshold } => {
                priority < preemptor.priority && threshold.is_none_or(|threshold| priority <= threshold)
            }
        }
    }

    /// Whether the queue, and every cohort below the one that it shares with the preemptor, still uses more than its own.
    fn still_borrows(&self, quota: &Quota<'_>, queue: QueueId) -> bool {
        let shared = |id: QueueId| quota.tree.path(self.search.queue).any(|own| own == id);
        quota.tree.path(queue).take_while(|&id| !shared(id)).all(|id| !quota.within(id, self.contested))
    }
}

fn put_back(quota: &mut Quota<'_>, workloads: &[(WorkloadId, Ground)]) {
    for (workload, _) in workloads {
        quota.put_back(*workload);
    }
}

/// The queues that have candidates: the own, then, climbing from it to the root, under each ancestor those that are not under the one
/// before.
fn lanes<'a>(
    search: &Search<'a>,
    quota: &Quota<'a>,
    requests: &[(CellId, i64)],
    contested: &[CellId],
) -> Vec<(Kind, Lane<'a>)> {
    let own = Lane::new(search, quota, search.queue, contested);
    let mut lanes: Vec<(Kind, Lane<'a>)> = own.into_iter().map(|lane| (Kind::Own, lane)).collect();
    if quota.rules.queues[search.queue.index()].reclaim == Reclaim::Never {
        return lanes;
    }
    let fits = |id: QueueId, rest: &[(CellId, i64)]| {
        rest.iter().all(|&(cell, amount)| quota.used(id, cell) + amount <= quota.quota(id, cell))
    };
    let mut rest = requests.to_vec();
    let mut advantage = fits(search.queue, &rest);
    let mut done = search.queue;
    for ancestor in quota.tree.path(search.queue).skip(1) {
        for (cell, amount) in &mut rest {
            *amount -= quota.kept_free(done, *cell);
        }
        let kind = if advantage { Kind::Advantage } else { Kind::Other };
        let mut open = vec![ancestor];
        while let Some(id) = open.pop() {
            for &child in quota.children(id).iter().filter(|&&child| child != done && !quota.within(child, contested)) {
                lanes.extend(Lane::new(search, quota, child, contested).map(|lane| (kind, lane)));
                open.push(child);
            }
        }
        advantage |= fits(ancestor, &rest);
        done = ancestor;
    }
    lanes
}
