//! The scheduler under policy Kueue, driven one event at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::kueue::workload_of_job;
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{Kueue, PlacementMode};
use reprieve_scheduler::action::{Action, EventReason};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step};

/// 2026-01-01T01:00:00Z.
const NOW: Timestamp = Timestamp(1_767_229_200_000_000);

/// A queue of 4 cpus, and two nodes of 2.
const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: 2, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
status: {allocatable: {cpu: 2, pods: 10}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: plain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  queueingStrategy: BestEffortFIFO
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
";

fn workload(name: &str, queue: &str, priority: i32, cpu: i32, status: &str) -> String {
    format!(
        "
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {{name: {name}, namespace: default, uid: {name}, creationTimestamp: 2026-01-01T00:00:00Z}}
spec:
  queueName: {queue}
  priority: {priority}
  podSets:
  - name: main
    count: 1
    template: {{spec: {{containers: [{{name: main, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}
status: {status}
"
    )
}

fn admitted(cpu: i32) -> String {
    format!(
        "{{conditions: [{{type: QuotaReserved, status: 'True', reason: a, message: a, \
         lastTransitionTime: '2026-01-01T00:00:00Z'}}], admission: {{clusterQueue: team, podSetAssignments: \
         [{{name: main, count: 1, flavors: {{cpu: plain}}, resourceUsage: {{cpu: {cpu}}}}}]}}}}"
    )
}

fn read(text: &str) -> Vec<Object> {
    let mut objects = ObjectSet::default();
    for document in documents("test", text) {
        document.read(&mut objects).unwrap_or_else(|error| panic!("{error}"));
    }
    objects.iter().collect()
}

/// A scheduler that has listed these objects.
fn synced(text: &str, placement: PlacementMode) -> Scheduler {
    let mut objects: BTreeMap<ObjectKey, Object> = BTreeMap::new();
    for (index, mut object) in read(text).into_iter().enumerate() {
        object.metadata_mut().resource_version = Some((index + 1).to_string());
        objects.insert(object.key(), object);
    }
    let mut scheduler = Scheduler::new("reprieve", Policy::Kueue(Kueue { placement, ..Kueue::default() }));
    let list = |scheduler: &mut Scheduler, kind: Kind| {
        let objects = objects.values().filter(|object| object.kind() == kind).cloned().collect();
        scheduler.observe(Event::Listed { kind, objects, version: 100 }, NOW);
    };
    for &kind in Kind::ALL {
        list(&mut scheduler, kind);
    }
    let early = NOW.plus_seconds(-1);
    while scheduler.step(early).is_some() {}
    scheduler.observe(Event::TimerFired, NOW);
    assert!(scheduler.step(NOW).is_some(), "the changed kinds are listed again");
    for kind in [Kind::Pod, Kind::KueueWorkload, Kind::Job] {
        list(&mut scheduler, kind);
    }
    scheduler
}

fn steps(scheduler: &mut Scheduler, now: Timestamp) -> Vec<Step> {
    std::iter::from_fn(|| scheduler.step(now)).collect()
}

fn admits(steps: &[Step]) -> Vec<&str> {
    let actions = steps.iter().flat_map(|step| &step.actions);
    let admitted = actions.filter_map(|(_, action)| match action {
        Action::Admit { workload, .. } => Some(workload.name.name.as_str()),
        _ => None,
    });
    admitted.collect()
}

#[test]
fn a_preempted_workload_is_excluded_from_the_cycle_while_its_preemptor_is_pending() {
    let preempted = "{conditions: [\
        {type: Preempted, status: 'True', reason: a, message: a, lastTransitionTime: '2026-01-01T00:59:50Z'}, \
        {type: reprieve.dev/PreemptedFor, status: 'True', reason: a, message: default/high, \
         lastTransitionTime: '2026-01-01T00:59:50Z'}, \
        {type: reprieve.dev/PreemptedFor, status: 'True', reason: a, message: default/high, \
         lastTransitionTime: '2026-01-01T00:59:50Z'}, \
        {type: Requeued, status: 'True', reason: a, message: a, lastTransitionTime: '2026-01-01T00:59:50Z'}]}";
    let text = [
        CLUSTER,
        &workload("older", "team", 100, 2, &admitted(2)),
        &workload("high", "team", 10, 4, "{}"),
        &workload("low", "team", 0, 2, preempted),
        &workload("other", "team", 0, 3, "{}"),
    ]
    .concat();
    let mut scheduler = synced(&text, PlacementMode::QuotaOnly);
    let first = steps(&mut scheduler, NOW);
    assert_eq!(admits(&first), [""; 0], "the freed quota is for the preemptor");
    let until = NOW.plus_seconds(290);
    let timers = first.iter().flat_map(|step| &step.actions);
    assert!(timers.into_iter().any(|(_, action)| matches!(action, Action::WakeAt { at } if *at == until)), "{first:?}");
    let later = until.plus_seconds(-1);
    scheduler.observe(Event::TimerFired, later);
    assert_eq!(admits(&steps(&mut scheduler, later)), [""; 0]);
    scheduler.observe(Event::TimerFired, until);
    assert_eq!(admits(&steps(&mut scheduler, until)), ["low"]);
}

#[test]
fn an_invalid_workload_is_ignored_and_the_others_are_admitted() {
    let text = [CLUSTER, &workload("bad", "nowhere", 10, 1, "{}"), &workload("good", "team", 0, 1, "{}")].concat();
    let mut scheduler = synced(&text, PlacementMode::QuotaOnly);
    let steps = steps(&mut scheduler, NOW);
    assert_eq!(admits(&steps), ["good"], "{steps:?}");
    let actions: Vec<&Action> = steps.iter().flat_map(|step| &step.actions).map(|(_, action)| action).collect();
    let refuses = |action: &&Action| matches!(action, Action::SetQuotaPending { workload, message } if workload.name.name == "bad" && message.contains("nowhere"));
    let has_event = |action: &&Action| matches!(action, Action::EmitEvent { about, reason: EventReason::Refused, .. } if about.name.name == "bad");
    assert_eq!(actions.iter().copied().filter(refuses).count(), 1, "{actions:?}");
    assert_eq!(actions.iter().copied().filter(has_event).count(), 0, "its condition says so: {actions:?}");
}

#[test]
fn the_first_of_equal_workloads_is_decided_and_all_are_reported() {
    let waiting: String = ["b", "c", "d"].map(|name| workload(name, "team", 0, 2, "{}")).concat();
    let text = format!("{CLUSTER}{}{waiting}", workload("a", "team", 0, 3, &admitted(3)));
    let mut scheduler = synced(&text, PlacementMode::QuotaOnly);
    let steps = steps(&mut scheduler, NOW);
    let decided: Vec<String> = steps.iter().filter_map(|step| Some(step.unit.as_ref()?.to_string())).collect();
    assert_eq!(decided, ["Workload default/b"]);
    let actions = steps.iter().flat_map(|step| &step.actions);
    let reported = actions.filter_map(|(_, action)| match action {
        Action::SetQuotaPending { workload, .. } => Some(workload.name.name.as_str()),
        _ => None,
    });
    assert_eq!(reported.collect::<Vec<_>>(), ["b", "c", "d"]);
}

#[test]
fn joint_placement_admits_only_workloads_that_fit_on_nodes() {
    let text = [CLUSTER, &workload("wide", "team", 0, 4, "{}"), &workload("narrow", "team", 0, 2, "{}")].concat();
    assert_eq!(admits(&steps(&mut synced(&text, PlacementMode::QuotaOnly), NOW)), ["narrow"]);
    let only_wide = [CLUSTER, &workload("wide", "team", 0, 4, "{}")].concat();
    assert_eq!(admits(&steps(&mut synced(&only_wide, PlacementMode::QuotaOnly), NOW)), ["wide"]);
    assert_eq!(admits(&steps(&mut synced(&only_wide, PlacementMode::Joint), NOW)), [""; 0], "no node has 4 cpus");
    assert_eq!(admits(&steps(&mut synced(&text, PlacementMode::Joint), NOW)), ["narrow"]);
}

#[test]
fn an_evicted_workload_of_another_namespace_shows_the_uid_of_its_preemptor() {
    let cluster = CLUSTER.replace(
        "queueingStrategy: BestEffortFIFO",
        "queueingStrategy: BestEffortFIFO\n  preemption: {withinClusterQueue: LowerPriority}",
    );
    for (namespace, shown) in [("default", "default/high"), ("other", "high")] {
        let low = workload("low", "team", 0, 4, &admitted(4))
            .replace("namespace: default", &format!("namespace: {namespace}"));
        let text = format!("{cluster}{low}{}", workload("high", "team", 10, 4, "{}"));
        let steps = steps(&mut synced(&text, PlacementMode::QuotaOnly), NOW);
        let actions: Vec<Action> = steps.into_iter().flat_map(|step| step.actions).map(|(_, action)| action).collect();
        let evicted = actions.iter().find_map(|action| match action {
            Action::EvictWorkload { shown, .. } => Some(shown.as_str()),
            _ => None,
        });
        assert_eq!(evicted, Some(shown), "{actions:?}");
        assert!(!actions.iter().any(|action| matches!(action, Action::EmitEvent { .. })), "events follow the eviction");
    }
}

#[test]
fn pending_workloads_are_listed_by_defined_queue_and_reason() {
    let waiting = [workload("large", "team", 1, 5, "{}"), workload("strange", "nowhere", 1, 1, "{}")].concat();
    let mut scheduler = synced(
        &format!("{CLUSTER}{}{waiting}", workload("runs", "team", 0, 1, &admitted(1))),
        PlacementMode::QuotaOnly,
    );
    let written = refusals(steps(&mut scheduler, NOW));
    let mut reasons: Vec<_> = scheduler.waiting_by_queue().map(|(queue, reason)| (queue, reason.as_str())).collect();
    reasons.sort();
    let in_flight = [("other".to_owned(), "ActionInFlight"), ("team".to_owned(), "ActionInFlight")];
    assert_eq!(reasons, in_flight, "their conditions are being written");
    let large = workload("large", "team", 1, 5, &refused(&written["large"]));
    let strange = workload("strange", "nowhere", 1, 1, &refused(&written["strange"]));
    let mut scheduler = synced(&format!("{CLUSTER}{large}{strange}"), PlacementMode::QuotaOnly);
    steps(&mut scheduler, NOW);
    let mut reasons: Vec<_> = scheduler.waiting_by_queue().map(|(queue, reason)| (queue, reason.as_str())).collect();
    reasons.sort();
    assert_eq!(reasons, [("other".to_owned(), "InvalidObject"), ("team".to_owned(), "NoFeasiblePlan")]);
}

/// Queue `team` lends 2 of its 4 cpus to `other`, which cannot be made to return them.
const LENT: &str = "
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: other}
spec:
  cohortName: all
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 0}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: other, namespace: default}
spec: {clusterQueue: other}
";

/// docs/rules/kueue.md#ka1: a `BestEffortFIFO` queue gets lent quota back before others borrow more of it.
#[test]
fn quota_of_a_waiting_workload_is_not_lent_again() {
    let cluster = CLUSTER.replace("queueingStrategy", "cohortName: all\n  queueingStrategy");
    let loan = workload("loan", "other", 0, 2, &admitted(2).replace("team", "other"));
    let (owner, borrower) = (workload("owner", "team", 0, 4, "{}"), workload("borrower", "other", 100, 1, "{}"));
    let text = [cluster.as_str(), LENT, &loan, &owner, &borrower].concat();
    let mut scheduler = synced(&text, PlacementMode::QuotaOnly);
    let waiting = steps(&mut scheduler, NOW);
    assert_eq!(admits(&waiting), [""; 0]);
    for (action, _) in waiting.into_iter().flat_map(|step| step.actions) {
        scheduler.observe(Event::ActionCompleted { action, result: ActionResult::Ok { version: 0 } }, NOW);
    }
    let key = ObjectKey::new(Kind::KueueWorkload, NamespacedName::new("default", "loan"));
    scheduler.observe(Event::Deleted { key, version: 101 }, NOW);
    assert_eq!(admits(&steps(&mut scheduler, NOW)), ["owner"]);
}

fn refused(message: &str) -> String {
    format!(
        "{{conditions: [{{type: QuotaReserved, status: 'False', reason: Pending, message: {message:?}, \
         lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}"
    )
}

/// The messages that the steps write on workloads without quota, by workload.
fn refusals(steps: Vec<Step>) -> BTreeMap<String, String> {
    let actions = steps.into_iter().flat_map(|step| step.actions);
    let messages = actions.filter_map(|(_, action)| match action {
        Action::SetQuotaPending { workload, message } => Some((workload.name.name, message)),
        _ => None,
    });
    messages.collect()
}

#[test]
fn the_condition_of_a_workload_is_rewritten_when_the_reason_changes() {
    let written = |message: &str| {
        let text = format!("{CLUSTER}{}", workload("large", "team", 1, 5, &refused(message)));
        refusals(steps(&mut synced(&text, PlacementMode::QuotaOnly), NOW)).remove("large")
    };
    let enough = "NoFeasiblePlan: no set of victims that the policy allows is enough";
    assert_eq!(written("QueueLimit: a").as_deref(), Some(enough));
    assert_eq!(written(enough), None, "a restarted scheduler does not write it again");
}

#[cfg(feature = "deliberate-bugs")]
mod faults {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use reprieve_api::meta::NamespacedName;
    use reprieve_scheduler::{Bug, UnitRef};

    use super::*;

    #[test]
    fn a_panic_in_a_cycle_affects_one_workload() {
        let text =
            format!("{CLUSTER}{}{}", workload("fatal", "team", 10, 2, "{}"), workload("other", "team", 0, 4, "{}"));
        let mut scheduler = synced(&text, PlacementMode::QuotaOnly).with_bug(Some(Bug::Panic));
        assert!(catch_unwind(AssertUnwindSafe(|| scheduler.step(NOW))).is_err());
        assert_eq!(scheduler.recover(NOW), Some(UnitRef::Workload(NamespacedName::new("default", "fatal"))));
        assert_eq!(admits(&steps(&mut scheduler, NOW)), ["other"]);
    }
}

#[test]
fn a_limit_range_applies_from_its_creation_to_its_deletion() {
    let limits = "{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, max: {cpu: 1}}]}}";
    let mut scheduler = synced(&[CLUSTER, &workload("one", "team", 0, 2, "{}")].concat(), PlacementMode::QuotaOnly);
    let mut object = read(limits).remove(0);
    object.metadata_mut().resource_version = Some("101".to_owned());
    scheduler.observe(Event::Upserted(object.clone()), NOW);
    let refused = steps(&mut scheduler, NOW);
    assert_eq!(admits(&refused), [""; 0], "it requests more than the maximum");
    for (action, _) in refused.into_iter().flat_map(|step| step.actions) {
        scheduler.observe(Event::ActionCompleted { action, result: ActionResult::Ok { version: 0 } }, NOW);
    }
    scheduler.observe(Event::Deleted { key: object.key(), version: 102 }, NOW);
    assert_eq!(admits(&steps(&mut scheduler, NOW)), ["one"]);
}

#[test]
fn the_workload_of_a_job_has_the_priority_of_its_class_or_of_the_default_class() {
    let classes = "
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: normal}, value: 7, globalDefault: true}
";
    for (classes, spec, priority) in [
        (classes, r#"{"priorityClassName": "high"}"#, 100),
        (classes, r#"{"priorityClassName": ""}"#, 7),
        (classes, "{}", 7),
        (classes, r#"{"priorityClassName": "unknown"}"#, 0),
        (classes, r#"{"priority": 2000000000}"#, 7),
        (classes, r#"{"priority": 2000000000, "priorityClassName": "high"}"#, 100),
        ("", r#"{"priority": 2000000000}"#, 0),
        ("", "{}", 0),
    ] {
        let mut scheduler = synced(&[CLUSTER, classes].concat(), PlacementMode::QuotaOnly);
        let text = format!(
            r#"{{"metadata": {{"name": "one", "uid": "one", "labels": {{"kueue.x-k8s.io/queue-name": "team"}}}},
             "spec": {{"suspend": true, "template": {{"spec": {spec}}}}}}}"#
        );
        let mut job = Object::from_json(Kind::Job, &text).expect("a Job");
        job.metadata_mut().resource_version = Some("101".to_owned());
        scheduler.observe(Event::Upserted(job), NOW);
        let steps = steps(&mut scheduler, NOW);
        let created = steps.iter().flat_map(|step| &step.actions).find_map(|(_, action)| match action {
            Action::CreateWorkload { workload } => workload.spec.priority,
            _ => None,
        });
        assert_eq!(created, Some(priority), "{spec}");
    }
}

/// A started Job of `default`, with the uid `job`.
fn started_job(status: &str) -> Object {
    let text = format!(
        r#"{{"metadata": {{"name": "job", "namespace": "default", "uid": "job", "resourceVersion": "200",
                          "labels": {{"kueue.x-k8s.io/queue-name": "team"}}}},
             "spec": {{"suspend": false, "parallelism": 1, "completions": 1, "template": {{"spec": {{"containers": [
                {{"name": "main", "resources": {{"requests": {{"cpu": "2"}}}}}}]}}}}}}, "status": {status}}}"#
    );
    Object::from_json(Kind::Job, &text).expect("a Job")
}

/// The admitted Workload that the scheduler has created for that Job.
fn own_workload(more: &str) -> String {
    let text = workload(&workload_of_job("job", "job"), "team", 0, 2, &admitted(2));
    let owner = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job, uid: job, controller: true}]";
    text.replace("creationTimestamp", &format!("{owner}, creationTimestamp"))
        .replace("spec:\n", &format!("spec:\n{more}"))
}

