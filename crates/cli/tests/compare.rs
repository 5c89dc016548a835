//! One cluster with the queues of each policy in turn: every policy decides the same whichever policy's objects describe the queues.

use reprieve::compare::policies::{EvictionCost, PolicyResult, compare_policies};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::source::InputError;
use reprieve_api::test_file::{OutcomeName, PreemptorRef, Profile, TestSpec};
use reprieve_loader::LoadScope;
use reprieve_loader::build::{OnInvalid, load_as};
use reprieve_loader::policy::{Question, policy};
use reprieve_report::answer::answer;
use reprieve_report::gpu_hours::{GpuResources, LostWork};

use OutcomeName::{Preempt, Schedule, Unschedulable};

const POLICIES: [&str; 5] = ["Kubernetes", "kube-scheduler", "YuniKorn", "Koordinator", "Kueue"];

/// The policy whose objects define the queues.
#[derive(Clone, Copy, Debug)]
enum QueueFormat {
    YuniKorn,
    Koordinator,
    Kueue,
}

use QueueFormat::{Koordinator, Kueue, YuniKorn};

/// A node of 10 cpu; `org` has 10, of which teams `a` and `b` are guaranteed 4 each; `a` may use 8, and `b` all.
fn queues(format: QueueFormat) -> String {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: node}, status: {allocatable: {cpu: 10, nvidia.com/gpu: 8, pods: 99}}}";
    let queues = match format {
        YuniKorn => r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - name: org
          parent: true
          resources: {guaranteed: {vcore: 10}, max: {vcore: 10}}
          queues:
          - {name: a, resources: {guaranteed: {vcore: 4}, max: {vcore: 8}}}
          - {name: b, resources: {guaranteed: {vcore: 4}}}
"#
        .to_owned(),
        Koordinator => [("org", 10, Some(10), ""), ("a", 4, Some(8), "org"), ("b", 4, Some(10), "org")]
            .map(|(name, min, max, parent)| {
                let max = max.map_or_else(String::new, |max| format!("max: {{cpu: {max}}}"));
                format!(
                    "\n---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {{name: {name}, namespace: default, labels: {{quota.scheduling.koordinator.sh/parent: \"{parent}\"}}}}\nspec: {{min: {{cpu: {min}}}, {max}}}"
                )
            })
            .concat(),
        Kueue => {
            let quota = |nominal: &str| {
                format!("resourceGroups: [{{coveredResources: [cpu], flavors: [{{name: f, resources: [{{name: cpu, {nominal}}}]}}]}}]")
            };
            let queue = |name: &str, nominal: &str| {
                let quota = quota(nominal);
                format!(
                    "\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: to-{name}, namespace: default}}, spec: {{clusterQueue: {name}}}}}\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {name}}}\nspec: {{cohortName: org, preemption: {{withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}}, {quota}}}"
                )
            };
            let cohort = quota("nominalQuota: 2");
            format!(
                "\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: f}}}}\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {{name: org}}\nspec: {{{cohort}}}{}{}",
                queue("a", "nominalQuota: 4, borrowingLimit: 4"),
                queue("b", "nominalQuota: 4")
            )
        }
    };
    format!("{node}\n---{queues}")
}

/// A pod of a team. It runs since minute `start`, or it is pending.
struct Pod {
    name: &'static str,
    team: &'static str,
    cpu: u32,
    priority: i32,
    start: Option<u32>,
}

fn pod(name: &'static str, team: &'static str, cpu: u32, priority: i32, start: Option<u32>) -> Pod {
    Pod { name, team, cpu, priority, start }
}

