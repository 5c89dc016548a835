//! A scheduler's life, one event at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::{FullName, Objects};
use reprieve_objects::read::documents;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::change::{say_of_group, say_of_pod};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, Verdict, mark, unmark};

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 4, pods: 10}}
";

fn pod(name: &str, priority: i32, cpu: i32, node: Option<&str>) -> Object {
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

fn read(text: &str) -> Vec<Object> {
    let mut objects = Objects::default();
    for document in documents("test", text) {
        document.read(&mut objects).unwrap_or_else(|error| panic!("{error}"));
    }
    objects.into_each()
}

/// A scheduler and the objects as the API has them.
struct Life {
    scheduler: Scheduler,
    objects: BTreeMap<Key, Object>,
    version: u64,
    now: Timestamp,
}

impl Life {
    fn new(objects: Vec<Object>) -> Self {
        Self::of(fresh(), objects)
    }

    fn of(scheduler: Scheduler, objects: Vec<Object>) -> Self {
        let now = Timestamp(1_767_229_200_000_000);
        let mut life = Self { scheduler, objects: BTreeMap::new(), version: 0, now };
        for object in objects {
            life.store(object);
        }
        life.settle();
        life
    }

    /// Starts the scheduler anew.
    fn restart(&mut self) {
        self.scheduler = fresh();
        self.settle();
    }

    /// Lets it list everything, wait for what others may have asked for, and list the pods again.
    fn settle(&mut self) {
        for &kind in Kind::ALL {
            self.list(kind);
        }
        assert!(self.scheduler.step(self.now).is_some(), "it asks for a timer");
        assert!(self.scheduler.step(self.now).is_none(), "it decides nothing before");
        self.now = self.now.plus_seconds(1);
        self.scheduler.observe(Event::Timer, self.now);
        let step = self.scheduler.step(self.now).expect("it lists the pods again");
        assert!(matches!(step.actions[0].1, Action::List { kind: Kind::Pod }));
        self.list(Kind::Pod);
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

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let Object::Pod(pod) = self.objects[&key(name)].clone() else { panic!("{name} is a pod") };
        let mut pod = Pod::clone(&pod);
        change(&mut pod);
        let object = self.store(Object::from(pod));
        self.scheduler.observe(Event::Changed(object), self.now);
    }

    fn step(&mut self) -> Step {
        self.scheduler.step(self.now).expect("there is something to do")
    }

    fn answer(&mut self, action: ActionId, result: ActionResult) {
        self.scheduler.observe(Event::Done { action, result }, self.now);
    }

    /// All that the step asks for about pods works, and is seen.
    fn works(&mut self, step: &Step) {
        for (id, action) in &step.actions {
            if let Action::Condition { kind: Kind::PodGroup, object, said } = action {
                let key = Key::new(Kind::PodGroup, object.name.clone());
                let Object::PodGroup(group) = self.objects[&key].clone() else { panic!("it is a group") };
                let mut group = PodGroup::clone(&group);
                say_of_group(&mut group, said, self.now);
                let object = self.store(Object::from(group));
                self.scheduler.observe(Event::Changed(object), self.now);
                let version = self.version;
                self.answer(*id, ActionResult::Ok { version });
            }
            let Some(target) = action.pod().cloned() else { continue };
            self.change(&target.name.name, |pod| match action {
                Action::Bind { node, .. } => pod.spec.get_or_insert_default().node_name = Some(node.clone()),
                Action::Nominate { node, .. } => pod.status.get_or_insert_default().nominated_node_name = node.clone(),
                Action::Mark { preemptor, .. } => mark(pod, preemptor),
                Action::Unmark { .. } => unmark(pod),
                Action::Condition { said, .. } => say_of_pod(pod, said, Timestamp(0)),
                Action::Evict { .. } => pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone(),
                _ => {}
            });
            let version = self.version;
            self.answer(*id, ActionResult::Ok { version });
        }
    }

    fn goes(&mut self, name: &str) {
        self.version += 1;
        self.objects.remove(&key(name));
        self.scheduler.observe(Event::Gone { key: key(name), version: self.version }, self.now);
    }
}

fn fresh() -> Scheduler {
    Scheduler::new("reprieve", Policy::Kubernetes(Kubernetes::default()))
}

fn key(pod: &str) -> Key {
    Key::new(Kind::Pod, FullName::new("default", pod))
}

fn evicted(step: &Step) -> Vec<&str> {
    let names = step.actions.iter().filter_map(|(_, action)| match action {
        Action::Evict { pod } => Some(pod.name.name.as_str()),
        _ => None,
    });
    names.collect()
}

/// What a step records about which object and another, and with which words.
fn recorded(step: &Step) -> Vec<(String, String)> {
    let records = step.actions.iter().filter_map(|(_, action)| match action {
        Action::Record { about, related: Some(related), message, .. } => {
            Some((format!("{} {}", about.name.name, related.name.name), message.clone()))
        }
        _ => None,
    });
    records.collect()
}

/// What a step says of which object.
fn said(step: &Step) -> Vec<String> {
    let conditions = step.actions.iter().filter_map(|(_, action)| match action {
        Action::Condition { object, said, .. } => {
            let law = said.message.split(':').next().unwrap_or_default();
            Some(format!("{} {}={} {} {law}", object.name.name, said.type_, said.holds, said.reason))
        }
        _ => None,
    });
    conditions.collect()
}

fn with(pods: Vec<Object>) -> Vec<Object> {
    read(NODE).into_iter().chain(pods).collect()
}

/// A pod of the group `gang`.
fn member(name: &str) -> Object {
    let Object::Pod(pod) = pod(name, 0, 1, None) else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    let spec = pod.spec.get_or_insert_default();
    spec.scheduling_group.get_or_insert_default().pod_group_name = Some("gang".to_owned());
    Object::from(pod)
}

#[test]
fn what_fits_is_bound() {
    let mut life = Life::new(with(vec![pod("a", 0, 4, None)]));
    let step = life.step();
    assert!(matches!(&step.verdict, Verdict::Schedule { placement } if placement.len() == 1));
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none());
    assert_eq!(life.scheduler.waiting().count(), 0);
}

