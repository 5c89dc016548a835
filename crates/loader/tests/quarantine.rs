//! One broken object is set aside, with what refers to it, and nothing else: the decision about every other object stays as it was. The
//! same holds for a cache that gets the objects one by one, in any order.

use reprieve_api::kinds::Object;
use reprieve_api::read::documents;
use reprieve_api::{ObjectSet, Profile};
use reprieve_engine::Policy;
use reprieve_loader::build::load_as;
use reprieve_loader::cache::SnapshotCache;
use reprieve_loader::policy::policy_of_profile;
use reprieve_loader::{LoadScope, Loaded, OnInvalid, Quarantined};

const SCHEDULER: &str = "reprieve";

/// Objects that are honest under every policy.
const HONEST: &str = r#"
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: honest, namespace: a, labels: {queue: root.a, quota.scheduling.koordinator.sh/name: qa}},
 spec: {schedulerName: reprieve, nodeName: n, priority: 5, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pending, namespace: a, labels: {queue: root.a, quota.scheduling.koordinator.sh/name: qa}},
 spec: {schedulerName: reprieve, priority: 9, containers: [{name: c, resources: {requests: {cpu: 2}}}]}}
"#;

const YUNIKORN: &str = r#"
{apiVersion: v1, kind: ConfigMap, metadata: {name: yunikorn-configs, namespace: yunikorn}, data: {queues.yaml:
 "partitions: [{name: default, queues: [{name: root, queues: [{name: a}, {name: parent, queues: [{name: child}]}]}]}]"}}
"#;

const KOORDINATOR: &str = r#"
{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: qa, namespace: a}, spec: {min: {cpu: 2}, max: {cpu: 4}}}
"#;

const KUEUE: &str = r#"
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: {cohortName: team, resourceGroups:
 [{coveredResources: [cpu], flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: a}, spec: {clusterQueue: cq}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: honest, namespace: a}, spec: {queueName: lq, podSets:
 [{name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]}}
"#;

struct Case {
    name: &'static str,
    policy: &'static str,
    /// Further objects.
    objects: &'static str,
    /// What is set aside: kind, name and class of the problem.
    aside: &'static [&'static str],
}