fn actions(steps: Vec<Step>) -> Vec<Action> {
    steps.into_iter().flat_map(|step| step.actions).map(|(_, action)| action).collect()
}

/// A Workload is a Job's only under the name that follows from the Job, in the Job's namespace.
#[test]
fn a_workload_that_only_names_a_job_does_not_stop_it() {
    let own = own_workload("");
    let stops = |text: &str| {
        let mut scheduler = synced(text, PlacementMode::QuotaOnly);
        scheduler.observe(Event::Upserted(started_job("{}")), NOW);
        actions(steps(&mut scheduler, NOW)).iter().any(|action| matches!(action, Action::SuspendJob { .. }))
    };
    assert!(!stops(&[CLUSTER, &own].concat()));
    assert!(stops(&[CLUSTER, &own_workload("  active: false\n")].concat()), "its own workload stops it");
    let forged = own_workload("  active: false\n");
    let elsewhere = forged.replace("namespace: default", "namespace: attacker");
    let other_name = forged.replace(&workload_of_job("job", "job"), "zzz");
    for forged in [elsewhere, other_name] {
        assert!(!stops(&[CLUSTER, &own, &forged].concat()), "{forged}");
        assert!(!stops(&[CLUSTER, &forged, &own].concat()), "{forged}");
    }
}

