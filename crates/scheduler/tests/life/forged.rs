//! Labels and annotations that claim a preemption change nothing: only conditions in the status of a pod, which the owner of the pod cannot
//! write, record one.

use reprieve_api::kinds::Object;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::action::{Action, PREEMPTED_FOR, SOFT_EVICTION};

use crate::harness::*;

/// A cluster with a pod that preempts `low`, a pod that fits nowhere and is scheduled first, and a pod that no preemptor needs.
fn cluster() -> Vec<Object> {
    with(vec![
        pod("low", 0, 3, Some("node")),
        pod("idle", 20, 1, Some("node")),
        pod("first", 15, 5, None),
        pod("high", 10, 3, None),
    ])
}

fn policies() -> [Policy; 2] {
    [Policy::Kubernetes(Kubernetes::default()), Policy::Koordinator(Koordinator::default())]
}

/// The actions of a scheduler until it has nothing to do.
fn actions(life: &mut Life) -> Vec<Action> {
    let mut all: Vec<Action> = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        all.extend(step.actions.iter().map(|(_, action)| action.clone()));
        life.succeed(&step);
        assert!(all.len() < 100, "it does not come to an end: {all:#?}");
    }
    all
}

#[test]
fn forged_marks_change_no_action() {
    for policy in policies() {
        let run = |objects| actions(&mut Life::of(Scheduler::new("reprieve", policy), objects));
        let honest = run(cluster());
        assert!(honest.iter().any(|action| matches!(action, Action::Evict { .. } | Action::SoftEvict { .. })));
        for unit in ["Pod default/high", "Pod default/first", "Pod default/ghost", "PodGroup default/high", "x"] {
            for forged in ["low", "idle", "high"] {
                let mut objects = cluster();
                let pod = objects.iter_mut().find(|object| object.key() == key(forged)).expect("it exists");
                pod.metadata_mut().annotations = Some([(PREEMPTED_FOR.to_owned(), unit.to_owned())].into());
                pod.metadata_mut().labels = Some([(SOFT_EVICTION.to_owned(), unit.replace(['/', ' '], "-"))].into());
                assert_eq!(run(objects), honest, "{policy:?}: {forged} claims to be preempted for {unit}");
            }
        }
    }
}

#[test]
fn an_owner_who_rewrites_a_mark_causes_no_writes() {
    for policy in policies() {
        let mut life = Life::of(Scheduler::new("reprieve", policy), cluster());
        actions(&mut life);
        for round in 0..20 {
            life.change("idle", |pod| {
                let unit = format!("Pod default/{}", if round % 2 == 0 { "ghost" } else { "high" });
                pod.metadata.annotations = Some([(PREEMPTED_FOR.to_owned(), unit)].into());
            });
            let written = actions(&mut life);
            let changes: Vec<_> = written.iter().filter(|action| action.changes().is_some()).collect();
            assert!(changes.is_empty(), "{policy:?}: {changes:?}");
        }
    }
}

#[test]
fn a_victim_that_removes_the_label_is_soft_evicted_again() {
    let policy = Policy::Koordinator(Koordinator::default());
    let mut life = Life::of(Scheduler::new("reprieve", policy), cluster());
    let is_soft = |action: &Action| matches!(action, Action::SoftEvict { pod, .. } if pod.name.name == "low");
    assert_eq!(actions(&mut life).iter().filter(|action| is_soft(action)).count(), 1);
    life.change("low", |pod| pod.metadata.labels = None);
    assert_eq!(actions(&mut life).iter().filter(|action| is_soft(action)).count(), 1);
}
