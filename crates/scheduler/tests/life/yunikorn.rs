//! Queues, gangs and DaemonSet pods under policy YuniKorn.

use reprieve_api::kinds::Object;
use reprieve_api::pod::Pod;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_scheduler::event::Event;
use reprieve_scheduler::{Scheduler, Step, StepOutcome};

use crate::harness::*;

/// Two nodes, and two queues that share 4 cpus.
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
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: company
        resources: {max: {vcore: 4}}
        queues:
        - {name: a, resources: {guaranteed: {vcore: 4}}}
        - {name: b}
";

/// The owner of DaemonSet pods.
const DAEMON_SET: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default, uid: agent}
";

fn of_queue(queue: &str, mut pod: Object) -> Object {
    let labels = pod.metadata_mut().labels.get_or_insert_default();
    labels.insert("queue".to_owned(), format!("root.company.{queue}"));
    pod
}

fn life(objects: impl IntoIterator<Item = Object>) -> Life {
    let scheduler = Scheduler::new("reprieve", Policy::YuniKorn(YuniKorn::default()));
    Life::of(scheduler, read(CLUSTER).into_iter().chain(objects).collect())
}

fn add(life: &mut Life, object: Object) {
    let object = life.store(object);
    life.scheduler.observe(Event::Upserted(object), life.now);
}

/// Lets the scheduler continue until it is idle, and asserts that it places and evicts nothing.
fn assert_nothing_happens(life: &mut Life) {
    while let Some(step) = life.scheduler.step(life.now) {
        let acts = matches!(
            step.outcome,
            StepOutcome::Bind { .. } | StepOutcome::MarkVictims { .. } | StepOutcome::Evict { .. }
        );
        assert!(!acts, "{step:?}");
        life.succeed(&step);
    }
}

/// The next step that binds a pod.
fn bind(life: &mut Life) -> Step {
    for _ in 0..20 {
        let step = life.step();
        life.succeed(&step);
        if matches!(step.outcome, StepOutcome::Bind { .. }) {
            return step;
        }
    }
    panic!("no pod is bound");
}

fn unit(step: &Step) -> String {
    step.unit.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// docs/rules/yunikorn.md#y8: `other` has room for both late pods, and so have the queues once the first victim is gone, if the preemptor did
/// not hold the guarantee of its queue and the maximum above.
#[test]
fn no_other_pod_takes_the_quota_for_which_victims_leave() {
    let victims = ["low-1", "low-2"].map(|name| of_queue("b", pod(name, 0, 2, Some("node"))));
    let mut life = life(victims.into_iter().chain([of_queue("a", pod("high", 10, 4, None))]));
    for _ in 0..2 {
        let step = life.step();
        life.succeed(&step);
    }
    life.change("low-2", |pod| {
        assert!(pod.metadata.deletion_timestamp.is_some(), "it is evicted");
    });
    life.delete("low-1");
    for (name, queue) in [("late-a", "a"), ("late-b", "b")] {
        add(&mut life, of_queue(queue, pod(name, 100, 2, None)));
    }
    assert_nothing_happens(&mut life);
    life.delete("low-2");
    let step = bind(&mut life);
    assert_eq!(unit(&step), "Pod default/high", "{step:?}");
    assert_nothing_happens(&mut life);
}

/// docs/rules/yunikorn.md#y22
#[test]
fn gang_is_evicted_whole() {
    let group = read(
        "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
",
    );
    let members = [("g-1", "node"), ("g-2", "other")].map(|(name, node)| {
        let Object::Pod(pod) = of_queue("b", pod(name, 0, 2, Some(node))) else { panic!("it is a pod") };
        let mut pod = Pod::clone(&pod);
        pod.spec_mut().scheduling_group.get_or_insert_default().pod_group_name = Some("gang".to_owned());
        Object::from(pod)
    });
    let mut life = life(group.into_iter().chain(members).chain([of_queue("a", pod("high", 10, 2, None))]));
    let step = life.step();
    life.succeed(&step);
    let step = life.step();
    assert_eq!(evicted(&step), ["g-1", "g-2"], "{step:?}");
}

/// docs/rules/yunikorn.md#y17: the pod of a DaemonSet reserves its node while it is pending, and no longer.
#[test]
fn pending_daemon_set_pod_reserves_its_node_until_it_is_gone() {
    let busy = ["node", "other"].map(|node| of_queue("b", pod(&format!("busy-{node}"), 100, 1, Some(node))));
    let agents = ["node", "other"].map(|node| {
        let text = format!(
            "
apiVersion: v1
kind: Pod
metadata:
  name: agent-{node}
  namespace: default
  uid: agent-{node}
  creationTimestamp: 2026-01-01T00:00:00Z
  ownerReferences: [{{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: agent}}]
spec:
  schedulerName: reprieve
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [{node}]}}]}}]
  containers: [{{name: main, resources: {{requests: {{cpu: 4}}}}}}]
status: {{phase: Pending}}
"
        );
        read(&text).remove(0)
    });
    let objects = read(DAEMON_SET).into_iter().chain(busy).chain(agents);
    let mut life = life(objects.chain([of_queue("b", pod("late", 0, 1, None))]));
    assert_nothing_happens(&mut life);
    life.delete("agent-other");
    let step = bind(&mut life);
    let StepOutcome::Bind { placement } = &step.outcome else { panic!("{step:?}") };
    assert_eq!((unit(&step).as_str(), placement[0].1.as_str()), ("Pod default/late", "other"));
}
