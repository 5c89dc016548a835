//! The quota tree: queues with guarantees, limits and usage. Usage counts in the queues above too, except for the part that a queue keeps
//! for itself and does not lend. Usage is updated by deltas, so that an update is undone by the same delta with the other sign.

use crate::fraction::Fraction;
use crate::ids::{FlavorResourceId, QueueId, ResourceId};

/// No guarantee, or no limit, for a resource.
pub const UNDEFINED: i64 = i64::MAX;

/// A queue of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The parent queue; `None` for a root.
    pub parent: Option<QueueId>,
    /// By resource: the guarantee, or [`UNDEFINED`].
    pub guarantee: Vec<i64>,
    /// By resource: the limit of the use in and below the queue, or [`UNDEFINED`].
    pub limit: Vec<i64>,
    /// By resource: the part of the quota that is not lent; use up to this amount does not count in the parent.
    pub local_quota: Vec<i64>,
    /// Whether preemption for pods below this queue searches no queues outside it.
    pub fence: bool,
    /// Whether its pods may be preempted.
    pub preemptible: bool,
    /// The microseconds that a pod of the queue waits before it may preempt.
    pub delay_micros: i64,
    /// The rule by which priorities below the queue compare with those outside.
    pub priority: QueuePriority,
}

/// The rule by which priorities below a queue compare with those outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePriority {
    /// An offset is added.
    Offset(i32),
    /// All have this priority.
    Fence(i32),
}

/// The tree of queues with their usage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTree {
    /// Whether preemption is enabled.
    pub enabled: bool,
    n_resources: usize,
    queues: Vec<Queue>,
    /// By queue and resource: the usage.
    used: Vec<i64>,
    /// By queue and resource: the part of `used` that belongs to terminating pods.
    terminating: Vec<i64>,
}

impl QueueTree {
    /// A tree without usage. INVARIANT: a parent comes before its children.
    pub fn new(enabled: bool, n_resources: usize, queues: Vec<Queue>) -> Self {
        let zeros = vec![0; queues.len() * n_resources];
        Self { enabled, n_resources, queues, used: zeros.clone(), terminating: zeros }
    }

