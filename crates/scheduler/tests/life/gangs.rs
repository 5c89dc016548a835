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

#[test]
fn a_gang_that_becomes_incomplete_gives_up_its_nominations_and_its_preemption() {
    let low = pod("low", -5, 4, Some("node"));
    let objects = with(read(GANG).into_iter().chain(["one", "two"].map(member)).chain([low]).collect());
    let mut life = Life::new(objects);
    let step = life.step();
    assert!(
        matches!(&step.outcome, StepOutcome::MarkVictims { victims, .. } if victims.len() == 1),
        "{:?}",
        step.outcome
    );
    life.succeed(&step);
    life.delete("two");
    let mut given_up = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        for (_, action) in &step.actions {
            match action {
                Action::Nominate { pod, node: None } | Action::Unmark { pod } => given_up.push(pod.name.name.clone()),
                Action::Evict { pod } => panic!("{} is evicted", pod.name),
                _ => {}
            }
        }
        life.succeed(&step);
    }
    given_up.sort();
    assert_eq!(given_up, ["low", "one"]);
}

#[test]
fn a_terminating_member_does_not_block_the_others() {
    let Object::Pod(stuck) = member("stuck") else { panic!("it is a pod") };
    let mut stuck = Pod::clone(&stuck);
    stuck.node_name = Some("node".to_owned());
    let target = Target { name: NamespacedName::from_meta(&stuck.metadata), uid: "stuck".to_owned(), version: 0 };
    assert!(apply_to_pod(&Action::Evict { pod: target }, &mut stuck, Timestamp(0)));
    let pods = ["one", "two"].map(member).into_iter().chain([Object::from(stuck)]);
    let mut life = Life::new(with(read(GANG).into_iter().chain(pods).collect()));
    let step = life.step();
    assert!(matches!(&step.outcome, StepOutcome::Bind { placement } if placement.len() == 2), "{:?}", step.outcome);
}

#[test]
fn pods_of_a_missing_group_wait_for_it() {
    let mut life = Life::new(with(vec![pod("alone", 0, 1, None), member("one"), member("two")]));
    let mut outcomes = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        life.succeed(&step);
        outcomes.push(step.outcome);
    }
    let missing = WaitReason::Law("GroupMissing");
    let is_refused =
        |outcome: &StepOutcome| matches!(outcome, StepOutcome::Unschedulable { reason, .. } if *reason == missing);
    assert!(outcomes.iter().any(is_refused), "{outcomes:?}");
    assert!(outcomes.iter().any(|outcome| matches!(outcome, StepOutcome::Bind { placement } if placement.len() == 1)));
    let group = read(GANG).remove(0);
    let group = life.store(group);
    life.scheduler.observe(Event::Upserted(group), life.now);
    let step = std::iter::from_fn(|| life.scheduler.step(life.now)).find(|step| step.unit.is_some());
    let outcome = step.expect("the gang is decided").outcome;
    assert!(matches!(&outcome, StepOutcome::Bind { placement } if placement.len() == 2), "{outcome:?}");
}

#[test]
fn a_stale_nomination_is_given_up_while_its_victim_terminates() {
    let other = read(
        "
apiVersion: v1
kind: Node
metadata: {name: other}
status: {allocatable: {cpu: 4, pods: 10}}
",
    );
    let pods = vec![pod("low-1", 1, 4, Some("node")), pod("low-2", 2, 4, Some("other")), pod("urgent", 10, 4, None)];
    let mut life = Life::new(with(pods.into_iter().chain(other).collect()));
    let mut evicted_so_far = Vec::new();
    let mut outcomes = Vec::new();
    for round in 0..2 {
        while let Some(step) = life.scheduler.step(life.now) {
            evicted_so_far.extend(evicted(&step).into_iter().map(str::to_owned));
            life.succeed(&step);
            outcomes.push(step.outcome);
        }
        if round == 0 {
            assert_eq!(evicted_so_far, ["low-1"]);
            assert!(matches!(outcomes.last(), Some(StepOutcome::Wait { .. })), "{outcomes:?}");
            let Object::Node(mut node) = read(NODE).remove(0) else { panic!("it is a node") };
            std::sync::Arc::make_mut(&mut node).spec.get_or_insert_default().unschedulable = Some(true);
            let node = life.store(Object::Node(node));
            life.scheduler.observe(Event::Upserted(node), life.now);
        }
    }
    assert_eq!(evicted_so_far, ["low-1", "low-2"], "{outcomes:?}");
}