#[test]
fn victims_are_told_before_they_are_evicted_and_waited_for_after() {
    let mut life = Life::new(with(vec![pod("low", 0, 3, Some("node")), pod("high", 10, 3, None)]));
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Prepare { .. }), "{:?}", step.verdict);
    assert_eq!(evicted(&step), [""; 0]);
    life.works(&step);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Preempt { .. }), "{:?}", step.verdict);
    assert_eq!(evicted(&step), ["low"]);
    life.works(&step);
    assert_eq!(recorded(&life.step()).len(), 1, "it worked");
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Wait { law: "Underway", .. }), "{:?}", step.verdict);
    life.goes("low");
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Schedule { .. }), "{:?}", step.verdict);
}

/// Each victim that goes says for whom it yields, and the preemptor once who is to.
#[test]
fn a_preemption_is_recorded_on_both_sides() {
    let lows = (0..4).map(|at| pod(&format!("low-{at}"), 0, 1, Some("node")));
    let mut life = Life::new(with(lows.chain([pod("high", 10, 3, None)]).collect()));
    let prepared = life.step();
    life.works(&prepared);
    let step = life.step();
    let evictions: Vec<(ActionId, String)> = step
        .actions
        .iter()
        .filter_map(|(id, action)| match action {
            Action::Evict { pod } => Some((*id, pod.name.name.clone())),
            _ => None,
        })
        .collect();
    let [first, second, third] = evictions.as_slice() else { panic!("three yield: {evictions:?}") };
    let own = recorded(&step);
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0].0, format!("high {}", first.1));
    assert_eq!(own[0].1.matches(" yields for it: its priority 0 is below 10").count(), 3, "{own:?}");
    life.answer(first.0, ActionResult::Ok { version: 90 });
    life.answer(second.0, ActionResult::Conflict);
    life.answer(third.0, ActionResult::Ok { version: 91 });
    let why = "preempted for Pod default/high: its priority 0 is below 10";
    let told = [first, third].map(|(_, name)| (format!("{name} high"), why.to_owned()));
    assert_eq!(recorded(&life.step()), told, "who was not evicted does not yield");
}

#[test]
fn one_that_is_started_anew_goes_on_without_a_second_victim() {
    let pods = vec![pod("low-1", 0, 2, Some("node")), pod("low-2", 0, 2, Some("node")), pod("high", 10, 2, None)];
    let mut life = Life::new(with(pods));
    for _ in 0..2 {
        let step = life.step();
        life.works(&step);
    }
    life.restart();
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Wait { law: "Underway", .. }), "{:?}", step.verdict);
    assert_eq!(evicted(&step), [""; 0]);
}

