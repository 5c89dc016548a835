//! Kueue's quota together with nodes, on synthetic clusters: after the evictions every pod of the preemptor fits on its node, by a count that
//! this test does itself, and every victim is lawful by the rules of the quota.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use reprieve_api::answer::Answer;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::{OutcomeName, PreemptorRef, Profile, TestSpec};
use reprieve_engine::explanation::Spared;
use reprieve_engine::policy::Policy;
use reprieve_engine::{Outcome, UnitId};
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::Question;
use reprieve_report::answer::answer;
use reprieve_testkit::random::Rng;

const NODE: usize = 8;
const QUEUES: [&str; 3] = ["own", "left", "right"];

/// An admitted workload with its pods.
struct Running {
    name: String,
    queue: &'static str,
    priority: usize,
    gpus: usize,
    flavor: usize,
    /// The node of each pod.
    nodes: Vec<usize>,
}

impl Running {
    fn total(&self) -> usize {
        self.gpus * self.nodes.len()
    }
}

struct SyntheticCluster {
    n_nodes: usize,
    /// The flavors, assigned to the nodes round-robin.
    n_flavors: usize,
    nominal: BTreeMap<(&'static str, usize), usize>,
    within: &'static str,
    reclaim: &'static str,
    running: Vec<Running>,
    /// The number of pods, and the GPUs per pod.
    urgent: (usize, usize),
    priority: usize,
}

impl SyntheticCluster {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (n_nodes, n_flavors) = (rng.within(2, 6), rng.within(1, 2));
        let mut free = vec![NODE; n_nodes];
        let (mut nominal, mut left) = (BTreeMap::new(), vec![0; n_flavors]);
        for (flavor, left) in left.iter_mut().enumerate() {
            let mut left_in_all = (flavor..n_nodes).step_by(n_flavors).count() * NODE;
            for queue in QUEUES {
                let share = rng.within(0, left_in_all);
                left_in_all -= share;
                *left += share;
                nominal.insert((queue, flavor), share);
            }
        }
        let mut running = Vec::new();
        for index in 0..rng.within(2, 14) {
            let (gpus, pods, flavor) = (*rng.pick(&[1, 1, 2, 4, 8]), rng.within(1, 3), rng.up_to(n_flavors));
            let flavor_nodes: Vec<usize> = (flavor..n_nodes).step_by(n_flavors).collect();
            let mut nodes = Vec::new();
            for _ in 0..pods {
                let node = *rng.pick(&flavor_nodes);
                if free[node] >= gpus && left[flavor] >= gpus {
                    free[node] -= gpus;
                    left[flavor] -= gpus;
                    nodes.push(node);
                }
            }
            if !nodes.is_empty() {
                let (queue, priority) = (*rng.pick(&QUEUES), rng.up_to(3));
                running.push(Running { name: format!("w{index}"), queue, priority, gpus, flavor, nodes });
            }
        }
        Self {
            n_nodes,
            n_flavors,
            nominal,
            within: *rng.pick(&["Never", "LowerPriority"]),
            reclaim: *rng.pick(&["Never", "LowerPriority", "Any"]),
            running,
            urgent: (rng.within(1, 3), *rng.pick(&[1, 2, 4, 8, 8])),
            priority: rng.up_to(4),
        }
    }

