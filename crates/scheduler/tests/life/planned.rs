//! `reprieve plan` shows the actions that the scheduler then sends.

use k8s_openapi::api::batch::v1::Job;
use reprieve_api::kinds::Object;
use reprieve_api::kueue::workload_of_job;
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_api::read::documents;
use reprieve_api::{ObjectSet, Profile};
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::Kueue;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::Question;
use reprieve_report::decision::ActionReport;
use reprieve_report::planned_actions::workload_preempted;
use reprieve_report::report::decide_and_report;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::action::{Action, EventReason, SOFT_EVICTED, SOFT_EVICTION, VICTIM};
use serde_json::json;

use crate::harness::*;

const JOB: &str = "
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: job, namespace: default, uid: job}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: high, namespace: default, uid: high, creationTimestamp: 2026-01-01T00:00:00Z, labels: {pod-group.scheduling.sigs.k8s.io: job}}
spec: {schedulerName: reprieve, priority: 10, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: default, uid: low, creationTimestamp: 2026-01-01T00:00:00Z, labels: {quota.scheduling.koordinator.sh/preemptible: 'true'}}
spec: {schedulerName: reprieve, nodeName: node, priority: 0, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
";

/// A gang of two that needs the whole node.
const HIGH_GANG: &str = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: high, namespace: default, uid: high}
spec: {schedulingPolicy: {gang: {minCount: 2}}, priority: 10}
---
apiVersion: v1
kind: Pod
metadata: {name: high-1, namespace: default, uid: high-1, creationTimestamp: 2026-01-01T00:00:00Z}
spec: {schedulerName: reprieve, priority: 10, schedulingGroup: {podGroupName: high}, containers: [{name: main, resources: {requests: {cpu: 2}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: high-2, namespace: default, uid: high-2, creationTimestamp: 2026-01-01T00:00:00Z}
spec: {schedulerName: reprieve, priority: 10, schedulingGroup: {podGroupName: high}, containers: [{name: main, resources: {requests: {cpu: 2}}}]}
";

/// A queue with a guarantee of 3 cpus, and one without, which uses the node.
const QUEUES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {namespace: yunikorn, name: yunikorn-configs}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - name: a
          resources: {guaranteed: {vcore: 3}}
        - name: b
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: default, uid: low, creationTimestamp: 2026-01-01T00:00:00Z, labels: {queue: root.b, applicationId: low}}
spec: {schedulerName: reprieve, nodeName: node, priority: 0, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
---
apiVersion: v1
kind: Pod
metadata: {name: high, namespace: default, uid: high, creationTimestamp: 2026-01-01T00:00:00Z, labels: {queue: root.a, applicationId: high}}
spec: {schedulerName: reprieve, priority: 10, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
";

/// A queue of 4 cpus.
const QUOTA: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: plain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
";

/// A Job and its workload, admitted or pending.
fn workload(name: &str, priority: i32, is_admitted: bool) -> Vec<Object> {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": "3"}}});
    let job = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("job-{name}")},
        "spec": {"suspend": !is_admitted, "template": {"spec": {"containers": [container]}}},
    });
    let job = Object::from(serde_json::from_value::<Job>(job).expect("a Job"));
    let time = "2026-01-01T00:00:00Z";
    let status = format!(
        "conditions: [{{type: QuotaReserved, status: 'True', reason: a, message: a, lastTransitionTime: '{time}'}}], \
         admission: {{clusterQueue: team, podSetAssignments: [{{name: main, count: 1, flavors: {{cpu: plain}}, \
         resourceUsage: {{cpu: 3}}}}]}}"
    );
    let status = if is_admitted { status } else { String::new() };
    let own_name = workload_of_job(name, &format!("job-{name}"));
    let workload = format!(
        "
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: {own_name}
  namespace: default
  uid: {name}
  creationTimestamp: {time}
  ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: {name}, uid: job-{name}, controller: true}}]
spec:
  queueName: team
  priority: {priority}
  podSets:
  - name: main
    count: 1
    template: {{spec: {{containers: [{{name: main, resources: {{requests: {{cpu: 3}}}}}}]}}}}
