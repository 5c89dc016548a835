//! The quota tree: accounts with what each is guaranteed, its ceiling and its use. What is used below counts above; what an account
//! keeps for itself, and does not lend, does not. Use is kept up by deltas, so taking it back is the same delta with the other sign.

use crate::ids::{QueueId, ResourceId};

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
    pub ceiling: Vec<i64>,
    /// By resource: the first part of its use, which does not count above.
    pub keeps: Vec<i64>,
    /// Whether preemption for those below may look no further up.
    pub fence: bool,
    /// Whether its pods may be taken at all.
    pub yields: bool,
    /// How many microseconds a pod of it must wait before it may preempt.
    pub delay_micros: i64,
    /// How priorities below compare with those above.
    pub priority: PriorityRule,
}

/// How the priorities below a queue compare with those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityRule {
    /// Higher by so much.
    Offset(i32),
    /// All the same: this.
    Fence(i32),
}

/// The tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queues {
    /// Whether pods may preempt at all.
    pub enabled: bool,
    n_resources: usize,
    queues: Vec<Queue>,
    /// By queue and resource.
    used: Vec<i64>,
    /// The part of it that is leaving.
    leaving: Vec<i64>,
}

impl Queues {
    /// A tree in which nothing is used. INVARIANT: a parent stands before its children.
    pub fn new(enabled: bool, n_resources: usize, queues: Vec<Queue>) -> Self {
        let zeros = vec![0; queues.len() * n_resources];
        Self { enabled, n_resources, queues, used: zeros.clone(), leaving: zeros }
    }

    /// All queues, parents first.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = QueueId> + use<> {
        (0..self.queues.len()).map(QueueId::new)
    }

    /// A queue.
    pub fn get(&self, id: QueueId) -> &Queue {
        &self.queues[id.index()]
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
    pub fn staying(&self, id: QueueId, resource: usize) -> i64 {
        let at = id.index() * self.n_resources + resource;
        self.used[at] - self.leaving[at]
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

    fn add(&mut self, from: QueueId, resource: usize, mut delta: i64, leaving: bool) {
        let mut next = Some(from);
        while let Some(id) = next.filter(|_| delta != 0) {
            let at = id.index() * self.n_resources + resource;
            let Queue { keeps, parent, .. } = &self.queues[id.index()];
            let beyond = |used: i64| (used - keeps[resource]).max(0);
            let used = if leaving { &mut self.leaving[at] } else { &mut self.used[at] };
            let before = beyond(*used);
            *used += delta;
            delta = beyond(*used) - before;
            next = *parent;
        }
    }

    /// The lowest queue of the path that one more such use would take over its ceiling, with the resource and by how much.
    pub fn over_ceiling(&self, from: QueueId, amounts: &[i64]) -> Option<(QueueId, ResourceId, i64)> {
        self.path(from).find_map(|id| {
            let (ceiling, used) = (&self.get(id).ceiling, self.used(id));
            amounts.iter().enumerate().filter(|(_, amount)| **amount > 0).find_map(|(at, amount)| {
                let over = used[at] + amount - ceiling[at].min(UNDEFINED - 1);
                (ceiling[at] != UNDEFINED && over > 0).then_some((id, ResourceId::new(at), over))
            })
        })
    }
}