impl Pod {
    fn written(&self, format: QueueFormat) -> String {
        let Self { name, team, cpu, priority, start } = self;
        let own_words = match format {
            YuniKorn => format!("labels: {{queue: root.org.{team}, applicationId: {name}}}"),
            Koordinator => format!("labels: {{quota.scheduling.koordinator.sh/name: {team}}}"),
            Kueue => format!("annotations: {{kueue.x-k8s.io/workload: {name}}}"),
        };
        let (node, status) = match start {
            Some(minute) => {
                ("nodeName: node, ", format!("{{phase: Running, startTime: \"2026-01-01T00:{minute:02}:00Z\"}}"))
            }
            None => ("", "{phase: Pending}".to_owned()),
        };
        let containers =
            format!("containers: [{{name: c, resources: {{requests: {{cpu: {cpu}, nvidia.com/gpu: 1}}}}}}]");
        let created = start.unwrap_or(50);
        let pod = format!(
            "\n---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default, creationTimestamp: \"2026-01-01T00:{created:02}:00Z\", {own_words}}}, spec: {{{node}priority: {priority}, {containers}}}, status: {status}}}"
        );
        let containers = containers.replace(", nvidia.com/gpu: 1", "");
        match format {
            YuniKorn | Koordinator => pod,
            Kueue => {
                let status = start.map_or_else(String::new, |minute| {
                    format!(
                        ", status: {{admission: {{clusterQueue: {team}, podSetAssignments: [{{name: main, count: 1, flavors: {{cpu: f}}, resourceUsage: {{cpu: {cpu}}}}}]}}, conditions: [{{type: QuotaReserved, status: \"True\", reason: QuotaReserved, lastTransitionTime: \"2026-01-01T00:{minute:02}:00Z\"}}]}}"
                    )
                });
                format!(
                    "{pod}\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: {name}, namespace: default}}, spec: {{queueName: to-{team}, priority: {priority}, podSets: [{{name: main, count: 1, template: {{spec: {{{containers}}}}}}}]}}{status}}}"
                )
            }
        }
    }
}

fn objects(yaml: &str) -> ObjectSet {
    let mut objects = ObjectSet::default();
    for document in documents("cluster.yaml", yaml) {
        document.read(&mut objects).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    }
    objects
}

fn ask(yaml: &str, kind: &str, name: &str) -> Result<Vec<PolicyResult>, InputError> {
    let preemptor = PreemptorRef { kind: kind.to_owned(), namespace: "default".to_owned(), name: name.to_owned() };
    let now = Some("2026-01-01T01:00:00Z".to_owned());
    let asked = TestSpec { now, profile: Profile::default(), preemptor, expect: None };
    compare_policies(&objects(yaml), &asked, &GpuResources::default())
}

fn answers(yaml: &str, kind: &str, name: &str) -> Vec<(&'static str, Option<OutcomeName>, Vec<String>)> {
    let results = ask(yaml, kind, name).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    results.into_iter().map(|result| (result.policy, result.outcome, result.victims)).collect()
}

/// What comes of it, and who goes.
type Answer = (OutcomeName, &'static [&'static str]);

const UNSCHEDULABLE: Answer = (Unschedulable, &[]);