fn bound(name: &str, more: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: b{more}}}, spec: {{nodeName: n, ")
}

const CASES: &[Case] = &[
    Case {
        name: "5Ei of memory",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, containers: [{name: c, resources: {requests: {memory: 5Ei}}}]}}",
        aside: &["Pod b/x TooLarge"],
    },
    Case {
        name: "2^62+1 of a resource on a bound pod",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, nodeName: n, containers: [{name: c, resources: {requests: {example.com/gpu: 4611686018427387905}}}]}}",
        aside: &["Pod b/x TooLarge"],
    },
    Case {
        name: "containers whose sum is too large",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, containers: [{name: c, resources: {requests: {memory: 5Pi}}}, {name: d, resources: {requests: {memory: 5Pi}}}]}}",
        aside: &["Pod b/x TooLarge"],
    },
    Case {
        name: "a negative request",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, containers: [{name: c, resources: {requests: {cpu: -1}}}]}}",
        aside: &["Pod b/x InvalidValue"],
    },
    Case {
        name: "an unknown operator",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, containers: [{name: c}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]}}}}",
        aside: &["Pod b/x InvalidValue"],
    },
    Case {
        name: "a priority where a number belongs",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, priority: high, nodeName: n, containers: [{name: c}]}}",
        aside: &["Pod b/x Undecodable"],
    },
    Case {
        name: "a group with an unknown class",
        policy: "Kubernetes",
        objects: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g, namespace: b}, spec: {priorityClassName: ghost, schedulingPolicy: {gang: {minCount: 1}}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, schedulingGroup: {podGroupName: g}, containers: [{name: c}]}}",
        aside: &["PodGroup b/g MissingReference", "Pod b/x BrokenReference"],
    },
    Case {
        name: "a group with text where a number belongs",
        policy: "Kubernetes",
        objects: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g, namespace: b}, spec: {schedulingPolicy: {gang: {minCount: many}}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, schedulingGroup: {podGroupName: g}, nodeName: n, containers: [{name: c}]}}",
        aside: &["PodGroup b/g Undecodable", "Pod b/x BrokenReference"],
    },
    Case {
        name: "minCount -1",
        policy: "Kubernetes",
        objects: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g, namespace: b}, spec: {schedulingPolicy: {gang: {minCount: -1}}}}",
        aside: &["PodGroup b/g InvalidValue"],
    },
    Case {
        name: "a node that offers too much, and a pod on it",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Node, metadata: {name: m}, status: {allocatable: {memory: 5Ei}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, nodeName: m, containers: [{name: c}]}}",
        aside: &["Node default/m TooLarge", "Pod b/x BrokenReference"],
    },
    Case {
        name: "a node with an unknown taint effect",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Node, metadata: {name: m}, spec: {taints: [{key: a, effect: Maybe}]}}",
        aside: &["Node default/m InvalidValue"],
    },
    Case {
        name: "a pod on a missing node",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b}, spec: {schedulerName: reprieve, nodeName: ghost, containers: [{name: c}]}}",
        aside: &["Pod b/x MissingNode"],
    },
    Case {
        name: "a budget with an unknown operator",
        policy: "Kubernetes",
        objects: "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x, namespace: b}, spec: {selector: {matchExpressions: [{key: a, operator: Never}]}}}",
        aside: &["PodDisruptionBudget b/x InvalidValue"],
    },
    Case {
        name: "labels of other policies",
        policy: "Kubernetes",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {queue: root.ghost, quota.scheduling.koordinator.sh/name: ghost, pod-group.scheduling.sigs.k8s.io: j, quota.scheduling.koordinator.sh/preemptible: 'false'}}, spec: {schedulerName: reprieve, nodeName: n, containers: [{name: c}]}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: y, namespace: b, labels: {pod-group.scheduling.sigs.k8s.io: j}}, spec: {schedulerName: reprieve, nodeName: n, containers: [{name: c}]}}",
        aside: &[],
    },
    Case {
        name: "a pod of another scheduler with a broken queue, class and affinity",
        policy: "YuniKorn",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {queue: root.ghost}}, spec: {schedulerName: other, nodeName: n, priorityClassName: ghost, containers: [{name: c, resources: {requests: {cpu: 10m}}}], tolerations: [{operator: Maybe}]}}",
        aside: &[],
    },
    Case {
        name: "a pod of a queue that does not exist",
        policy: "YuniKorn",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {queue: root.ghost}}, spec: {schedulerName: reprieve, nodeName: n, containers: [{name: c}]}}",
        aside: &["Pod b/x MissingReference"],
    },
    Case {
        name: "a pod that names a parent queue",
        policy: "YuniKorn",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {queue: root.parent}}, spec: {schedulerName: reprieve, containers: [{name: c}]}}",
        aside: &["Pod b/x InvalidValue"],
    },
    Case {
        name: "pods that disagree about one job",
        policy: "Koordinator",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {pod-group.scheduling.sigs.k8s.io: j, quota.scheduling.koordinator.sh/preemptible: 'false'}}, spec: {schedulerName: reprieve, containers: [{name: c}]}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: y, namespace: b, labels: {pod-group.scheduling.sigs.k8s.io: j}}, spec: {schedulerName: reprieve, nodeName: n, containers: [{name: c}]}}",
        aside: &["Pod b/x Conflict", "Pod b/y Conflict"],
    },
    Case {
        name: "minMember -1",
        policy: "Koordinator",
        objects: "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: PodGroup, metadata: {name: j, namespace: b}, spec: {minMember: -1}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {pod-group.scheduling.sigs.k8s.io: j}}, spec: {schedulerName: reprieve, containers: [{name: c}]}}",
        aside: &["KoordinatorPodGroup b/j InvalidValue", "Pod b/x BrokenReference"],
    },
    Case {
        name: "a quota without its parent, and a pod in the quota below it",
        policy: "Koordinator",
        objects: "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, namespace: b, labels: {quota.scheduling.koordinator.sh/parent: ghost}}}\n---\n{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: r, namespace: b, labels: {quota.scheduling.koordinator.sh/parent: q}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {quota.scheduling.koordinator.sh/name: r}}, spec: {schedulerName: reprieve, containers: [{name: c}]}}",
        aside: &["ElasticQuota b/q MissingReference", "ElasticQuota b/r BrokenReference", "Pod b/x BrokenReference"],
    },
    Case {
        name: "a quota with min above max",
        policy: "Koordinator",
        objects: "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, namespace: b}, spec: {min: {cpu: 3}, max: {cpu: 2}}}",
        aside: &["ElasticQuota b/q InvalidValue"],
    },
    Case {
        name: "a pod of a quota that does not exist",
        policy: "Koordinator",
        objects: "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {quota.scheduling.koordinator.sh/name: ghost}}, spec: {schedulerName: reprieve, nodeName: n, containers: [{name: c}]}}",
        aside: &["Pod b/x MissingReference"],
    },
    Case {
        name: "a missing flavor",
        policy: "Kueue",
        objects: "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: bad}, spec: {cohortName: team, resourceGroups: [{coveredResources: [cpu], flavors: [{name: ghost, resources: [{name: cpu, nominalQuota: 4}]}]}]}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: b}, spec: {clusterQueue: bad}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: b}, spec: {queueName: lq}}",
        aside: &[
            "ClusterQueue default/bad MissingReference",
            "LocalQueue b/lq BrokenReference",
            "KueueWorkload b/w BrokenReference",
        ],
    },
    Case {
        name: "a dangling LocalQueue",
        policy: "Kueue",
        objects: "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: b}, spec: {clusterQueue: ghost}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: b}, spec: {queueName: lq}}",
        aside: &["LocalQueue b/lq MissingReference", "KueueWorkload b/w MissingReference"],
    },
    Case {
        name: "a cycle of cohorts",
        policy: "Kueue",
        objects: "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: x}, spec: {parentName: y}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: y}, spec: {parentName: x}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: in-cycle}, spec: {cohortName: x}}",
        aside: &["Cohort default/x Cycle", "Cohort default/y Cycle", "ClusterQueue default/in-cycle BrokenReference"],
    },
    Case {
        name: "an unknown word in a ClusterQueue",
        policy: "Kueue",
        objects: "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: bad}, spec: {preemption: {withinClusterQueue: Sometimes}}}",
        aside: &["ClusterQueue default/bad InvalidValue"],
    },
    Case {
        name: "a workload with more than 2^53 units in all its pods",
        policy: "Kueue",
        objects: "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: a}, spec: {queueName: lq, podSets: [{name: main, count: 1000, template: {spec: {containers: [{name: c, resources: {requests: {memory: 5Pi}}}]}}}]}}",
        aside: &["KueueWorkload a/w TooLarge"],
    },
];