    fn yaml(&self) -> String {
        let mut text = String::new();
        for flavor in 0..self.n_flavors {
            let _ = write!(
                text,
                "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {{name: gpu-{flavor}}}\nspec: {{nodeLabels: \
                 {{pool: p{flavor}}}}}\n"
            );
        }
        for queue in QUEUES {
            let quota = |flavor| {
                let nominal = self.nominal[&(queue, flavor)];
                format!("{{name: gpu-{flavor}, resources: [{{name: nvidia.com/gpu, nominalQuota: {nominal}}}]}}")
            };
            let quota = (0..self.n_flavors).map(quota).collect::<Vec<_>>().join(", ");
            let _ = write!(
                text,
                "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {queue}}}\nspec:\n  cohortName: all\n  \
                 resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: [{quota}]}}]\n  preemption: {{withinClusterQueue: {}, \
                 reclaimWithinCohort: {}}}\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{namespace: default, \
                 name: {queue}}}\nspec: {{clusterQueue: {queue}}}\n",
                self.within, self.reclaim
            );
        }
        for node in 0..self.n_nodes {
            let offers = format!("status: {{allocatable: {{nvidia.com/gpu: {NODE}, pods: 50}}}}");
            let _ = write!(
                text,
                "---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-{node}, labels: {{pool: p{}}}}}\n{offers}\n",
                node % self.n_flavors
            );
        }
        for (index, running) in self.running.iter().enumerate() {
            let (pods, total) = (running.nodes.len(), running.total());
            text += &workload(&running.name, running.queue, running.priority, pods, running.gpus);
            let held = format!(
                "{{name: main, flavors: {{nvidia.com/gpu: gpu-{}}}, resourceUsage: {{nvidia.com/gpu: {total}}}, count: {pods}}}",
                running.flavor
            );
            let _ = write!(
                text,
                "status:\n  admission: {{clusterQueue: {}, podSetAssignments: [{held}]}}\n  conditions: [{{type: QuotaReserved, status: \
                 \"True\", lastTransitionTime: \"2026-01-01T00:{:02}:00Z\", reason: r, message: \"\"}}]\n",
                running.queue,
                index % 60
            );
            for (pod, node) in running.nodes.iter().enumerate() {
                let _ = write!(
                    text,
                    "---\napiVersion: v1\nkind: Pod\nmetadata: {{namespace: default, name: {name}-{pod}, annotations: \
                     {{kueue.x-k8s.io/workload: {name}}}}}\nspec: {{nodeName: node-{node}, containers: [{{name: c, resources: {{requests: \
                     {{nvidia.com/gpu: {}}}}}}}]}}\nstatus: {{phase: Running}}\n",
                    running.gpus,
                    name = running.name
                );
            }
        }
        text + &workload("urgent", "own", self.priority, self.urgent.0, self.urgent.1)
    }

    fn load(&self, placement: &str) -> (Loaded, Question) {
        let mut objects = ObjectSet::default();
        for document in documents("synthetic", &self.yaml()) {
            document.read(&mut objects).expect("the document is valid");
        }
        let args = serde_json::json!({"placement": placement}).as_object().cloned().unwrap_or_default();
        let preemptor =
            PreemptorRef { kind: "Workload".to_owned(), namespace: "default".to_owned(), name: "urgent".to_owned() };
        let profile = Profile { args, ..Profile::of_policy("Kueue") };
        let spec = TestSpec { now: None, profile, preemptor, expect: None };
        let policy: Policy = reprieve_loader::policy::policy(&spec.profile).expect("it is a policy");
        let loaded = load_for(&objects, OnInvalid::Reject, &policy).expect("it can be loaded");
        let question = Question::new(&spec, &loaded).expect("it is a question");
        (loaded, question)
    }

    fn answer(&self, placement: &str) -> Answer {
        let (mut loaded, question) = self.load(placement);
        answer(&question, &mut loaded)
    }
}

fn workload(name: &str, queue: &str, priority: usize, pods: usize, gpus: usize) -> String {
    format!(
        "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {{namespace: default, name: {name}}}\nspec:\n  queueName: \
         {queue}\n  priority: {priority}\n  podSets: [{{name: main, count: {pods}, template: {{spec: {{containers: [{{name: c, resources: \
         {{requests: {{nvidia.com/gpu: {gpus}}}}}}}]}}}}}}]\n"
    )
}

