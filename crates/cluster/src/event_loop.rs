//! The thread on which the schedulers live: it hears what happened, lets them take their steps, and hands out what is to be done.
//!
//! With several profiles only one acts at a time: each sees what another has done before it decides anything itself.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_loader::protected_namespaces::PROTECTED;
use reprieve_loader::time::timestamp;
use reprieve_scheduler::action::{Action, ActionId, EventReason};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, StepOutcome};
use tracing::{error, info, warn};

use crate::audit::Audit;
use crate::bindings::PendingBindings;
use crate::event_queue::EventQueue;
use crate::executor::EventObjectUids;
use crate::messages::Message;
use crate::metrics::{Metrics, PendingLabels};
use crate::trim::apply_api_defaults;

/// How long a profile acts while others want to.
const PROFILE_TIME_SLICE: Duration = Duration::from_millis(200);
/// How often it is said how many wait.
const PUBLISHED_EVERY: Duration = Duration::from_secs(1);
/// How long what is under way at the end is waited for.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// An action to be carried out.
pub struct Dispatch {
    pub profile: usize,
    pub id: ActionId,
    pub action: Action,
    pub uids: EventObjectUids,
}

/// A scheduler, and which kinds it reads.
pub struct ProfileRuntime {
    pub scheduler: Scheduler,
    pub kinds: BTreeSet<Kind>,
    pub policy: &'static str,
    pub name: String,
}

/// The thread's state.
pub struct SchedulerLoop {
    profiles: Vec<ProfileRuntime>,
    inputs: Arc<EventQueue>,
    orders: tokio::sync::mpsc::UnboundedSender<Dispatch>,
    metrics: Arc<Metrics>,
    audit: Option<Audit>,
    /// Namespaces in which nobody is taken, besides those that say so themselves.
    protected: BTreeSet<String>,
    timers: BTreeSet<(Timestamp, usize)>,
    bindings: PendingBindings,
    /// By list that was asked for: what came of it so far.
    pages: BTreeMap<(usize, ActionId), Vec<Object>>,
    requests: Requests,
    active_profile: (usize, Instant),
    published: Option<Instant>,
    shutdown_started: Option<Instant>,
}

/// The requests that were ordered and not answered yet.
struct Requests {
    /// How many there are.
    in_flight: usize,
    /// Those of them that wait for nothing but a free request.
    writes_in_flight: BTreeSet<(usize, ActionId)>,
    /// While there are this many of the latter nothing more is decided.
    max_writes_in_flight: usize,
}

impl SchedulerLoop {
    pub fn new(
        mut profiles: Vec<ProfileRuntime>,
        inputs: Arc<EventQueue>,
        orders: tokio::sync::mpsc::UnboundedSender<Dispatch>,
        metrics: Arc<Metrics>,
        audit: Option<Audit>,
        protected: BTreeSet<String>,
        most_deeds: usize,
    ) -> Self {
        for ProfileRuntime { scheduler, kinds, .. } in &mut profiles {
            for &kind in Kind::ALL.iter().filter(|kind| !kinds.contains(kind)) {
                scheduler.observe(Event::Listed { kind, objects: Vec::new(), version: 0 }, now());
            }
        }
        Self {
            profiles,
            inputs,
            orders,
            metrics,
            audit,
            protected,
            timers: BTreeSet::new(),
            bindings: PendingBindings::default(),
            pages: BTreeMap::new(),
            requests: Requests { in_flight: 0, writes_in_flight: BTreeSet::new(), max_writes_in_flight: most_deeds },
            active_profile: (0, Instant::now()),
            published: None,
            shutdown_started: None,
        }
    }

    /// Lives until it is told to stop, and what is under way is done.
    pub fn run(mut self) {
        let mut patience = Duration::ZERO;
        while let Some(inputs) = self.inputs.drain(patience) {
            for input in inputs {
                self.handle(input);
            }
            patience = Duration::ZERO;
            self.fire_timers();
            self.give_up_bindings();
            if let Some(since) = self.shutdown_started {
                if self.requests.in_flight == 0 || since.elapsed() > SHUTDOWN_GRACE {
                    return;
                }
            } else if self.run_next_step() {
                continue;
            }
            self.publish_metrics();
            patience = self.time_to_next_timer();
        }
    }