fn objects(text: &str) -> ObjectSet {
    let mut objects = ObjectSet::default();
    for document in documents("cluster.yaml", text) {
        document.read(&mut objects).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    objects
}

fn policy(name: &str) -> Policy {
    policy_of_profile(&Profile::of_policy(name)).expect("a policy")
}

fn base(policy: &str) -> String {
    let own = match policy {
        "YuniKorn" => YUNIKORN,
        "Koordinator" => KOORDINATOR,
        "Kueue" => KUEUE,
        _ => "",
    };
    format!("{HONEST}\n---\n{own}")
}

fn load(policy_name: &str, objects: &ObjectSet) -> Loaded {
    let scope = LoadScope { scheduler_name: Some(SCHEDULER.to_owned()), ..LoadScope::default() };
    load_as(objects, OnInvalid::Quarantine, &policy(policy_name), &scope).expect("loading never fails")
}

fn listed(quarantined: &[Quarantined]) -> Vec<String> {
    quarantined.iter().map(|entry| format!("{} {}", entry.object, entry.code().as_str())).collect()
}

/// The objects that are honest, as the snapshot has them.
fn honest(loaded: &Loaded) -> String {
    let Loaded { snapshot, names, .. } = loaded;
    let pods = names.pod_ids().filter(|&pod| names.pod(pod).namespace == "a").map(|id| {
        let pod = snapshot.pod(id);
        let queue = pod.queue.map(|queue| names.queue(queue));
        format!("{} {:?} {queue:?} {} {}", names.pod(id), pod.node, pod.set_aside, pod.priority.0)
    });
    let workloads = snapshot.workload_ids().filter(|&id| names.workload(id).namespace == "a").map(|id| {
        let queue = snapshot.workload(id).queue.map(|queue| names.queue(queue));
        format!("{} {queue:?} {}", names.workload(id), snapshot.workload(id).set_aside)
    });
    pods.chain(workloads).collect::<Vec<_>>().join("\n")
}

fn cache_of<'o>(policy_name: &str, objects: impl Iterator<Item = &'o Object>) -> SnapshotCache {
    let mut cache = SnapshotCache::default().for_scheduler(SCHEDULER, &policy(policy_name));
    cache.refresh();
    for object in objects {
        cache.upsert(object.clone());
    }
    cache.refresh();
    cache
}

