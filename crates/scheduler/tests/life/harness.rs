//! A scheduler, and the API objects that its tests change.

use std::collections::BTreeMap;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::Pod;
use reprieve_api::read::documents;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_scheduler::action::{Action, ActionId, EventReason};
use reprieve_scheduler::effects::apply;
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step};

pub const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 4, pods: 10}}
";

/// A gang of two.
pub const GANG: &str = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
";

/// A gang of two that is evicted only as a whole.
pub const ALL_OR_NOTHING_GANG: &str = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {all: {}}}
";

pub fn pod(name: &str, priority: i32, cpu: i32, node: Option<&str>) -> Object {
    let text = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, uid: {name}, creationTimestamp: 2026-01-01T00:00:00Z}}
spec:
  schedulerName: reprieve
  priority: {priority}
  {}
  containers: [{{name: main, resources: {{requests: {{cpu: {cpu}}}}}}}]
status: {{phase: {}}}
",
        node.map(|node| format!("nodeName: {node}")).unwrap_or_default(),
        if node.is_some() { "Running, startTime: 2026-01-01T00:00:00Z" } else { "Pending" },
    );
    read(&text).remove(0)
}

pub fn read(text: &str) -> Vec<Object> {
    let mut objects = ObjectSet::default();
    for document in documents("test", text) {
        document.read(&mut objects).unwrap_or_else(|error| panic!("{error}"));
    }
    objects.iter().collect()
}

pub struct Life {
    pub scheduler: Scheduler,
    pub objects: BTreeMap<ObjectKey, Object>,
    pub version: u64,
    pub now: Timestamp,
    /// The events `FailedScheduling`: the object, and the code of the reason.
    pub failed: Vec<String>,
    /// The events, and other actions, that followed the successful actions of [`Self::succeed`].
    pub events: Vec<Action>,
}

impl Life {
    pub fn new(objects: Vec<Object>) -> Self {
        Self::of(fresh(), objects)
    }

    pub fn of(scheduler: Scheduler, objects: Vec<Object>) -> Self {
        let now = Timestamp(1_767_229_200_000_000);
        let mut life =
            Self { scheduler, objects: BTreeMap::new(), version: 0, now, failed: Vec::new(), events: Vec::new() };
        for object in objects {
            life.store(object);
        }
        life.sync();
        life
    }

    /// Replaces the scheduler by a new one.
    pub fn restart(&mut self) {
        self.scheduler = fresh();
        self.sync();
    }

    /// Passes through the start of a scheduler: list all kinds, wait, list the pods again.
    pub fn sync(&mut self) {
        for &kind in Kind::ALL {
            self.list(kind);
        }
        assert!(self.scheduler.step(self.now).is_some(), "a timer is requested");
        assert!(self.scheduler.step(self.now).is_none(), "no decision before the timer");
        self.now = self.now.plus_seconds(1);
        self.scheduler.observe(Event::TimerFired, self.now);
        let step = self.scheduler.step(self.now).expect("the pods are listed again");
        assert!(matches!(step.actions[0].1, Action::Relist { kind: Kind::Pod }));
        for (_, action) in &step.actions {
            let Action::Relist { kind } = action else { panic!("{action:?}") };
            self.list(*kind);
        }
    }

    pub fn list(&mut self, kind: Kind) {
        let objects = self.objects.values().filter(|object| object.kind() == kind).cloned().collect();
        self.scheduler.observe(Event::Listed { kind, objects, version: self.version }, self.now);
    }

