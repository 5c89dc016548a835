//! The key of an equivalence class: everything that a decision reads about a unit, except for its name and age. Units with the same key get
//! the same decision while the cluster does not change. A unit with inter-pod constraints has no key.

use std::collections::BTreeMap;

use reprieve_engine::between_decisions::may_have_room;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::{Obstacle, Snapshot};
use reprieve_engine::{ApplicationId, Labels, PodId, Policy, Priority, QueueId, ShapeId, TextId, Timestamp};
use reprieve_loader::cache::SnapshotCache;

use crate::view::RoomChange;

/// Everything that a decision reads about a unit, except for its name and age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassKey {
    /// The pending pods.
    members: Vec<MemberKey>,
    needed: usize,
    priority: Priority,
    preempts: bool,
    gang: Grouping,
    /// Whether the preemption delay of its queue is over.
    waited: bool,
}

/// Everything that a decision reads about a pod, except for its name and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemberKey {
    shape_class: ShapeClass,
    priority: Priority,
    preempts: bool,
    queue: Option<QueueId>,
    preemptible: Option<bool>,
    can_preempt: Option<bool>,
    /// The application, if the decision may depend on it: its pods in other queues are spared.
    application: Option<ApplicationId>,
    /// A field of the pod that the scheduler does not support.
    unsupported: Option<TextId>,
}

/// Whether the pods are a PodGroup or a Koordinator job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grouping {
    No,
    Group,
    Job,
}

/// Identifies a set of shapes that differ only in labels. The namespace matters: the reason of a class names objects, and is shown to the owners of
/// all its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ShapeClass(usize);

/// The classes of all shapes of a snapshot. They are valid until the snapshot is rebuilt.
#[derive(Default)]
pub(super) struct ShapeClasses {
    /// The rebuild count of the snapshot that the classes are for.
    rebuild_count: u64,
    by_shape: Vec<Option<ShapeClass>>,
    /// By shape without its labels and namespace.
    by_bare_shape: BTreeMap<Shape, ShapeClass>,
    /// A shape of each class.
    shapes: Vec<ShapeId>,
}

impl ShapeClasses {
    pub fn new(live: &SnapshotCache) -> Self {
        Self { rebuild_count: live.rebuild_count(), ..Self::default() }
    }

    /// Whether the classes are valid for the current snapshot.
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
        let bare = Shape { labels: Labels::default(), ..snapshot.shape(shape).clone() };
        let next = ShapeClass(self.shapes.len());
        let shape_class = *self.by_bare_shape.entry(bare).or_insert(next);
        if shape_class == next {
            self.shapes.push(shape);
        }
        self.by_shape[shape.index()] = Some(shape_class);
        shape_class
    }

    /// A shape of the pods, if all of them are of one shape class.
    fn single_shape(&self, key: &ClassKey) -> Option<ShapeId> {
        let (first, rest) = key.members.split_first()?;
        rest.iter().all(|member| member.shape_class == first.shape_class).then(|| self.shapes[first.shape_class.0])
    }
}

