//! A scheduler with a small API server: all requests succeed, and terminating pods are gone in the next round.

use std::collections::BTreeMap;

use reprieve_api::kinds::Object;
use reprieve_api::{Kind, NamespacedName, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_loader::policy::DEFAULT_NOW;
use reprieve_loader::time::parse_time;
use reprieve_loader::timestamp;
use reprieve_scheduler::effects::apply;
use reprieve_scheduler::{Action, ActionResult, Event, Scheduler, Step};
use reprieve_simulator::hostile::TENANT;
use serde_json::json;

use crate::test_clusters::TestCluster;

/// The number of rounds; each is a point in time.
pub const ROUNDS: usize = 3;
/// More steps than any cluster needs in a round.
const MAX_STEPS: usize = 2_000;
const SECONDS: [i64; ROUNDS] = [0, 40, 4_000];

/// The actions on the objects of honest tenants. In each round the objects of the last round's batch are removed or replaced by the batch of
/// the round.
pub fn run(cluster: &TestCluster, batches: &[Vec<Object>]) -> Vec<String> {
    let now = parse_time(cluster.spec.now.as_deref().unwrap_or(DEFAULT_NOW)).expect("the time of a test");
    let mut life = Life {
        scheduler: Scheduler::new(cluster.scheduler(), cluster.policy),
        objects: BTreeMap::new(),
        version: 0,
        now: timestamp(now),
        actions: Vec::new(),
    };
    for object in &cluster.objects {
        life.store(object.clone());
    }
    life.sync();
    for (round, seconds) in SECONDS.into_iter().enumerate() {
        life.actions.push(format!("round {round}"));
        life.now = life.now.plus_seconds(seconds);
        life.end_terminating_pods();
        life.put(tick(round));
        if let Some(batch) = batches.get(round) {
            let before: Vec<ObjectKey> =
                life.objects.keys().filter(|key| key.name.namespace == TENANT).cloned().collect();
            for object in batch {
                life.put(object.clone());
            }
            for key in before.iter().step_by(2) {
                life.remove(key);
            }
        }
        life.scheduler.observe(Event::TimerFired, life.now);
        life.run_until_idle();
    }
    life.actions
}

/// A change of the cluster in each round, with or without hostile objects. After a change of any tenant all units are decided again, and a
/// unit may find that it now waits for an older one.
fn tick(round: usize) -> Object {
    let namespace = json!({"metadata": {"name": "tick", "uid": "tick", "labels": {"round": round.to_string()}}});
    Object::from_json(Kind::Namespace, &namespace.to_string()).expect("it is a namespace")
}

struct Life {
    scheduler: Scheduler,
    objects: BTreeMap<ObjectKey, Object>,
    version: u64,
    now: Timestamp,
    /// The actions on objects of honest tenants, without versions.
    actions: Vec<String>,
}

impl Life {
    fn sync(&mut self) {
        for &kind in Kind::ALL {
            self.list(kind);
        }
        self.run_until_idle();
        self.now = self.now.plus_seconds(1);
        self.scheduler.observe(Event::TimerFired, self.now);
    }

    fn list(&mut self, kind: Kind) {
        let objects = self.objects.values().filter(|object| object.kind() == kind).cloned().collect();
        self.scheduler.observe(Event::Listed { kind, objects, version: self.version }, self.now);
    }

    fn store(&mut self, mut object: Object) -> Object {
        self.version += 1;
        object.metadata_mut().resource_version = Some(self.version.to_string());
        self.objects.insert(object.key(), object.clone());
        object
    }

    fn put(&mut self, object: Object) {
        let object = self.store(object);
        self.scheduler.observe(Event::Upserted(object), self.now);
    }

    fn remove(&mut self, key: &ObjectKey) {
        if self.objects.remove(key).is_some() {
            self.version += 1;
            self.scheduler.observe(Event::Deleted { key: key.clone(), version: self.version }, self.now);
        }
    }

    fn end_terminating_pods(&mut self) {
        let terminating =
            |object: &&Object| object.kind() == Kind::Pod && object.metadata().deletion_timestamp.is_some();
        let keys: Vec<ObjectKey> = self.objects.values().filter(terminating).map(Object::key).collect();
        for key in keys {
            self.remove(&key);
        }
    }

    fn run_until_idle(&mut self) {
        for _ in 0..MAX_STEPS {
            let Some(step) = self.scheduler.step(self.now) else { return };
            self.carry_out(step);
        }
        panic!("the scheduler does not come to rest");
    }

    fn carry_out(&mut self, step: Step) {
        for (id, action) in step.actions {
            if object_of(&action).is_some_and(|name| name.namespace != TENANT) {
                self.actions.push(without_versions(&format!("{action:?}")));
            }
            let result = match &action {
                Action::WakeAt { .. } => continue,
                Action::Relist { kind } => {
                    self.list(*kind);
                    continue;
                }
                Action::EmitEvent { .. } => ActionResult::Ok { version: 0 },
                Action::GetObject { key } => {
                    self.objects.get(key).cloned().map_or(ActionResult::NotFound, ActionResult::Read)
                }
                Action::CreateWorkload { workload } => {
                    let mut object = Object::from((**workload).clone());
                    object.metadata_mut().uid = Some(format!("created {}", object.key()));
                    self.put(object);
                    ActionResult::Ok { version: self.version }
                }
                _ => self.change(&action),
            };
            self.scheduler.observe(Event::ActionCompleted { action: id, result }, self.now);
        }
    }

    fn change(&mut self, action: &Action) -> ActionResult {
        let Some((kind, target)) = action.changes() else { return ActionResult::NotFound };
        let Some(mut object) = self.objects.get(&ObjectKey::new(kind, target.name.clone())).cloned() else {
            return ActionResult::NotFound;
        };
        if object.uid() != target.uid {
            return ActionResult::NotFound;
        }
        if !apply(action, &mut object, self.now) {
            return ActionResult::Conflict;
        }
        self.put(object);
        ActionResult::Ok { version: self.version }
    }
}

/// The object that an action changes or reports about.
fn object_of(action: &Action) -> Option<NamespacedName> {
    match action {
        Action::EmitEvent { about, .. } => Some(about.name.clone()),
        Action::CreateWorkload { workload } => Some(NamespacedName::from_meta(&workload.metadata)),
        Action::WakeAt { .. } | Action::Relist { .. } | Action::GetObject { .. } => None,
        _ => action.changes().map(|(_, target)| target.name.clone()),
    }
}

fn without_versions(text: &str) -> String {
    let mut parts = text.split("version: ");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    result
}