/// With the objects of each policy, `urgent` gets these decisions: Kubernetes with and without the priority cut, YuniKorn, Koordinator, Kueue.
fn assert_decisions(pods: &[Pod], expected: [Answer; 5]) {
    for format in [YuniKorn, Koordinator, Kueue] {
        let yaml = queues(format) + &pods.iter().map(|pod| pod.written(format)).collect::<String>();
        let found = answers(&yaml, "Pod", "urgent");
        let expected: Vec<_> = POLICIES
            .iter()
            .zip(expected)
            .map(|(policy, (outcome, victims))| {
                (*policy, Some(outcome), victims.iter().map(|name| format!("default/{name}")).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(found, expected, "in the format of {format:?}");
    }
}

#[test]
fn guarantee_is_translated_to_every_policy() {
    let pods = [
        pod("b-1", "b", 2, 5, Some(10)),
        pod("b-2", "b", 2, 5, Some(20)),
        pod("b-3", "b", 2, 5, Some(40)),
        pod("b-4", "b", 2, 5, Some(30)),
        pod("a-1", "a", 2, 5, Some(50)),
        pod("urgent", "a", 2, 5, None),
    ];
    assert_decisions(&pods, [UNSCHEDULABLE, UNSCHEDULABLE, (Preempt, &["b-3"]), UNSCHEDULABLE, (Preempt, &["b-3"])]);
}

#[test]
fn above_its_guarantee_only_a_higher_priority_preempts() {
    let pods = [
        pod("b-1", "b", 3, 1, Some(10)),
        pod("b-2", "b", 3, 1, Some(20)),
        pod("a-1", "a", 4, 9, Some(30)),
        pod("urgent", "a", 2, 9, None),
    ];
    let youngest: Answer = (Preempt, &["b-2"]);
    assert_decisions(&pods, [youngest, youngest, UNSCHEDULABLE, youngest, UNSCHEDULABLE]);
}

#[test]
fn limit_is_translated_to_every_policy() {
    let pods = [pod("a-1", "a", 8, 5, Some(10)), pod("urgent", "a", 2, 5, None)];
    let fits: Answer = (Schedule, &[]);
    assert_decisions(&pods, [fits, fits, UNSCHEDULABLE, UNSCHEDULABLE, UNSCHEDULABLE]);
}

#[test]
fn queue_below_its_limit_uses_free_capacity_of_others() {
    let pods = [pod("a-1", "a", 6, 5, Some(10)), pod("urgent", "a", 2, 5, None)];
    assert_decisions(&pods, [(Schedule, &[]); 5]);
}

#[test]
fn limit_of_a_parent_holds_for_the_sum_of_its_children() {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: more}, status: {allocatable: {cpu: 10, nvidia.com/gpu: 8, pods: 99}}}";
    let pods = [pod("a-1", "a", 4, 5, Some(10)), pod("b-1", "b", 6, 5, Some(20)), pod("urgent", "b", 2, 5, None)];
    for format in [YuniKorn, Koordinator, Kueue] {
        let pods: String = pods.iter().map(|pod| pod.written(format)).collect();
        let found = answers(&format!("{node}\n---\n{}{pods}", queues(format)), "Pod", "urgent");
        let outcomes: Vec<_> = found.into_iter().map(|(policy, outcome, _)| (policy, outcome)).collect();
        let refused = POLICIES.map(|policy| {
            let kept = ["YuniKorn", "Koordinator", "Kueue"].contains(&policy);
            (policy, Some(if kept { Unschedulable } else { Schedule }))
        });
        assert_eq!(outcomes, refused, "in the format of {format:?}");
    }
}

#[test]
fn what_is_lost_is_added_up_over_the_pods_that_go() {
    let pods = [
        pod("b-1", "b", 4, 1, Some(10)),
        pod("b-2", "b", 4, 1, Some(20)),
        pod("b-3", "b", 2, 2, Some(30)),
        pod("urgent", "a", 8, 9, None),
    ];
    for format in [YuniKorn, Koordinator, Kueue] {
        let yaml = queues(format) + &pods.iter().map(|pod| pod.written(format)).collect::<String>();
        let results = ask(&yaml, "Pod", "urgent").expect("it is a question");
        assert_eq!(results[0].victims, ["default/b-1", "default/b-2"], "in the format of {format:?}");
        let lost = LostWork { gpus: 2, gpu_hours: Some(1.5) };
        let cost = EvictionCost { pods: 2, lost, seconds: Some((50 + 40) * 60) };
        assert_eq!(results[0].eviction_cost, cost);
        assert_eq!(cost.texts(), ["2 pods", "2 GPUs", "1.5 GPU-hours lost"]);
        assert_eq!(results[0].difference, Vec::<String>::new(), "it is the first");
        let refused = &results[2];
        assert_eq!((refused.policy, refused.eviction_cost.pods), ("YuniKorn", 0));
        assert_eq!(refused.difference[0], "NotOverGuarantee spares default/b-1");
    }
}

#[test]
fn lost_work_counts_from_the_checkpoint_and_is_unknown_without_a_start() {
    let pods = [pod("b-1", "b", 8, 1, Some(10)), pod("urgent", "a", 8, 9, None)];
    let yaml = queues(YuniKorn) + &pods.iter().map(|pod| pod.written(YuniKorn)).collect::<String>();
    let with_checkpoint = yaml.replacen(
        "name: b-1,",
        "name: b-1, annotations: {reprieve.dev/last-checkpoint: \"2026-01-01T00:45:00Z\"},",
        1,
    );
    let unstarted = yaml.replace("startTime", "unread");
    for (yaml, hours, text) in [
        (yaml, Some(50.0 / 60.0), "0.8 GPU-hours lost"),
        (with_checkpoint, Some(0.25), "0.2 GPU-hours lost"),
        (unstarted, None, "– GPU-hours lost"),
    ] {
        let cost = ask(&yaml, "Pod", "urgent").expect("it is a question")[0].eviction_cost;
        assert_eq!((cost.lost.gpu_hours, cost.texts()[2].as_str()), (hours, text), "{yaml}");
    }
}

#[test]
fn victim_of_one_policy_is_listed_with_the_law_that_spares_it_under_the_other() {
    let pods = [pod("b-1", "b", 2, 5, Some(10)), pod("b-2", "b", 8, 5, Some(5)), pod("urgent", "a", 2, 5, None)];
    for format in [YuniKorn, Koordinator, Kueue] {
        let yaml = queues(format) + &pods.iter().map(|pod| pod.written(format)).collect::<String>();
        let results = ask(&yaml, "Pod", "urgent").expect("it is a question");
        assert_eq!(results[2].difference, ["evicts default/b-1, spared by Priority under Kubernetes"], "{format:?}");
        assert_eq!(results[4].difference, ["evicts default/b-1, spared by Priority under Kubernetes"], "{format:?}");
    }
}

/// A workload that fits into the quota of its queue if `low` is evicted, but is larger than the only node.
const LARGER_THAN_THE_NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
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
    flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 100}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: low, namespace: default, uid: low, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  queueName: team
  priority: 0
  podSets:
  - name: main
    count: 1
    template: {spec: {containers: [{name: main, resources: {requests: {cpu: 3}}}]}}
