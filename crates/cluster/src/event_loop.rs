//! The event loop on the scheduler thread: it passes messages to the schedulers of all profiles, lets them decide, and dispatches their
//! actions to the executor.
//!
//! With several profiles only one acts at a time: the others see all its changes before they decide.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprieve_api::{Kind, Object, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_loader::protected_namespaces::PROTECTED;
use reprieve_loader::timestamp;
use reprieve_scheduler::{Action, ActionResult, Event, EventReason, Scheduler, Step, StepOutcome};
use tokio::sync::mpsc::UnboundedSender;
use tracing::{error, info, warn};

use crate::audit::Audit;
use crate::bindings::{ActionKey, PendingBindings};
use crate::config::Namespaces;
use crate::event_queue::EventQueue;
use crate::messages::{Dispatch, EventObjectUids, Message};
use crate::metrics::{Metrics, PendingLabels};
use crate::trim::apply_api_defaults;

/// How long a profile acts while others have work.
const PROFILE_TIME_SLICE: Duration = Duration::from_millis(200);
/// The `schedulerName` under which the schedulers see pending pods of namespaces that are not managed.
const UNMANAGED: &str = "(namespace is not managed)";
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);
/// How long a shutdown waits for requests in flight.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// The scheduler of a profile and the kinds it reads.
pub struct ProfileRuntime {
    pub scheduler: Scheduler,
    pub kinds: BTreeSet<Kind>,
    pub policy: &'static str,
    pub name: String,
}

/// The state of the scheduler thread.
// Fields: the channels, settings and state of one thread; no part of it has an invariant of its own except `requests` and `bindings`.
pub struct SchedulerLoop {
    profiles: Vec<ProfileRuntime>,
    messages: Arc<EventQueue>,
    actions: UnboundedSender<Dispatch>,
    metrics: Arc<Metrics>,
    audit: Option<Audit>,
    namespaces: Namespaces,
    timers: BTreeSet<(Timestamp, usize)>,
    bindings: PendingBindings,
    /// The objects of lists that are not complete yet.
    pages: BTreeMap<ActionKey, Vec<Object>>,
    requests: Requests,
    active_profile: (usize, Instant),
    published: Option<Instant>,
    shutdown_started: Option<Instant>,
}

/// The dispatched actions without a result.
struct Requests {
    in_flight: usize,
    /// The actions among them that are sent as soon as a request is free; see `is_immediate_write`.
    writes_in_flight: BTreeSet<ActionKey>,
    /// At this number of writes in flight the schedulers make no decision.
    max_writes_in_flight: usize,
}

impl SchedulerLoop {
    pub fn new(
        mut profiles: Vec<ProfileRuntime>,
        messages: Arc<EventQueue>,
        actions: UnboundedSender<Dispatch>,
        metrics: Arc<Metrics>,
        audit: Option<Audit>,
        namespaces: Namespaces,
        max_writes_in_flight: usize,
    ) -> Self {
        for ProfileRuntime { scheduler, kinds, .. } in &mut profiles {
            for &kind in Kind::ALL.iter().filter(|kind| !kinds.contains(kind)) {
                scheduler.observe(Event::Listed { kind, objects: Vec::new(), version: 0 }, now());
            }
        }
        Self {
            profiles,
            messages,
            actions,
            metrics,
            audit,
            namespaces,
            timers: BTreeSet::new(),
            bindings: PendingBindings::default(),
            pages: BTreeMap::new(),
            requests: Requests { in_flight: 0, writes_in_flight: BTreeSet::new(), max_writes_in_flight },
            active_profile: (0, Instant::now()),
            published: None,
            shutdown_started: None,
        }
    }