    fn handle(&mut self, input: Message) {
        match input {
            Message::Event(mut event) => {
                self.apply_defaults(&mut event);
                let shown = self.bindings.shown_by(&event);
                self.forward(event);
                for ((profile, action), result) in shown {
                    self.profiles[profile].scheduler.observe(Event::ActionCompleted { action, result }, now());
                }
            }
            Message::Page { profile, action, objects } => {
                let scheduler = &self.profiles[profile].scheduler;
                let known = objects.into_iter().map(|object| as_known(scheduler, object));
                self.pages.entry((profile, action)).or_default().extend(known);
            }
            Message::Listed { profile, action, kind, version } => {
                let objects = self.pages.remove(&(profile, action)).unwrap_or_default();
                self.profiles[profile].scheduler.observe(Event::Listed { kind, objects, version }, now());
            }
            Message::Done { profile, action, result } => {
                self.requests.in_flight -= 1;
                self.pages.remove(&(profile, action));
                self.requests.writes_in_flight.remove(&(profile, action));
                let shown = result.and_then(|result| self.bindings.answered((profile, action), result, Instant::now()));
                if let Some(result) = shown {
                    self.profiles[profile].scheduler.observe(Event::ActionCompleted { action, result }, now());
                }
            }
            Message::Stop => self.shutdown_started = Some(Instant::now()),
        }
    }

    /// Tells every profile that reads such objects.
    fn forward(&mut self, event: Event) {
        let kind = kind_of(&event);
        let mut readers = self.profiles.iter_mut().filter(|profile| profile.kinds.contains(&kind)).peekable();
        while let Some(profile) = readers.next() {
            if readers.peek().is_none() {
                return profile.scheduler.observe(event, now());
            }
            profile.scheduler.observe(event.clone(), now());
        }
    }

    /// Says on namespaces that are protected by the configuration that they are, and on others what the API leaves out.
    fn apply_defaults(&self, event: &mut Event) {
        let objects = match event {
            Event::Upserted(object) => std::slice::from_mut(object),
            Event::Listed { objects, .. } => objects.as_mut_slice(),
            Event::Deleted { .. } | Event::TimerFired | Event::ActionCompleted { .. } => return,
        };
        for object in objects {
            apply_api_defaults(object);
            let Object::Namespace(namespace) = object else { continue };
            if namespace.metadata.name.as_ref().is_some_and(|name| self.protected.contains(name)) {
                let labels = object.metadata_mut().labels.get_or_insert_default();
                labels.insert(PROTECTED.to_owned(), "true".to_owned());
            }
        }
    }

    /// Bindings that worked and are not seen: the scheduler reads the pod anew.
    fn give_up_bindings(&mut self) {
        for ((profile, action), pod) in self.bindings.late(Instant::now()) {
            warn!(%pod, "a binding that worked is not seen; the pod is read anew");
            let event = Event::ActionCompleted { action, result: ActionResult::Unknown };
            self.profiles[profile].scheduler.observe(event, now());
        }
    }

    fn fire_timers(&mut self) {
        let now = now();
        while let Some((_, profile)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            self.profiles[profile].scheduler.observe(Event::TimerFired, now);
        }
    }

