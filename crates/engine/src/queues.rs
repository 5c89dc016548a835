//! The quota tree: accounts with what each is guaranteed, its ceiling and its use. What is used below counts above; what an account
//! keeps for itself, and does not lend, does not. Use is kept up by deltas, so taking it back is the same delta with the other sign.

use crate::fraction::Fraction;
use crate::ids::{FlavorResourceId, QueueId, ResourceId};

/// No guarantee, or no ceiling, for a resource.
pub const UNDEFINED: i64 = i64::MAX;

/// An account in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The account above; `None` for a root.
    pub parent: Option<QueueId>,
    /// By resource: what it is guaranteed, or [`UNDEFINED`].
    pub guarantee: Vec<i64>,
    /// By resource: how much may be used in and below it, or [`UNDEFINED`].
    pub limit: Vec<i64>,
    /// By resource: the first part of its use, which does not count above.
    pub local_quota: Vec<i64>,
    /// Whether preemption for those below may look no further up.
    pub fence: bool,
    /// Whether its pods may be taken at all.
    pub preemptible: bool,
    /// How many microseconds a pod of it must wait before it may preempt.
    pub delay_micros: i64,
    /// How priorities below compare with those above.
    pub priority: QueuePriority,
}

/// How the priorities below a queue compare with those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePriority {
    /// Higher by so much.
    Offset(i32),
    /// All the same: this.
    Fence(i32),
}

/// The tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTree {
    /// Whether pods may preempt at all.
    pub enabled: bool,
    n_resources: usize,
    queues: Vec<Queue>,
    /// By queue and resource.
    used: Vec<i64>,
    /// The part of it that is leaving.
    terminating: Vec<i64>,
}

impl QueueTree {
    /// A tree in which nothing is used. INVARIANT: a parent stands before its children.
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

    /// The last queue above one, or that queue itself.
    pub fn root(&self, id: QueueId) -> QueueId {
        self.path(id).last().unwrap_or(id)
    }

