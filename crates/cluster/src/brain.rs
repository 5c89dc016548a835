//! The thread on which the schedulers live: it hears what happened, lets them take their steps, and hands out what is to be done.
//!
//! With several profiles only one acts at a time: each sees what another has done before it decides anything itself.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprieve_api::kinds::{Key, Kind, Object};
use reprieve_engine::Timestamp;
use reprieve_loader::protected::PROTECTED;
use reprieve_loader::time::timestamp;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, Verdict};
use tracing::{error, info, warn};

use crate::audit::Audit;
use crate::bindings::Bindings;
use crate::hands::Uids;
use crate::inbox::Inbox;
use crate::messages::Input;
use crate::metrics::{Metrics, PendingLabels};
use crate::slim::spell_out;

/// How long a profile acts while others want to.
const TURN: Duration = Duration::from_millis(200);
/// How often it is said how many wait.
const PUBLISHED_EVERY: Duration = Duration::from_secs(1);
/// How long what is under way at the end is waited for.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// An action to be carried out.
pub struct Order {
    pub profile: usize,
    pub id: ActionId,
    pub action: Action,
    pub uids: Uids,
}

/// A scheduler, and which kinds it reads.
pub struct Profile {
    pub scheduler: Scheduler,
    pub kinds: BTreeSet<Kind>,
    pub policy: &'static str,
    pub name: String,
}

/// The thread's state.
pub struct Brain {
    profiles: Vec<Profile>,
    inputs: Arc<Inbox>,
    orders: tokio::sync::mpsc::UnboundedSender<Order>,
    metrics: Arc<Metrics>,
    audit: Option<Audit>,
    /// Namespaces in which nobody is taken, besides those that say so themselves.
    protected: BTreeSet<String>,
    timers: BTreeSet<(Timestamp, usize)>,
    bindings: Bindings,
    /// By list that was asked for: what came of it so far.
    pages: BTreeMap<(usize, ActionId), Vec<Object>>,
    requests: Requests,
    turn: (usize, Instant),
    published: Option<Instant>,
    stopping: Option<Instant>,
}

/// The requests that were ordered and not answered yet.
struct Requests {
    /// How many there are.
    under_way: usize,
    /// Those of them that wait for nothing but a free request.
    deeds: BTreeSet<(usize, ActionId)>,
    /// While there are this many of the latter nothing more is decided.
    most_deeds: usize,
}

impl Brain {
    pub fn new(
        mut profiles: Vec<Profile>,
        inputs: Arc<Inbox>,
        orders: tokio::sync::mpsc::UnboundedSender<Order>,
        metrics: Arc<Metrics>,
        audit: Option<Audit>,
        protected: BTreeSet<String>,
        most_deeds: usize,
    ) -> Self {
        for Profile { scheduler, kinds, .. } in &mut profiles {
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
            bindings: Bindings::default(),
            pages: BTreeMap::new(),
            requests: Requests { under_way: 0, deeds: BTreeSet::new(), most_deeds },
            turn: (0, Instant::now()),
            published: None,
            stopping: None,
        }
    }

    /// Lives until it is told to stop, and what is under way is done.
    pub fn live(mut self) {
        let mut patience = Duration::ZERO;
        while let Some(inputs) = self.inputs.take(patience) {
            for input in inputs {
                self.hear(input);
            }
            patience = Duration::ZERO;
            self.fire_timers();
            self.give_up_bindings();
            if let Some(since) = self.stopping {
                if self.requests.under_way == 0 || since.elapsed() > LAST_WORDS {
                    return;
                }
            } else if self.take_steps() {
                continue;
            }
            self.publish();
            patience = self.nap();
        }
    }

    fn hear(&mut self, input: Input) {
        match input {
            Input::Event(mut event) => {
                self.complete(&mut event);
                let shown = self.bindings.shown_by(&event);
                self.tell(event);
                for ((profile, action), result) in shown {
                    self.profiles[profile].scheduler.observe(Event::Done { action, result }, now());
                }
            }
            Input::Page { profile, action, objects } => {
                let scheduler = &self.profiles[profile].scheduler;
                let known = objects.into_iter().map(|object| as_known(scheduler, object));
                self.pages.entry((profile, action)).or_default().extend(known);
            }
            Input::Listed { profile, action, kind, version } => {
                let objects = self.pages.remove(&(profile, action)).unwrap_or_default();
                self.profiles[profile].scheduler.observe(Event::Listed { kind, objects, version }, now());
            }
            Input::Done { profile, action, result } => {
                self.requests.under_way -= 1;
                self.pages.remove(&(profile, action));
                self.requests.deeds.remove(&(profile, action));
                let shown = result.and_then(|result| self.bindings.answered((profile, action), result, Instant::now()));
                if let Some(result) = shown {
                    self.profiles[profile].scheduler.observe(Event::Done { action, result }, now());
                }
            }
            Input::Stop => self.stopping = Some(Instant::now()),
        }
    }