    /// One step of the profile whose turn it is; whether there was anything to do. Nothing is decided before it can be done: who was first
    /// is helped first, and the rest is decided by what is so then.
    fn run_next_step(&mut self) -> bool {
        if self.requests.writes_in_flight.len() >= self.requests.max_writes_in_flight {
            return false;
        }
        let (mut current, since) = self.active_profile;
        let alone = self.profiles.len() == 1;
        let spent = !alone && since.elapsed() > PROFILE_TIME_SLICE;
        if !spent && let Some(step) = self.step(current) {
            self.dispatch(current, step);
            return true;
        }
        if alone {
            return false;
        }
        if let Some(step) = self.profiles[current].scheduler.take_housekeeping() {
            self.dispatch(current, step);
            return true;
        }
        for _ in 1..self.profiles.len() {
            if !self.profiles[current].scheduler.is_quiet() {
                return false;
            }
            current = (current + 1) % self.profiles.len();
            self.active_profile = (current, Instant::now());
            if let Some(step) = self.step(current) {
                self.dispatch(current, step);
                return true;
            }
        }
        self.active_profile = (current, Instant::now());
        spent
    }

    /// One step of a profile. A fault in a decision takes down that decision.
    fn step(&mut self, profile: usize) -> Option<Step> {
        let began = Instant::now();
        let ProfileRuntime { scheduler, policy, .. } = &mut self.profiles[profile];
        match catch_unwind(AssertUnwindSafe(|| scheduler.step(now()))) {
            Ok(step) => {
                if let Some(step) = &step {
                    self.metrics.decided(policy, step, began.elapsed());
                }
                step
            }
            Err(_) => {
                self.metrics.faults.inc();
                match scheduler.recover(now()) {
                    Some(unit) => {
                        error!(unit = %unit, "a decision failed by a fault of the scheduler; the unit steps aside");
                    }
                    None => panic!("a fault outside any decision: starting anew is safe"),
                }
                None
            }
        }
    }

    fn dispatch(&mut self, profile: usize, step: Step) {
        log(&self.profiles[profile], &step);
        if let (Some(audit), Some(record)) = (&mut self.audit, &step.record) {
            audit.write(record);
        }
        for (id, action) in step.actions {
            let uids = self.uids(profile, &action);
            match &action {
                Action::WakeAt { at } => {
                    self.timers.insert((*at, profile));
                    let done = Event::ActionCompleted { action: id, result: ActionResult::Ok { version: 0 } };
                    self.profiles[profile].scheduler.observe(done, now());
                    continue;
                }
                Action::EmitEvent { about, reason: EventReason::Refused, message, .. } => {
                    warn!(%about, message, "refused")
                }
                Action::Bind { pod, .. } => {
                    self.bindings.begin((profile, id), pod);
                }
                _ => {}
            }
            if is_deed(&action) {
                self.requests.writes_in_flight.insert((profile, id));
            }
            if self.orders.send(Dispatch { profile, id, action, uids }).is_ok() {
                self.requests.in_flight += 1;
            }
        }
    }

    fn uids(&self, profile: usize, action: &Action) -> EventObjectUids {
        let Action::EmitEvent { about, related, .. } = action else { return EventObjectUids::default() };
        let live = self.profiles[profile].scheduler.live();
        let uid = |key: &ObjectKey| match key.kind {
            Kind::Pod => live.pod(&key.name)?.metadata.uid.clone(),
            _ => live.get(key)?.metadata().uid.clone(),
        };
        EventObjectUids { about: uid(about), related: related.as_ref().and_then(uid) }
    }

    /// How long nothing has to be done unless something is heard.
    fn time_to_next_timer(&self) -> Duration {
        let timer = self.timers.first().map(|(at, _)| {
            Duration::from_micros(u64::try_from(at.0.saturating_sub(now().0)).unwrap_or(0).saturating_add(100))
        });
        timer.unwrap_or(PUBLISHED_EVERY).min(PUBLISHED_EVERY)
    }

    /// Says how many wait, and why.
    fn publish_metrics(&mut self) {
        if self.published.is_some_and(|last| last.elapsed() < PUBLISHED_EVERY) {
            return;
        }
        self.published = Some(Instant::now());
        let mut pending: BTreeMap<PendingLabels, i64> = BTreeMap::new();
        for ProfileRuntime { scheduler, name, .. } in &self.profiles {
            for (queue, reason) in scheduler.waiting_by_queue() {
                let labels = PendingLabels { profile: name.clone(), queue, reason: reason.as_str().to_owned() };
                *pending.entry(labels).or_default() += 1;
            }
        }
        self.metrics.set_pending(pending);
        self.metrics.set_serving(self.profiles.iter().all(|profile| profile.scheduler.is_ready()));
    }
}