#[test]
fn broken_object_is_set_aside_alone() {
    for case in CASES {
        let without = load(case.policy, &objects(&base(case.policy)));
        assert_eq!(listed(&without.quarantined), Vec::<String>::new(), "{}", case.name);
        let with = objects(&format!("{}\n---\n{}", base(case.policy), case.objects));
        let loaded = load(case.policy, &with);
        assert_eq!(listed(&loaded.quarantined), case.aside, "{}: {:#?}", case.name, loaded.quarantined);
        assert_eq!(honest(&loaded), honest(&without), "{}", case.name);
        for round in 1..4 {
            let other = load(case.policy, &with.shuffled(round));
            assert_eq!(other.quarantined, loaded.quarantined, "{}", case.name);
        }
    }
}

#[test]
fn cache_sets_the_same_objects_aside_in_every_order() {
    for case in CASES {
        let with = objects(&format!("{}\n---\n{}", base(case.policy), case.objects));
        let without = load(case.policy, &objects(&base(case.policy)));
        let expected: Vec<&str> = case.aside.iter().copied().filter(|entry| !entry.ends_with("Undecodable")).collect();
        if expected.len() < case.aside.len() {
            continue; // the cache gets only objects that can be decoded
        }
        for round in 0..6 {
            let all: Vec<Object> = with.shuffled(round).iter().collect();
            let mut cache = cache_of(case.policy, all.iter());
            let name = case.name;
            assert_eq!(listed(cache.quarantined()), expected, "{name}, round {round}");
            assert_eq!(honest(cache.loaded()), honest(&without), "{name}, round {round}");
            // The objects come again, one by one, after the tables were built.
            for object in &all {
                cache.remove(&object.key());
                cache.upsert(object.clone());
            }
            cache.refresh();
            assert_eq!(listed(cache.quarantined()), expected, "{name}, again, round {round}");
            assert_eq!(honest(cache.loaded()), honest(&without), "{name}, again, round {round}");
        }
    }
}

#[test]
fn bound_pod_keeps_its_room_whatever_is_wrong_with_it() {
    let requests = "containers: [{name: c, resources: {requests: {cpu: 2}}}]";
    let broken = [
        (format!("{} {requests}, schedulerName: reprieve, tolerations: [{{operator: Maybe}}]}}}}", bound("x", "")), 3),
        (format!("{} {requests}, schedulerName: reprieve, priorityClassName: ghost}}}}", bound("x", "")), 3),
        (format!("{} {requests}, schedulerName: reprieve}}}}", bound("x", ", labels: {queue: root.ghost}")), 3),
        (format!("{} {requests}, schedulerName: other}}}}", bound("x", ", labels: {queue: root.ghost}")), 3),
        (format!("{} {requests}, schedulerName: reprieve, priority: none}}}}", bound("x", "")), 4),
        (
            format!(
                "{} schedulerName: reprieve, containers: [{{name: c, resources: {{requests: {{cpu: 5Ei}}}}}}]}}}}",
                bound("x", "")
            ),
            4,
        ),
    ];
    for (pod, taken) in broken {
        let loaded = load("YuniKorn", &objects(&format!("{}\n---\n{pod}", base("YuniKorn"))));
        let Loaded { snapshot, names, .. } = &loaded;
        let node = names.node_id("n").expect("the node can be read");
        let cpu = 1;
        let free = (snapshot.allocatable(node)[cpu] - snapshot.used(node)[cpu]).max(0);
        assert_eq!(free, (4 - taken) * 1000, "{pod}");
    }
}