status:
  conditions: [{type: QuotaReserved, status: 'True', reason: a, message: a, lastTransitionTime: '2026-01-01T00:00:00Z'}]
  admission: {clusterQueue: team, podSetAssignments: [{name: main, count: 1, flavors: {cpu: plain}, resourceUsage: {cpu: 3}}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: high, namespace: default, uid: high, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  queueName: team
  priority: 10
  podSets:
  - name: main
    count: 1
    template: {spec: {containers: [{name: main, resources: {requests: {cpu: 99}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: default, uid: lowp, annotations: {kueue.x-k8s.io/workload: low}, labels: {kueue.x-k8s.io/queue-name: team}}
spec: {nodeName: n1, priority: 0, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
"#;

#[test]
fn eviction_is_not_called_unneeded_under_a_policy_that_cannot_place_the_preemptor() {
    let results = ask(LARGER_THAN_THE_NODE, "Workload", "high").expect("it is a question");
    let (kubernetes, kueue) = (&results[0], &results[4]);
    assert_eq!((kubernetes.outcome, kueue.outcome), (Some(Unschedulable), Some(Preempt)), "{results:?}");
    assert_eq!(kueue.difference, [format!("evicts default/low; under Kubernetes: {}", kubernetes.summary)]);
}

/// A node of 4 cpu with a job of two pods and one single pod, all of quota `all`, and a job of two that asks.
const JOBS: &str = r#"
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 2, pods: 99}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-2}, status: {allocatable: {cpu: 2, pods: 99}}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: all, namespace: default}
spec: {min: {cpu: 4}, max: {cpu: 8}}
---
apiVersion: v1
kind: Pod
metadata: {name: low-1, namespace: default, labels: {quota.scheduling.koordinator.sh/name: all}}
spec: {nodeName: node-1, priority: 1, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: low-2, namespace: default, labels: {quota.scheduling.koordinator.sh/name: all}}
spec: {nodeName: node-2, priority: 1, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: w-0, namespace: default, labels: {quota.scheduling.koordinator.sh/name: all, pod-group.scheduling.sigs.k8s.io: job}}
spec: {priority: 9, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Pending}
---
apiVersion: v1
kind: Pod
metadata: {name: w-1, namespace: default, labels: {quota.scheduling.koordinator.sh/name: all, pod-group.scheduling.sigs.k8s.io: job}}
spec: {priority: 9, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Pending}
"#;

#[test]
fn job_is_compared_as_a_gang_and_as_a_workload() {
    let both = || vec!["default/low-1".to_owned(), "default/low-2".to_owned()];
    for (kind, name) in [("Pod", "w-1"), ("PodGroup", "job")] {
        let found = answers(JOBS, kind, name);
        for (policy, outcome, victims) in found {
            if policy == "YuniKorn" {
                assert_eq!(
                    (outcome, victims),
                    (Some(Unschedulable), Vec::new()),
                    "preemption within the queue is not allowed"
                );
            } else {
                assert_eq!((outcome, victims), (Some(Preempt), both()), "{policy}");
            }
        }
    }
}

/// Quota alone: no nodes, no pods.
const WORKLOADS: &str = r#"
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: all, namespace: default}, spec: {clusterQueue: all}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: gang, namespace: default}
spec:
  queueName: all
  priority: 1
  podSets: [{name: main, count: 2, template: {spec: {nodeSelector: {kind: f}, containers: [{name: c, resources: {requests: {cpu: 2}}}]}}}]
status:
  admission:
    clusterQueue: all
    podSetAssignments: [{name: main, count: 2, flavors: {cpu: f}, resourceUsage: {cpu: 4}}]
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, lastTransitionTime: "2026-01-01T00:50:00Z"}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: urgent, namespace: default}
spec:
  queueName: all
  priority: 9
  podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}}]