fn now() -> Timestamp {
    timestamp(jiff::Timestamp::now())
}

/// Whether an action is done as soon as there is a request to spare. What is only said is not, nor are evictions, which a limit may hold
/// back for long.
fn is_deed(action: &Action) -> bool {
    let waits = matches!(action, Action::SetCondition { .. } | Action::Evict { .. } | Action::SoftEvict { .. });
    action.changes().is_some() && !waits
}

/// The object, or what is known of it already where that is the same: nothing is held twice.
fn as_known(scheduler: &Scheduler, object: Object) -> Object {
    let ObjectKey { kind, name } = object.key();
    let is_same = |known: &Object| (known.uid(), known.version()) == (object.uid(), object.version());
    scheduler.observed(kind, &name).filter(is_same).unwrap_or(object)
}

fn kind_of(event: &Event) -> Kind {
    match event {
        Event::Upserted(object) => object.kind(),
        Event::Deleted { key, .. } => key.kind,
        Event::Listed { kind, .. } => *kind,
        Event::TimerFired | Event::ActionCompleted { .. } => unreachable!("the cluster tells neither"),
    }
}

fn log(profile: &ProfileRuntime, step: &Step) {
    let Some(unit) = &step.unit else { return };
    let profile = &profile.name;
    match &step.outcome {
        StepOutcome::Housekeeping => {}
        StepOutcome::Bind { placement } => info!(%profile, %unit, pods = placement.len(), "scheduled"),
        StepOutcome::MarkVictims { victims, .. } => {
            info!(%profile, %unit, victims = victims.len(), "a preemption is being prepared");
        }
        StepOutcome::Evict { victims, placement } => {
            let names = victims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            info!(%profile, %unit, pods = placement.len(), victims = names, "preempts");
        }
        StepOutcome::Wait { reason, why } => info!(%profile, %unit, law = reason.as_str(), why, "waits"),
        StepOutcome::Unschedulable { reason, why } => {
            info!(%profile, %unit, law = reason.as_str(), why, "cannot be scheduled");
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use reprieve_api::meta::NamespacedName;
    use reprieve_api::pod::Pod;
    use reprieve_engine::policy::Policy;
    use reprieve_scheduler::Bug;
    use serde_json::json;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// A brain, and whoever carries out its orders.
    struct ClusterLoop {
        brain: SchedulerLoop,
        orders: UnboundedReceiver<Dispatch>,
        pods: Vec<Object>,
        /// The bindings that were ordered: the action and the pod.
        bindings: Vec<(ActionId, String)>,
    }

    impl ClusterLoop {
        /// One node, these pods, and at most so many deeds at once. Everything was listed, and the first bindings are ordered.
        fn begin(bug: Option<Bug>, pods: &[&str], most_deeds: usize) -> Self {
            let scheduler = Scheduler::new("reprieve", Policy::Kubernetes(Default::default())).with_bug(bug);
            let kinds = BTreeSet::from([Kind::Node, Kind::Pod]);
            let profile = ProfileRuntime { scheduler, kinds, policy: "Kubernetes", name: "reprieve".to_owned() };
            let (inputs, (sender, orders)) = (Arc::default(), unbounded_channel());
            let metrics = Arc::new(Metrics::new());
            let brain = SchedulerLoop::new(vec![profile], inputs, sender, metrics, None, BTreeSet::new(), most_deeds);
            let pods = pods.iter().map(|name| pod(name)).collect();
            let mut life = Self { brain, orders, pods, bindings: Vec::new() };
            for kind in [Kind::Node, Kind::Pod] {
                life.list(kind);
            }
            let end = Instant::now() + Duration::from_secs(30);
            while life.bindings.is_empty() {
                assert!(Instant::now() < end, "nothing is bound");
                life.go_on();
                std::thread::sleep(Duration::from_millis(20));
            }
            life
        }

        fn list(&mut self, kind: Kind) {
            let objects = match kind {
                Kind::Node => vec![node()],
                Kind::Pod => self.pods.clone(),
                _ => Vec::new(),
            };
            self.brain.handle(Message::Event(Event::Listed { kind, objects, version: 1 }));
        }

        /// All steps that can be taken; what is ordered is noted, and lists are made.
        fn go_on(&mut self) {
            self.brain.fire_timers();
            while self.brain.run_next_step() {}
            while let Ok(Dispatch { id, action, .. }) = self.orders.try_recv() {
                match action {
                    Action::Bind { pod, .. } => self.bindings.push((id, pod.name.name)),
                    Action::Relist { kind } => {
                        let pages = if kind == Kind::Pod { self.pods.clone() } else { Vec::new() };
                        for object in pages {
                            self.brain.handle(Message::Page { profile: 0, action: id, objects: vec![object] });
                        }
                        self.brain.handle(Message::Listed { profile: 0, action: id, kind, version: 1 });
                        self.done(id);
                    }
                    _ => self.done(id),
                }
            }
        }

        fn done(&mut self, action: ActionId) {
            let result = Some(ActionResult::Ok { version: 0 });
            self.brain.handle(Message::Done { profile: 0, action, result });
        }

        fn bound(&self) -> Vec<&str> {
            self.bindings.iter().map(|(_, pod)| pod.as_str()).collect()
        }
    }

    fn node() -> Object {
        let amounts = json!({"cpu": "10", "pods": "10"});
        let node = json!({"metadata": {"name": "n", "resourceVersion": "1"}, "status": {"allocatable": amounts}});
        Object::from(serde_json::from_value::<Node>(node).expect("a node"))
    }

    fn pod(name: &str) -> Object {
        let pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
            "spec": {
                "schedulerName": "reprieve",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            },
        });
        Object::from(serde_json::from_value::<Pod>(pod).expect("a pod"))
    }

    #[test]
    fn nothing_is_decided_before_it_can_be_done() {
        let mut life = ClusterLoop::begin(None, &["a", "b", "c", "d"], 2);
        life.go_on();
        assert_eq!(life.bound(), ["a", "b"]);
        life.done(life.bindings[0].0);
        life.go_on();
        assert_eq!(life.bound(), ["a", "b", "c"]);
    }

    #[test]
    fn of_a_list_only_what_is_new_is_held() {
        let mut life = ClusterLoop::begin(None, &["a", "b"], 10);
        let list = |life: &mut ClusterLoop, objects: Vec<Object>| {
            life.brain.handle(Message::Page { profile: 0, action: ActionId(99), objects });
            life.brain.pages[&(0, ActionId(99))].last().cloned()
        };
        let scheduler = &life.brain.profiles[0].scheduler;
        let known = scheduler.observed(Kind::Pod, &NamespacedName::new("default", "a")).expect("it is known");
        let (Object::Pod(held), Object::Pod(known)) = (list(&mut life, vec![pod("a")]).expect("a pod"), known) else {
            panic!("they are pods")
        };
        assert!(Arc::ptr_eq(&held, &known));
        let other = list(&mut life, vec![pod("other")]).expect("a pod");
        assert_eq!(other.key().name, NamespacedName::new("default", "other"));
        life.brain.requests.in_flight += 1;
        life.done(ActionId(99));
        assert!(life.brain.pages.is_empty(), "a list that was not finished is forgotten");
    }

    #[test]
    fn a_fault_in_one_decision_leaves_the_others_alone() {
        let mut life = ClusterLoop::begin(Some(Bug::Panic), &["fatal", "other"], 10);
        life.go_on();
        assert_eq!(life.bound(), ["other"]);
        assert_eq!(life.brain.metrics.faults.get(), 1);
    }
}