status: {{{status}}}
"
    );
    read(&workload).into_iter().chain([job]).collect()
}

fn shown(row: &ActionReport) -> String {
    format!("{} {}{}{}: {}", row.action, row.pod, row.workload, row.group, row.text)
}

fn done(action: &Action) -> Option<String> {
    Some(match action {
        Action::Bind { pod, node } => format!("Bind {}: {node}", pod.name),
        Action::Nominate { pod, node } => format!("Nominate {}: {}", pod.name, node.as_deref().unwrap_or("no node")),
        Action::Mark { pod, message, .. } => format!("Mark {}: {message}", pod.name),
        Action::Unmark { pod } => format!("Unmark {}: ", pod.name),
        Action::Evict { pod } => format!("Delete {}: ", pod.name),
        Action::SoftEvict { pod, note, .. } => {
            format!("Label {}: {SOFT_EVICTION}: preempted, annotation {note}", pod.name)
        }
        Action::EmitEvent { reason: EventReason::FailedScheduling, .. } => return None,
        Action::EmitEvent { about, reason, message, .. } => {
            format!("Event {}: {}: {message}", about.name, reason.as_str())
        }
        Action::EvictWorkload { workload, shown, reason, .. } => {
            format!("Requeue {}: {}", workload.name, workload_preempted(shown, *reason))
        }
        Action::Admit { workload, admission } => format!("Admit {}: {}", workload.name, admission.cluster_queue),
        Action::StartJob { job, .. } => format!("Start {}: ", job.name),
        Action::SuspendJob { job } => format!("Suspend {}: ", job.name),
        Action::SetCondition { .. } | Action::WakeAt { .. } => return None,
        Action::CreateWorkload { .. }
        | Action::SetQuotaPending { .. }
        | Action::RequeueWorkload { .. }
        | Action::FinishWorkload { .. }
        | Action::RestoreJob { .. }
        | Action::GetObject { .. }
        | Action::Relist { .. } => panic!("in no plan: {action:?}"),
    })
}

/// The actions in a plan for `high`, and those that a scheduler sends until it waits or has nothing to do; both sorted.
fn planned_and_done(policy: Policy, objects: Vec<Object>) -> (Vec<String>, Vec<String>) {
    let mut life = Life::of(Scheduler::new("reprieve", policy), objects);
    let mut loaded = load_for(&life.scheduler.live().all_objects(), OnInvalid::Quarantine, &policy).expect("it loads");
    let (names, high) = (&loaded.names, NamespacedName::new("default", "high"));
    let of_job = NamespacedName::new("default", &workload_of_job("high", "job-high"));
    let workload = names.workload_id(&of_job).map(PreemptorId::Workload);
    let group = names.group_id(&high).map(PreemptorId::Group);
    let pod = names.pod_id(&high).map(PreemptorId::Pod);
    let preemptor = workload.or(group).or(pod).expect("the preemptor high");
    let question = Question { policy, now: life.now, preemptor };
    let mut planned: Vec<String> =
        decide_and_report(&question, &mut loaded).explanation.actions.iter().map(shown).collect();
    let mut done_by_run: Vec<String> = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        done_by_run.extend(step.actions.iter().filter_map(|(_, action)| done(action)));
        life.succeed(&step);
        done_by_run.extend(std::mem::take(&mut life.events).iter().filter_map(done));
        assert!(done_by_run.len() < 100, "it does not come to an end: {done_by_run:#?}");
    }
    planned.sort();
    done_by_run.sort();
    (planned, done_by_run)
}

fn marked_for_high(pod: Object) -> Object {
    marked_for("Pod default/high", "Marked", pod)
}

fn marked_for(unit: &str, reason: &str, pod: Object) -> Object {
    let Object::Pod(pod) = pod else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    let condition = json!({"type": VICTIM, "status": "True", "reason": reason, "message": unit});
    let condition = serde_json::from_value(condition).expect("a condition");
    pod.status.get_or_insert_default().conditions.get_or_insert_default().push(condition);
    Object::from(pod)
}