"#;

#[test]
fn workload_is_evicted_whole_under_policies_with_gangs() {
    let results = ask(WORKLOADS, "Workload", "urgent").expect("it is a question");
    let whole = ["default/gang-0", "default/gang-1"];
    for (policy, victims, pods) in [("Kubernetes", &whole[..], 2), ("Koordinator", &[], 0), ("Kueue", &whole, 2)] {
        let result = results.iter().find(|result| result.policy == policy).expect("every policy is asked");
        assert_eq!(result.victims, victims, "{policy}");
        let lost = LostWork { gpus: 0, gpu_hours: Some(0.0) };
        assert_eq!(result.eviction_cost, EvictionCost { pods, lost, seconds: Some(600 * pods as i64) }, "{policy}");
    }
    let refused = &results[3];
    assert!(refused.difference[0].starts_with("QuotaLimit: "), "within its own quota it may only run: {refused:?}");
}

#[test]
fn queue_without_cohort_cannot_borrow() {
    let larger = WORKLOADS.replace("count: 1,", "count: 3,").replace("withinClusterQueue: LowerPriority", "");
    let node = "{apiVersion: v1, kind: Node, metadata: {name: big}, status: {allocatable: {cpu: 64, pods: 99}}}";
    let results = ask(&format!("{node}\n---{larger}"), "Workload", "urgent").expect("it is a question");
    let outcomes: Vec<_> = results.iter().map(|result| result.outcome).collect();
    let refused = Some(Unschedulable);
    assert_eq!(
        outcomes,
        [Some(Schedule), Some(Schedule), Some(Schedule), refused, refused],
        "YuniKorn's pod asks alone"
    );
}

#[test]
fn queues_of_one_name_below_different_parents_stay_separate() {
    let tree = queues(YuniKorn).replace(
        "          - {name: b, resources: {guaranteed: {vcore: 4}}}",
        "          - {name: b, resources: {guaranteed: {vcore: 4}}}\n        - {name: b, parent: true, queues: [{name: a}]}",
    );
    let pods = [pod("other", "a", 8, 5, Some(10)), pod("urgent", "a", 2, 5, None)];
    let [other, urgent] = pods.map(|pod| pod.written(YuniKorn));
    let yaml = tree + &other.replace("root.org.a", "root.b.a") + &urgent;
    let outcomes: Vec<_> = answers(&yaml, "Pod", "urgent").into_iter().map(|(.., outcome, _)| outcome).collect();
    assert_eq!(outcomes, [Some(Schedule); 5], "the other one's use is not this one's");
}

#[test]
fn unknown_preemptor_is_an_error() {
    let error = ask(JOBS, "Pod", "ghost").expect_err("no pod has this name");
    assert!(error.to_string().contains("there is no running or pending pod default/ghost"), "{error}");
}