    /// Runs until the queue is closed, or until a shutdown has waited for the requests in flight.
    pub fn run(mut self) {
        let mut timeout = Duration::ZERO;
        while let Some(messages) = self.messages.drain(timeout) {
            for message in messages {
                self.handle(message);
            }
            timeout = Duration::ZERO;
            self.fire_timers();
            self.give_up_overdue_bindings();
            if let Some(since) = self.shutdown_started {
                if self.requests.in_flight == 0 || since.elapsed() > SHUTDOWN_GRACE {
                    return;
                }
            } else if self.run_next_step() {
                continue;
            }
            self.publish_metrics();
            timeout = self.time_to_next_timer();
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Event(mut event) => {
                self.apply_defaults(&mut event);
                let confirmed = self.bindings.confirmed_by(&event);
                self.forward(event);
                for (key, result) in confirmed {
                    self.complete(key, result);
                }
            }
            Message::Page { profile, action, objects } => {
                let mut objects = objects;
                objects.iter_mut().for_each(|object| self.restrict(object));
                let scheduler = &self.profiles[profile].scheduler;
                let objects = objects.into_iter().map(|object| deduplicated(scheduler, object));
                self.pages.entry((profile, action)).or_default().extend(objects);
            }
            Message::Listed { profile, action, kind, version } => {
                let objects = self.pages.remove(&(profile, action)).unwrap_or_default();
                self.observe(profile, Event::Listed { kind, objects, version });
            }
            Message::Done { profile, action, result } => {
                let key = (profile, action);
                self.requests.in_flight -= 1;
                self.pages.remove(&key);
                self.requests.writes_in_flight.remove(&key);
                let result = result.and_then(|result| self.bindings.answered(key, result, Instant::now()));
                if let Some(result) = result {
                    self.complete(key, result);
                }
            }
            Message::Stop => self.shutdown_started = Some(Instant::now()),
        }
    }

    fn complete(&mut self, (profile, action): ActionKey, result: ActionResult) {
        self.observe(profile, Event::ActionCompleted { action, result });
    }

    /// Passes an event to every profile that reads the kind.
    fn forward(&mut self, event: Event) {
        let kind = kind_of(&event);
        let readers = (0..self.profiles.len()).filter(|&profile| self.profiles[profile].kinds.contains(&kind));
        let readers: Vec<usize> = readers.collect();
        let Some((last, others)) = readers.split_last() else { return };
        for &profile in others {
            self.observe(profile, event.clone());
        }
        self.observe(*last, event);
    }

