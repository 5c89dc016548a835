//! A scheduler's life, one event at a time.

#[cfg(feature = "deliberate-bugs")]
mod faults;
mod gangs;
mod harness;
mod obstacles;
mod planned;
mod told;

use reprieve_engine::Timestamp;
use reprieve_scheduler::StepOutcome;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::{ActionResult, Event};

use reprieve_scheduler::WaitReason;

use crate::harness::*;

#[test]
fn what_fits_is_bound() {
    let mut life = Life::new(with(vec![pod("a", 0, 4, None)]));
    let step = life.step();
    assert!(matches!(&step.outcome, StepOutcome::Bind { placement } if placement.len() == 1));
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none());
    assert_eq!(life.scheduler.waiting().count(), 0);
}

#[test]
fn victims_are_told_before_they_are_evicted_and_waited_for_after() {
    let mut life = Life::new(with(vec![pod("low", 0, 3, Some("node")), pod("high", 10, 3, None)]));
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
    assert_eq!(evicted(&step), [""; 0]);
    life.works(&step);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Evict { .. }), "{:?}", step.outcome);
    assert_eq!(evicted(&step), ["low"]);
    life.works(&step);
    assert_eq!(recorded(&life.step()).len(), 1, "it worked");
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::ActionInFlight, .. }), "{:?}", step.outcome);
    life.goes("low");
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
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
    assert!(matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::ActionInFlight, .. }), "{:?}", step.outcome);
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
    life.answer(ids[0], ActionResult::Unknown);
    let step = life.step();
    let (id, action) = &step.actions[0];
    assert!(matches!(action, Action::GetObject { key: read } if *read == key("low")), "{action:?}");
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
    life.scheduler.observe(Event::Upserted(early.clone()), life.now);
    assert!(life.scheduler.step(life.now).is_none(), "an old state of the pod is ignored");
    life.goes("a");
    life.scheduler.observe(Event::Upserted(early), life.now);
    assert!(life.scheduler.step(life.now).is_none(), "so is one of a pod that is gone");
}

#[test]
fn who_cannot_be_scheduled_does_not_block_those_behind() {
    let mut life = Life::new(with(vec![pod("huge", 10, 40, None), pod("small", 0, 1, None)]));
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
}

#[test]
fn one_speaks_for_all_that_are_like_it() {
    let high = pod("high", 100, 3, Some("node"));
    let low = pod("low", 0, 1, Some("node"));
    let waiting = ["a", "b", "c"].map(|name| pod(name, 10, 2, None));
    let mut life = Life::new(with([high, low].into_iter().chain(waiting).collect()));
    let decided = |life: &mut Life| {
        let step = life.step();
        (step.unit.as_ref().map(ToString::to_string), matches!(step.outcome, StepOutcome::Unschedulable { .. }))
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
    assert!(matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::ActionInFlight, .. }), "{:?}", step.outcome);
    life.goes("small");
    assert!(life.scheduler.step(life.now).is_none(), "there is no room for it there");
    life.goes("high");
    let step = life.step();
    assert!(
        matches!(&step.outcome, StepOutcome::Bind { placement } if placement[0].1 == "other"),
        "{:?}",
        step.outcome
    );
}

#[test]
fn nobody_is_evicted_on_a_word_that_was_given_to_another() {
    let pods = vec![pod("low", 0, 4, Some("node")), pod("first", 10, 2, None), pod("second", 10, 2, None)];
    let mut life = Life::new(with(pods));
    let first = life.step();
    assert!(matches!(first.outcome, StepOutcome::MarkVictims { .. }), "{:?}", first.outcome);
    let second = life.step();
    assert!(matches!(second.outcome, StepOutcome::MarkVictims { .. }), "{:?}", second.outcome);
    life.works(&second);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::ActionInFlight, .. }), "{:?}", step.outcome);
    life.works(&first);
    let step = life.step();
    assert_eq!(step.unit.as_ref().map(ToString::to_string).as_deref(), Some("Pod default/first"));
    assert_eq!(evicted(&step), ["low"]);
}

#[test]
fn who_waits_for_somebody_who_leaves_anyway_takes_nobody_for_a_later_one() {
    let pods = vec![pod("low-1", 0, 2, Some("node")), pod("low-2", 5, 2, Some("node")), pod("high", 10, 2, None)];
    let mut life = Life::new(with(pods));
    life.change("low-1", |pod| pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone());
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
    assert!(!step.actions.iter().any(|(_, action)| matches!(action, Action::Mark { .. })), "{:?}", step.actions);
    life.works(&step);
    life.step();
    let later = life.store(pod("later", 10, 2, None));
    life.scheduler.observe(Event::Upserted(later), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
    while let Some(step) = life.scheduler.step(life.now) {
        assert!(matches!(step.outcome, StepOutcome::Wait { .. } | StepOutcome::Housekeeping), "{:?}", step.outcome);
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
metadata: {name: older, namespace: default, uid: older, creationTimestamp: 2026-01-01T00:00:00Z}
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
    life.scheduler.observe(Event::Upserted(life.objects[&key("older")].clone()), life.now);
    let urgent = life.store(pod("urgent", 1000, 4, None));
    life.scheduler.observe(Event::Upserted(urgent), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    life.works(&step);
    life.now = Timestamp(1_767_225_600_000_000).plus_seconds(4000);
    life.scheduler.observe(Event::TimerFired, life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
}
