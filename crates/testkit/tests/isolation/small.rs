//! All clusters of up to three objects drawn from a list of good and bad ones, in all orders of arrival: nothing panics, and the end does not
//! depend on the order.
//!
//! By default a part of the clusters is tried. `ISOLATION=full` tries all of them.

use reprieve_api::kinds::{Kind, Object};
use reprieve_api::test_file::Profile;
use reprieve_api::{PreemptorRef, TestSpec};
use reprieve_loader::policy::policy;
use serde_json::{Value, json};

use crate::answers::{difference, everything};
use crate::life;
use crate::test_clusters::TestCluster;

/// Of the clusters of three objects, one in this number is tried by default.
const SAMPLE: usize = 7;

/// The orders of three objects.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

fn pod(name: &str, change: impl FnOnce(&mut Value)) -> (Kind, Value) {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "a", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": 10,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
        },
        "status": {"phase": "Pending"},
    });
    change(&mut pod);
    (Kind::Pod, pod)
}

fn bound(name: &str, change: impl FnOnce(&mut Value)) -> (Kind, Value) {
    pod(name, |pod| {
        pod["spec"]["nodeName"] = json!("n");
        pod["spec"]["priority"] = json!(0);
        pod["status"] = json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z"});
        change(pod);
    })
}

fn of(kind: Kind, namespace: Option<&str>, name: &str, mut object: Value) -> (Kind, Value) {
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["uid"] = json!(format!("{kind:?}-{name}"));
    (kind, object)
}

fn labelled(key: &'static str, value: &'static str) -> impl FnOnce(&mut Value) {
    move |pod| pod["metadata"]["labels"] = json!({key: value})
}

fn requesting(resource: &'static str, amount: &'static str) -> impl FnOnce(&mut Value) {
    move |pod| pod["spec"]["containers"][0]["resources"]["requests"][resource] = json!(amount)
}

