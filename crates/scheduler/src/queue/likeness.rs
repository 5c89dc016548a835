//! What tells a unit from others, where nothing but resources, nodes, priorities and queues matters. Units of one likeness get one
//! answer, as long as the cluster does not change.

use std::collections::BTreeMap;

use reprieve_engine::fit::{Ask, Preemptor};
use reprieve_engine::hold::may_have_room;
use reprieve_engine::policy::Policy;
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::{Obstacle, Snapshot};
use reprieve_engine::{Labels, NamespaceId, PodId, Priority, QueueId, ShapeId, TextId, Timestamp};

use reprieve_loader::live::Live;

use crate::view::Room;

/// What tells a unit from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Likeness {
    /// Its pods that need a place.
    members: Vec<Member>,
    needed: usize,
    priority: Priority,
    preempts: bool,
    gang: Gang,
    /// Whether it has waited as long as its queue asks of those who preempt.
    waited: bool,
}

/// What tells a pod from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    look: Look,
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
enum Gang {
    No,
    Group,
    Job,
}

/// The number of a shape, but for labels and namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Look(usize);

/// What shapes look like, but for labels and namespace. Good as long as the tables are not made anew.
#[derive(Default)]
pub(super) struct Looks {
    /// For which tables they are good.
    made: u64,
    by_shape: Vec<Option<Look>>,
    known: BTreeMap<Shape, Look>,
    /// By look: a shape that has it.
    shapes: Vec<ShapeId>,
}

impl Looks {
    /// No looks, for the tables as they are.
    pub fn new(live: &Live) -> Self {
        Self { made: live.times_made(), ..Self::default() }
    }

    /// Whether they are good for the tables.
    pub fn are_of(&self, live: &Live) -> bool {
        self.made == live.times_made()
    }

    fn of(&mut self, snapshot: &Snapshot, shape: ShapeId) -> Look {
        if self.by_shape.len() <= shape.index() {
            self.by_shape.resize(snapshot.n_shapes(), None);
        }
        if let Some(look) = self.by_shape[shape.index()] {
            return look;
        }
        let bare = Shape { labels: Labels::default(), namespace: NamespaceId(0), ..snapshot.shape(shape).clone() };
        let next = Look(self.shapes.len());
        let look = *self.known.entry(bare).or_insert(next);
        if look == next {
            self.shapes.push(shape);
        }
        self.by_shape[shape.index()] = Some(look);
        look
    }

    /// The shape of a likeness whose pods all have one.
    fn only(&self, likeness: &Likeness) -> Option<ShapeId> {
        let (first, rest) = likeness.members.split_first()?;
        rest.iter().all(|member| member.look == first.look).then(|| self.shapes[first.look.0])
    }
}

impl Likeness {
    /// Of a preemptor with these pods; `None` where other things matter, too.
    pub fn of(
        looks: &mut Looks,
        snapshot: &Snapshot,
        policy: &Policy,
        (preemptor, pods): (Preemptor, &[PodId]),
        now: Timestamp,
    ) -> Option<Self> {
        if snapshot.has_aversions() {
            return None;
        }
        let (ask, preempts, gang) = ask_of(snapshot, policy, preemptor)?;
        if pods.len() != ask.members.len() {
            return None;
        }
        let members: Vec<Member> =
            ask.members.iter().map(|&pod| Member::of(looks, snapshot, pod)).collect::<Option<_>>()?;
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
    pub fn is_helped(&self, looks: &Looks, snapshot: &Snapshot, policy: &Policy, room: Room) -> bool {
        if self.members.iter().any(|member| member.unsupported.is_some()) {
            return false;
        }
        let may_preempt = match policy {
            Policy::Kubernetes(_) => self.preempts,
            Policy::Kueue(_) => false,
            Policy::YuniKorn | Policy::Koordinator(_) => return true,
        };
        let Some(shape) = looks.only(self) else { return true };
        match room {
            Room::Taken(_) | Room::Unmarked => false,
            Room::Changed => true,
            Room::Freed(_, Some(above)) if may_preempt && self.priority > above => false,
            Room::Freed(node, _) => may_have_room(snapshot, shape, self.priority, may_preempt, node),
        }
    }
}

/// What a preemptor asks for, whether it preempts, and whether its pods belong together; `None` where other things matter, too.
fn ask_of(snapshot: &Snapshot, policy: &Policy, preemptor: Preemptor) -> Option<(Ask, bool, Gang)> {
    match preemptor {
        Preemptor::Group(id) => {
            let group = snapshot.group(id);
            let is_plain = group.topology.is_none();
            Some((Ask::new(snapshot, preemptor), group.preempts, is_plain.then_some(Gang::Group)?))
        }
        Preemptor::Pod(id) => {
            let (ask, pod) = (Ask::new(snapshot, preemptor), snapshot.pod(id));
            match (policy, pod.job.map(|job| snapshot.job(job))) {
                (Policy::Koordinator(_), Some(job)) => {
                    let ask = ask.with_job(snapshot, id);
                    let is_plain = job.members.len() == ask.members.len();
                    Some((ask, pod.preempts, is_plain.then_some(Gang::Job)?))
                }
                _ => Some((ask, pod.preempts, Gang::No)),
            }
        }
        Preemptor::Workload(_) => None,
    }
}

impl Member {
    /// Of a pod; `None` where other things matter, too.
    fn of(looks: &mut Looks, snapshot: &Snapshot, id: PodId) -> Option<Self> {
        let pod = snapshot.pod(id);
        let shape = snapshot.shape(pod.shape);
        let minds = !shape.affinity.is_empty() || !shape.anti_affinity.is_empty() || !shape.spread.is_empty();
        if minds || pod.nominated.is_some() || pod.resizing || pod.daemon {
            return None;
        }
        Some(Self {
            look: looks.of(snapshot, pod.shape),
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