    pub fn store(&mut self, mut object: Object) -> Object {
        self.version += 1;
        object.metadata_mut().resource_version = Some(self.version.to_string());
        self.objects.insert(object.key(), object.clone());
        object
    }

    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let Object::Pod(pod) = self.objects[&key(name)].clone() else { panic!("{name} is a pod") };
        let mut pod = Pod::clone(&pod);
        change(&mut pod);
        let object = self.store(Object::from(pod));
        self.scheduler.observe(Event::Upserted(object), self.now);
    }

    pub fn step(&mut self) -> Step {
        self.scheduler.step(self.now).expect("there is something to do")
    }

    pub fn complete(&mut self, action: ActionId, result: ActionResult) {
        self.scheduler.observe(Event::ActionCompleted { action, result }, self.now);
    }

    /// Lets all actions of a step succeed, and reports the changed objects.
    pub fn succeed(&mut self, step: &Step) {
        for (id, action) in &step.actions {
            let Some((kind, target)) = action.changes() else { continue };
            let mut object = self.objects[&ObjectKey::new(kind, target.name.clone())].clone();
            assert!(apply(action, &mut object, self.now), "{action:?}");
            let object = self.store(object);
            self.scheduler.observe(Event::Upserted(object), self.now);
            self.complete(*id, ActionResult::Ok { version: self.version });
            self.collect_events();
        }
    }

    /// Collects the events that follow the last successful action.
    pub fn collect_events(&mut self) {
        for (_, action) in self.scheduler.take_housekeeping().map(|step| step.actions).unwrap_or_default() {
            if let Action::EmitEvent { about, reason: EventReason::FailedScheduling, message, .. } = &action {
                let code = code_of(message);
                self.failed.push(format!("{} {code}", about.name.name));
            }
            self.events.push(action);
        }
    }

    /// The events since the last call that have a related object: both names, and the message.
    pub fn take_event_texts(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.events).iter().filter_map(event_text).collect()
    }

    pub fn delete(&mut self, name: &str) {
        self.version += 1;
        self.objects.remove(&key(name));
        self.scheduler.observe(Event::Deleted { key: key(name), version: self.version }, self.now);
    }
}

pub fn fresh() -> Scheduler {
    Scheduler::new("reprieve", Policy::Kubernetes(Kubernetes::default()))
}

pub fn key(pod: &str) -> ObjectKey {
    ObjectKey::new(Kind::Pod, NamespacedName::new("default", pod))
}

pub fn evicted(step: &Step) -> Vec<&str> {
    let names = step.actions.iter().filter_map(|(_, action)| match action {
        Action::Evict { pod } => Some(pod.name.name.as_str()),
        _ => None,
    });
    names.collect()
}

/// The events of a step that have a related object: both names, and the message.
pub fn event_texts(step: &Step) -> Vec<(String, String)> {
    step.actions.iter().filter_map(|(_, action)| event_text(action)).collect()
}

fn event_text(action: &Action) -> Option<(String, String)> {
    match action {
        Action::EmitEvent { about, related: Some(related), message, .. } => {
            Some((format!("{} {}", about.name.name, related.name.name), message.clone()))
        }
        _ => None,
    }
}

/// The code in the message of a condition.
fn code_of(message: &str) -> &str {
    let why = message.split_once(" nodes are available: ").map_or(message, |(_, why)| why);
    why.split(':').next().unwrap_or_default()
}

/// The conditions that a step writes: object, type, status, reason, and the code of the message.
pub fn conditions(step: &Step) -> Vec<String> {
    let conditions = step.actions.iter().filter_map(|(_, action)| match action {
        Action::SetCondition { object, condition, .. } => {
            let code = code_of(&condition.message);
            Some(format!("{} {}={} {} {code}", object.name.name, condition.type_, condition.holds, condition.reason))
        }
        _ => None,
    });
    conditions.collect()
}

pub fn with(pods: Vec<Object>) -> Vec<Object> {
    read(NODE).into_iter().chain(pods).collect()
}

/// A pod of the group `gang`.
pub fn member(name: &str) -> Object {
    let Object::Pod(pod) = pod(name, 0, 1, None) else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    let spec = pod.spec_mut();
    spec.scheduling_group.get_or_insert_default().pod_group_name = Some("gang".to_owned());
    Object::from(pod)
}