/// The pod, terminating because a scheduler preempted it.
fn terminating(pod: Object) -> Object {
    let Object::Pod(pod) = pod else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone();
    preempted(Object::from(pod))
}

fn preempted(pod: Object) -> Object {
    let Object::Pod(pod) = pod else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
    let condition = serde_json::from_value(condition).expect("a condition");
    pod.status.get_or_insert_default().conditions.get_or_insert_default().push(condition);
    Object::from(pod)
}

fn nominated(name: &str, cpu: i32) -> Object {
    let Object::Pod(pod) = pod(name, 10, cpu, None) else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    pod.status.get_or_insert_default().nominated_node_name = Some("node".to_owned());
    Object::from(pod)
}

#[test]
fn a_recorded_decision_names_a_job_by_one_of_its_pods() {
    let koordinator = Scheduler::new("reprieve", Policy::Koordinator(Koordinator::default()));
    let mut life = Life::of(koordinator.recording(Profile::of_policy("Koordinator")), with(read(JOB)));
    let record = life.step().record.expect("the decision is recorded");
    let test = documents("record", &record.text)[0].read(&mut ObjectSet::default()).expect("the record is valid");
    let preemptor = test.expect("the first document is the test").object.spec.preemptor.clone();
    assert_eq!((&*preemptor.kind, &*preemptor.name), ("Pod", "high"));
}

