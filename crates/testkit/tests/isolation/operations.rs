//! Operations on a cache and on a scheduler that bytes choose, and texts that are read: nothing panics, whatever they are. The fuzz targets in
//! `fuzz` call these functions with their own inputs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use reprieve_api::kinds::Object;
use reprieve_api::quantity::parse_nano;
use reprieve_api::{Kind, NamespacedName, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_loader::cache::SnapshotCache;
use reprieve_scheduler::effects::apply;
use reprieve_scheduler::{Action, ActionId, ActionResult, Event, Scheduler};
use reprieve_simulator::hostile::{Harm, Hostile, Targets};

use crate::answers::everything;
use crate::test_clusters::{TestCluster, object_set};

/// The most steps of the scheduler after an event.
const MAX_STEPS: usize = 20;

/// Choices that bytes make; after the last byte every choice is the first.
struct Choices<'b>(std::slice::Iter<'b, u8>);

impl<'b> Choices<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self(bytes.iter())
    }

    fn next(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    fn below(&mut self, end: usize) -> usize {
        let wide = [self.next(), self.next()].map(|byte| usize::from(byte.unwrap_or_default()));
        (wide[0] * 256 + wide[1]) % end.max(1)
    }

    fn of<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }
}

/// An object of the cluster, or a hostile one.
fn object(cluster: &TestCluster, targets: &Targets, choices: &mut Choices<'_>) -> Option<Object> {
    if choices.below(3) < 2 {
        return choices.of(&cluster.objects).cloned();
    }
    let kinds: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| cluster.reads(*kind)).collect();
    Hostile::new(choices.below(usize::MAX) as u64, targets, Harm::Any).object(&kinds)
}

/// Changes a cache and decides for all its pending units.
pub fn cache(clusters: &[TestCluster], bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(cluster) = choices.of(clusters) else { return };
    let targets = Targets::of(&object_set(&cluster.objects));
    let mut cache = cluster.cache();
    let mut keys = Vec::new();
    while let Some(operation) = choices.next() {
        match operation % 8 {
            0..=4 => {
                let Some(object) = object(cluster, &targets, &mut choices) else { continue };
                keys.push(object.key());
                cache.upsert(object);
            }
            5 => {
                let Some(key) = choices.of(&keys) else { continue };
                cache.remove(key);
            }
            _ => cache.refresh(),
        }
    }
    cache.refresh();
    everything(cluster, &mut cache);
}

/// Sends a scheduler events and results in any order, and lets it act.
pub fn scheduler(clusters: &[TestCluster], bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(cluster) = choices.of(clusters) else { return };
    let mut life = Life {
        scheduler: Scheduler::new(cluster.scheduler(), cluster.policy),
        objects: BTreeMap::new(),
        version: 0,
        now: Timestamp(1_767_229_200_000_000),
        sent: Vec::new(),
    };
    for object in &cluster.objects {
        life.store(object.clone());
    }
    for &kind in Kind::ALL {
        life.list(kind);
    }
    let targets = Targets::of(&object_set(&cluster.objects));
    while let Some(operation) = choices.next() {
        match operation % 8 {
            0..=2 => {
                let Some(object) = object(cluster, &targets, &mut choices) else { continue };
                let object = life.store(object);
                // Some events are lost.
                if choices.below(8) > 0 {
                    life.scheduler.observe(Event::Upserted(object), life.now);
                }
            }
            3 => {
                let keys: Vec<ObjectKey> = life.objects.keys().cloned().collect();
                let Some(key) = choices.of(&keys) else { continue };
                life.objects.remove(key);
                life.version += 1;
                life.scheduler.observe(Event::Deleted { key: key.clone(), version: life.version }, life.now);
            }
            4 => {
                let Some(&kind) = choices.of(Kind::ALL) else { continue };
                life.list(kind);
            }
            5 => {
                life.now = life.now.plus_seconds(choices.below(5_000) as i64);
                life.scheduler.observe(Event::TimerFired, life.now);
            }
            _ => life.complete(&mut choices),
        }
        life.step();
    }
}

struct Life {
    scheduler: Scheduler,
    objects: BTreeMap<ObjectKey, Object>,
    version: u64,
    now: Timestamp,
    /// The actions without a result.
    sent: Vec<(ActionId, Action)>,
}

impl Life {
    fn store(&mut self, mut object: Object) -> Object {
        self.version += 1;
        object.metadata_mut().resource_version = Some(self.version.to_string());
        self.objects.insert(object.key(), object.clone());
        object
    }

    fn list(&mut self, kind: Kind) {
        let objects = self.objects.values().filter(|object| object.kind() == kind).cloned().collect();
        self.scheduler.observe(Event::Listed { kind, objects, version: self.version }, self.now);
    }

    fn step(&mut self) {
        for _ in 0..MAX_STEPS {
            let Some(step) = self.scheduler.step(self.now) else { return };
            self.sent.extend(step.actions);
        }
    }

    /// Reports the result of an action that was sent.
    fn complete(&mut self, choices: &mut Choices<'_>) {
        if self.sent.is_empty() {
            return;
        }
        let (id, action) = self.sent.remove(choices.below(self.sent.len()));
        let result = match choices.below(8) {
            0 => ActionResult::Conflict,
            1 => ActionResult::NotFound,
            2 => ActionResult::Forbidden("no".to_owned()),
            3 => ActionResult::Unknown,
            _ => self.carry_out(&action),
        };
        self.scheduler.observe(Event::ActionCompleted { action: id, result }, self.now);
    }

    fn carry_out(&mut self, action: &Action) -> ActionResult {
        match action {
            Action::GetObject { key } => {
                self.objects.get(key).cloned().map_or(ActionResult::NotFound, ActionResult::Read)
            }
            Action::CreateWorkload { workload } => {
                self.store(Object::from((**workload).clone()));
                ActionResult::Ok { version: self.version }
            }
            Action::Relist { kind } => {
                self.list(*kind);
                ActionResult::Ok { version: 0 }
            }
            _ => {
                let Some((kind, target)) = action.changes() else { return ActionResult::Ok { version: 0 } };
                let key = ObjectKey::new(kind, target.name.clone());
                let Some(mut object) = self.objects.get(&key).cloned() else { return ActionResult::NotFound };
                if !apply(action, &mut object, self.now) {
                    return ActionResult::Conflict;
                }
                let object = self.store(object);
                self.scheduler.observe(Event::Upserted(object), self.now);
                ActionResult::Ok { version: self.version }
            }
        }
    }
}

/// Reads a text as the queues of policy YuniKorn, in a cluster of that policy.
pub fn queues(cluster: &TestCluster, text: &str) {
    let mut cache: SnapshotCache = cluster.cache();
    for object in &cluster.objects {
        let object = match object {
            Object::ConfigMap(map) => {
                let mut map = ConfigMap::clone(map);
                map.data.get_or_insert_default().insert("queues.yaml".to_owned(), text.to_owned());
                Object::from(map)
            }
            other => other.clone(),
        };
        cache.upsert(object);
    }
    cache.refresh();
    everything(cluster, &mut cache);
}

/// Reads a text as a quantity, and as the request of a pod.
pub fn quantity(text: &str) {
    let _ = parse_nano(text);
    for resource in ["cpu", "memory"] {
        let amounts =
            serde_json::json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {resource: text}}}]}});
        if let Ok(Object::Pod(pod)) = Object::from_json(Kind::Pod, &amounts.to_string()) {
            let _ = reprieve_loader::requests::requests(&pod);
            let _ = NamespacedName::from_meta(&pod.metadata);
        }
    }
}
