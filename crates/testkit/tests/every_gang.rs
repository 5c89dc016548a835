//! A brute-force oracle for small gangs whose members differ: a gang fits if any members in any order on any nodes fit, which the oracle
//! tries all. It models the constraints by itself and shares no code with the engine.

use std::collections::BTreeMap;

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_engine::Outcome;
use reprieve_engine::laws::Law;
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};
use reprieve_testkit::random::Rng;

const SEEDS: u64 = 1_500;
const PRIORITY: i64 = 100;

/// A node in a zone.
struct Node {
    cpu: i64,
    zone: usize,
    fast: bool,
    tainted: bool,
}

/// A bound pod or a member of the gang.
#[derive(Clone, Debug)]
struct Pod {
    cpu: i64,
    app: &'static str,
    node: Option<usize>,
    priority: i64,
    needs_fast: bool,
    tolerates: bool,
    port: bool,
    /// Required anti-affinity against pods of this app, by node or by zone.
    apart_from: Option<(&'static str, By)>,
    /// Required affinity to pods of this app in the zone.
    together_with: Option<&'static str>,
    /// Topology spread over zones with pods of this app.
    spread_with: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Node,
    Zone,
}

struct Cluster {
    nodes: Vec<Node>,
    running: Vec<Pod>,
    members: Vec<Pod>,
    min_count: usize,
    one_zone: bool,
}

#[test]
fn a_gang_fits_if_any_assignment_fits() {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let cluster = random(seed);
        let expected = cluster.expected();
        let outcome = decide(&cluster.yaml("{}"), seed);
        let decided = match &outcome {
            Outcome::Schedule(_) => "Schedule",
            Outcome::Preempt(_) => "Preempt",
            Outcome::Unschedulable(None) => "Unschedulable",
            Outcome::Unschedulable(Some(Law::SearchLimit)) => "SearchLimit",
            other => panic!("seed {seed}: {other:?}"),
        };
        assert_eq!(decided, expected, "seed {seed}\n{}", cluster.yaml("{}"));
        *outcomes.entry(expected).or_default() += 1;
        let greedy = decide(&cluster.yaml("{search: Greedy}"), seed);
        if matches!((&greedy, &outcome), (Outcome::Unschedulable(_), Outcome::Schedule(_) | Outcome::Preempt(_))) {
            *outcomes.entry("refused by the greedy search").or_default() += 1;
        }
    }
    assert!(outcomes.len() == 4 && outcomes.values().all(|&count| count > 25), "{outcomes:?}");
}

fn decide(text: &str, seed: u64) -> Outcome {
    let (mut objects, mut spec) = (ObjectSet::default(), None);
    for document in documents("gang", text) {
        let test = document.read(&mut objects).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        spec = spec.or(test.map(|test| test.object.spec.clone()));
    }
    let spec = spec.expect("the first document is the test");
    let policy = policy(&spec.profile).expect("the profile is valid");
    let mut loaded = load_for(&objects, OnInvalid::Reject, &policy).expect("the objects are valid");
    let question = Question::new(&spec, &loaded).expect("the preemptor is pending");
    question.decide(&mut loaded)
}

fn random(seed: u64) -> Cluster {
    let mut rng = Rng::new(seed);
    let n_zones = rng.within(1, 3);
    let nodes = (0..rng.within(1, 4)).map(|_| Node {
        cpu: i64::try_from(rng.within(2, 6)).unwrap_or(2),
        zone: rng.up_to(n_zones),
        fast: rng.chance(60),
        tainted: rng.chance(20),
    });
    let nodes: Vec<Node> = nodes.collect();
    let kind = rng.up_to(8);
    let mut running = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if rng.chance(60) {
            let cpu = i64::try_from(rng.within(1, 3)).unwrap_or(1).min(node.cpu);
            let priority = if rng.chance(75) { 5 } else { PRIORITY };
            let app = *rng.pick(&["x", "y", "z"]);
            running.push(Pod { priority, node: Some(index), port: kind == 3 && rng.chance(30), ..plain(cpu, app) });
        }
    }
    let members: Vec<Pod> = (0..rng.within(2, 4)).map(|_| member(&mut rng, kind)).collect();
    let min_count = if rng.chance(75) { members.len() } else { rng.within(1, members.len()) };
    Cluster { nodes, running, members, min_count, one_zone: rng.chance(20) }
}