#[test]
fn unreadable_pod_frees_its_node_when_it_is_gone() {
    let all: Vec<Object> = objects(&base("Kubernetes")).iter().collect();
    let mut cache = cache_of("Kubernetes", all.iter());
    let pod = format!(
        "{} schedulerName: reprieve, containers: [{{name: c, resources: {{requests: {{cpu: 5Ei}}}}}}]}}}}",
        bound("x", "")
    );
    // In a new namespace every pod rebuilds the tables.
    let pod = pod.replace("namespace: b", "namespace: a");
    let pod: Object = objects(&pod).iter().next().expect("the pod can be decoded");
    let offered = |cache: &SnapshotCache| {
        let Loaded { snapshot, names, .. } = cache.loaded();
        snapshot.allocatable(names.node_id("n").expect("the node is known"))[1]
    };
    assert_eq!(offered(&cache), 4000);
    cache.upsert(pod.clone());
    assert!(!cache.is_stale(), "one broken pod does not rebuild the tables");
    assert_eq!(offered(&cache), 0);
    let blocking: Vec<String> = cache.loaded().blocked.values().flatten().map(ToString::to_string).collect();
    assert_eq!(blocking, ["a/x"]);
    cache.remove(&pod.key());
    assert!(cache.loaded().blocked.is_empty());
    assert!(!cache.is_stale());
    assert_eq!((offered(&cache), listed(cache.quarantined())), (4000, Vec::new()));
}

#[test]
fn queue_removed_or_pod_relabelled_while_it_runs() {
    let all: Vec<Object> = objects(&base("YuniKorn")).iter().collect();
    let mut cache = cache_of("YuniKorn", all.iter());
    let used = |cache: &SnapshotCache| {
        let Loaded { snapshot, names, .. } = cache.loaded();
        snapshot.used(names.node_id("n").expect("the node is known"))[1]
    };
    let relabelled = HONEST.replacen("queue: root.a", "queue: root.ghost", 1);
    for object in objects(&relabelled).iter() {
        cache.upsert(object);
    }
    cache.refresh();
    assert_eq!((used(&cache), listed(cache.quarantined())), (1000, vec!["Pod a/honest MissingReference".to_owned()]));
    for object in &all {
        cache.upsert(object.clone());
    }
    cache.refresh();
    assert_eq!((used(&cache), listed(cache.quarantined())), (1000, Vec::new()));
    for object in objects(&YUNIKORN.replace("{name: a}", "{name: b}")).iter() {
        cache.upsert(object);
    }
    cache.refresh();
    assert_eq!(used(&cache), 1000);
    assert_eq!(listed(cache.quarantined()), ["Pod a/honest MissingReference", "Pod a/pending MissingReference"]);
    for object in objects(&YUNIKORN.replace("partitions:", "partitions: [")).iter() {
        cache.upsert(object);
    }
    cache.refresh();
    assert_eq!(used(&cache), 1000);
    assert_eq!(listed(cache.quarantined()), ["ConfigMap yunikorn/yunikorn-configs Undecodable"]);
}

#[test]
fn broken_queue_is_lost_with_those_below_it_and_no_other() {
    let config = YUNIKORN.replace("{name: parent,", "{name: parent, resources: {guaranteed: {memory: 5Ei}},");
    let pods = "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: b, labels: {queue: root.parent.child}}, spec: {schedulerName: reprieve, containers: [{name: c}]}}";
    let loaded = load("YuniKorn", &objects(&format!("{HONEST}\n---\n{config}\n---\n{pods}")));
    assert_eq!(
        listed(&loaded.quarantined),
        ["ConfigMap yunikorn/yunikorn-configs TooLarge", "Pod b/x BrokenReference"]
    );
    assert_eq!(honest(&loaded), honest(&load("YuniKorn", &objects(&base("YuniKorn")))));
}

#[test]
fn admitted_workload_that_cannot_be_read_keeps_its_quota() {
    let admitted = r#"{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: b}, spec: {onPreemption: Explode},
        status: {admission: {clusterQueue: cq, podSetAssignments: [{name: main, flavors: {cpu: spot}, resourceUsage: {cpu: 3}, count: 1}]}}}"#;
    let loaded = load("Kueue", &objects(&format!("{}\n---\n{admitted}", base("Kueue"))));
    assert_eq!(listed(&loaded.quarantined), ["KueueWorkload b/w InvalidValue"]);
    let queues = loaded.snapshot.queues();
    let used: Vec<i64> = queues.ids().map(|queue| queues.used(queue).iter().sum()).collect();
    assert_eq!(used, [3000, 3000], "the cohort and the ClusterQueue");
}

