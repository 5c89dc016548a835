//! One broken object is reported once, and the others are scheduled.

use reprieve_api::kinds::{Kind, Object};
use reprieve_api::{InputError, ObjectKey};
use reprieve_api::{ProblemCode, object_set::Unreadable};
use reprieve_scheduler::action::{Action, EventReason};
use reprieve_scheduler::event::Event;
use reprieve_scheduler::{Step, StepOutcome};

use crate::harness::*;

/// All steps until there is nothing to do; every action succeeds.
fn steps(life: &mut Life) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        life.succeed(&step);
        steps.push(step);
        assert!(steps.len() < 100, "the scheduler comes to rest");
    }
    steps
}

fn bound(steps: &[Step]) -> Vec<String> {
    let actions = steps.iter().flat_map(|step| &step.actions);
    let names = actions.filter_map(|(_, action)| match action {
        Action::Bind { pod, .. } => Some(pod.name.name.clone()),
        _ => None,
    });
    names.collect()
}

fn refused(steps: &[Step]) -> Vec<String> {
    let actions = steps.iter().flat_map(|step| &step.actions);
    let events = actions.filter_map(|(_, action)| match action {
        Action::EmitEvent { about, reason: EventReason::Refused, message, .. } => Some(format!("{about}: {message}")),
        _ => None,
    });
    events.collect()
}