#[test]
fn an_eviction_of_which_nothing_was_heard_is_looked_into() {
    let mut life = Life::new(with(vec![pod("low", 0, 3, Some("node")), pod("high", 10, 3, None)]));
    let step = life.step();
    life.works(&step);
    let step = life.step();
    let evictions = step.actions.iter().filter(|(_, action)| matches!(action, Action::Evict { .. }));
    let ids: Vec<ActionId> = evictions.map(|(id, _)| *id).collect();
    life.answer(ids[0], ActionResult::TimedOut);
    let step = life.step();
    let (id, action) = &step.actions[0];
    assert!(matches!(action, Action::Read { key: read } if *read == key("low")), "{action:?}");
    let low = life.objects[&key("low")].clone();
    life.answer(*id, ActionResult::Read(low));
    let step = life.step();
    assert_eq!(evicted(&step), ["low"], "it had not worked, so it is asked for again");
}

#[test]
fn what_is_late_or_comes_twice_changes_nothing() {
    let mut life = Life::new(with(vec![pod("a", 0, 4, None)]));
    let early = life.objects[&key("a")].clone();
    let step = life.step();
    life.works(&step);
    life.scheduler.observe(Event::Changed(early.clone()), life.now);
    assert!(life.scheduler.step(life.now).is_none(), "an old state of the pod is ignored");
    life.goes("a");
    life.scheduler.observe(Event::Changed(early), life.now);
    assert!(life.scheduler.step(life.now).is_none(), "so is one of a pod that is gone");
}

#[test]
fn who_cannot_be_scheduled_does_not_block_those_behind() {
    let mut life = Life::new(with(vec![pod("huge", 10, 40, None), pod("small", 0, 1, None)]));
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Unschedulable { .. }), "{:?}", step.verdict);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Schedule { .. }), "{:?}", step.verdict);
}

#[test]
fn one_speaks_for_all_that_are_like_it() {
    let high = pod("high", 100, 3, Some("node"));
    let low = pod("low", 0, 1, Some("node"));
    let waiting = ["a", "b", "c"].map(|name| pod(name, 10, 2, None));
    let mut life = Life::new(with([high, low].into_iter().chain(waiting).collect()));
    let decided = |life: &mut Life| {
        let step = life.step();
        (step.unit.as_ref().map(ToString::to_string), matches!(step.verdict, Verdict::Unschedulable { .. }))
    };
    assert_eq!(decided(&mut life), (Some("Pod default/a".to_owned()), true));
    let others = life.scheduler.step(life.now).expect("b and c are told");
    assert!(others.unit.is_none() && others.actions.len() == 2, "they need not ask: {others:?}");
    assert_eq!(life.scheduler.waiting().filter(|(_, why)| why.contains("no lawful set of victims")).count(), 3);

    life.goes("low");
    assert!(life.scheduler.step(life.now).is_none(), "they could have taken it, and it was not enough");

    life.goes("high");
    for name in ["a", "b"] {
        assert_eq!(decided(&mut life), (Some(format!("Pod default/{name}")), false));
    }
    assert_eq!(decided(&mut life), (Some("Pod default/c".to_owned()), true));
    assert!(life.scheduler.step(life.now).is_none());
}

#[test]
fn who_waits_to_land_minds_only_what_happens_there() {
    let nodes = ["node", "other"].map(|name| read(&NODE.replace("name: node", &format!("name: {name}"))).remove(0));
    let pods = vec![
        pod("low", 0, 4, Some("node")),
        pod("high", 50, 3, Some("other")),
        pod("small", 50, 1, Some("other")),
        pod("a", 10, 4, None),
    ];
    let mut life = Life::new(nodes.into_iter().chain(pods).collect());
    for _ in 0..2 {
        let step = life.step();
        life.works(&step);
    }
    assert_eq!(recorded(&life.step()).len(), 1, "low yields");
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Wait { law: "Underway", .. }), "{:?}", step.verdict);
    life.goes("small");
    assert!(life.scheduler.step(life.now).is_none(), "there is no room for it there");
    life.goes("high");
    let step = life.step();
    assert!(
        matches!(&step.verdict, Verdict::Schedule { placement } if placement[0].1 == "other"),
        "{:?}",
        step.verdict
    );
}

#[test]
fn a_gang_enters_when_its_minimum_is_there() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
";
    let objects = with(read(group).into_iter().chain([member("one")]).collect());
    let mut life = Life::new(objects);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Wait { law: "Incomplete", .. }), "{:?}", step.verdict);
    assert!(life.scheduler.step(life.now).is_none());
    let second = life.store(member("two"));
    life.scheduler.observe(Event::Changed(second), life.now);
    let step = life.step();
    assert!(matches!(&step.verdict, Verdict::Schedule { placement } if placement.len() == 2), "{:?}", step.verdict);
}