#[test]
fn comparison_and_plan_decide_the_same_under_each_policy() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    for file in reprieve::input::files(&folder).expect("there are cases") {
        let input = reprieve::input::read(std::slice::from_ref(&file)).expect("cases can be read");
        let spec = input.test.expect("it is a case").object.spec.clone();
        let results = match compare_policies(&input.objects, &spec, &GpuResources::default()) {
            Err(error) if error.to_string().contains("too many to compare policies") => continue,
            results => results.unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        };
        let policy = policy(&spec.profile).expect("cases have a policy");
        let scope = LoadScope::of_profile(&spec.profile).expect("the profile is valid");
        let loaded = load_as(&input.objects, OnInvalid::Quarantine, &policy, &scope);
        let mut loaded = loaded.expect("cases can be loaded");
        let alone = answer(&Question::new(&spec, &loaded).expect("cases can be asked"), &mut loaded);
        let own = if spec.profile.args.get("priorityCut") == Some(&false.into()) {
            "kube-scheduler"
        } else {
            &spec.profile.policy
        };
        let here = results.iter().find(|result| result.policy == own && result.tolerations);
        let here = here.expect("every policy is asked");
        if here.outcome.is_some() {
            assert_eq!(here.outcome, Some(alone.outcome), "{}", file.display());
            assert_eq!(here.victims.is_empty(), alone.victims.is_empty(), "{}", file.display());
        }
    }
}

#[test]
fn effect_of_a_toleration_is_shown_against_the_same_policy() {
    let class = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: tolerant, annotations: {preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: \"100\", preemption-toleration.scheduling.x-k8s.io/toleration-seconds: \"-1\"}}, value: 1}";
    for format in [YuniKorn, Koordinator, Kueue] {
        let low = pod("b-1", "b", 10, 1, Some(10)).written(format);
        let low = low.replace("nodeName: node, ", "nodeName: node, priorityClassName: tolerant, ");
        let yaml = format!("{class}\n---\n{}{low}{}", queues(format), pod("urgent", "a", 2, 9, None).written(format));
        let results = ask(&yaml, "Pod", "urgent").expect("it is a question");
        let shown = |policy: &str, tolerations: bool| {
            let result = results.iter().find(|one| one.policy == policy && one.tolerations == tolerations);
            let result = result.expect("every policy is asked twice");
            (result.outcome, result.victims.clone(), result.difference.clone())
        };
        for policy in ["Kubernetes", "kube-scheduler"] {
            let spared = vec!["Toleration spares 1 pod".to_owned()];
            assert_eq!(shown(policy, true), (Some(Unschedulable), Vec::new(), spared), "{format:?}");
            let taken = vec!["evicts default/b-1, spared by Toleration with tolerations on".to_owned()];
            assert_eq!(shown(policy, false), (Some(Preempt), vec!["default/b-1".to_owned()], taken), "{format:?}");
        }
    }
}

#[test]
fn sum_of_the_largest_quotas_stays_in_range() {
    let flavor = "{name: f, resources: [{name: cpu, nominalQuota: 4}]}";
    let huge = "{name: f, resources: [{name: cpu, nominalQuota: 4503599627370}]}";
    let more = "{name: g, resources: [{name: cpu, nominalQuota: 4503599627370}]}";
    let yaml = WORKLOADS.replace(flavor, &format!("{huge}, {more}"));
    let yaml =
        format!("{yaml}\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: g}}}}");
    assert_ne!(yaml, WORKLOADS);
    let outcomes: Vec<_> = answers(&yaml, "Workload", "urgent").into_iter().map(|(.., outcome, _)| outcome).collect();
    assert_eq!(outcomes, [Some(Schedule); 5]);
}

#[test]
fn priority_class_of_a_workload_counts_under_every_policy() {
    let yaml = WORKLOADS.replace(
        "  priority: 9\n",
        "  priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: high}\n",
    );
    assert_ne!(yaml, WORKLOADS);
    let class = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 9}";
    assert_eq!(answers(&format!("{class}\n---{yaml}"), "Workload", "urgent"), answers(WORKLOADS, "Workload", "urgent"));
}
