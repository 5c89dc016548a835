//! Elastic quotas under policy Koordinator, while victims leave.

use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_scheduler::event::Event;
use reprieve_scheduler::{Scheduler, StepOutcome};

use crate::harness::*;

/// Two nodes, and two quotas of 4 cpus that share 4.
const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 4, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: other}
status: {allocatable: {cpu: 4, pods: 10}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: company, namespace: default}
spec: {max: {cpu: 4}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: a, namespace: default, labels: {quota.scheduling.koordinator.sh/parent: company}}
spec: {max: {cpu: 4}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: b, namespace: default, labels: {quota.scheduling.koordinator.sh/parent: company}}
spec: {max: {cpu: 4}}
";

fn of_quota(quota: &str, mut pod: reprieve_api::kinds::Object) -> reprieve_api::kinds::Object {
    let labels = pod.metadata_mut().labels.get_or_insert_default();
    labels.insert("quota.scheduling.koordinator.sh/name".to_owned(), quota.to_owned());
    pod
}

/// docs/rules/koordinator.md#q3: both nodes have room for `late` after the first victim is gone, and the quotas too, if the preemptor did
/// not hold them.
#[test]
fn no_other_pod_takes_the_quota_for_which_victims_leave() {
    let victims = ["low-1", "low-2"].map(|name| of_quota("b", pod(name, 0, 2, Some("node"))));
    let high = of_quota("a", pod("high", 10, 4, None));
    let policy = Policy::Koordinator(Koordinator { deletes_victims: true, ..Koordinator::default() });
    let objects = read(CLUSTER).into_iter().chain(victims).chain([high]).collect();
    let mut life = Life::of(Scheduler::new("reprieve", policy), objects);
    for _ in 0..2 {
        let step = life.step();
        life.succeed(&step);
    }
    life.delete("low-1");
    let late = life.store(of_quota("b", pod("late", 0, 2, None)));
    life.scheduler.observe(Event::Upserted(late), life.now);
    while let Some(step) = life.scheduler.step(life.now) {
        assert!(!matches!(step.outcome, StepOutcome::Bind { .. } | StepOutcome::MarkVictims { .. }), "{step:?}");
        life.succeed(&step);
    }
    life.delete("low-2");
    let step = life.step();
    let is_high = step.unit.as_ref().map(ToString::to_string).as_deref() == Some("Pod default/high");
    assert!(is_high && matches!(step.outcome, StepOutcome::Bind { .. }), "{step:?}");
    life.succeed(&step);
    while let Some(step) = life.scheduler.step(life.now) {
        assert!(!matches!(step.outcome, StepOutcome::Bind { .. } | StepOutcome::MarkVictims { .. }), "{step:?}");
        life.succeed(&step);
    }
}