#[test]
fn nobody_is_evicted_on_a_word_that_was_given_to_another() {
    let pods = vec![pod("low", 0, 4, Some("node")), pod("first", 10, 2, None), pod("second", 10, 2, None)];
    let mut life = Life::new(with(pods));
    let first = life.step();
    assert!(matches!(first.verdict, Verdict::Prepare { .. }), "{:?}", first.verdict);
    let second = life.step();
    assert!(matches!(second.verdict, Verdict::Prepare { .. }), "{:?}", second.verdict);
    life.works(&second);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Wait { law: "Underway", .. }), "{:?}", step.verdict);
    life.works(&first);
    let step = life.step();
    assert_eq!(step.unit.as_ref().map(ToString::to_string).as_deref(), Some("Pod default/first"));
    assert_eq!(evicted(&step), ["low"]);
}

#[test]
fn of_a_gang_that_yields_who_is_on_no_node_is_not_evicted() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {all: {}}}
";
    let on_node = |name: &str, node: Option<&str>| {
        let Object::Pod(pod) = member(name) else { panic!("it is a pod") };
        let mut pod = Pod::clone(&pod);
        pod.spec.get_or_insert_default().node_name = node.map(str::to_owned);
        mark(&mut pod, "Pod default/high");
        Object::from(pod)
    };
    let pods = vec![on_node("bound", Some("node")), on_node("lost", None), pod("high", 10, 4, None)];
    let mut life = Life::new(with(read(group).into_iter().chain(pods).collect()));
    let mut all = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        all.extend(evicted(&step).into_iter().map(str::to_owned));
        life.works(&step);
    }
    assert_eq!(all, ["bound"]);
}

#[test]
fn who_waits_for_somebody_who_leaves_anyway_takes_nobody_for_a_later_one() {
    let pods = vec![pod("low-1", 0, 2, Some("node")), pod("low-2", 5, 2, Some("node")), pod("high", 10, 2, None)];
    let mut life = Life::new(with(pods));
    life.change("low-1", |pod| pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone());
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Prepare { .. }), "{:?}", step.verdict);
    assert!(!step.actions.iter().any(|(_, action)| matches!(action, Action::Mark { .. })), "{:?}", step.actions);
    life.works(&step);
    life.step();
    let later = life.store(pod("later", 10, 2, None));
    life.scheduler.observe(Event::Changed(later), life.now);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Prepare { .. }), "{:?}", step.verdict);
    while let Some(step) = life.scheduler.step(life.now) {
        assert!(matches!(step.verdict, Verdict::Wait { .. } | Verdict::FollowUp), "{:?}", step.verdict);
    }
}

#[test]
fn a_gang_is_not_decided_while_it_is_not_known_whether_a_pod_of_it_was_bound() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
";
    let objects = with(read(group).into_iter().chain(["one", "two"].map(member)).collect());
    let mut life = Life::new(objects);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Schedule { .. }), "{:?}", step.verdict);
    life.goes("one");
    let third = life.store(member("three"));
    life.scheduler.observe(Event::Changed(third), life.now);
    let second = step.actions.iter().find(|(_, action)| action.pod().is_some_and(|pod| pod.name.name == "two"));
    let (bind, _) = second.expect("it was to be bound");
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Wait { law: "Unsettled", .. }), "{:?}", step.verdict);
    life.change("two", |pod| pod.spec.get_or_insert_default().node_name = Some("node".to_owned()));
    let version = life.version;
    life.answer(*bind, ActionResult::Ok { version });
    let step = life.step();
    assert!(matches!(&step.verdict, Verdict::Schedule { placement } if placement.len() == 1), "{:?}", step.verdict);
}

#[test]
fn it_is_said_on_a_pod_why_it_waits_once_for_each_law() {
    let pods = vec![pod("full", 10, 4, Some("node")), pod("one", 0, 2, None), pod("two", 0, 2, None)];
    let mut life = Life::new(with(pods));
    let step = life.step();
    assert_eq!(said(&step), ["one PodScheduled=false Unschedulable NoPlan"]);
    life.works(&step);
    let step = life.step();
    assert_eq!(said(&step), ["two PodScheduled=false Unschedulable NoPlan"], "one that is like it waits for the same");
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none(), "what it said is no change that could help");
    let reasons: Vec<_> = life.scheduler.waiting_by_queue().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, ["NoPlan", "NoPlan"]);
    life.change("full", |pod| pod.spec.get_or_insert_default().priority = Some(11));
    let node = read(&NODE.replace("pods: 10", "pods: 11")).remove(0);
    let node = life.store(node);
    life.scheduler.observe(Event::Changed(node), life.now);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Unschedulable { .. }), "{:?}", step.verdict);
    assert_eq!(said(&step), [""; 0], "it says so already");
    life.restart();
    while let Some(step) = life.scheduler.step(life.now) {
        assert_eq!(said(&step), [""; 0], "so it does for one that was started anew");
    }
}