    /// A queue and all above it, the root last.
    pub fn path(&self, from: QueueId) -> impl Iterator<Item = QueueId> + '_ {
        std::iter::successors(Some(from), |&id| self.get(id).parent)
    }

    /// What is used in and below a queue, by resource.
    pub fn used(&self, id: QueueId) -> &[i64] {
        &self.used[id.index() * self.n_resources..][..self.n_resources]
    }

    /// What of it is not leaving.
    pub fn used_without_terminating(&self, id: QueueId, resource: usize) -> i64 {
        let at = id.index() * self.n_resources + resource;
        self.used[at] - self.terminating[at]
    }

    /// How much of what it is guaranteed a queue uses, of the resource of which it uses most; of what it may use where nothing is
    /// guaranteed.
    pub fn share(&self, id: QueueId) -> Fraction {
        let Queue { guarantee, limit: ceiling, .. } = self.get(id);
        let of = |at: usize| match (guarantee[at], ceiling[at]) {
            (UNDEFINED | 0, UNDEFINED) => None,
            (UNDEFINED | 0, ceiling) => Some(ceiling),
            (guarantee, _) => Some(guarantee),
        };
        let share = |(at, &used): (usize, &i64)| {
            let whole = of(at)?.max(1);
            Some(Fraction { numerator: used.into(), denominator: whole.into() })
        };
        self.used(id).iter().enumerate().filter_map(share).max().unwrap_or(Fraction::ZERO)
    }

    /// Adds to the use of a queue, and of those above it as far as it counts there.
    pub(crate) fn charge(&mut self, from: QueueId, amounts: &[i64], sign: i64, leaving: bool) {
        for (resource, amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount != 0) {
            self.add(from, resource, sign * amount, false);
            if leaving {
                self.add(from, resource, sign * amount, true);
            }
        }
    }

    /// The same for cells of quota.
    pub(crate) fn charge_quota(&mut self, from: QueueId, usage: &[(FlavorResourceId, i64)], sign: i64) {
        for &(cell, amount) in usage {
            self.add(from, cell.index(), sign * amount, false);
        }
    }

    fn add(&mut self, from: QueueId, resource: usize, delta: i64, leaving: bool) {
        let mut used = std::mem::take(if leaving { &mut self.terminating } else { &mut self.used });
        self.add_to(&mut used, from, resource, delta);
        *(if leaving { &mut self.terminating } else { &mut self.used }) = used;
    }

    /// The same on a copy of the use, by queue and resource.
    pub(crate) fn add_to(&self, used: &mut [i64], from: QueueId, resource: usize, mut delta: i64) {
        let mut next = Some(from);
        while let Some(id) = next.filter(|_| delta != 0) {
            let Queue { local_quota: keeps, parent, .. } = &self.queues[id.index()];
            let beyond = |used: i64| (used - keeps[resource]).max(0);
            let used = &mut used[id.index() * self.n_resources + resource];
            let before = beyond(*used);
            *used += delta;
            delta = beyond(*used) - before;
            next = *parent;
        }
    }

    /// The use by queue and resource.
    pub(crate) fn all_used(&self) -> &[i64] {
        &self.used
    }

    /// How many resources there are.
    pub(crate) fn n_resources(&self) -> usize {
        self.n_resources
    }

    /// What is left of a queue's guarantee, by resource, seen by a pod that asks in the queue `asking`; `None` where neither it nor
    /// a queue above it has one. A queue has no more left than the one above it; but the asking queue's own guarantee comes before
    /// those above it, which then count for nobody. (Rule 8 of YuniKorn.)
    pub fn guarantee_headroom(&self, queue: QueueId, asking: QueueId) -> Option<Headroom> {
        let path: Vec<QueueId> = self.path(queue).collect();
        let mut left = Headroom(vec![UNDEFINED; self.n_resources]);
        for &id in path.iter().rev() {
            let own = self.own_headroom(id);
            let guaranteed = self.is_guaranteed(id);
            let above_asking = || self.get(id).parent.is_some() && self.path(asking).any(|above| above == id);
            left = if guaranteed && id == asking {
                Headroom(own.zip(&left.0).map(|(own, above)| if own == UNDEFINED { *above } else { own }).collect())
            } else if guaranteed && self.is_guaranteed(asking) && above_asking() {
                Headroom(vec![UNDEFINED; self.n_resources])
            } else {
                Headroom(own.zip(&left.0).map(|(own, above)| own.min(*above)).collect())
            };
        }
        left.0.iter().any(|&left| left != UNDEFINED).then_some(left)
    }

    fn own_headroom(&self, id: QueueId) -> impl Iterator<Item = i64> + '_ {
        let left = move |(at, &guarantee): (usize, &i64)| match guarantee {
            UNDEFINED => UNDEFINED,
            guarantee => guarantee - self.used_without_terminating(id, at),
        };
        self.get(id).guarantee.iter().enumerate().map(left)
    }

    fn is_guaranteed(&self, id: QueueId) -> bool {
        self.get(id).guarantee.iter().any(|&guarantee| guarantee != UNDEFINED)
    }

    /// The lowest queue of the path that one more such use would take over its ceiling, with the resource and by how much.
    pub fn over_limit(&self, from: QueueId, amounts: &[i64]) -> Option<(QueueId, ResourceId, i64)> {
        self.path(from).find_map(|id| {
            let (resource, over) = self.all_over_limit(id, amounts).next()?;
            Some((id, resource, over))
        })
    }

    /// Every resource of which one more such use would take this queue over its ceiling, and by how much.
    pub fn all_over_limit(&self, id: QueueId, amounts: &[i64]) -> impl Iterator<Item = (ResourceId, i64)> {
        let (ceiling, used) = (&self.get(id).limit, self.used(id));
        amounts.iter().enumerate().filter(|(_, amount)| **amount > 0).filter_map(move |(at, amount)| {
            let over = used[at] + amount - ceiling[at].min(UNDEFINED - 1);
            (ceiling[at] != UNDEFINED && over > 0).then_some((ResourceId::new(at), over))
        })
    }
}

/// What is left of a guarantee, by resource; [`UNDEFINED`] where there is none, negative where more is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom(Vec<i64>);

impl Headroom {
    /// Whether so much fits into it; what is not guaranteed always does.
    pub fn fits(&self, amounts: &[i64]) -> bool {
        self.short(amounts).is_none()
    }

    /// The first resource of which less is left than this, and how much.
    pub fn short(&self, amounts: &[i64]) -> Option<(ResourceId, i64)> {
        let mut all = amounts.iter().zip(&self.0).enumerate();
        let (at, (_, left)) = all.find(|(_, (amount, left))| **amount != 0 && amount > left)?;
        Some((ResourceId::new(at), *left))
    }

    /// Whether more than the guarantee of something that is wanted is in use.
    pub fn is_overdrawn(&self, wants: &[i64]) -> bool {
        wants.iter().zip(&self.0).any(|(want, left)| *want > 0 && *left < 0)
    }

    /// Whether it is about any of these resources.
    pub fn is_about(&self, amounts: &[i64]) -> bool {
        amounts.iter().zip(&self.0).any(|(amount, left)| *amount > 0 && *left != UNDEFINED)
    }

    /// The wanted resource of which least is left, and how much.
    pub fn least(&self, wants: &[i64]) -> Option<(ResourceId, i64)> {
        let wanted =
            wants.iter().zip(&self.0).enumerate().filter(|(_, (want, left))| **want > 0 && **left != UNDEFINED);
        wanted.map(|(at, (_, left))| (ResourceId::new(at), *left)).min_by_key(|(_, left)| *left)
    }
}