fn broken(name: &str, cpu: &str, node: Option<&str>) -> Object {
    let Object::Pod(pod) = pod(name, 5, 1, node) else { panic!("it is a pod") };
    let mut text = serde_json::to_value(&*pod).expect("a pod is JSON");
    text["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu.into();
    Object::from(serde_json::from_value::<reprieve_api::Pod>(text).expect("a pod"))
}

#[test]
fn a_pending_pod_that_cannot_be_read_has_a_condition_and_the_others_are_scheduled() {
    let mut life = Life::new(with(vec![broken("bad", "5Ei", None), pod("good", 0, 1, None)]));
    let all = steps(&mut life);
    assert_eq!(bound(&all), ["good"]);
    let written: Vec<String> = all.iter().flat_map(conditions).collect();
    assert_eq!(written, ["bad PodScheduled=false Unschedulable InvalidObject"]);
    assert_eq!(refused(&all), [""; 0], "its condition says so");
    let quarantined: Vec<_> = life.scheduler.quarantined().into_iter().collect();
    assert_eq!(quarantined, [((Kind::Pod, ProblemCode::TooLarge), 1)]);
    let good = life.store(broken("bad", "1", None));
    life.scheduler.observe(Event::Upserted(good), life.now);
    assert_eq!(bound(&steps(&mut life)), ["bad"]);
    assert!(life.scheduler.quarantined().is_empty());
}

#[test]
fn a_bound_pod_that_cannot_be_read_fills_its_node_and_is_reported_once() {
    let mut life = Life::new(with(vec![broken("bad", "5Ei", Some("node")), pod("high", 10, 1, None)]));
    let all = steps(&mut life);
    assert_eq!(bound(&all), [""; 0], "the node has no known room");
    assert_eq!(all.iter().flat_map(evicted).count(), 0, "and the pod is not preempted");
    let refused_once = refused(&all);
    assert_eq!(refused_once.len(), 1, "{refused_once:?}");
    assert!(refused_once[0].starts_with("Pod default/bad: Pod default/bad: spec.containers[0]"), "{refused_once:?}");
    life.change("high", |pod| pod.spec_mut().priority = Some(11));
    assert_eq!(refused(&steps(&mut life)), [""; 0]);
    life.delete("bad");
    assert_eq!(bound(&steps(&mut life)), ["high"]);
}

#[test]
fn a_broken_group_holds_only_its_own_pods() {
    let gang = read(&GANG.replace("minCount: 2", "minCount: -2"));
    let objects = gang.into_iter().chain([member("one"), member("two"), pod("good", 0, 1, None)]);
    let mut life = Life::new(with(objects.collect()));
    let all = steps(&mut life);
    assert_eq!(bound(&all), ["good"]);
    let written: Vec<String> = all.iter().flat_map(conditions).collect();
    for pod in ["one", "two"] {
        let condition = format!("{pod} PodScheduled=false Unschedulable InvalidObject");
        assert!(written.contains(&condition), "{written:?}");
    }
    assert_eq!(refused(&all).len(), 1, "the group is reported, not each pod: {:?}", refused(&all));
    let group = life.store(read(GANG).remove(0));
    life.scheduler.observe(Event::Upserted(group), life.now);
    assert_eq!(bound(&steps(&mut life)), ["one", "two"]);
}

#[test]
fn a_pod_that_becomes_unreadable_keeps_its_node() {
    let mut life = Life::new(with(vec![pod("low", 0, 1, Some("node"))]));
    steps(&mut life);
    let object = ObjectKey::new(Kind::Pod, key("low").name);
    let error = InputError::new("broken").code(ProblemCode::Undecodable);
    let unreadable = Unreadable { object, node: Some("node".to_owned()), held: None, error };
    life.version += 1;
    life.objects.remove(&key("low"));
    life.scheduler.observe(Event::Unreadable { object: unreadable, version: life.version }, life.now);
    let high = life.store(pod("high", 10, 1, None));
    life.scheduler.observe(Event::Upserted(high), life.now);
    let all = steps(&mut life);
    assert_eq!(bound(&all), [""; 0], "the room of the pod is not free");
    assert!(all.iter().any(|step| matches!(step.outcome, StepOutcome::Unschedulable { .. })), "{all:?}");
    life.delete("low");
    assert_eq!(bound(&steps(&mut life)), ["high"]);
}

#[test]
fn a_setting_that_is_not_valid_is_reported_once_on_its_object() {
    const CLASS: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: tolerant
  uid: tolerant
  annotations: {preemption-toleration.scheduling.x-k8s.io/toleration-seconds: soon}
value: 5
";
    let events = |all: &[Step]| -> Vec<String> {
        let actions = all.iter().flat_map(|step| &step.actions);
        let events = actions.filter_map(|(_, action)| match action {
            Action::EmitEvent { about, reason: EventReason::InvalidSetting, message, .. } => {
                Some(format!("{}: {message}", about.name.name))
            }
            _ => None,
        });
        events.collect()
    };
    let mut life = Life::new(with(read(CLASS)));
    let told = events(&steps(&mut life));
    assert!(
        told.len() == 1 && told[0].starts_with("tolerant: PriorityClass tolerant: preemption-toleration"),
        "{told:?}"
    );

    // The tables are rebuilt, and the warning is the same.
    let other = life.store(read(&NODE.replace("name: node", "name: other")).remove(0));
    life.scheduler.observe(Event::Upserted(other), life.now);
    assert_eq!(events(&steps(&mut life)), [""; 0]);

    // A pending pod is read without a rebuild.
    let Object::Pod(plain) = pod("compares", 0, 9, None) else { panic!("it is a pod") };
    let mut text = serde_json::to_value(&*plain).expect("a pod is JSON");
    text["spec"]["tolerations"] = serde_json::json!([{"key": "a", "operator": "Gt", "value": "1"}]);
    let object = Object::from(serde_json::from_value::<reprieve_api::Pod>(text).expect("a pod"));
    let object = life.store(object);
    life.scheduler.observe(Event::Upserted(object), life.now);
    let told = events(&steps(&mut life));
    assert_eq!(
        told,
        [
            "compares: Pod default/compares: spec.tolerations[0].operator: Gt is not supported; the toleration is ignored"
        ]
    );
    life.change("compares", |pod| pod.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into()));
    assert_eq!(events(&steps(&mut life)), [""; 0]);
}