    /// Tells every profile that reads such objects.
    fn tell(&mut self, event: Event) {
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
    fn complete(&self, event: &mut Event) {
        let objects = match event {
            Event::Changed(object) => std::slice::from_mut(object),
            Event::Listed { objects, .. } => objects.as_mut_slice(),
            Event::Gone { .. } | Event::Timer | Event::Done { .. } => return,
        };
        for object in objects {
            spell_out(object);
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
            let event = Event::Done { action, result: ActionResult::TimedOut };
            self.profiles[profile].scheduler.observe(event, now());
        }
    }

    fn fire_timers(&mut self) {
        let now = now();
        while let Some((_, profile)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            self.profiles[profile].scheduler.observe(Event::Timer, now);
        }
    }

    /// One step of the profile whose turn it is; whether there was anything to do. Nothing is decided before it can be done: who was first
    /// is helped first, and the rest is decided by what is so then.
    fn take_steps(&mut self) -> bool {
        if self.requests.deeds.len() >= self.requests.most_deeds {
            return false;
        }
        let (mut current, since) = self.turn;
        let alone = self.profiles.len() == 1;
        let spent = !alone && since.elapsed() > TURN;
        if !spent && let Some(step) = self.step(current) {
            self.carry_on(current, step);
            return true;
        }
        if alone {
            return false;
        }
        if let Some(step) = self.profiles[current].scheduler.follow_up() {
            self.carry_on(current, step);
            return true;
        }
        for _ in 1..self.profiles.len() {
            if !self.profiles[current].scheduler.is_quiet() {
                return false;
            }
            current = (current + 1) % self.profiles.len();
            self.turn = (current, Instant::now());
            if let Some(step) = self.step(current) {
                self.carry_on(current, step);
                return true;
            }
        }
        self.turn = (current, Instant::now());
        spent
    }

    /// One step of a profile. A fault in a decision takes down that decision.
    fn step(&mut self, profile: usize) -> Option<Step> {
        let began = Instant::now();
        let Profile { scheduler, policy, .. } = &mut self.profiles[profile];
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

    fn carry_on(&mut self, profile: usize, step: Step) {
        log(&self.profiles[profile], &step);
        if let (Some(audit), Some(record)) = (&mut self.audit, &step.record) {
            audit.write(record);
        }
        for (id, action) in step.actions {
            let uids = self.uids(profile, &action);
            match &action {
                Action::Timer { at } => {
                    self.timers.insert((*at, profile));
                    let done = Event::Done { action: id, result: ActionResult::Ok { version: 0 } };
                    self.profiles[profile].scheduler.observe(done, now());
                    continue;
                }
                Action::Record { about, reason: "Refused", message, .. } => warn!(%about, message, "refused"),
                Action::Bind { pod, .. } => {
                    self.bindings.begin((profile, id), pod);
                }
                _ => {}
            }
            if is_deed(&action) {
                self.requests.deeds.insert((profile, id));
            }
            if self.orders.send(Order { profile, id, action, uids }).is_ok() {
                self.requests.under_way += 1;
            }
        }
    }

    fn uids(&self, profile: usize, action: &Action) -> Uids {
        let Action::Record { about, related, .. } = action else { return Uids::default() };
        let live = self.profiles[profile].scheduler.live();
        let uid = |key: &Key| match key.kind {
            Kind::Pod => live.pod(&key.name)?.metadata.uid.clone(),
            _ => live.get(key)?.metadata().uid.clone(),
        };
        Uids { about: uid(about), related: related.as_ref().and_then(uid) }
    }

    /// How long nothing has to be done unless something is heard.
    fn nap(&self) -> Duration {
        let timer = self.timers.first().map(|(at, _)| {
            Duration::from_micros(u64::try_from(at.0.saturating_sub(now().0)).unwrap_or(0).saturating_add(100))
        });
        timer.unwrap_or(PUBLISHED_EVERY).min(PUBLISHED_EVERY)
    }

    /// Says how many wait, and why.
    fn publish(&mut self) {
        if self.published.is_some_and(|last| last.elapsed() < PUBLISHED_EVERY) {
            return;
        }
        self.published = Some(Instant::now());
        let mut pending: BTreeMap<PendingLabels, i64> = BTreeMap::new();
        for Profile { scheduler, name, .. } in &self.profiles {
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
    let waits = matches!(action, Action::Condition { .. } | Action::Evict { .. } | Action::SoftEvict { .. });
    action.changes().is_some() && !waits
}

/// The object, or what is known of it already where that is the same: nothing is held twice.
fn as_known(scheduler: &Scheduler, object: Object) -> Object {
    let Key { kind, name } = object.key();
    let is_same = |known: &Object| (known.uid(), known.version()) == (object.uid(), object.version());
    scheduler.known(kind, &name).filter(is_same).unwrap_or(object)
}

fn kind_of(event: &Event) -> Kind {
    match event {
        Event::Changed(object) => object.kind(),
        Event::Gone { key, .. } => key.kind,
        Event::Listed { kind, .. } => *kind,
        Event::Timer | Event::Done { .. } => unreachable!("the cluster tells neither"),
    }
}

fn log(profile: &Profile, step: &Step) {
    let Some(unit) = &step.unit else { return };
    let profile = &profile.name;
    match &step.verdict {
        Verdict::FollowUp => {}
        Verdict::Schedule { placement } => info!(%profile, %unit, pods = placement.len(), "scheduled"),
        Verdict::Prepare { victims, .. } => {
            info!(%profile, %unit, victims = victims.len(), "a preemption is being prepared");
        }
        Verdict::Preempt { victims, placement } => {
            let names = victims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            info!(%profile, %unit, pods = placement.len(), victims = names, "preempts");
        }
        Verdict::Wait { reason, why } => info!(%profile, %unit, law = reason.as_str(), why, "waits"),
        Verdict::Unschedulable { reason, why } => {
            info!(%profile, %unit, law = reason.as_str(), why, "cannot be scheduled");
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use reprieve_api::meta::FullName;
    use reprieve_api::pod::Pod;
    use reprieve_engine::policy::Policy;
    use reprieve_scheduler::Bug;
    use serde_json::json;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// A brain, and whoever carries out its orders.
    struct Life {
        brain: Brain,
        orders: UnboundedReceiver<Order>,
        pods: Vec<Object>,
        /// The bindings that were ordered: the action and the pod.
        bindings: Vec<(ActionId, String)>,
    }

    impl Life {
        /// One node, these pods, and at most so many deeds at once. Everything was listed, and the first bindings are ordered.
        fn begin(bug: Option<Bug>, pods: &[&str], most_deeds: usize) -> Self {
            let scheduler = Scheduler::new("reprieve", Policy::Kubernetes(Default::default())).with_bug(bug);
            let kinds = BTreeSet::from([Kind::Node, Kind::Pod]);
            let profile = Profile { scheduler, kinds, policy: "Kubernetes", name: "reprieve".to_owned() };
            let (inputs, (sender, orders)) = (Arc::default(), unbounded_channel());
            let metrics = Arc::new(Metrics::new());
            let brain = Brain::new(vec![profile], inputs, sender, metrics, None, BTreeSet::new(), most_deeds);
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
            self.brain.hear(Input::Event(Event::Listed { kind, objects, version: 1 }));
        }

        /// All steps that can be taken; what is ordered is noted, and lists are made.
        fn go_on(&mut self) {
            self.brain.fire_timers();
            while self.brain.take_steps() {}
            while let Ok(Order { id, action, .. }) = self.orders.try_recv() {
                match action {
                    Action::Bind { pod, .. } => self.bindings.push((id, pod.name.name)),
                    Action::List { kind } => {
                        let pages = if kind == Kind::Pod { self.pods.clone() } else { Vec::new() };
                        for object in pages {
                            self.brain.hear(Input::Page { profile: 0, action: id, objects: vec![object] });
                        }
                        self.brain.hear(Input::Listed { profile: 0, action: id, kind, version: 1 });
                        self.done(id);
                    }
                    _ => self.done(id),
                }
            }
        }

        fn done(&mut self, action: ActionId) {
            let result = Some(ActionResult::Ok { version: 0 });
            self.brain.hear(Input::Done { profile: 0, action, result });
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
        let mut life = Life::begin(None, &["a", "b", "c", "d"], 2);
        life.go_on();
        assert_eq!(life.bound(), ["a", "b"]);
        life.done(life.bindings[0].0);
        life.go_on();
        assert_eq!(life.bound(), ["a", "b", "c"]);
    }

    #[test]
    fn of_a_list_only_what_is_new_is_held() {
        let mut life = Life::begin(None, &["a", "b"], 10);
        let list = |life: &mut Life, objects: Vec<Object>| {
            life.brain.hear(Input::Page { profile: 0, action: ActionId(99), objects });
            life.brain.pages[&(0, ActionId(99))].last().cloned()
        };
        let scheduler = &life.brain.profiles[0].scheduler;
        let known = scheduler.known(Kind::Pod, &FullName::new("default", "a")).expect("it is known");
        let (Object::Pod(held), Object::Pod(known)) = (list(&mut life, vec![pod("a")]).expect("a pod"), known) else {
            panic!("they are pods")
        };
        assert!(Arc::ptr_eq(&held, &known));
        let other = list(&mut life, vec![pod("other")]).expect("a pod");
        assert_eq!(other.key().name, FullName::new("default", "other"));
        life.brain.requests.under_way += 1;
        life.done(ActionId(99));
        assert!(life.brain.pages.is_empty(), "a list that was not finished is forgotten");
    }

    #[test]
    fn a_fault_in_one_decision_leaves_the_others_alone() {
        let mut life = Life::begin(Some(Bug::Panic), &["fatal", "other"], 10);
        life.go_on();
        assert_eq!(life.bound(), ["other"]);
        assert_eq!(life.brain.metrics.faults.get(), 1);
    }
}