#[test]
fn evictions_are_lawful_and_let_every_pod_fit() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..400 {
        let cluster = SyntheticCluster::new(seed);
        let (joint, alone) = (cluster.answer("Joint"), cluster.answer("QuotaOnly"));
        *seen.entry(format!("{:?} where quota alone says {:?}", joint.outcome, alone.outcome)).or_default() += 1;
        let evicted: Vec<&str> = joint.victims.iter().filter_map(|victim| victim.workload.as_deref()).collect();
        let is_evicted = |workload: &&Running| evicted.contains(&format!("default/{}", workload.name).as_str());
        match joint.outcome {
            OutcomeName::Schedule => assert_eq!(alone.outcome, OutcomeName::Schedule, "seed {seed}"),
            OutcomeName::Preempt => assert_ne!(alone.outcome, OutcomeName::Unschedulable, "seed {seed}"),
            OutcomeName::Unschedulable => continue,
            OutcomeName::Wait => panic!("seed {seed}: no workload is terminating"),
        }
        assert_eq!(joint.nominated.len(), cluster.urgent.0, "seed {seed}: {joint:?}");
        let nodes =
            joint.nominated.values().map(|node| node.trim_start_matches("node-").parse().expect("the name of a node"));
        let nodes: Vec<usize> = nodes.collect();
        let flavor = nodes[0] % cluster.n_flavors;
        assert!(nodes.iter().all(|node| node % cluster.n_flavors == flavor), "seed {seed}: {nodes:?}");
        *seen.entry(format!("flavor {flavor} of {}", cluster.n_flavors)).or_default() += 1;
        let mut used = vec![0; cluster.n_nodes];
        for workload in cluster.running.iter().filter(|workload| !is_evicted(workload)) {
            workload.nodes.iter().for_each(|&node| used[node] += workload.gpus);
        }
        nodes.iter().for_each(|&node| used[node] += cluster.urgent.1);
        assert!(used.iter().all(|&used| used <= NODE), "seed {seed}: {used:?}");
        let other_flavor = cluster.running.iter().filter(is_evicted).find(|workload| workload.flavor != flavor);
        assert!(other_flavor.is_none(), "seed {seed}: a victim of another flavor");
        for queue in QUEUES {
            let all = || cluster.running.iter().filter(|workload| workload.queue == queue && workload.flavor == flavor);
            let taken: Vec<&Running> = all().filter(is_evicted).collect();
            let after: usize =
                all().map(Running::total).sum::<usize>() - taken.iter().map(|workload| workload.total()).sum::<usize>();
            let largest = taken.iter().map(|workload| workload.total()).max().unwrap_or_default();
            let lower = taken.iter().all(|workload| workload.priority < cluster.priority);
            if queue == "own" {
                assert!(taken.is_empty() || cluster.within == "LowerPriority" && lower, "seed {seed}");
            } else if !taken.is_empty() {
                assert!(
                    after + largest > cluster.nominal[&(queue, flavor)],
                    "seed {seed}: {queue} loses nominal quota"
                );
                assert!(cluster.reclaim == "Any" || cluster.reclaim == "LowerPriority" && lower, "seed {seed}");
            }
        }
    }
    for kind in [
        "Schedule where quota alone says Schedule",
        "Preempt where quota alone says Schedule",
        "Preempt where quota alone says Preempt",
        "Unschedulable where quota alone says Preempt",
        "Unschedulable where quota alone says Schedule",
        "flavor 0 of 1",
        "flavor 0 of 2",
        "flavor 1 of 2",
    ] {
        assert!(seen.get(kind).is_some_and(|&n| n >= 5), "too few {kind}: {seen:?}");
    }
}

#[test]
fn every_workload_is_a_victim_or_spared_for_one_reason() {
    for seed in 0..400 {
        let (mut loaded, question) = SyntheticCluster::new(seed).load("Joint");
        let outcome = question.decide(&mut loaded);
        let (decision, explanation) = question.decide_and_explain(&mut loaded);
        assert_eq!(decision.outcome, outcome, "seed {seed}");
        let victims = match outcome {
            Outcome::Preempt(plan) => plan.victims,
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => Vec::new(),
        };
        let is_candidate =
            |spared: &Spared| matches!(spared, Spared::NotEnough | Spared::Reprieved | Spared::EqualCost(_));
        let has_plan = !victims.is_empty();
        let mut accounted: Vec<UnitId> = explanation.spared.iter().map(|entry| entry.unit).chain(victims).collect();
        accounted.sort_unstable();
        assert!(accounted.into_iter().eq(loaded.snapshot.unit_ids()), "seed {seed}");
        for entry in explanation.spared.iter().filter(|entry| is_candidate(&entry.spared)) {
            assert_eq!(entry.spared == Spared::NotEnough, !has_plan, "seed {seed}: {entry:?}");
        }
    }
}
