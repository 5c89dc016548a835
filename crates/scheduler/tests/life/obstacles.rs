//! Pods that cannot be scheduled regardless of room: scheduling gates, unsupported fields, pods of another scheduler.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSchedulingGate;
use reprieve_api::kinds::Object;
use reprieve_api::pod::{Pod, PodSpec};
use reprieve_scheduler::action::Action;
use reprieve_scheduler::event::Event;
use reprieve_scheduler::{StepOutcome, WaitReason};
use serde_json::json;

use crate::harness::*;

fn changed(object: Object, change: impl FnOnce(&mut PodSpec)) -> Object {
    let Object::Pod(pod) = object else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    change(pod.spec_mut());
    Object::Pod(Arc::new(pod))
}

fn gated(object: Object) -> Object {
    changed(object, |spec| {
        spec.scheduling_gates = Some(vec![PodSchedulingGate { name: "example.com/quota".to_owned() }]);
    })
}

fn with_claim(object: Object) -> Object {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    changed(object, |spec| spec.volumes = serde_json::from_value(volumes).expect("volumes"))
}

/// Takes all steps; every action succeeds. Returns the bindings, nominations, marks and evictions.
fn run(life: &mut Life) -> Vec<String> {
    let mut done = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        for (_, action) in &step.actions {
            let what = match action {
                Action::Bind { .. } => "bind",
                Action::Nominate { .. } => "nominate",
                Action::Mark { .. } => "mark",
                Action::Evict { .. } => "evict",
                _ => continue,
            };
            let (_, pod) = action.changes().expect("an action on a pod");
            done.push(format!("{what} {}", pod.name.name));
        }
        life.succeed(&step);
    }
    done
}

/// A pod of lower priority that fills the node, and a gang of two with one gated member.
fn gang_with_a_gated_member() -> Life {
    let members = [member("one"), gated(member("two"))];
    let low = pod("low", -1, 4, Some("node"));
    Life::new(with(read(GANG).into_iter().chain(members).chain([low]).collect()))
}

#[test]
fn a_gang_with_a_gated_member_evicts_binds_and_nominates_nothing() {
    let mut life = gang_with_a_gated_member();
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Unschedulable { reason: WaitReason::Law("SchedulingGates"), .. }),
        "{:?}",
        step.outcome
    );
    life.succeed(&step);
    assert_eq!(run(&mut life), [""; 0]);
}

#[test]
fn a_gang_is_decided_again_when_its_gates_are_removed() {
    let mut life = gang_with_a_gated_member();
    assert_eq!(run(&mut life), [""; 0]);
    life.change("two", |pod| pod.spec_mut().scheduling_gates = None);
    let done = run(&mut life);
    assert!(done.contains(&"evict low".to_owned()), "{done:?}");
}

#[test]
fn a_pod_with_a_claim_is_never_bound_and_evicts_nothing() {
    let low = pod("low", 0, 3, Some("node"));
    let mut life =
        Life::new(with(vec![low, with_claim(pod("high", 10, 3, None)), with_claim(pod("fits", 10, 1, None))]));
    let step = life.step();
    let StepOutcome::Unschedulable { reason, why } = &step.outcome else { panic!("{:?}", step.outcome) };
    assert_eq!(*reason, WaitReason::Law("Unsupported"));
    assert!(why.contains("spec.volumes[0].persistentVolumeClaim"), "{why}");
    life.succeed(&step);
    assert_eq!(run(&mut life), [""; 0]);
    assert_eq!(life.failed.len(), 2, "each has an event: {:?}", life.failed);
}

/// The node is empty, so that the reason is not a lack of room.
#[test]
fn a_pod_whose_selector_matches_no_node_does_not_wait_for_room() {
    let selector = json!({"zone": "nowhere"});
    let high = changed(pod("high", 10, 1, None), |spec| {
        spec.node_selector = serde_json::from_value(selector).expect("a selector");
    });
    let mut life = Life::new(with(vec![high]));
    let step = life.step();
    let StepOutcome::Unschedulable { reason, why } = &step.outcome else { panic!("{:?}", step.outcome) };
    assert_eq!(*reason, WaitReason::NoFeasiblePlan);
    assert_eq!(why, "it does not fit now, and no set of victims that the policy allows makes it fit");
}

#[test]
fn a_pod_with_a_claim_is_not_in_the_class_of_pods_without() {
    let mut life = Life::new(with(vec![with_claim(pod("a", 10, 2, None)), pod("b", 10, 2, None)]));
    assert_eq!(run(&mut life), ["bind b"]);
}

#[test]
fn a_member_of_another_scheduler_is_neither_placed_nor_changed() {
    let other = changed(member("other"), |spec| spec.scheduler_name = Some("other".to_owned()));
    let mut life = Life::new(with(read(GANG).into_iter().chain([member("one"), other]).collect()));
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Unschedulable { reason: WaitReason::Law("OtherScheduler"), .. }),
        "{:?}",
        step.outcome
    );
    let touches_other =
        |(_, action): &(_, Action)| action.changes().is_some_and(|(_, target)| target.name.name == "other");
    assert!(!step.actions.iter().any(touches_other), "{:?}", step.actions);
    life.succeed(&step);
    assert_eq!(run(&mut life), [""; 0]);
    life.change("other", |pod| pod.node_name = Some("node".to_owned()));
    assert_eq!(run(&mut life), ["bind one"], "a bound member counts, whichever scheduler bound it");
}

#[test]
fn an_unsupported_gang_does_not_block_the_pods_behind_it() {
    let members = ["one", "two"].map(|name| with_claim(member(name)));
    let mut life = Life::new(with(read(GANG).into_iter().chain(members).collect()));
    assert_eq!(run(&mut life), [""; 0]);
    life.now = life.now.plus_seconds(3_600);
    life.scheduler.observe(Event::TimerFired, life.now);
    let late = life.store(pod("late", -5, 4, None));
    life.scheduler.observe(Event::Upserted(late), life.now);
    assert_eq!(run(&mut life), ["bind late"]);
}
