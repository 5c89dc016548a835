//! docs/rules/yunikorn.md#y4, docs/rules/yunikorn.md#y6: no pod outside the preemption fence is taken. The search goes up from the pod's
//! queue to the first queue that is fenced, whose limit the pod would exceed, or that is the root, and considers everything below it. A
//! fence restricts searches from inside, not from outside.

use crate::ids::{PodId, Priority, QueueId};
use crate::laws::Law;
use crate::queues::{QueuePriority, QueueTree, UNDEFINED};
use crate::snapshot::Snapshot;

/// The part of the queue tree in which a pod may take victims.
pub(crate) struct FenceScope {
    root: Option<QueueId>,
    /// By queue: the highest priority of its victims; `None` if the queue is out of scope.
    limits: Vec<Option<PriorityLimit>>,
    /// By queue: whether the preemptor counts there.
    own: Vec<bool>,
}

/// The highest priority of victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityLimit {
    UpTo(i64),
    /// Below a priority fence that admits the pod, any priority; the value is for comparison in queues further down.
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
        let mut scope = Self { root: None, limits: vec![None; n], own: vec![false; n] };
        let Some(leaf) = snapshot.pod(pod).queue else { return scope };
        for id in queues.path(leaf) {
            scope.own[id.index()] = true;
        }
        let mut priority = i64::from(snapshot.pod(pod).priority.0);
        for id in queues.path(leaf) {
            priority = match queues.get(id).priority {
                QueuePriority::Offset(offset) => priority + i64::from(offset),
                QueuePriority::Fence(offset) => i64::from(offset),
            };
            scope.limits[id.index()] = Some(PriorityLimit::UpTo(priority));
            let requests = snapshot.requests(snapshot.pod(pod).shape);
            if queues.get(id).parent.is_none() || queues.get(id).fence || exceeds(queues, id, requests) {
                scope.root = Some(id);
                break;
            }
        }
        scope.descend(queues);
        scope
    }

    /// Parents come before their children, so one pass is enough.
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

    /// Whether the preemptor counts in the queue: such a queue uses again what its victims leave.
    pub fn is_own(&self, queue: QueueId) -> bool {
        self.own[queue.index()]
    }

    /// The queue below which victims are taken.
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

    /// The highest priority of victims in the queue.
    pub fn limit(&self, queue: QueueId) -> Option<Priority> {
        let value = self.limits[queue.index()]?.value();
        i32::try_from(value).ok().map(Priority)
    }
}

pub(crate) fn spares(snapshot: &Snapshot, queue: QueueId, scope: &FenceScope) -> Option<Law> {
    let inside = scope.root.is_some_and(|root| snapshot.queues().path(queue).any(|id| id == root));
    (!inside).then_some(Law::Fence { root: scope.root })
}

/// Whether the usage of the queue with these requests exceeds the lowest limit of the queue and its ancestors.
fn exceeds(queues: &QueueTree, id: QueueId, requests: &[i64]) -> bool {
    requests.iter().enumerate().filter(|(_, request)| **request > 0).any(|(index, request)| {
        let limit = queues.path(id).map(|id| queues.get(id).limit[index]).min().unwrap_or(UNDEFINED);
        limit != UNDEFINED && queues.used(id)[index] + request > limit
    })
}
