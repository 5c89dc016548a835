//! What tells a unit from others, where nothing but resources, nodes, priorities and queues matters. Units of one class_key get one
//! answer, as long as the cluster does not change.

use std::collections::BTreeMap;

use reprieve_engine::between_decisions::may_have_room;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::Policy;
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::{Obstacle, Snapshot};
use reprieve_engine::{Labels, NamespaceId, PodId, Priority, QueueId, ShapeId, TextId, Timestamp};

use reprieve_loader::cache::SnapshotCache;

use crate::view::RoomChange;

/// What tells a unit from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassKey {
    /// Its pods that need a place.
    members: Vec<MemberKey>,
    needed: usize,
    priority: Priority,
    preempts: bool,
    gang: Grouping,
    /// Whether it has waited as long as its queue asks of those who preempt.
    waited: bool,
}

/// What tells a pod from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemberKey {
    shape_class: ShapeClass,
    priority: Priority,
    preempts: bool,
    queue: Option<QueueId>,
    preemptible: Option<bool>,
    can_preempt: bool,
    /// A requirement that no decision evaluates.
    unsupported: Option<TextId>,
}

/// Whether the pods belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grouping {
    No,
    Group,
    Job,
}

/// The number of a shape, but for labels and namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ShapeClass(usize);

/// What shapes shape_class like, but for labels and namespace. Good as long as the tables are not rebuild_count anew.
#[derive(Default)]
pub(super) struct ShapeClasses {
    /// For which tables they are good.
    rebuild_count: u64,
    by_shape: Vec<Option<ShapeClass>>,
    known: BTreeMap<Shape, ShapeClass>,
    /// By shape_class: a shape that has it.
    shapes: Vec<ShapeId>,
}

impl ShapeClasses {
    /// No shape_classes, for the tables as they are.
    pub fn new(live: &SnapshotCache) -> Self {
        Self { rebuild_count: live.rebuild_count(), ..Self::default() }
    }

    /// Whether they are good for the tables.
    pub fn are_of(&self, live: &SnapshotCache) -> bool {
        self.rebuild_count == live.rebuild_count()
    }

    fn of(&mut self, snapshot: &Snapshot, shape: ShapeId) -> ShapeClass {
        if self.by_shape.len() <= shape.index() {
            self.by_shape.resize(snapshot.n_shapes(), None);
        }
        if let Some(shape_class) = self.by_shape[shape.index()] {
            return shape_class;
        }
        let bare = Shape { labels: Labels::default(), namespace: NamespaceId(0), ..snapshot.shape(shape).clone() };
        let next = ShapeClass(self.shapes.len());
        let shape_class = *self.known.entry(bare).or_insert(next);
        if shape_class == next {
            self.shapes.push(shape);
        }
        self.by_shape[shape.index()] = Some(shape_class);
        shape_class
    }

    /// The shape of a class_key whose pods all have one.
    fn only(&self, class_key: &ClassKey) -> Option<ShapeId> {
        let (first, rest) = class_key.members.split_first()?;
        rest.iter().all(|member| member.shape_class == first.shape_class).then(|| self.shapes[first.shape_class.0])
    }
}

impl ClassKey {
    /// Of a preemptor with these pods; `None` where other things matter, too.
    pub fn of(
        shape_classes: &mut ShapeClasses,
        snapshot: &Snapshot,
        policy: &Policy,
        (preemptor, pods): (PreemptorId, &[PodId]),
        now: Timestamp,
    ) -> Option<Self> {
        if snapshot.has_anti_affinity() {
            return None;
        }
        let (ask, preempts, gang) = preemptor_and_grouping(snapshot, policy, preemptor)?;
        if pods.len() != ask.members.len() {
            return None;
        }
        let members: Vec<MemberKey> =
            ask.members.iter().map(|&pod| MemberKey::of(shape_classes, snapshot, pod)).collect::<Option<_>>()?;
        let has_waited = |&id: &PodId| {
            let pod = snapshot.pod(id);
            let delay = pod.queue.map_or(0, |queue| snapshot.queues().get(queue).delay_micros);
            pod.created.plus_micros(delay) <= now
        };
        let waited = ask.members.iter().all(has_waited);
        Some(Self { members, needed: ask.needed, priority: ask.priority, preempts, gang, waited })
    }

    /// The queue of its pods.
    pub fn queue(&self) -> Option<QueueId> {
        self.members.first()?.queue
    }

    /// Whether a change could help units that were refused. Where room is all that matters, less of it does not; nor does it that
    /// somebody went whom they could have taken, or from where there is no room for any of their pods all the same.
    pub fn is_helped(&self, shape_classes: &ShapeClasses, snapshot: &Snapshot, policy: &Policy, room: RoomChange) -> bool {
        if self.members.iter().any(|member| member.unsupported.is_some()) {
            return false;
        }
        let may_preempt = match policy {
            Policy::Kubernetes(_) => self.preempts,
            Policy::Kueue(_) => false,
            Policy::YuniKorn | Policy::Koordinator(_) => return true,
        };
        let Some(shape) = shape_classes.only(self) else { return true };
        match room {
            RoomChange::Taken(_) | RoomChange::Unmarked => false,
            RoomChange::Changed => true,
            RoomChange::Freed(_, Some(above)) if may_preempt && self.priority > above => false,
            RoomChange::Freed(node, _) => may_have_room(snapshot, shape, self.priority, may_preempt, node),
        }
    }
}

/// What a preemptor asks for, whether it preempts, and whether its pods belong together; `None` where other things matter, too.
fn preemptor_and_grouping(snapshot: &Snapshot, policy: &Policy, preemptor: PreemptorId) -> Option<(Preemptor, bool, Grouping)> {
    match preemptor {
        PreemptorId::Group(id) => {
            let group = snapshot.group(id);
            let is_plain = group.topology.is_none();
            Some((Preemptor::new(snapshot, preemptor), group.preempts, is_plain.then_some(Grouping::Group)?))
        }
        PreemptorId::Pod(id) => {
            let (ask, pod) = (Preemptor::new(snapshot, preemptor), snapshot.pod(id));
            match (policy, pod.job.map(|job| snapshot.job(job))) {
                (Policy::Koordinator(_), Some(job)) => {
                    let ask = ask.with_job(snapshot, id);
                    let is_plain = job.members.len() == ask.members.len();
                    Some((ask, pod.preempts, is_plain.then_some(Grouping::Job)?))
                }
                _ => Some((ask, pod.preempts, Grouping::No)),
            }
        }
        PreemptorId::Workload(_) => None,
    }
}

impl MemberKey {
    /// Of a pod; `None` where other things matter, too.
    fn of(shape_classes: &mut ShapeClasses, snapshot: &Snapshot, id: PodId) -> Option<Self> {
        let pod = snapshot.pod(id);
        let shape = snapshot.shape(pod.shape);
        let has_constraints = !shape.affinity.is_empty() || !shape.anti_affinity.is_empty() || !shape.spread.is_empty();
        if has_constraints || pod.nominated.is_some() || pod.resizing || pod.daemon {
            return None;
        }
        Some(Self {
            shape_class: shape_classes.of(snapshot, pod.shape),
            priority: pod.priority,
            preempts: pod.preempts,
            queue: pod.queue,
            preemptible: pod.preemptible,
            can_preempt: pod.can_preempt,
            unsupported: match pod.obstacle {
                Some(Obstacle::Unsupported(field)) => Some(field),
                Some(Obstacle::Gates(_) | Obstacle::OtherScheduler) => return None,
                None => None,
            },
        })
    }
}
