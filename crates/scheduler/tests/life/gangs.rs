//! Gangs are decided, bound and evicted as one unit.

use reprieve_api::kinds::Object;
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_scheduler::action::{Action, Target};
use reprieve_scheduler::effects::apply_to_pod;
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{StepOutcome, WaitReason};

use crate::harness::*;

#[test]
fn a_gang_is_decided_once_its_minimum_exists() {
    let objects = with(read(GANG).into_iter().chain([member("one")]).collect());
    let mut life = Life::new(objects);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::GangIncomplete, .. }), "{:?}", step.outcome);
    assert!(life.scheduler.step(life.now).is_none());
    let second = life.store(member("two"));
    life.scheduler.observe(Event::Upserted(second), life.now);
    let step = life.step();
    assert!(matches!(&step.outcome, StepOutcome::Bind { placement } if placement.len() == 2), "{:?}", step.outcome);
}

#[test]
fn unbound_pods_of_an_evicted_gang_are_not_evicted() {
    let on_node = |name: &str, node: Option<&str>| {
        let Object::Pod(pod) = member(name) else { panic!("it is a pod") };
        let mut pod = Pod::clone(&pod);
        pod.node_name = node.map(str::to_owned);
        let target = Target { name: NamespacedName::from_meta(&pod.metadata), uid: name.to_owned(), version: 0 };
        let preemptor = "Pod default/high".to_owned();
        let mark = Action::Mark { pod: target, preemptor, message: String::new(), at: Timestamp(0) };
        assert!(apply_to_pod(&mark, &mut pod, Timestamp(0)));
        Object::from(pod)
    };
    let pods = vec![on_node("bound", Some("node")), on_node("lost", None), pod("high", 10, 4, None)];
    let mut life = Life::new(with(read(ALL_OR_NOTHING_GANG).into_iter().chain(pods).collect()));
    let mut all = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        all.extend(evicted(&step).into_iter().map(str::to_owned));
        life.succeed(&step);
    }
    assert_eq!(all, ["bound"]);
}

#[test]
fn a_gang_is_not_decided_while_the_outcome_of_a_binding_is_unknown() {
    let objects = with(read(GANG).into_iter().chain(["one", "two"].map(member)).collect());
    let mut life = Life::new(objects);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
    life.delete("one");
    let third = life.store(member("three"));
    life.scheduler.observe(Event::Upserted(third), life.now);
    let second =
        step.actions.iter().find(|(_, action)| action.changes().is_some_and(|(_, pod)| pod.name.name == "two"));
    let (bind, _) = second.expect("a binding of two");
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::AwaitingApiState, .. }),
        "{:?}",
        step.outcome
    );
    life.change("two", |pod| pod.node_name = Some("node".to_owned()));
    let version = life.version;
    life.complete(*bind, ActionResult::Ok { version });
    life.collect_events();
    let step = life.step();
    assert!(matches!(&step.outcome, StepOutcome::Bind { placement } if placement.len() == 1), "{:?}", step.outcome);
}
