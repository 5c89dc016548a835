//! Law 7: nobody outside the preemption fence is taken. The search goes up from the pod's queue to the first that is fenced, that
//! the pod would take over its ceiling, or that has none above it; it looks at everything below that. Fences do not keep anybody
//! out. (Rule 4 of YuniKorn.)

use crate::ids::{PodId, Priority, QueueId};
use crate::laws::Law;
use crate::queues::{QueuePriority, QueueTree, UNDEFINED};
use crate::snapshot::Snapshot;

/// How far a pod may look for victims.
pub(crate) struct FenceScope {
    root: Option<QueueId>,
    /// By queue: up to which priority its pods may be taken; `None` where the queue is out of reach.
    limits: Vec<Option<PriorityLimit>>,
    /// By queue: whether the pod itself counts there.
    own: Vec<bool>,
}

/// Up to which priority pods may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityLimit {
    UpTo(i64),
    /// Behind a priority fence that lets the pod in: everybody; below it others are compared with this.
    Any(i64),
}

impl PriorityLimit {
    fn value(self) -> i64 {
        match self {
            Self::UpTo(value) | Self::Any(value) => value,
        }
    }
}

impl FenceScope {
    pub fn new(snapshot: &Snapshot, pod: PodId) -> Self {
        let queues = snapshot.queues();
        let n = queues.ids().len();
        let mut reach = Self { root: None, limits: vec![None; n], own: vec![false; n] };
        let Some(leaf) = snapshot.pod(pod).queue else { return reach };
        for id in queues.path(leaf) {
            reach.own[id.index()] = true;
        }
        let mut priority = i64::from(snapshot.pod(pod).priority.0);
        for id in queues.path(leaf) {
            priority = match queues.get(id).priority {
                QueuePriority::Offset(offset) => priority + i64::from(offset),
                QueuePriority::Fence(offset) => i64::from(offset),
            };
            reach.limits[id.index()] = Some(PriorityLimit::UpTo(priority));
            let wants = snapshot.requests(snapshot.pod(pod).shape);
            if queues.get(id).parent.is_none() || queues.get(id).fence || exceeds(queues, id, wants) {
                reach.root = Some(id);
                break;
            }
        }
        reach.descend(queues);
        reach
    }

    /// Parents stand before their children, so one pass is enough.
    fn descend(&mut self, queues: &QueueTree) {
        for id in queues.ids() {
            let above = queues.get(id).parent.and_then(|parent| self.limits[parent.index()]);
            let (None, Some(above)) = (self.limits[id.index()], above) else { continue };
            if self.own[id.index()] {
                continue; // above the root of the search
            }
            self.limits[id.index()] = match (queues.get(id).priority, above) {
                (QueuePriority::Fence(offset), _) if i64::from(offset) > above.value() => None,
                (QueuePriority::Fence(_), _) => Some(PriorityLimit::Any(above.value())),
                (QueuePriority::Offset(offset), PriorityLimit::UpTo(value)) => {
                    Some(PriorityLimit::UpTo(value - i64::from(offset)))
                }
                (QueuePriority::Offset(offset), PriorityLimit::Any(value)) => {
                    Some(PriorityLimit::Any(value - i64::from(offset)))
                }
            };
        }
    }

    /// Whether the pod itself counts in the queue: what its own queues lose, it fills.
    pub fn is_own(&self, queue: QueueId) -> bool {
        self.own[queue.index()]
    }

    /// The queue below which victims are looked for.
    pub fn root(&self) -> Option<QueueId> {
        self.root
    }

    /// Whether pods of this priority may be taken from the queue.
    pub fn allows(&self, queue: QueueId, priority: Priority) -> bool {
        match self.limits[queue.index()] {
            Some(PriorityLimit::Any(_)) => true,
            Some(PriorityLimit::UpTo(limit)) => i64::from(priority.0) <= limit,
            None => false,
        }
    }

    /// Up to which priority the queue yields.
    pub fn limit(&self, queue: QueueId) -> Option<Priority> {
        let value = self.limits[queue.index()]?.value();
        i32::try_from(value).ok().map(Priority)
    }
}

pub(crate) fn spares(snapshot: &Snapshot, queue: QueueId, reach: &FenceScope) -> Option<Law> {
    let inside = reach.root.is_some_and(|root| snapshot.queues().path(queue).any(|id| id == root));
    (!inside).then_some(Law::Fence { root: reach.root })
}

/// Whether the use of the queue and the wants exceed the least ceiling of the queue and those above it.
fn exceeds(queues: &QueueTree, id: QueueId, wants: &[i64]) -> bool {
    wants.iter().enumerate().filter(|(_, want)| **want > 0).any(|(at, want)| {
        let ceiling = queues.path(id).map(|id| queues.get(id).limit[at]).min().unwrap_or(UNDEFINED);
        ceiling != UNDEFINED && queues.used(id)[at] + want > ceiling
    })
}