impl ClassKey {
    /// The key of a preemptor with these pods; `None` if the decision about it depends on more than the key contains.
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
        let (preemptor, preempts, gang) = preemptor_and_grouping(snapshot, policy, preemptor)?;
        if pods.len() != preemptor.members.len() {
            return None;
        }
        let members: Vec<MemberKey> = preemptor
            .members
            .iter()
            .map(|&pod| MemberKey::of(shape_classes, snapshot, policy, pod))
            .collect::<Option<_>>()?;
        let has_waited = |&id: &PodId| {
            let pod = snapshot.pod(id);
            let delay = pod.queue.map_or(0, |queue| snapshot.queues().get(queue).delay_micros);
            pod.created.plus_micros(delay) <= now
        };
        let waited = preemptor.members.iter().all(has_waited);
        Some(Self { members, needed: preemptor.needed, priority: preemptor.priority, preempts, gang, waited })
    }

    /// The queue of the pods.
    pub fn queue(&self) -> Option<QueueId> {
        self.members.first()?.queue
    }

    /// Whether a change of room could help units that were refused. Less room does not help, nor does room that one of their pods would not
    /// fit into, nor the end of a pod that they could have preempted anyway.
    pub fn is_helped(
        &self,
        shape_classes: &ShapeClasses,
        snapshot: &Snapshot,
        policy: &Policy,
        room: RoomChange,
    ) -> bool {
        if self.members.iter().any(|member| member.unsupported.is_some()) {
            return false;
        }
        let may_preempt = match policy {
            Policy::Kubernetes(_) => self.preempts,
            Policy::Kueue(_) => false,
            Policy::YuniKorn(_) | Policy::Koordinator(_) => return true,
        };
        let Some(shape) = shape_classes.single_shape(self) else { return true };
        match room {
            RoomChange::Taken(_) | RoomChange::Unmarked => false,
            RoomChange::Changed => true,
            RoomChange::Freed(_, Some(above)) if may_preempt && self.priority > above => false,
            RoomChange::Freed(node, _) => may_have_room(snapshot, shape, self.priority, may_preempt, node),
        }
    }
}

/// The preemptor, whether it may preempt, and how its pods are grouped; `None` if the decision depends on more than a key contains.
fn preemptor_and_grouping(
    snapshot: &Snapshot,
    policy: &Policy,
    preemptor: PreemptorId,
) -> Option<(Preemptor, bool, Grouping)> {
    match preemptor {
        PreemptorId::Group(id) => {
            let group = snapshot.group(id);
            let is_plain = group.topology.is_none();
            Some((
                Preemptor::new(snapshot, preemptor),
                snapshot.group_preempts(id),
                is_plain.then_some(Grouping::Group)?,
            ))
        }
        PreemptorId::Pod(id) => {
            let (preemptor, pod) = (Preemptor::new(snapshot, preemptor), snapshot.pod(id));
            match (policy, pod.job.map(|job| snapshot.job(job))) {
                (Policy::Koordinator(_), Some(job)) => {
                    let preemptor = preemptor.with_job(snapshot, id);
                    let is_plain = job.members.len() == preemptor.members.len();
                    Some((preemptor, pod.preempts, is_plain.then_some(Grouping::Job)?))
                }
                _ => Some((preemptor, pod.preempts, Grouping::No)),
            }
        }
        PreemptorId::Workload(_) => None,
    }
}

impl MemberKey {
    /// The key of a pod; `None` if the decision depends on more than the key contains.
    fn of(shape_classes: &mut ShapeClasses, snapshot: &Snapshot, policy: &Policy, id: PodId) -> Option<Self> {
        let pod = snapshot.pod(id);
        let shape = snapshot.shape(pod.shape);
        let has_constraints = !shape.affinity.is_empty() || !shape.anti_affinity.is_empty() || !shape.spread.is_empty();
        let lacks_group = pod.names_group && pod.group.is_none();
        if has_constraints || pod.nominated.is_some() || pod.resizing || pod.daemon || lacks_group {
            return None;
        }
        Some(Self {
            shape_class: shape_classes.of(snapshot, pod.shape),
            priority: pod.priority,
            preempts: pod.preempts,
            queue: pod.queue,
            preemptible: pod.preemptible,
            can_preempt: pod.can_preempt,
            application: match policy {
                Policy::YuniKorn(_) => pod.application.filter(|&application| snapshot.spans_queues(application)),
                Policy::Kubernetes(_) | Policy::Koordinator(_) | Policy::Kueue(_) => None,
            },
            unsupported: match pod.obstacle {
                Some(Obstacle::Unsupported(field)) => Some(field),
                Some(Obstacle::Gates(_) | Obstacle::OtherScheduler | Obstacle::QueueRefused { .. }) => return None,
                None => None,
            },
        })
    }
}