#[test]
fn what_may_not_be_said_is_not_tried_again() {
    let mut life = Life::new(with(vec![pod("huge", 0, 40, None)]));
    let step = life.step();
    let condition = step.actions.iter().find(|(_, action)| matches!(action, Action::Condition { .. }));
    let (id, _) = condition.expect("it says why");
    life.answer(*id, ActionResult::Forbidden("no".to_owned()));
    let node = life.store(read(&NODE.replace("pods: 10", "pods: 11")).remove(0));
    life.scheduler.observe(Event::Changed(node), life.now);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Unschedulable { .. }), "{:?}", step.verdict);
    assert_eq!(said(&step), [""; 0]);
}

#[test]
fn it_is_said_on_a_group_whether_it_was_scheduled() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
";
    let mut life = Life::new(with(read(group).into_iter().chain([member("one")]).collect()));
    let step = life.step();
    let waits = "gang PodGroupInitiallyScheduled=false Unschedulable Incomplete";
    assert_eq!(said(&step), ["one PodScheduled=false Unschedulable Incomplete", waits]);
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none());
    let second = life.store(member("two"));
    life.scheduler.observe(Event::Changed(second), life.now);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Schedule { .. }), "{:?}", step.verdict);
    assert_eq!(said(&step), [""; 0], "nothing is taken to have worked");
    life.works(&step);
    let step = life.step();
    assert_eq!(said(&step), ["gang PodGroupInitiallyScheduled=true Scheduled Scheduled"]);
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none());
}

#[test]
fn it_is_said_on_a_group_that_its_pods_have_another_priority() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {priority: 5, schedulingPolicy: {gang: {minCount: 1}}}
";
    let mut life = Life::new(with(read(group).into_iter().chain([member("one")]).collect()));
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Unschedulable { law: "Disagreement", .. }), "{:?}", step.verdict);
    let mismatch = "gang PodsNotMatchingPriority=true PodsNotMatchingPriority PodsNotMatchingPriority";
    assert!(said(&step).iter().any(|said| said == mismatch), "{:?}", said(&step));
}

/// What is refused is told once, told otherwise when it is another matter, and taken back when it is allowed.
#[test]
fn it_is_said_on_a_group_that_its_preemption_priority_is_refused() {
    let class = |value: i32| {
        let text = format!(
            "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: dear, uid: dear}}, value: {value}}}"
        );
        read(&text).remove(0)
    };
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang, annotations: {reprieve.dev/preemption-priority-class: dear}}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
";
    let mut objects = read(group);
    objects.extend([class(51), pod("one", 0, 1, Some("node"))]);
    let Some(Object::Pod(one)) = objects.last_mut() else { panic!("it is a pod") };
    let spec = Arc::make_mut(one).spec.get_or_insert_default();
    spec.scheduling_group.get_or_insert_default().pod_group_name = Some("gang".to_owned());
    let limit = Kubernetes { max_preemption_priority_excess: Some(50), ..Kubernetes::default() };
    let mut life = Life::of(Scheduler::new("reprieve", Policy::Kubernetes(limit)), with(objects));

    let mut step = life.step();
    let refused = |step: &Step| {
        let said = said(step).into_iter().find(|said| said.contains("PreemptionPriorityRefused"));
        let told = step.actions.iter().any(|(_, action)| {
            matches!(action, Action::Record { reason: "PreemptionPriorityRefused", about, .. } if about.kind == Kind::PodGroup)
        });
        (said.unwrap_or_default(), told)
    };
    let too_far = "its preemption priority 51 is more than 50 above its scheduling priority 0, which is not allowed; the latter is used";
    let said = format!("gang PreemptionPriorityRefused=true TooFarAboveSchedulingPriority {too_far}");
    assert_eq!(refused(&step), (said, true));
    life.works(&step);
    life.change("one", |pod| pod.metadata.labels.get_or_insert_default().extend([("a".to_owned(), "b".to_owned())]));
    while let Some(next) = life.scheduler.step(life.now) {
        assert_eq!(refused(&next), (String::new(), false), "it is said once");
        life.works(&next);
    }
    for (value, part, told) in [
        (-1, "=true BelowSchedulingPriority its preemption priority -1 is below its scheduling priority 0", true),
        (50, "=false Accepted", false),
        (51, "=true TooFarAboveSchedulingPriority", true),
    ] {
        let changed = life.store(class(value));
        life.scheduler.observe(Event::Changed(changed), life.now);
        step = life.step();
        let (said, was_told) = refused(&step);
        assert!(said.contains(part), "{said}");
        assert_eq!(was_told, told, "{said}");
        life.works(&step);
    }
}