#[test]
fn a_plan_shows_the_actions_of_the_scheduler() {
    let kubernetes = Policy::Kubernetes(Kubernetes::default());
    let koordinator = Policy::Koordinator(Koordinator::default());
    let kueue = Policy::Kueue(Kueue::default());
    let low = || pod("low", 0, 3, Some("node"));
    let pods = || vec![low(), pod("high", 10, 3, None)];
    let gang = |others: Vec<Object>| read(HIGH_GANG).into_iter().chain(others).collect::<Vec<_>>();
    let whole = || {
        let bound = ["a", "b"].map(|name| {
            let Object::Pod(pod) = member(name) else { panic!("it is a pod") };
            let mut pod = Pod::clone(&pod);
            pod.node_name = Some("node".to_owned());
            Object::from(pod)
        });
        read(ALL_OR_NOTHING_GANG).into_iter().chain(bound).chain([pod("high", 10, 3, None)]).collect::<Vec<_>>()
    };
    let broken = |fits: bool| {
        let member = |name: &str| {
            let Object::Pod(pod) = marked_for_high(member(name)) else { panic!("it is a pod") };
            let mut pod = Pod::clone(&pod);
            pod.node_name = Some("node".to_owned());
            Object::from(pod)
        };
        let high = if fits { pod("high", 10, 1, None) } else { nominated("high", 4) };
        read(ALL_OR_NOTHING_GANG).into_iter().chain([terminating(member("a")), member("b"), high]).collect::<Vec<_>>()
    };
    // `early` is nominated and waits for `terminating`, which was preempted.
    let contested = |priority: i32, others: Vec<Object>| {
        let low = marked_for("Pod default/early", "Marked", pod("low", 0, 2, Some("node")));
        let Object::Pod(early) = pod("early", priority, 2, None) else { panic!("it is a pod") };
        let mut early = Pod::clone(&early);
        early.status.get_or_insert_default().nominated_node_name = Some("node".to_owned());
        others.into_iter().chain([low, Object::from(early)]).collect::<Vec<_>>()
    };
    let first = contested(20, vec![terminating(pod("terminating", 0, 1, Some("node"))), pod("high", 10, 1, None)]);
    let later = contested(5, vec![pod("top", 30, 1, Some("node")), pod("high", 10, 2, None)]);
    let soft_evicted = |pod: Object| {
        let mut pod = preempted(marked_for("Pod default/high", SOFT_EVICTED, pod));
        pod.metadata_mut().labels = Some([(SOFT_EVICTION.to_owned(), "x".to_owned())].into());
        pod
    };
    let quota = |workloads: Vec<Object>| read(QUOTA).into_iter().chain(workloads).collect::<Vec<_>>();
    let mut failures = Vec::new();
    for (case, policy, objects, actions) in [
        ("a pod preempts", kubernetes, pods(), 5),
        ("a pod is bound", kubernetes, vec![pod("high", 10, 3, None)], 2),
        ("a pod preempts a gang", kubernetes, whole(), 8),
        ("a gang preempts", kubernetes, gang(vec![low()]), 6),
        ("a gang is bound", kubernetes, gang(Vec::new()), 4),
        ("a victim is marked", kubernetes, vec![marked_for_high(low()), nominated("high", 3)], 3),
        (
            "a marked victim is listed first",
            kubernetes,
            vec![marked_for_high(pod("a", 0, 3, Some("node"))), nominated("high", 3)],
            3,
        ),
        (
            "a mark is not needed",
            kubernetes,
            [pods(), vec![marked_for_high(pod("idle", 0, 1, Some("node")))]].concat(),
            6,
        ),
        (
            "no mark is needed",
            kubernetes,
            vec![marked_for_high(pod("idle", 0, 1, Some("node"))), pod("high", 10, 3, None)],
            3,
        ),
        ("no nomination stands", kubernetes, vec![pod("top", 20, 3, Some("node")), nominated("high", 3)], 1),
        ("a marked gang is broken", kubernetes, broken(true), 5),
        ("a broken gang is finished while its preemptor waits", kubernetes, broken(false), 3),
        ("a victim is marked for a pod that is scheduled first", kubernetes, first, 1),
        ("a victim is marked for a pod that is scheduled later", kubernetes, later, 5),
        ("a soft-evicted victim leaves room", koordinator, vec![soft_evicted(low()), nominated("high", 3)], 0),
        (
            "a soft-evicted victim needs no second label",
            koordinator,
            vec![soft_evicted(low()), pod("high", 10, 3, None)],
            1,
        ),
        ("a pod of a queue preempts", Policy::YuniKorn(YuniKorn::default()), read(QUEUES), 5),
        ("a pod without a job preempts", koordinator, pods(), 5),
        ("a job preempts", koordinator, read(JOB), 5),
        (
            "a job deletes",
            Policy::Koordinator(Koordinator { deletes_victims: true, ..Koordinator::default() }),
            read(JOB),
            5,
        ),
        ("a workload preempts", kueue, quota([workload("low", 0, true), workload("high", 10, false)].concat()), 5),
        ("a workload is admitted", kueue, quota(workload("high", 10, false)), 4),
    ] {
        let (planned, mut done) = planned_and_done(policy, with(objects));
        // `early` loses its node to `high`, so its nomination is given up; the plan for `high` does not show that.
        done.retain(|action| action != "Nominate default/early: no node");
        if (&planned, planned.len()) != (&done, actions) {
            failures.push(format!("{case}: {actions} actions expected, planned {planned:#?}, done {done:#?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A pod that keeps the guarantee of its queue satisfied when `low` is evicted.
const KEEPS_GUARANTEE: &str = "
---
apiVersion: v1
kind: Pod
metadata: {name: stays, namespace: default, uid: stays, creationTimestamp: 2026-01-01T00:00:00Z, labels: {queue: root.b, applicationId: stays}}
spec: {schedulerName: reprieve, nodeName: node, priority: 0, containers: [{name: main, resources: {requests: {cpu: 1}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
";

#[test]
fn an_event_says_why_the_queue_of_a_victim_loses_pods() {
    for (guarantee, others, why) in [
        ("name: b", "", "queue root.b has no guarantee"),
        (
            "name: b\n          resources: {guaranteed: {vcore: 1}}",
            KEEPS_GUARANTEE,
            "queue root.b uses more than its guarantee",
        ),
    ] {
        let objects = with(read(&(QUEUES.replace("name: b", guarantee) + others)));
        let (planned, done) = planned_and_done(Policy::YuniKorn(YuniKorn::default()), objects);
        assert_eq!(planned, done, "{why}");
        let event = format!("Event default/low: Preempted: preempted for Pod default/high: {why}");
        assert!(planned.contains(&event), "{planned:#?}");
    }
}
