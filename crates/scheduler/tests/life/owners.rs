//! Gangs that owners form without a PodGroup, in whichever order the owners and the pods arrive.

use std::sync::Arc;

use reprieve_api::kinds::Object;
use reprieve_api::pod::Pod;
use reprieve_scheduler::event::Event;
use reprieve_scheduler::{StepOutcome, WaitReason};

use crate::harness::*;

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default, uid: train}
spec: {completionMode: Indexed, parallelism: 2, completions: 2, template: {spec: {subdomain: train}}}
";

fn worker(name: &str, cpu: i32, node: Option<&str>) -> Object {
    let Object::Pod(pod) = pod(name, 0, cpu, node) else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    let owner = pod.metadata.owner_references.get_or_insert_default();
    owner.push(
        serde_json::from_value(serde_json::json!({
            "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train", "controller": true,
        }))
        .expect("an owner"),
    );
    Object::from(pod)
}

fn evicted_in_all(life: &mut Life) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        all.extend(evicted(&step).into_iter().map(str::to_owned));
        life.succeed(&step);
    }
    all
}

#[test]
fn a_gang_is_evicted_whole_also_if_its_owner_arrives_last() {
    let pods = vec![worker("a", 2, Some("node")), worker("b", 2, Some("node")), pod("high", 10, 2, None)];
    for is_owner_known in [true, false] {
        let owner = if is_owner_known { read(JOB) } else { Vec::new() };
        let mut life = Life::new(with(pods.iter().cloned().chain(owner).collect()));
        if !is_owner_known {
            let job = life.store(read(JOB).remove(0));
            life.scheduler.observe(Event::Upserted(job), life.now);
        }
        assert_eq!(evicted_in_all(&mut life), ["a", "b"], "{is_owner_known}");
    }
}

#[test]
fn pods_of_an_owner_that_is_gone_are_single_pods() {
    let pods = vec![worker("a", 2, Some("node")), worker("b", 2, Some("node")), pod("high", 10, 2, None)];
    let mut life = Life::new(with(pods.into_iter().chain(read(JOB)).collect()));
    let job = read(JOB).remove(0).key();
    life.version += 1;
    life.objects.remove(&job);
    life.scheduler.observe(Event::Deleted { key: job, version: life.version }, life.now);
    assert_eq!(evicted_in_all(&mut life).len(), 1);
}

#[test]
fn pending_pods_of_a_gang_are_placed_together_until_the_owner_says_otherwise() {
    let pods = [worker("a", 3, None), worker("b", 3, None)];
    let mut life = Life::new(with(pods.into_iter().chain(read(JOB)).collect()));
    let step = life.step();
    let is_refused = matches!(step.outcome, StepOutcome::Unschedulable { reason: WaitReason::NoFeasiblePlan, .. });
    assert!(is_refused, "{:?}", step.outcome);
    life.succeed(&step);
    let Object::OwnerJob(mut job) = read(JOB).remove(0) else { panic!("it is a Job") };
    Arc::make_mut(&mut job).metadata.annotations = Some([("reprieve.dev/gang".to_owned(), "false".to_owned())].into());
    let job = life.store(Object::OwnerJob(job));
    life.scheduler.observe(Event::Upserted(job), life.now);
    let step = life.step();
    assert!(matches!(&step.outcome, StepOutcome::Bind { placement } if placement.len() == 1), "{:?}", step.outcome);
}
