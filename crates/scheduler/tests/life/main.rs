//! The scheduler under policy Kubernetes, driven one event at a time.

#[cfg(feature = "deliberate-bugs")]
mod faults;
mod forged;
mod gangs;
mod harness;
mod obstacles;
mod owners;
mod planned;
mod problems;
mod quotas;
mod status;
mod tenant_names;
mod whole_gangs;
mod yunikorn;

use reprieve_api::kinds::Object;
use reprieve_engine::Timestamp;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{StepOutcome, WaitReason};

use crate::harness::*;

#[test]
fn a_pod_that_fits_is_bound() {
    let mut life = Life::new(with(vec![pod("a", 0, 4, None)]));
    let step = life.step();
    assert!(matches!(&step.outcome, StepOutcome::Bind { placement } if placement.len() == 1));
    life.succeed(&step);
    assert!(life.scheduler.step(life.now).is_none());
    assert_eq!(life.scheduler.waiting().count(), 0);
}

#[test]
fn victims_are_marked_then_evicted_then_waited_for() {
    let mut life = Life::new(with(vec![pod("low", 0, 3, Some("node")), pod("high", 10, 3, None)]));
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
    assert_eq!(evicted(&step), [""; 0]);
    life.succeed(&step);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Evict { .. }), "{:?}", step.outcome);
    assert_eq!(evicted(&step), ["low"]);
    life.succeed(&step);
    assert_eq!(life.take_event_texts().len(), 2, "the events of the victim and of the preemptor");
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::Law("PreemptionInProgress"), .. }),
        "{:?}",
        step.outcome
    );
    life.delete("low");
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
}

#[test]
fn a_restarted_scheduler_continues_a_preemption_without_a_second_victim() {
    let pods = vec![pod("low-1", 0, 2, Some("node")), pod("low-2", 0, 2, Some("node")), pod("high", 10, 2, None)];
    let mut life = Life::new(with(pods));
    for _ in 0..2 {
        let step = life.step();
        life.succeed(&step);
    }
    life.restart();
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::Law("PreemptionInProgress"), .. }),
        "{:?}",
        step.outcome
    );
    assert_eq!(evicted(&step), [""; 0]);
}

#[test]
fn the_victim_of_an_eviction_without_a_response_is_read_again() {
    let mut life = Life::new(with(vec![pod("low", 0, 3, Some("node")), pod("high", 10, 3, None)]));
    let step = life.step();
    life.succeed(&step);
    let step = life.step();
    let evictions = step.actions.iter().filter(|(_, action)| matches!(action, Action::Evict { .. }));
    let ids: Vec<ActionId> = evictions.map(|(id, _)| *id).collect();
    life.complete(ids[0], ActionResult::Unknown);
    let step = life.step();
    let (id, action) = &step.actions[0];
    assert!(matches!(action, Action::GetObject { key: read } if *read == key("low")), "{action:?}");
    let low = life.objects[&key("low")].clone();
    life.complete(*id, ActionResult::Read(low));
    let step = life.step();
    assert_eq!(evicted(&step), ["low"], "the eviction had failed, so it is sent again");
}

#[test]
fn late_and_repeated_events_are_ignored() {
    let mut life = Life::new(with(vec![pod("a", 0, 4, None)]));
    let early = life.objects[&key("a")].clone();
    let step = life.step();
    life.succeed(&step);
    life.scheduler.observe(Event::Upserted(early.clone()), life.now);
    assert!(life.scheduler.step(life.now).is_none(), "an old state of the pod is ignored");
    life.delete("a");
    life.scheduler.observe(Event::Upserted(early), life.now);
    assert!(life.scheduler.step(life.now).is_none(), "so is a state of a deleted pod");
}

#[test]
fn an_unschedulable_pod_does_not_block_the_pods_behind_it() {
    let mut life = Life::new(with(vec![pod("huge", 10, 40, None), pod("small", 0, 1, None)]));
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
}

#[test]
fn one_decision_holds_for_all_members_of_an_equivalence_class() {
    let high = pod("high", 100, 3, Some("node"));
    let low = pod("low", 0, 1, Some("node"));
    let waiting = ["a", "b", "c"].map(|name| pod(name, 10, 2, None));
    let mut life = Life::new(with([high, low].into_iter().chain(waiting).collect()));
    let decided = |life: &mut Life| {
        let step = life.step();
        (step.unit.as_ref().map(ToString::to_string), matches!(step.outcome, StepOutcome::Unschedulable { .. }))
    };
    assert_eq!(decided(&mut life), (Some("Pod default/a".to_owned()), true));
    let others = life.scheduler.step(life.now).expect("the conditions of b and c are written");
    assert!(others.unit.is_none() && others.actions.len() == 2, "they are not decided: {others:?}");
    assert_eq!(life.scheduler.waiting().filter(|(_, reason)| *reason == WaitReason::NoFeasiblePlan).count(), 3);

    life.delete("low");
    assert!(life.scheduler.step(life.now).is_none(), "they could have preempted it, and it was not enough");

    life.delete("high");
    for name in ["a", "b"] {
        assert_eq!(decided(&mut life), (Some(format!("Pod default/{name}")), false));
    }
    assert_eq!(decided(&mut life), (Some("Pod default/c".to_owned()), true));
    assert!(life.scheduler.step(life.now).is_none());
}