/// The objects that every policy reads.
fn shared() -> Vec<(Kind, Value)> {
    let node = |amounts: Value| json!({"status": {"allocatable": amounts}});
    let budget = |spec: Value| json!({"spec": spec, "status": {"disruptionsAllowed": 0}});
    vec![
        of(Kind::Node, None, "n", node(json!({"cpu": "4", "pods": "10"}))),
        of(Kind::Node, None, "n", node(json!({"cpu": "9223372036854775807", "memory": "8Ei"}))),
        of(Kind::Node, None, "m", node(json!({"cpu": "-1"}))),
        of(Kind::Namespace, None, "a", json!({})),
        of(Kind::PriorityClass, None, "c", json!({"value": 100})),
        of(Kind::PriorityClass, None, "d", json!({"value": 7, "globalDefault": true, "preemptionPolicy": "Nonsense"})),
        pod("p", |_| {}),
        pod("p", requesting("memory", "5Ei")),
        pod("p", |pod| pod["spec"]["priorityClassName"] = json!("no-such-class")),
        pod("p", |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:59:00Z")),
        pod("q", |pod| pod["spec"]["schedulingGates"] = json!([{"name": "g"}])),
        pod("q", |pod| pod["spec"]["tolerations"] = json!([{"key": "a", "operator": "Nonsense"}])),
        bound("v", |_| {}),
        bound("v", requesting("cpu", "-1")),
        bound("v", requesting("example.com/gpu", "4611686018427387905")),
        bound("w", |pod| {
            pod["metadata"]["annotations"] = json!({"reprieve.dev/preempted-for": "Pod a/p"});
            pod["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "p", "controller": true}]);
        }),
        bound("w", requesting("example.com/gpu", "4611686018427387905")),
        of(Kind::PodDisruptionBudget, Some("a"), "b", budget(json!({"selector": {"matchLabels": {"x": "y"}}}))),
        of(
            Kind::PodDisruptionBudget,
            Some("a"),
            "b",
            budget(json!({"selector": {"matchExpressions": [{"key": "x", "operator": "Nonsense"}]}})),
        ),
    ]
}

fn of_kubernetes() -> Vec<(Kind, Value)> {
    let group = |spec: Value| of(Kind::PodGroup, Some("a"), "g", json!({"spec": spec}));
    let member = |pod: &mut Value| pod["spec"]["schedulingGroup"] = json!({"podGroupName": "g"});
    vec![
        group(json!({"schedulingPolicy": {"gang": {"minCount": 1}}, "priority": 10})),
        group(json!({"schedulingPolicy": {"gang": {"minCount": -1}}})),
        group(
            json!({"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}, "priorityClassName": "x"}),
        ),
        group(json!({"schedulingPolicy": {}})),
        pod("m", member),
        bound("o", member),
        of(
            Kind::Workload,
            Some("a"),
            "w",
            json!({"spec": {"priorityClassName": "x", "podGroups": [{"name": "g", "policy": {"gang": {"minCount": 1}}}]}}),
        ),
    ]
}

/// Owners of gangs, and pods in chains of controllers.
fn of_owners() -> Vec<(Kind, Value)> {
    let owner = |version: &str, kind: &str, name: &str, uid: &str| json!([{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let owned = |references: &Value| {
        let references = references.clone();
        move |pod: &mut Value| pod["metadata"]["ownerReferences"] = references
    };
    let in_replica = |references: &Value| {
        let references = references.clone();
        move |pod: &mut Value| {
            pod["metadata"]["ownerReferences"] = references;
            pod["metadata"]["labels"] = json!({
                "leaderworkerset.sigs.k8s.io/name": "l",
                "leaderworkerset.sigs.k8s.io/group-index": "0",
            });
        }
    };
    let of_job = owner("batch/v1", "Job", "j", "OwnerJob-j");
    let coupled = json!({"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": {"spec": {"subdomain": "s"}}});
    let of_leader_set = owner("apps/v1", "StatefulSet", "t", "StatefulSet-t");
    let of_worker_set = owner("apps/v1", "StatefulSet", "u", "StatefulSet-u");
    let (of_job_set, of_set) = (
        owner("jobset.x-k8s.io/v1alpha2", "JobSet", "s", "JobSet-s"),
        owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l", "LeaderWorkerSet-l"),
    );
    vec![
        of(Kind::JobSet, Some("a"), "s", json!({})),
        of(Kind::JobSet, Some("a"), "s", json!({"metadata": {"annotations": {"reprieve.dev/gang": "false"}}})),
        of(Kind::OwnerJob, Some("a"), "j", json!({"metadata": {"ownerReferences": of_job_set}})),
        of(Kind::OwnerJob, Some("a"), "j", json!({"spec": coupled})),
        pod("m", owned(&of_job)),
        bound("n", owned(&of_job)),
        bound("o", owned(&of_job)),
        of(Kind::LeaderWorkerSet, Some("a"), "l", json!({})),
        of(Kind::StatefulSet, Some("a"), "t", json!({"metadata": {"ownerReferences": of_set}})),
        of(Kind::StatefulSet, Some("a"), "u", json!({"metadata": {"ownerReferences": owner("v1", "Pod", "x", "x")}})),
        bound("x", in_replica(&of_leader_set)),
        bound("y", in_replica(&of_worker_set)),
        pod("m", |pod| {
            pod["metadata"]["ownerReferences"] = owner("v1", "Pod", "m", "m");
            pod["metadata"]["labels"] = json!({"leaderworkerset.sigs.k8s.io/group-index": "0"});
        }),
    ]
}

fn of_yunikorn() -> Vec<(Kind, Value)> {
    const GOOD: &str = "partitions: [{name: default, queues: [{name: root, queues: [{name: a, resources: {guaranteed: {vcore: \
                        3}}}, {name: b, queues: [{name: c}]}]}]}]";
    let queues = |namespace: &'static str, text: &str| {
        of(Kind::ConfigMap, Some(namespace), "yunikorn-configs", json!({"data": {"queues.yaml": text}}))
    };
    vec![
        queues("yunikorn", GOOD),
        queues("yunikorn", "partitions: 7"),
        pod("r", labelled("queue", "root.a")),
        pod("r", labelled("queue", "root.no.such")),
        bound("s", labelled("queue", "root.a")),
        bound("s", labelled("queue", "root.b")),
        bound("s", labelled("queue", "root.b.c")),
        bound("t", labelled("queue", "root.no")),
    ]
}

fn of_koordinator() -> Vec<(Kind, Value)> {
    const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
    let quota = |name: &str, spec: Value, parent: Option<&str>| {
        let mut quota = json!({"spec": spec});
        if let Some(parent) = parent {
            quota["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/parent": parent});
        }
        of(Kind::ElasticQuota, Some("a"), name, quota)
    };
    let job = |n: i64| of(Kind::KoordinatorPodGroup, Some("a"), "j", json!({"spec": {"minMember": n}}));
    let member = |value: &'static str| {
        move |pod: &mut Value| {
            pod["metadata"]["labels"] = json!({
                "pod-group.scheduling.sigs.k8s.io": "j",
                "quota.scheduling.koordinator.sh/preemptible": value,
            });
        }
    };
    vec![
        quota("q", json!({"min": {"cpu": "2"}, "max": {"cpu": "4"}}), None),
        quota("q", json!({"min": {"cpu": "5"}, "max": {"cpu": "4"}}), None),
        quota("q", json!({"min": {"cpu": "1"}}), Some("r")),
        quota("r", json!({"max": {"cpu": "4611686018427387905"}}), Some("q")),
        job(1),
        job(-1),
        pod("j", member("true")),
        bound("k", member("false")),
        pod("l", labelled(QUOTA, "q")),
        bound("u", labelled(QUOTA, "q")),
        bound("u", labelled(QUOTA, "no-such-quota")),
    ]
}

fn of_kueue() -> Vec<(Kind, Value)> {
    let queue = |name: &str, cohort: &str, nominal: &str| {
        let quota = json!({"name": "cpu", "nominalQuota": nominal});
        let group = json!({"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]});
        let spec = json!({"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": [group]});
        of(Kind::ClusterQueue, None, name, json!({"spec": spec}))
    };
    let cohort = |name: &str, parent: &str| of(Kind::Cohort, None, name, json!({"spec": {"parentName": parent}}));
    let local = |target: &str| of(Kind::LocalQueue, Some("a"), "l", json!({"spec": {"clusterQueue": target}}));
    let workload = |name: &str, count: i64, amount: &str, status: Value| {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": amount}}});
        let sets = json!([{"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}]);
        let spec = json!({"queueName": "l", "podSets": sets});
        of(Kind::KueueWorkload, Some("a"), name, json!({"spec": spec, "status": status}))
    };
    let admitted = json!({
        "admission": {"clusterQueue": "q", "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "2"}}]},
        "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "a", "message": "a",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    vec![
        of(Kind::ResourceFlavor, None, "f", json!({})),
        queue("q", "", "4"),
        queue("q", "c", "-1"),
        queue("r", "c", "4"),
        cohort("c", "d"),
        cohort("d", "c"),
        local("q"),
        local("no-such-queue"),
        workload("x", 1, "2", json!({})),
        workload("x", -1, "2", json!({})),
        workload("y", 1, "5Ei", json!({})),
        workload("y", 1, "2", admitted),
        workload("z", i64::MAX, "1", json!({})),
        of(Kind::Job, Some("a"), "x", json!({"spec": {"parallelism": -1, "template": {"spec": {"containers": []}}}})),
    ]
}

/// A cluster without objects under this policy, and the objects that may be in it.
fn list(name: &str, objects: Vec<(Kind, Value)>) -> (TestCluster, Vec<Object>) {
    let spec = TestSpec {
        now: None,
        profile: Profile::of_policy(name),
        preemptor: PreemptorRef { kind: "Pod".to_owned(), namespace: "a".to_owned(), name: "p".to_owned() },
        expect: None,
    };
    let policy = policy(&spec.profile).expect("a policy");
    let cluster = TestCluster { name: format!("small {name}"), spec, policy, objects: Vec::new() };
    let decoded = |(kind, value): (Kind, Value)| {
        Object::from_json(kind, &value.to_string()).unwrap_or_else(|error| panic!("{error}: {value}"))
    };
    let objects = shared().into_iter().chain(objects).map(decoded).collect();
    (cluster, objects)
}

fn lists() -> [(TestCluster, Vec<Object>); 6] {
    [
        list("Kubernetes", of_kubernetes()),
        list("Kubernetes", of_owners()),
        list("Koordinator", of_owners()),
        list("YuniKorn", of_yunikorn()),
        list("Koordinator", of_koordinator()),
        list("Kueue", of_kueue()),
    ]
}

/// What a cache says after the objects came in this order, with a refresh after each if `step_by_step`.
fn end_state<'o>(cluster: &TestCluster, objects: impl Iterator<Item = &'o Object>, step_by_step: bool) -> String {
    let mut cache = cluster.cache();
    for object in objects {
        cache.upsert(object.clone());
        if step_by_step {
            cache.refresh();
        }
    }
    cache.refresh();
    everything(cluster, &mut cache)
}

#[test]
fn order_of_arrival_does_not_matter() {
    let is_full = std::env::var("ISOLATION").is_ok_and(|value| value == "full");
    for (cluster, objects) in lists() {
        let mut n_clusters = 0;
        for a in 0..objects.len() {
            for b in a..objects.len() {
                for c in b..objects.len() {
                    n_clusters += 1;
                    let chosen = [a, b, c].map(|index| &objects[index]);
                    // Two states of one object have an order: the last one counts.
                    let keys = chosen.map(Object::key);
                    let same = |i: usize, j: usize| keys[i] == keys[j] && [a, b, c][i] != [a, b, c][j];
                    if same(0, 1) || same(0, 2) || same(1, 2) || !is_full && n_clusters % SAMPLE != 0 {
                        continue;
                    }
                    let expected = end_state(&cluster, chosen.into_iter(), false);
                    for order in ORDERS {
                        let found = end_state(&cluster, order.iter().map(|&index| chosen[index]), true);
                        assert!(
                            found == expected,
                            "{}, objects {:?} in the order {order:?}\n{}\n{}",
                            cluster.name,
                            [a, b, c],
                            chosen.map(crate::interference::json).join("\n"),
                            difference(&expected, &found),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn scheduler_survives_all_pairs() {
    for (cluster, objects) in lists() {
        for first in &objects {
            for second in &objects {
                life::run(&cluster, &[vec![first.clone()], vec![second.clone()], vec![first.clone()]]);
            }
        }
    }
}
