//! docs/rules/toleration.md#ta3: a preemptor that waits for the end of a preemption toleration is retried at that time, although nothing
//! changes in the cluster.

use reprieve_loader::policy::policy;
use reprieve_simulator::invariants::check;
use reprieve_simulator::run::JobRecord;
use reprieve_simulator::scenario::Scenario;

const SECOND: i64 = 1_000_000;

/// A node is full of a pod that tolerates preemption for an hour. A minute later a preemptor arrives, alone or as a gang.
fn wait_in_seconds(profile: &str, victim_priority: i32, preemptor_priority: i32, gang: &str, objects: &str) -> i64 {
    let text = format!(
        "
apiVersion: reprieve.dev/v1alpha1
kind: Scenario
metadata: {{name: tolerations}}
spec:
  end: 3h
  profiles: [{profile}]
  nodes: [{{name: node, count: 1, allocatable: {{cpu: 8}}}}]
  priorityClasses:
  - name: tolerant
    value: {victim_priority}
    annotations:
      preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: '10000'
      preemption-toleration.scheduling.x-k8s.io/toleration-seconds: '3600'
  queues:
  - {{name: victims}}
  - {{name: preemptors, guarantee: {{cpu: 8}}}}
  jobs:
  - {{name: holder, arrivals: {{at: [0s]}}, requests: {{cpu: 8}}, priorityClass: tolerant, queue: victims}}
  - name: urgent
    arrivals: {{at: [1m]}}
    pods: 2
    {gang}
    requests: {{cpu: 4}}
    priority: {preemptor_priority}
    queue: preemptors
    runs: 10m
{objects}"
    );
    let scenario = Scenario::read("scenario", &text).unwrap();
    let profile = &scenario.profiles()[0];
    let run = check(scenario.input(0).setup(policy(profile).unwrap()).unwrap()).unwrap();
    let urgent: &JobRecord = run.jobs.iter().find(|job| job.name.starts_with("default/urgent")).unwrap();
    (urgent.started.unwrap_or(run.ended) - urgent.submitted) / SECOND
}

/// An hour less the first minute; then the victim terminates, also by another operator, and the preemptor starts.
fn is_end_of_toleration(waited: i64) -> bool {
    (3540..3660).contains(&waited)
}

const SOFT: &str = "{policy: Koordinator, args: {podShouldBeDeletedWhenPreempted: false}}";
const DELETING: &str = "{policy: Koordinator, args: {podShouldBeDeletedWhenPreempted: true}}";

/// A priority of the victims' queue counts 100 less outside of it.
const OFFSET: &str = "
---
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        submitacl: '*'
        queues:
        - name: victims
          properties: {priority.offset: '-100'}
        - name: preemptors
          resources: {guaranteed: {vcore: 8}}
";

#[test]
fn end_of_a_toleration_wakes_a_preemptor_under_every_policy() {
    for (profile, gang) in [
        ("{policy: Kubernetes}", ""),
        ("{policy: Kubernetes}", "gang: {}"),
        (SOFT, ""),
        (SOFT, "gang: {}"),
        (DELETING, ""),
        (DELETING, "gang: {}"),
        ("{policy: YuniKorn}", ""),
    ] {
        let waited = wait_in_seconds(profile, 1, 100, gang, "");
        assert!(is_end_of_toleration(waited), "{profile}, {gang}: {waited} s");
    }
}

/// YuniKorn's law 6 compares priorities through the offsets of queues, and allows equal ones.
#[test]
fn end_of_a_toleration_wakes_a_preemptor_of_equal_or_lower_priority_under_yunikorn() {
    for (victim, preemptor, objects) in [(100, 100, ""), (150, 100, OFFSET)] {
        let waited = wait_in_seconds("{policy: YuniKorn}", victim, preemptor, "", objects);
        assert!(is_end_of_toleration(waited), "{preemptor} over {victim}: {waited} s");
    }
    assert_eq!(wait_in_seconds("{policy: Kubernetes}", 100, 100, "", ""), 3 * 3600 - 60, "it may never take the pod");
}