/// A pod is a Job's only in the Job's namespace: while a preempted Job has pods, its workload keeps its quota.
#[test]
fn a_pod_of_another_namespace_does_not_keep_the_quota_of_a_job() {
    let pod = |namespace: &str| {
        format!(
            "
---
apiVersion: v1
kind: Pod
metadata:
  name: pod
  namespace: {namespace}
  uid: pod
  ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: job, uid: job, controller: true}}]
spec: {{containers: [{{name: main}}]}}
"
        )
    };
    for (namespace, requeued) in [("default", false), ("attacker", true)] {
        let evicted = own_workload("").replace(
            "[{type: QuotaReserved",
            "[{type: Evicted, status: 'True', reason: a, message: a, \
            lastTransitionTime: '2026-01-01T00:00:00Z'}, {type: QuotaReserved",
        );
        let mut scheduler = synced(&[CLUSTER, &evicted, &pod(namespace)].concat(), PlacementMode::QuotaOnly);
        let mut job = started_job(r#"{"conditions": [{"type": "Suspended", "status": "True"}]}"#);
        let Object::Job(own) = &mut job else { unreachable!("it is a Job") };
        Arc::make_mut(own).spec.get_or_insert_default().suspend = Some(true);
        scheduler.observe(Event::Upserted(job), NOW);
        let actions = actions(steps(&mut scheduler, NOW));
        let requeues = actions.iter().any(|action| matches!(action, Action::RequeueWorkload { .. }));
        assert_eq!(requeues, requeued, "a pod in {namespace}: {actions:?}");
    }
}