#[test]
fn a_preemptor_that_waits_for_victims_ignores_changes_on_other_nodes() {
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
        life.succeed(&step);
    }
    assert_eq!(life.take_event_texts().len(), 2, "low is evicted");
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::Law("PreemptionInProgress"), .. }),
        "{:?}",
        step.outcome
    );
    life.delete("small");
    assert!(life.scheduler.step(life.now).is_none(), "the pod does not fit there");
    life.delete("high");
    let step = life.step();
    assert!(
        matches!(&step.outcome, StepOutcome::Bind { placement } if placement[0].1 == "other"),
        "{:?}",
        step.outcome
    );
}

#[test]
fn a_victim_is_evicted_only_for_the_preemptor_in_its_mark() {
    let pods = vec![pod("low", 0, 4, Some("node")), pod("first", 10, 2, None), pod("second", 10, 2, None)];
    let mut life = Life::new(with(pods));
    let first = life.step();
    assert!(matches!(first.outcome, StepOutcome::MarkVictims { .. }), "{:?}", first.outcome);
    let second = life.step();
    assert!(matches!(second.outcome, StepOutcome::MarkVictims { .. }), "{:?}", second.outcome);
    life.succeed(&second);
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Wait { reason: WaitReason::Law("PreemptionInProgress"), .. }),
        "{:?}",
        step.outcome
    );
    life.succeed(&first);
    let step = life.step();
    assert_eq!(step.unit.as_ref().map(ToString::to_string).as_deref(), Some("Pod default/first"));
    assert_eq!(evicted(&step), ["low"]);
}

#[test]
fn a_preemptor_that_waits_for_a_terminating_pod_takes_no_victim_for_a_later_pod() {
    let pods = vec![pod("low-1", 0, 2, Some("node")), pod("low-2", 5, 2, Some("node")), pod("high", 10, 2, None)];
    let mut life = Life::new(with(pods));
    life.change("low-1", |pod| pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone());
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
    assert!(!step.actions.iter().any(|(_, action)| matches!(action, Action::Mark { .. })), "{:?}", step.actions);
    life.succeed(&step);
    life.step();
    let later = life.store(pod("later", 10, 2, None));
    life.scheduler.observe(Event::Upserted(later), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
    while let Some(step) = life.scheduler.step(life.now) {
        assert!(matches!(step.outcome, StepOutcome::Wait { .. } | StepOutcome::Housekeeping), "{:?}", step.outcome);
    }
}

/// A full node, on which a pod tolerates preemption for 4000 s after it was scheduled.
fn tolerant(conditions: &str) -> Vec<Object> {
    read(&format!(
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
metadata: {{name: older, namespace: default, uid: older, creationTimestamp: 2026-01-01T00:00:00Z}}
spec:
  schedulerName: reprieve
  priority: 1
  priorityClassName: tolerant
  nodeName: node
  containers: [{{name: main, resources: {{requests: {{cpu: 4}}}}}}]
status:
  phase: Running
  conditions: [{conditions}]
"
    ))
}

const SCHEDULED: &str = "{type: PodScheduled, status: 'True', lastTransitionTime: 2026-01-01T00:00:00Z}";

/// A kubelet writes the condition of a static pod after the pod is bound. Until then the end of the toleration is unknown.
#[test]
fn a_preemptor_is_retried_when_the_end_of_a_toleration_becomes_known() {
    let mut life = Life::new(with(tolerant("")));
    let urgent = life.store(pod("urgent", 1000, 4, None));
    life.scheduler.observe(Event::Upserted(urgent), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    life.succeed(&step);
    assert!(life.scheduler.step(life.now).is_none());
    let Object::Pod(scheduled) = tolerant(SCHEDULED).remove(1) else { panic!("it is a pod") };
    life.change("older", |pod| pod.status = scheduled.status.clone());
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    assert!(step.actions.iter().any(|(_, action)| matches!(action, Action::WakeAt { .. })), "{:?}", step.actions);
}

/// Only time passes; no object changes.
#[test]
fn the_end_of_a_toleration_ends_the_wait() {
    let mut life = Life::new(with(tolerant(SCHEDULED)));
    life.scheduler.observe(Event::Upserted(life.objects[&key("older")].clone()), life.now);
    let urgent = life.store(pod("urgent", 1000, 4, None));
    life.scheduler.observe(Event::Upserted(urgent), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    life.succeed(&step);
    life.now = Timestamp(1_767_225_600_000_000).plus_seconds(4000);
    life.scheduler.observe(Event::TimerFired, life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::MarkVictims { .. }), "{:?}", step.outcome);
}
