//! Small random clusters for policy YuniKorn, each with one question: a queue tree of one to four levels with guarantees, maxima, fences,
//! offsets and delays that YuniKorn accepts, one to five nodes that are nearly full, and one preempting pod, usually of a queue below its
//! guarantee. Some pods are nominated, of gangs, of a DaemonSet or without an application; some profiles have `compatibility` or other
//! arguments. The same seed gives the same bytes.

mod pods;
mod tree;

use std::fmt::Write as _;

use pods::Pods;
use tree::Tree;

/// The time of every question.
pub const NOW: &str = "2026-01-01T01:00:00Z";
/// The resources; the last two are not in every cluster.
const RESOURCES: [&str; 3] = ["cpu", "memory", "example.com/gpu"];

/// An amount of each resource.
type Amounts = [i64; RESOURCES.len()];

/// The cluster of this seed, as a PreemptionTest file without an expectation.
pub fn cluster(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let present = [true, rng.chance(60), rng.chance(30)];
    let nodes = nodes(&mut rng, present);
    let mut total = Amounts::default();
    for node in &nodes {
        for (sum, amount) in total.iter_mut().zip(node.offers) {
            *sum += amount;
        }
    }
    let tree = Tree::new(&mut rng, &total);
    let mut pods = Pods::new(&tree, &nodes);
    pods.fill(&mut rng);
    let preemptor = pods.preemptor(&mut rng);
    pods.nominees(&mut rng);
    pods.daemon(&mut rng);
    let mut documents =
        vec![test(seed, &preemptor, arguments(&mut rng)), config(&mut rng, &tree), classes(), DAEMON_SET.to_owned()];
    documents.extend(nodes.iter().map(Node::document));
    documents.extend(pods.groups());
    documents.extend(pods.documents);
    documents.join("---\n")
}

/// The arguments of the profile: usually none, which is the design.
fn arguments(rng: &mut Rng) -> &'static str {
    match rng.up_to(20) {
        0..=5 => "compatibility: \"1.8\"",
        6 => "podOptOut: true",
        7 => "wholeGangs: false",
        8 => "compatibility: \"1.8\", wholeGangs: true",
        _ => "",
    }
}

fn test(seed: u64, preemptor: &str, arguments: &str) -> String {
    format!(
        "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionTest\nmetadata: {{name: random-queues-{seed}}}\nspec:\n  now: \
         \"{NOW}\"\n  profile: {{policy: YuniKorn, args: {{{arguments}}}}}\n  preemptor: {{kind: Pod, namespace: default, name: {preemptor}}}\n"
    )
}

fn config(rng: &mut Rng, tree: &Tree) -> String {
    let mut text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yunikorn-configs, namespace: yunikorn}\ndata:\n  \
                    queues.yaml: |\n    partitions:\n    - name: default\n"
            .to_owned();
    if rng.chance(2) {
        text.push_str("      preemption: {enabled: false}\n");
    }
    text.push_str("      queues:\n");
    tree.write(&mut text, 0, 6);
    text
}

/// The owner of the DaemonSet pods.
const DAEMON_SET: &str =
    "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: default, uid: agent}\n";

/// Pods of class `precious` opt out of preemption; pods of class `meek` do not preempt.
fn classes() -> String {
    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: precious, annotations: \
     {yunikorn.apache.org/allow-preemption: \"false\"}}\nvalue: 0\n---\napiVersion: scheduling.k8s.io/v1\nkind: \
     PriorityClass\nmetadata: {name: meek}\nvalue: 0\npreemptionPolicy: Never\n"
        .to_owned()
}

struct Node {
    name: String,
    zone: &'static str,
    offers: Amounts,
    n_pods: usize,
    closed: Option<&'static str>,
}

fn nodes(rng: &mut Rng, present: [bool; RESOURCES.len()]) -> Vec<Node> {
    let node = |index: usize, rng: &mut Rng| {
        let offers = [rng.within(3, 10), rng.within(4, 20), rng.within(0, 4)];
        Node {
            name: format!("node-{index}"),
            zone: if rng.chance(50) { "a" } else { "b" },
            offers: std::array::from_fn(|index| if present[index] { offers[index] as i64 } else { 0 }),
            n_pods: if rng.chance(12) { rng.within(2, 5) } else { 110 },
            closed: match rng.up_to(30) {
                0 => Some("unschedulable: true"),
                1 => Some("taints: [{key: own, value: us, effect: NoSchedule}]"),
                _ => None,
            },
        }
    };
    (1..=rng.within(1, 5)).map(|index| node(index, rng)).collect()
}

impl Node {
    fn document(&self) -> String {
        let Self { name, zone, offers, n_pods, closed } = self;
        let spec = closed.map(|closed| format!("spec: {{{closed}}}\n")).unwrap_or_default();
        let labels = format!("{{kubernetes.io/hostname: {name}, zone: {zone}}}");
        let offers = quantities(offers, "cpu");
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {labels}}}\n{spec}status: {{allocatable: \
             {{{offers}pods: \"{n_pods}\"}}}}\n"
        )
    }
}

/// The nonzero amounts in YAML flow style, each followed by a comma. YuniKorn's queues name the CPU `vcore`.
fn quantities(amounts: &[i64], cpu: &str) -> String {
    let mut text = String::new();
    for (index, amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount > 0) {
        let (name, unit) = match index {
            0 => (cpu, ""),
            1 => ("memory", "Gi"),
            _ => (RESOURCES[index], ""),
        };
        let _ = write!(text, "{name}: \"{amount}{unit}\", ");
    }
    text
}

/// A random number generator (xorshift64*): the same seed gives the same numbers on every machine.
pub struct Rng(u64);

impl Rng {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self((seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number from 0 to below `end`, which must not be 0.
    pub fn up_to(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number from `first` to `last`, both included.
    pub fn within(&mut self, first: usize, last: usize) -> usize {
        first + self.up_to(last - first + 1)
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// One of the items, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.up_to(items.len())]
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.up_to(last + 1));
        }
    }
}