/// Nothing happens but that time passes.
#[test]
fn a_toleration_that_runs_out_ends_the_wait() {
    let tolerant = read(
        "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: tolerant
  annotations:
    preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: '10000'
    preemption-toleration.scheduling.x-k8s.io/toleration-seconds: '4000'
value: 1
---
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: default, uid: holder, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  schedulerName: reprieve
  priority: 1
  priorityClassName: tolerant
  nodeName: node
  containers: [{name: main, resources: {requests: {cpu: 4}}}]
status:
  phase: Running
  conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: 2026-01-01T00:00:00Z}]
",
    );
    let mut life = Life::new(with(tolerant));
    life.scheduler.observe(Event::Changed(life.objects[&key("holder")].clone()), life.now);
    let urgent = life.store(pod("urgent", 1000, 4, None));
    life.scheduler.observe(Event::Changed(urgent), life.now);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Unschedulable { .. }), "{:?}", step.verdict);
    life.works(&step);
    life.now = Timestamp(1_767_225_600_000_000).plus_seconds(4000);
    life.scheduler.observe(Event::Timer, life.now);
    let step = life.step();
    assert!(matches!(step.verdict, Verdict::Prepare { .. }), "{:?}", step.verdict);
}

#[cfg(feature = "deliberate-bugs")]
mod faults {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use reprieve_scheduler::{Bug, UnitName};

    use super::*;

    /// A decision that fails by a fault takes down only itself, and what it did to the tables goes with it.
    #[test]
    fn a_fault_in_one_decision_leaves_the_others_alone() {
        let pods =
            [("holder", 10, 3, Some("node")), ("fatal", 1000, 1, None), ("other", 6, 1, None), ("third", 5, 1, None)];
        let objects = pods.map(|(name, priority, cpu, node)| pod(name, priority, cpu, node));
        let mut life = Life::of(fresh().with_bug(Some(Bug::Panic)), with(objects.to_vec()));
        let fails = |life: &mut Life| catch_unwind(AssertUnwindSafe(|| life.scheduler.step(life.now))).is_err();

        assert!(fails(&mut life));
        assert_eq!(life.scheduler.recover(life.now), Some(UnitName::Pod(FullName::new("default", "fatal"))));
        let step = life.step();
        assert_eq!(said(&step), ["fatal PodScheduled=false Unschedulable Fault"]);
        let recorded = step.actions.iter().any(|(_, action)| {
            matches!(action, Action::Record { reason: "DecisionFailed", about, .. } if *about == key("fatal"))
        });
        assert!(recorded, "{step:?}");
        life.works(&step);
        let step = life.step();
        assert_eq!(step.unit, Some(UnitName::Pod(FullName::new("default", "other"))));
        assert!(matches!(step.verdict, Verdict::Schedule { .. }), "{:?}", step.verdict);
        life.works(&step);
        let step = life.step();
        assert!(matches!(step.verdict, Verdict::Unschedulable { .. }), "the node is full: {:?}", step.verdict);
        life.works(&step);

        life.change("holder", |pod| pod.spec.get_or_insert_default().priority = Some(11));
        let node = life.store(read(&NODE.replace("name: node", "name: node, labels: {a: b}")).remove(0));
        life.scheduler.observe(Event::Changed(node), life.now);
        while let Some(step) = life.scheduler.step(life.now) {
            life.works(&step);
        }
        let faulty: Vec<_> = life.scheduler.waiting_by_queue().filter(|(_, reason)| *reason == "Fault").collect();
        assert_eq!(faulty.len(), 1, "a change of the cluster does not wake it");
        life.now = life.now.plus_seconds(60);
        life.scheduler.observe(Event::Timer, life.now);
        assert!(fails(&mut life), "it is tried again");
    }
}