    /// All queues, parents first.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = QueueId> + use<> {
        (0..self.queues.len()).map(QueueId::new)
    }

    /// A queue.
    pub fn get(&self, id: QueueId) -> &Queue {
        &self.queues[id.index()]
    }

    /// The root of the tree that contains the queue.
    pub fn root(&self, id: QueueId) -> QueueId {
        self.path(id).last().unwrap_or(id)
    }

    /// The queue and its ancestors, the root last.
    pub fn path(&self, from: QueueId) -> impl Iterator<Item = QueueId> + '_ {
        std::iter::successors(Some(from), |&id| self.get(id).parent)
    }

    /// By resource: the usage in and below a queue.
    pub fn used(&self, id: QueueId) -> &[i64] {
        &self.used[id.index() * self.n_resources..][..self.n_resources]
    }

    /// The usage without terminating pods.
    pub fn used_without_terminating(&self, id: QueueId, resource: usize) -> i64 {
        let index = id.index() * self.n_resources + resource;
        self.used[index] - self.terminating[index]
    }

    /// The usage divided by the guarantee, or by the limit without a guarantee; the largest over all resources.
    pub fn share(&self, id: QueueId) -> Fraction {
        let Queue { guarantee, limit, .. } = self.get(id);
        let whole = |index: usize| match (guarantee[index], limit[index]) {
            (UNDEFINED | 0, UNDEFINED) => None,
            (UNDEFINED | 0, limit) => Some(limit),
            (guarantee, _) => Some(guarantee),
        };
        let share = |(index, &used): (usize, &i64)| {
            Some(Fraction { numerator: used.into(), denominator: whole(index)?.max(1).into() })
        };
        self.used(id).iter().enumerate().filter_map(share).max().unwrap_or(Fraction::ZERO)
    }

    /// Adds to the usage of a queue and, as far as it counts there, of its ancestors.
    pub(crate) fn charge(&mut self, from: QueueId, amounts: &[i64], sign: i64, terminating: bool) {
        for (resource, amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount != 0) {
            self.add(from, resource, sign * amount, false);
            if terminating {
                self.add(from, resource, sign * amount, true);
            }
        }
    }

    /// Like [`QueueTree::charge`], for flavor-resource pairs.
    pub(crate) fn charge_quota(&mut self, from: QueueId, usage: &[(FlavorResourceId, i64)], sign: i64) {
        for &(pair, amount) in usage {
            self.add(from, pair.index(), sign * amount, false);
        }
    }

    /// Counts what nominated pods hold, or no longer counts it. Below a limit, nominated pods take the place of the pods that leave for
    /// them: the usage is that of now or that after the change, whichever is more. Below a guarantee they count in full.
    pub(crate) fn hold(&mut self, held: &HeldQuota, sign: i64) {
        for (index, (nominated, leaving)) in held.nominated.iter().zip(&held.leaving).enumerate() {
            let replaced = nominated.min(leaving);
            self.used[index] += sign * (nominated - replaced);
            self.terminating[index] -= sign * replaced;
        }
    }

    fn add(&mut self, from: QueueId, resource: usize, delta: i64, terminating: bool) {
        let mut used = std::mem::take(if terminating { &mut self.terminating } else { &mut self.used });
        self.add_to(&mut used, from, resource, delta);
        *(if terminating { &mut self.terminating } else { &mut self.used }) = used;
    }

    /// Adds to a copy of the usage, by queue and resource.
    pub(crate) fn add_to(&self, used: &mut [i64], from: QueueId, resource: usize, mut delta: i64) {
        let mut next = Some(from);
        while let Some(id) = next.filter(|_| delta != 0) {
            let Queue { local_quota, parent, .. } = &self.queues[id.index()];
            let beyond = |used: i64| (used - local_quota[resource]).max(0);
            let used = &mut used[id.index() * self.n_resources + resource];
            let before = beyond(*used);
            *used += delta;
            delta = beyond(*used) - before;
            next = *parent;
        }
    }

    /// By queue and resource: the usage.
    pub(crate) fn all_used(&self) -> &[i64] {
        &self.used
    }

    /// The number of resources.
    pub(crate) fn n_resources(&self) -> usize {
        self.n_resources
    }

    /// docs/rules/yunikorn.md#y8: by resource, the unused part of a queue's guarantee as seen by a pod in `preemptor_queue`; `None` if
    /// neither the queue nor an ancestor has one. A queue has no more left than its parent; but the guarantee of `preemptor_queue` replaces
    /// those of its ancestors, which then count for no queue.
    pub fn guarantee_headroom(&self, queue: QueueId, preemptor_queue: QueueId) -> Option<Headroom> {
        let path: Vec<QueueId> = self.path(queue).collect();
        let mut left = Headroom(vec![UNDEFINED; self.n_resources]);
        for &id in path.iter().rev() {
            let own = self.own_headroom(id);
            let guaranteed = self.is_guaranteed(id);
            let is_above = || self.get(id).parent.is_some() && self.path(preemptor_queue).any(|above| above == id);
            left = if guaranteed && id == preemptor_queue {
                Headroom(own.zip(&left.0).map(|(own, above)| if own == UNDEFINED { *above } else { own }).collect())
            } else if guaranteed && self.is_guaranteed(preemptor_queue) && is_above() {
                Headroom(vec![UNDEFINED; self.n_resources])
            } else {
                Headroom(own.zip(&left.0).map(|(own, above)| own.min(*above)).collect())
            };
        }
        left.0.iter().any(|&left| left != UNDEFINED).then_some(left)
    }

    /// By resource, the unused part of a queue's own guarantee; [`UNDEFINED`] without one, negative if more is used.
    pub(crate) fn own_headroom(&self, id: QueueId) -> impl Iterator<Item = i64> + '_ {
        let left = move |(index, &guarantee): (usize, &i64)| match guarantee {
            UNDEFINED => UNDEFINED,
            guarantee => guarantee - self.used_without_terminating(id, index),
        };
        self.get(id).guarantee.iter().enumerate().map(left)
    }

    /// Whether the queue has a guarantee of its own.
    pub(crate) fn is_guaranteed(&self, id: QueueId) -> bool {
        self.get(id).guarantee.iter().any(|&guarantee| guarantee != UNDEFINED)
    }

    /// The lowest queue from here up that these amounts would take over its limit, with the resource and the excess.
    pub fn over_limit(&self, from: QueueId, amounts: &[i64]) -> Option<(QueueId, ResourceId, i64)> {
        self.path(from).find_map(|id| {
            let (resource, over) = self.all_over_limit(id, amounts).next()?;
            Some((id, resource, over))
        })
    }

    /// Every resource of which these amounts would take this queue over its limit, and the excess.
    pub fn all_over_limit(&self, id: QueueId, amounts: &[i64]) -> impl Iterator<Item = (ResourceId, i64)> {
        let (limit, used) = (&self.get(id).limit, self.used(id));
        amounts.iter().enumerate().filter(|(_, amount)| **amount > 0).filter_map(move |(index, amount)| {
            let over = used[index] + amount - limit[index].min(UNDEFINED - 1);
            (limit[index] != UNDEFINED && over > 0).then_some((ResourceId::new(index), over))
        })
    }
}

/// By queue and resource: what nominated pods request, and what pods that leave for them use.
#[derive(Debug)]
pub(crate) struct HeldQuota {
    pub nominated: Vec<i64>,
    pub leaving: Vec<i64>,
}

/// By resource, the unused part of a guarantee; [`UNDEFINED`] without a guarantee, negative if more is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom(Vec<i64>);

impl Headroom {
    /// Whether these amounts fit; a resource without a guarantee always does.
    pub fn fits(&self, amounts: &[i64]) -> bool {
        self.short(amounts).is_none()
    }

    /// The first resource of which less than the amount is left, and what is left.
    pub fn short(&self, amounts: &[i64]) -> Option<(ResourceId, i64)> {
        let mut all = amounts.iter().zip(&self.0).enumerate();
        let (index, (_, left)) = all.find(|(_, (amount, left))| **amount != 0 && amount > left)?;
        Some((ResourceId::new(index), *left))
    }

    /// Whether more than the guarantee of a requested resource is in use.
    pub fn is_overdrawn(&self, requests: &[i64]) -> bool {
        requests.iter().zip(&self.0).any(|(request, left)| *request > 0 && *left < 0)
    }

    /// Whether a guarantee covers any of these resources.
    pub fn is_about(&self, amounts: &[i64]) -> bool {
        amounts.iter().zip(&self.0).any(|(amount, left)| *amount > 0 && *left != UNDEFINED)
    }

    /// The requested resource of which least is left, and what is left.
    pub fn least(&self, requests: &[i64]) -> Option<(ResourceId, i64)> {
        let requested = requests
            .iter()
            .zip(&self.0)
            .enumerate()
            .filter(|(_, (request, left))| **request > 0 && **left != UNDEFINED);
        requested.map(|(index, (_, left))| (ResourceId::new(index), *left)).min_by_key(|(_, left)| *left)
    }
}
