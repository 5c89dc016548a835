//! A panic in a decision affects only that decision.

use std::panic::{AssertUnwindSafe, catch_unwind};

use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::action::{Action, EventReason};
use reprieve_scheduler::event::Event;
use reprieve_scheduler::{Bug, StepOutcome, UnitRef, WaitReason};

use crate::harness::*;

/// The snapshot that the panic left behind is rebuilt.
#[test]
fn a_panic_in_one_decision_does_not_affect_the_others() {
    let pods = [("older", 10, 3, Some("node")), ("fatal", 1000, 1, None), ("other", 6, 1, None), ("third", 5, 1, None)];
    let objects = pods.map(|(name, priority, cpu, node)| pod(name, priority, cpu, node));
    let mut life = Life::of(fresh().with_bug(Some(Bug::Panic)), with(objects.to_vec()));
    let panics = |life: &mut Life| catch_unwind(AssertUnwindSafe(|| life.scheduler.step(life.now))).is_err();

    assert!(panics(&mut life));
    assert_eq!(life.scheduler.recover(life.now), Some(UnitRef::Pod(NamespacedName::new("default", "fatal"))));
    let step = life.step();
    assert_eq!(conditions(&step), ["fatal PodScheduled=false Unschedulable InternalError"]);
    let has_event = step.actions.iter().any(|(_, action)| {
        matches!(action, Action::EmitEvent { reason: EventReason::DecisionFailed, about, .. } if *about == key("fatal"))
    });
    assert!(has_event, "{step:?}");
    life.succeed(&step);
    let step = life.step();
    assert_eq!(step.unit, Some(UnitRef::Pod(NamespacedName::new("default", "other"))));
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
    life.succeed(&step);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "the node is full: {:?}", step.outcome);
    life.succeed(&step);

    life.change("older", |pod| pod.spec_mut().priority = Some(11));
    let node = life.store(read(&NODE.replace("name: node", "name: node, labels: {a: b}")).remove(0));
    life.scheduler.observe(Event::Upserted(node), life.now);
    while let Some(step) = life.scheduler.step(life.now) {
        life.succeed(&step);
    }
    let failed: Vec<_> =
        life.scheduler.waiting_by_queue().filter(|(_, reason)| *reason == WaitReason::InternalError).collect();
    assert_eq!(failed.len(), 1, "a change of the cluster does not make it ready");
    life.now = life.now.plus_seconds(60);
    life.scheduler.observe(Event::TimerFired, life.now);
    assert!(panics(&mut life), "it is retried");
}
