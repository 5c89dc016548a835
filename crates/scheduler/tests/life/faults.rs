//! A fault in a decision takes down that decision.

use std::panic::{AssertUnwindSafe, catch_unwind};

use reprieve_scheduler::{Bug, UnitRef};

use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::StepOutcome;
use reprieve_scheduler::action::Action;
use reprieve_scheduler::event::Event;

use reprieve_scheduler::WaitReason;

use crate::harness::*;

/// A decision that fails by a fault takes down only itself, and what it did to the tables goes with it.
#[test]
fn a_fault_in_one_decision_leaves_the_others_alone() {
    let pods =
        [("older", 10, 3, Some("node")), ("fatal", 1000, 1, None), ("other", 6, 1, None), ("third", 5, 1, None)];
    let objects = pods.map(|(name, priority, cpu, node)| pod(name, priority, cpu, node));
    let mut life = Life::of(fresh().with_bug(Some(Bug::Panic)), with(objects.to_vec()));
    let fails = |life: &mut Life| catch_unwind(AssertUnwindSafe(|| life.scheduler.step(life.now))).is_err();

    assert!(fails(&mut life));
    assert_eq!(life.scheduler.recover(life.now), Some(UnitRef::Pod(NamespacedName::new("default", "fatal"))));
    let step = life.step();
    assert_eq!(said(&step), ["fatal PodScheduled=false Unschedulable Fault"]);
    let recorded = step.actions.iter().any(|(_, action)| {
        matches!(action, Action::EmitEvent { reason: "DecisionFailed", about, .. } if *about == key("fatal"))
    });
    assert!(recorded, "{step:?}");
    life.works(&step);
    let step = life.step();
    assert_eq!(step.unit, Some(UnitRef::Pod(NamespacedName::new("default", "other"))));
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
    life.works(&step);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "the node is full: {:?}", step.outcome);
    life.works(&step);

    life.change("older", |pod| pod.spec_mut().priority = Some(11));
    let node = life.store(read(&NODE.replace("name: node", "name: node, labels: {a: b}")).remove(0));
    life.scheduler.observe(Event::Upserted(node), life.now);
    while let Some(step) = life.scheduler.step(life.now) {
        life.works(&step);
    }
    let faulty: Vec<_> =
        life.scheduler.waiting_by_queue().filter(|(_, reason)| *reason == WaitReason::InternalError).collect();
    assert_eq!(faulty.len(), 1, "a change of the cluster does not wake it");
    life.now = life.now.plus_seconds(60);
    life.scheduler.observe(Event::TimerFired, life.now);
    assert!(fails(&mut life), "it is tried again");
}
