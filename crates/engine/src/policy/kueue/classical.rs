//! Preemption without fair sharing: candidates are taken in order until the requests fit, with borrowing or without, and given back
//! where they are not needed. (Rules 13 to 18 of the flat cohorts and of the trees.)

use crate::ids::{CellId, QueueId, WorkloadId};
use crate::policy::kueue::quota::Quota;
use crate::policy::kueue::{Ground, Search, give_back};
use crate::workloads::{BorrowWithin, Reclaim};

/// A workload that may be taken.
#[derive(Clone, Copy)]
struct Candidate {
    workload: WorkloadId,
    kind: Kind,
}

/// How a candidate stands to the preemptor; those of one kind are taken before those of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The preemptor stays within the quota of the subtree that they share less its branch.
    Advantage,
    /// It would borrow; and it may be taken for that, or only if the preemptor does not borrow.
    Other { while_borrowing: bool },
    /// At home.
    Own,
}

pub(super) fn victims(
    search: &Search<'_>,
    quota: &mut Quota<'_>,
    requests: &[(CellId, i64)],
    contested: &[CellId],
) -> Option<Vec<(WorkloadId, Ground)>> {
    let candidates = candidates(search, quota, requests, contested);
    if candidates.is_empty() {
        return None;
    }
    let never = quota.rules.queues[search.queue.index()].borrow == BorrowWithin::Never;
    let elsewhere = candidates.iter().any(|candidate| candidate.kind != Kind::Own);
    let advantage = candidates.iter().any(|candidate| candidate.kind == Kind::Advantage);
    let full = contested.iter().any(|&cell| quota.used(search.queue, cell) >= quota.quota(search.queue, cell));
    let passes: &[bool] = if !elsewhere || never && full {
        &[true]
    } else if never && !advantage {
        &[false, true]
    } else {
        &[true, false]
    };
    passes.iter().find_map(|&may_borrow| pass(search, quota, &candidates, requests, contested, may_borrow))
}

fn pass(
    search: &Search<'_>,
    quota: &mut Quota<'_>,
    candidates: &[Candidate],
    requests: &[(CellId, i64)],
    contested: &[CellId],
    may_borrow: bool,
) -> Option<Vec<(WorkloadId, Ground)>> {
    let mut taken: Vec<(WorkloadId, Ground)> = Vec::new();
    let mut fits = false;
    for candidate in candidates {
        let ground = match candidate.kind {
            Kind::Advantage => Ground::InCohortReclamation,
            Kind::Other { while_borrowing: false } if may_borrow => continue,
            Kind::Other { while_borrowing: false } => Ground::InCohortReclamation,
            Kind::Other { while_borrowing: true } => Ground::InCohortReclaimWhileBorrowing,
            Kind::Own => Ground::InClusterQueue,
        };
        if candidate.kind != Kind::Own && !still_borrows(search, quota, candidate.workload, contested) {
            continue;
        }
        quota.take(candidate.workload);
        taken.push((candidate.workload, ground));
        if search.fits(quota, &taken, requests, may_borrow) {
            fits = true;
            break;
        }
    }
    let victims = if fits {
        give_back(quota, taken, |quota, taken| search.fits(quota, taken, requests, may_borrow))
    } else {
        for (workload, _) in taken {
            quota.put_back(workload);
        }
        return None;
    };
    for (workload, _) in &victims {
        quota.put_back(*workload);
    }
    Some(victims)
}

/// Whether the candidate's queue, and every cohort below the one that it shares with the preemptor, still uses more than its own.
fn still_borrows(search: &Search<'_>, quota: &Quota<'_>, workload: WorkloadId, contested: &[CellId]) -> bool {
    let Some(queue) = search.snapshot.workload(workload).queue else {
        return false;
    };
    let shared = |id: QueueId| quota.tree.path(search.queue).any(|own| own == id);
    quota.tree.path(queue).take_while(|&id| !shared(id)).all(|id| !quota.within(id, contested))
}

/// Those who may be taken, in the order in which they are: evicted ones first; within those, who holds what was lent, then who is
/// low enough, then at home.
fn candidates(
    search: &Search<'_>,
    quota: &Quota<'_>,
    requests: &[(CellId, i64)],
    contested: &[CellId],
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for &workload in quota.workloads_of(search.queue) {
        if workload != search.preemptor && search.may_take_at_home(workload) && search.holds(workload, contested) {
            candidates.push(Candidate { workload, kind: Kind::Own });
        }
    }
    if quota.rules.queues[search.queue.index()].reclaim != Reclaim::Never {
        collect_elsewhere(search, quota, requests, contested, &mut candidates);
    }
    candidates.sort_by_cached_key(|candidate| {
        let evicted = search.snapshot.workload(candidate.workload).admission.as_ref().is_some_and(|one| one.evicted);
        let group = match candidate.kind {
            Kind::Advantage => 0,
            Kind::Other { .. } => 1,
            Kind::Own => 2,
        };
        (!evicted, !search.prefers(candidate.workload), group, search.order(candidate.workload))
    });
    candidates
}

/// Climbs from the queue to the root, and collects under each ancestor what was not collected below.
fn collect_elsewhere(
    search: &Search<'_>,
    quota: &Quota<'_>,
    requests: &[(CellId, i64)],
    contested: &[CellId],
    candidates: &mut Vec<Candidate>,
) {
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
        collect_under(search, quota, ancestor, done, contested, advantage, candidates);
        advantage |= fits(ancestor, &rest);
        done = ancestor;
    }
}

fn collect_under(
    search: &Search<'_>,
    quota: &Quota<'_>,
    id: QueueId,
    done: QueueId,
    contested: &[CellId],
    advantage: bool,
    candidates: &mut Vec<Candidate>,
) {
    for &child in quota.children(id) {
        if child == done || quota.within(child, contested) {
            continue;
        }
        for &workload in quota.workloads_of(child) {
            if search.may_reclaim(workload) && search.holds(workload, contested) {
                let kind = if advantage { Kind::Advantage } else { other(search, quota, workload) };
                candidates.push(Candidate { workload, kind });
            }
        }
        collect_under(search, quota, child, done, contested, advantage, candidates);
    }
}

fn other(search: &Search<'_>, quota: &Quota<'_>, workload: WorkloadId) -> Kind {
    let priority = search.snapshot.workload(workload).priority;
    let while_borrowing = match quota.rules.queues[search.queue.index()].borrow {
        BorrowWithin::Never => false,
        BorrowWithin::LowerPriority { threshold } => {
            priority < search.workload.priority && threshold.is_none_or(|threshold| priority <= threshold)
        }
    };
    Kind::Other { while_borrowing }
}