fn plain(cpu: i64, app: &'static str) -> Pod {
    Pod {
        cpu,
        app,
        node: None,
        priority: PRIORITY,
        needs_fast: false,
        tolerates: false,
        port: false,
        apart_from: None,
        together_with: None,
        spread_with: None,
    }
}

/// `kind` says in what the members of a cluster differ besides size, selector and toleration.
fn member(rng: &mut Rng, kind: usize) -> Pod {
    let cpu = i64::try_from(if kind == 1 { rng.within(3, 6) } else { rng.within(1, 4) }).unwrap_or(1);
    let app = *rng.pick(&["x", "x", "y"]);
    let other = *rng.pick(&["x", "x", "y", "z"]);
    let by = *rng.pick(&[By::Node, By::Node, By::Zone]);
    let is_special = rng.chance(70);
    Pod {
        needs_fast: rng.chance(25),
        tolerates: rng.chance(50),
        port: kind == 3 && rng.chance(60),
        apart_from: (kind == 4 && is_special).then_some((other, by)),
        together_with: (kind == 5 && is_special).then_some(other).or((kind == 6).then_some(app)),
        spread_with: (kind == 7 && is_special).then_some(other),
        ..plain(cpu, if kind == 6 { "x" } else { app })
    }
}

impl Cluster {
    fn expected(&self) -> &'static str {
        let zones: Vec<usize> = (0..3).filter(|&zone| self.nodes.iter().any(|node| node.zone == zone)).collect();
        let domains: Vec<Vec<usize>> = if self.one_zone {
            let of_zone = |zone| (0..self.nodes.len()).filter(|&node| self.nodes[node].zone == zone).collect();
            zones.into_iter().map(of_zone).collect()
        } else {
            vec![(0..self.nodes.len()).collect()]
        };
        let pods: Vec<&Pod> = self.running.iter().collect();
        if domains.iter().any(|domain| self.fits(&pods, &mut vec![false; self.members.len()], domain, 0)) {
            return "Schedule";
        }
        let can_preempt = domains.iter().any(|domain| {
            let is_candidate =
                |pod: &&&Pod| pod.priority < PRIORITY && pod.node.is_some_and(|node| domain.contains(&node));
            let left: Vec<&Pod> = pods.iter().filter(|pod| !is_candidate(pod)).copied().collect();
            left.len() < pods.len() && self.fits(&left, &mut vec![false; self.members.len()], domain, 0)
        });
        if can_preempt { "Preempt" } else { "Unschedulable" }
    }

    /// Whether enough further members fit, in any order.
    fn fits(&self, pods: &[&Pod], is_placed: &mut Vec<bool>, domain: &[usize], placed: usize) -> bool {
        if placed >= self.min_count {
            return true;
        }
        for (index, member) in self.members.iter().enumerate() {
            if is_placed[index] {
                continue;
            }
            for &node in domain {
                if self.fits_on(pods, member, node) {
                    let here = Pod { node: Some(node), ..member.clone() };
                    is_placed[index] = true;
                    let with: Vec<&Pod> = pods.iter().copied().chain([&here]).collect();
                    let fits = self.fits(&with, is_placed, domain, placed + 1);
                    is_placed[index] = false;
                    if fits {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn fits_on(&self, pods: &[&Pod], pod: &Pod, node: usize) -> bool {
        let Node { cpu, zone, fast, tainted } = self.nodes[node];
        let zone_of = |other: &Pod| other.node.map(|node| self.nodes[node].zone);
        let on_node = || pods.iter().filter(|other| other.node == Some(node));
        let in_zone = || pods.iter().filter(|other| zone_of(other) == Some(zone));
        let excludes = |own: &Pod, other: &Pod, by: By| match own.apart_from {
            Some((app, of)) => of == by && app == other.app,
            None => false,
        };
        let excluded = on_node().any(|other| excludes(pod, other, By::Node) || excludes(other, pod, By::Node))
            || in_zone().any(|other| excludes(pod, other, By::Zone) || excludes(other, pod, By::Zone));
        let has_company = pod.together_with.is_none_or(|app| {
            let is_first = app == pod.app && pods.iter().all(|other| other.app != app);
            is_first || in_zone().any(|other| other.app == app)
        });
        let is_spread = pod.spread_with.is_none_or(|app| {
            let count =
                |zone: usize| pods.iter().filter(|other| other.app == app && zone_of(other) == Some(zone)).count();
            let counted = self.nodes.iter().filter(|node| node.fast || !pod.needs_fast);
            let least = counted.map(|node| count(node.zone)).min().unwrap_or(0);
            count(zone) + usize::from(app == pod.app) <= least + 1
        });
        (!pod.needs_fast || fast)
            && (!tainted || pod.tolerates)
            && !(pod.port && on_node().any(|other| other.port))
            && on_node().map(|other| other.cpu).sum::<i64>() + pod.cpu <= cpu
            && !excluded
            && has_company
            && is_spread
    }

    fn yaml(&self, args: &str) -> String {
        let preemptor = "{kind: PodGroup, namespace: default, name: gang}";
        let mut all = vec![format!(
            "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionTest\nmetadata: {{name: gang}}\nspec:\n  profile: {{policy: Kubernetes, \
             args: {args}}}\n  preemptor: {preemptor}\n"
        )];
        let topology = if self.one_zone { ", schedulingConstraints: {topology: [{key: zone}]}" } else { "" };
        let min_count = self.min_count;
        all.push(format!(
            "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: gang, namespace: default}}\nspec: {{priority: \
             {PRIORITY}, schedulingPolicy: {{gang: {{minCount: {min_count}}}}}{topology}}}\n"
        ));
        for (index, Node { cpu, zone, fast, tainted }) in self.nodes.iter().enumerate() {
            let taints = if *tainted { "taints: [{key: t, effect: NoSchedule}]" } else { "" };
            all.push(format!(
                "apiVersion: v1\nkind: Node\nmetadata: {{name: n{index}, labels: {{zone: z{zone}, host: n{index}, fast: '{fast}'}}}}\n\
                 spec: {{{taints}}}\nstatus: {{allocatable: {{cpu: {cpu}, pods: 10}}}}\n"
            ));
        }
        let running = self.running.iter().enumerate().map(|(index, pod)| (format!("run-{index}"), pod));
        let members = self.members.iter().enumerate().map(|(index, pod)| (format!("member-{index}"), pod));
        all.extend(running.chain(members).map(|(name, pod)| pod.yaml(&name)));
        all.join("---\n")
    }
}

impl Pod {
    fn yaml(&self, name: &str) -> String {
        let Self { cpu, app, priority, .. } = self;
        let mut spec = match self.node {
            Some(node) => format!("nodeName: n{node}, "),
            None => "schedulingGroup: {podGroupName: gang}, ".to_owned(),
        };
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let selects = |app: &str| format!("labelSelector: {{matchLabels: {{app: {app}}}}}");
        let mut affinity = Vec::new();
        if let Some((app, by)) = self.apart_from {
            let key = if by == By::Node { "host" } else { "zone" };
            affinity.push(format!("podAntiAffinity: {{{required}: [{{topologyKey: {key}, {}}}]}}", selects(app)));
        }
        if let Some(app) = self.together_with {
            affinity.push(format!("podAffinity: {{{required}: [{{topologyKey: zone, {}}}]}}", selects(app)));
        }
        spec += &format!("affinity: {{{}}}, ", affinity.join(", "));
        if let Some(app) = self.spread_with {
            let rest = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule";
            spec += &format!("topologySpreadConstraints: [{{{rest}, {}}}], ", selects(app));
        }
        if self.needs_fast {
            spec += "nodeSelector: {fast: 'true'}, ";
        }
        if self.tolerates {
            spec += "tolerations: [{key: t, operator: Exists}], ";
        }
        let ports = if self.port { ", ports: [{containerPort: 80, hostPort: 80}]" } else { "" };
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, labels: {{app: {app}}}}}\nspec: {{{spec}priority: \
             {priority}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}{ports}}}]}}\n"
        )
    }
}