    /// Passes an event to a profile. A panic sets aside only the object at which it happens; the rest of a list is read again.
    fn observe(&mut self, profile: usize, event: Event) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let again = matches!(event, Event::Listed { .. }).then(|| event.clone());
            let scheduler = &mut self.profiles[profile].scheduler;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scheduler.observe(event, now()))) {
                self.metrics.panics.inc();
                // Without an object the cause is unknown: the process ends, and a restart is safe.
                let Some(object) = scheduler.recover_observe() else { resume_unwind(panic) };
                error!(%object, "panic while reading an object; it is set aside");
                next = again;
            }
        }
    }

    /// Applies the configuration of namespaces, and adds the defaults that the API leaves out.
    fn apply_defaults(&self, event: &mut Event) {
        let objects = match event {
            Event::Upserted(object) => std::slice::from_mut(object),
            Event::Listed { objects, .. } => objects.as_mut_slice(),
            Event::Deleted { .. } | Event::Unreadable { .. } | Event::TimerFired | Event::ActionCompleted { .. } => {
                return;
            }
        };
        objects.iter_mut().for_each(apply_api_defaults);
        objects.iter_mut().for_each(|object| self.restrict(object));
    }

    /// Labels the namespaces that the configuration protects, and hides the pending pods of namespaces that it does not manage.
    fn restrict(&self, object: &mut Object) {
        match object {
            Object::Namespace(namespace)
                if namespace.metadata.name.as_ref().is_some_and(|name| self.namespaces.is_protected(name)) =>
            {
                let labels = object.metadata_mut().labels.get_or_insert_default();
                labels.insert(PROTECTED.to_owned(), "true".to_owned());
            }
            Object::Pod(pod) => {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                if pod.node_name.is_none() && !self.namespaces.is_managed(namespace) {
                    Arc::make_mut(pod).spec_mut().scheduler_name = Some(UNMANAGED.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Reports overdue bindings as unknown, so that the scheduler reads the pod again.
    fn give_up_overdue_bindings(&mut self) {
        for (key, pod) in self.bindings.take_overdue(Instant::now()) {
            warn!(%pod, "binding succeeded, but the watch does not show it; the pod is read again");
            self.complete(key, ActionResult::Unknown);
        }
    }

    fn fire_timers(&mut self) {
        let now = now();
        while let Some((_, profile)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            self.observe(profile, Event::TimerFired);
        }
    }

    /// Runs one step of the active profile, or of the next one when its time slice is over. Returns whether another step may be possible at
    /// once. No decision is made while the maximum of writes is in flight, so that each decision uses the state at the time when its actions
    /// can be sent.
    fn run_next_step(&mut self) -> bool {
        if self.requests.writes_in_flight.len() >= self.requests.max_writes_in_flight {
            return false;
        }
        let (mut current, since) = self.active_profile;
        let single = self.profiles.len() == 1;
        let slice_over = !single && since.elapsed() > PROFILE_TIME_SLICE;
        if !slice_over && self.step(current) {
            return true;
        }
        if single {
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
            if self.step(current) {
                return true;
            }
        }
        self.active_profile = (current, Instant::now());
        slice_over
    }

    /// Runs one step of a profile, and returns whether there was one. A panic ends only the decision in which it happens.
    fn step(&mut self, profile: usize) -> bool {
        let began = Instant::now();
        let ProfileRuntime { scheduler, policy, .. } = &mut self.profiles[profile];
        let step = catch_unwind(AssertUnwindSafe(|| scheduler.step(now())));
        let step = match step {
            Ok(step) => step,
            Err(panic) => {
                self.metrics.panics.inc();
                if let Some(unit) = scheduler.recover(now()) {
                    error!(%unit, "panic while deciding; unit is retried in 60 s");
                    return false;
                }
                // Without a unit or an object the cause is unknown: the process ends, and a restart is safe.
                let Some(object) = scheduler.recover_rebuild() else { resume_unwind(panic) };
                error!(%object, "panic while reading an object; it is set aside");
                return true;
            }
        };
        let Some(step) = step else { return false };
        self.metrics.record_step(policy, &step, began.elapsed());
        self.dispatch(profile, step);
        true
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
                    self.complete((profile, id), ActionResult::Ok { version: 0 });
                    continue;
                }
                Action::EmitEvent { about, reason: EventReason::Refused, message, .. } => {
                    warn!(%about, message, "refused")
                }
                Action::Bind { pod, .. } => self.bindings.begin((profile, id), pod),
                _ => {}
            }
            if is_immediate_write(&action) {
                self.requests.writes_in_flight.insert((profile, id));
            }
            if self.actions.send(Dispatch { profile, id, action, uids }).is_ok() {
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
        EventObjectUids { regarding: uid(about), related: related.as_ref().and_then(uid) }
    }

    fn time_to_next_timer(&self) -> Duration {
        let timer = self.timers.first().map(|(at, _)| {
            Duration::from_micros(u64::try_from(at.0.saturating_sub(now().0)).unwrap_or(0).saturating_add(100))
        });
        timer.unwrap_or(PUBLISH_INTERVAL).min(PUBLISH_INTERVAL)
    }

    fn publish_metrics(&mut self) {
        if self.published.is_some_and(|last| last.elapsed() < PUBLISH_INTERVAL) {
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
        let mut quarantined = BTreeMap::new();
        for (labels, count) in self.profiles.iter().flat_map(|profile| profile.scheduler.quarantined()) {
            // The profiles read the same objects.
            let known = quarantined.entry(labels).or_default();
            *known = count.max(*known);
        }
        self.metrics.set_quarantined(quarantined);
        self.metrics.set_pending(pending);
        self.metrics.readiness.set_serving(self.profiles.iter().all(|profile| profile.scheduler.is_ready()));
    }
}

fn now() -> Timestamp {
    timestamp(jiff::Timestamp::now())
}

/// Whether an action changes an object as soon as a request is free. Conditions do not, because they are delayed, and evictions do not,
/// because a rate limit may delay them for minutes.
fn is_immediate_write(action: &Action) -> bool {
    let delayed = matches!(action, Action::SetCondition { .. } | Action::Evict { .. } | Action::SoftEvict { .. });
    action.changes().is_some() && !delayed
}

/// The scheduler's copy of the object if it has the same version, so that no object is in memory twice.
fn deduplicated(scheduler: &Scheduler, object: Object) -> Object {
    let ObjectKey { kind, name } = object.key();
    let is_same = |known: &Object| (known.uid(), known.version()) == (object.uid(), object.version());
    scheduler.observed(kind, &name).filter(is_same).unwrap_or(object)
}

fn kind_of(event: &Event) -> Kind {
    match event {
        Event::Upserted(object) => object.kind(),
        Event::Deleted { key, .. } => key.kind,
        Event::Unreadable { object, .. } => object.object.kind,
        Event::Listed { kind, .. } => *kind,
        Event::TimerFired | Event::ActionCompleted { .. } => unreachable!("a watch sends neither"),
    }
}

fn log(ProfileRuntime { scheduler, name: profile, .. }: &ProfileRuntime, step: &Step) {
    let Some(unit) = &step.unit else { return };
    match &step.outcome {
        StepOutcome::Housekeeping => {}
        StepOutcome::Bind { placement } => info!(%profile, %unit, pods = placement.len(), "scheduled"),
        StepOutcome::MarkVictims { victims, .. } => info!(%profile, %unit, victims = victims.len(), "marking victims"),
        StepOutcome::Evict { victims, placement } => {
            let names = victims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            // Victims in other namespaces show only the uid of their preemptor.
            let uid = scheduler.uid(unit).unwrap_or_default();
            info!(%profile, %unit, uid, pods = placement.len(), victims = names, "preempting");
        }
        StepOutcome::Wait { reason, why } => info!(%profile, %unit, law = reason.as_str(), why, "waiting"),
        StepOutcome::Unschedulable { reason, why } => {
            info!(%profile, %unit, law = reason.as_str(), why, "unschedulable");
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use reprieve_api::ProblemCode;
    use reprieve_api::meta::NamespacedName;
    use reprieve_api::pod::Pod;
    use reprieve_engine::policy::Policy;
    use reprieve_scheduler::Bug;
    use reprieve_scheduler::action::ActionId;
    use serde_json::json;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// An event loop, and the receiver of its actions.
    struct Fixture {
        event_loop: SchedulerLoop,
        actions: UnboundedReceiver<Dispatch>,
        pods: Vec<Object>,
        /// The dispatched bindings: the action and the pod.
        bindings: Vec<(ActionId, String)>,
    }

    impl Fixture {
        /// One node, these pods, and a limit of writes in flight. All objects are listed, and the first bindings are dispatched.
        fn begin(bug: Option<Bug>, pods: &[&str], max_writes: usize) -> Self {
            let scheduler = Scheduler::new("reprieve", Policy::Kubernetes(Default::default())).with_bug(bug);
            let kinds = BTreeSet::from([Kind::Node, Kind::Pod]);
            let profile = ProfileRuntime { scheduler, kinds, policy: "Kubernetes", name: "reprieve".to_owned() };
            let (messages, (sender, actions)) = (Arc::default(), unbounded_channel());
            let metrics = Arc::new(Metrics::new());
            let event_loop =
                SchedulerLoop::new(vec![profile], messages, sender, metrics, None, Namespaces::default(), max_writes);
            let pods = pods.iter().map(|name| pod(name)).collect();
            let mut fixture = Self { event_loop, actions, pods, bindings: Vec::new() };
            for kind in [Kind::Node, Kind::Pod] {
                fixture.list(kind);
            }
            let end = Instant::now() + Duration::from_secs(30);
            while fixture.bindings.is_empty() {
                assert!(Instant::now() < end, "no pod is bound");
                fixture.run_steps();
                std::thread::sleep(Duration::from_millis(20));
            }
            fixture
        }

        fn list(&mut self, kind: Kind) {
            let objects = match kind {
                Kind::Node => vec![node()],
                Kind::Pod => self.pods.clone(),
                _ => Vec::new(),
            };
            self.event_loop.handle(Message::Event(Event::Listed { kind, objects, version: 1 }));
        }

        /// Runs all possible steps, remembers the bindings, and answers all other actions.
        fn run_steps(&mut self) {
            self.event_loop.fire_timers();
            while self.event_loop.run_next_step() {}
            while let Ok(Dispatch { id, action, .. }) = self.actions.try_recv() {
                match action {
                    Action::Bind { pod, .. } => self.bindings.push((id, pod.name.name)),
                    Action::Relist { kind } => {
                        let pages = if kind == Kind::Pod { self.pods.clone() } else { Vec::new() };
                        for object in pages {
                            self.event_loop.handle(Message::Page { profile: 0, action: id, objects: vec![object] });
                        }
                        self.event_loop.handle(Message::Listed { profile: 0, action: id, kind, version: 1 });
                        self.done(id);
                    }
                    _ => self.done(id),
                }
            }
        }

        fn done(&mut self, action: ActionId) {
            let result = Some(ActionResult::Ok { version: 0 });
            self.event_loop.handle(Message::Done { profile: 0, action, result });
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
    fn no_decision_is_made_at_the_limit_of_writes_in_flight() {
        let mut fixture = Fixture::begin(None, &["a", "b", "c", "d"], 2);
        fixture.run_steps();
        assert_eq!(fixture.bound(), ["a", "b"]);
        fixture.done(fixture.bindings[0].0);
        fixture.run_steps();
        assert_eq!(fixture.bound(), ["a", "b", "c"]);
    }

    #[test]
    fn listed_objects_share_memory_with_known_ones() {
        let mut fixture = Fixture::begin(None, &["a", "b"], 10);
        let list = |fixture: &mut Fixture, objects: Vec<Object>| {
            fixture.event_loop.handle(Message::Page { profile: 0, action: ActionId(99), objects });
            fixture.event_loop.pages[&(0, ActionId(99))].last().cloned()
        };
        let scheduler = &fixture.event_loop.profiles[0].scheduler;
        let known = scheduler.observed(Kind::Pod, &NamespacedName::new("default", "a")).expect("the pod is known");
        let (Object::Pod(listed), Object::Pod(known)) = (list(&mut fixture, vec![pod("a")]).expect("a pod"), known)
        else {
            panic!("both are pods")
        };
        assert!(Arc::ptr_eq(&listed, &known));
        let other = list(&mut fixture, vec![pod("other")]).expect("a pod");
        assert_eq!(other.key().name, NamespacedName::new("default", "other"));
        fixture.event_loop.requests.in_flight += 1;
        fixture.done(ActionId(99));
        assert!(fixture.event_loop.pages.is_empty(), "the incomplete list is dropped");
    }

    #[test]
    fn panic_about_one_object_leaves_the_others_alone() {
        let mut fixture = Fixture::begin(Some(Bug::PanicInObserve), &["before", "fatal", "other"], 10);
        fixture.run_steps();
        assert_eq!(fixture.bound(), ["before", "other"]);
        let Fixture { event_loop, .. } = &mut fixture;
        assert_eq!(event_loop.metrics.panics.get(), 1);
        let quarantined = event_loop.profiles[0].scheduler.quarantined();
        assert_eq!(quarantined, BTreeMap::from([((Kind::Pod, ProblemCode::InternalError), 1)]));
        event_loop.publish_metrics();
        let line = "reprieve_quarantined{kind=\"Pod\",reason=\"InternalError\"} 1";
        assert!(event_loop.metrics.text().contains(line), "{}", event_loop.metrics.text());
    }

    #[test]
    fn panic_while_the_snapshot_is_rebuilt_leaves_the_others_alone() {
        let mut fixture = Fixture::begin(Some(Bug::PanicInRebuild), &["before", "fatal", "other"], 10);
        fixture.run_steps();
        assert_eq!(fixture.bound(), ["before", "other"]);
        let Fixture { event_loop, .. } = &fixture;
        assert_eq!(event_loop.metrics.panics.get(), 1);
        let quarantined = event_loop.profiles[0].scheduler.quarantined();
        assert_eq!(quarantined, BTreeMap::from([((Kind::Pod, ProblemCode::InternalError), 1)]));
    }

    #[test]
    fn pods_of_unmanaged_namespaces_are_not_scheduled() {
        let mut fixture = Fixture::begin(None, &["a"], 10);
        fixture.event_loop.namespaces =
            Namespaces { managed: Some(["other".to_owned()].into()), ..Namespaces::default() };
        let mut managed = pod("c");
        managed.metadata_mut().namespace = Some("other".to_owned());
        for mut object in [pod("b"), managed] {
            object.metadata_mut().resource_version = Some("2".to_owned());
            fixture.event_loop.handle(Message::Event(Event::Upserted(object)));
        }
        fixture.run_steps();
        assert_eq!(fixture.bound(), ["a", "c"]);
        assert!(fixture.event_loop.namespaces.is_protected("default"), "what is not managed has no victims");
    }

    #[test]
    fn panic_in_one_decision_leaves_the_others_alone() {
        let mut fixture = Fixture::begin(Some(Bug::Panic), &["fatal", "other"], 10);
        fixture.run_steps();
        assert_eq!(fixture.bound(), ["other"]);
        assert_eq!(fixture.event_loop.metrics.panics.get(), 1);
    }
}