#[test]
fn quotas_of_one_name_in_two_namespaces_are_two_quotas() {
    let quota = |namespace: &str, created: &str, cpu: u8| {
        format!(
            "{{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {{name: q, namespace: {namespace}, \
             creationTimestamp: \"{created}\"}}, spec: {{min: {{cpu: {cpu}}}}}}}"
        )
    };
    let text = [quota("x", "2026-01-02T00:00:00Z", 1), quota("y", "2026-01-01T00:00:00Z", 2)].join("\n---\n");
    let loaded = load("Koordinator", &objects(&text));
    assert_eq!(listed(&loaded.quarantined), [""; 0]);
    assert_eq!(loaded.snapshot.queues().ids().count(), 2);
}

#[test]
fn sums_over_many_large_amounts_do_not_overflow() {
    let pod = |index: usize, node: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: x-{index}, namespace: b}}, spec: {{schedulerName: reprieve, {node} \
             containers: [{{name: c, resources: {{requests: {{memory: 8Pi}}}}}}]}}}}"
        )
    };
    let pods: Vec<String> =
        (0..2_000).map(|index| pod(index, if index % 2 == 0 { "nodeName: n," } else { "" })).collect();
    let text = format!("{}\n---\n{}", base("Kubernetes"), pods.join("\n---\n"));
    let loaded = load("Kubernetes", &objects(&text));
    assert_eq!(loaded.quarantined.len(), 2_000 - 128, "2^60 is 128 times 2^53");
    assert_eq!(honest(&loaded), honest(&load("Kubernetes", &objects(&base("Kubernetes")))));
}

#[test]
fn a_dynamic_queue_belongs_to_the_oldest_pod_whatever_the_order_of_events() {
    let config = YUNIKORN.replace("{name: a}", "{name: a}, {name: users, parent: true}");
    let pod = |namespace: &str, minute: u8, queue: &str| {
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: {namespace}, creationTimestamp: '2026-01-01T00:{minute:02}:00Z', \
             labels: {{queue: {queue}}}}}, spec: {{schedulerName: reprieve, containers: [{{name: c}}]}}}}"
        );
        objects(&text).iter().next().expect("a pod")
    };
    let (older, younger) = (pod("old", 1, "root.users.team.x"), pod("young", 2, "root.users.team"));
    let with_config: Vec<Object> = objects(&format!("{HONEST}\n---\n{config}")).iter().collect();
    for order in [[&older, &younger], [&younger, &older]] {
        let mut cache = cache_of("YuniKorn", with_config.iter());
        for pod in order {
            cache.upsert(pod.clone());
            cache.refresh();
        }
        assert_eq!(listed(cache.quarantined()), ["Pod young/p Conflict"]);
        cache.remove(&older.key());
        cache.refresh();
        assert_eq!(listed(cache.quarantined()), Vec::<String>::new(), "its queue is free now");
    }
}

#[test]
fn synthetic_pods_of_one_namespace_do_not_displace_those_of_another() {
    let workload = |namespace: &str, name: &str, count: u32, cpu: &str| {
        format!(
            "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: {name}, namespace: {namespace}}}, spec: {{queueName: lq, \
             podSets: [{{name: main, count: {count}, template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}]}}}}"
        )
    };
    let node = "{apiVersion: v1, kind: Node, metadata: {name: m}, status: {allocatable: {cpu: 9000, pods: 2000}}}";
    let local = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: c}, spec: {clusterQueue: cq}}";
    // More pods than are allowed, each workload with fewer than the honest one. No pod is created for them, because they cannot be read.
    let hostile = (0..1_001).map(|index| workload("a", &format!("w{index}"), 999, "x"));
    let all: Vec<String> =
        hostile.chain([workload("c", "large", 1_000, "1"), node.to_owned(), local.to_owned()]).collect();
    let all = objects(&format!("{}\n---\n{}", base("Kueue"), all.join("\n---\n")));
    let joint = [("placement".to_owned(), "Joint".into())].into_iter().collect();
    let policy = policy_of_profile(&Profile { args: joint, ..Profile::of_policy("Kueue") }).expect("a policy");
    let scope = LoadScope { scheduler_name: Some(SCHEDULER.to_owned()), ..LoadScope::default() };
    let loaded = load_as(&all, OnInvalid::Quarantine, &policy, &scope).expect("loading never fails");
    let aside = listed(&loaded.quarantined);
    assert_eq!(aside.iter().filter(|entry| !entry.starts_with("KueueWorkload a/w")).collect::<Vec<_>>(), [""; 0]);
    assert!(aside.contains(&"KueueWorkload a/w0 InvalidValue".to_owned()));
}
