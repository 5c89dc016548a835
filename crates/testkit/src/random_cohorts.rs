//! Small random clusters under Kueue's quota, each with one question: one to five queues alone, in cohorts or in a tree of them, nearly
//! full of workloads that borrow from each other, and one workload that asks. All policies, limits, weights and fungibilities occur,
//! and times and priorities are few, so that ties do. The same seed gives the same bytes.

mod tree;
mod workloads;

use serde_json::{Value, json};

use crate::limits::write_some_as_limits;
pub use crate::random::Rng;
use crate::random::yaml::document;
use tree::Tree;
use workloads::Workloads;

/// The clock of every question.
pub const NOW: &str = "2026-01-01T01:00:00Z";
/// The version of all objects.
const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// How the queues stand to each other, and who may take from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One cohort or two.
    Flat,
    /// Cohorts within cohorts.
    Tree,
    /// Either, under fair sharing.
    Fair,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Flat, Self::Tree, Self::Fair];

    /// As it is written in a name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Tree => "tree",
            Self::Fair => "fair",
        }
    }
}

/// The cluster of this seed, as a PreemptionTest file that expects nothing.
pub fn cluster(sort: Kind, seed: u64) -> String {
    let mut rng = Rng::new(seed.wrapping_mul(3).wrapping_add(sort as u64));
    let supply = Supply::new(&mut rng);
    let tree = Tree::new(&mut rng, sort, &supply);
    let mut workloads = Workloads::new(&supply, &tree);
    workloads.fill(&mut rng);
    workloads.preemptor(&mut rng);
    let mut objects = vec![test(&mut rng, sort, seed)];
    objects.extend(supply.flavors.iter().map(|flavor| flavor.object.clone()));
    objects.extend(tree.objects.iter().cloned());
    let mut number = seed << 16;
    for set in workloads.objects.iter_mut().filter_map(|workload| workload["spec"]["podSets"].as_array_mut()).flatten()
    {
        number += 1;
        write_some_as_limits(&mut set["template"]["spec"], number);
    }
    objects.extend(workloads.objects);
    let documents: Vec<String> = objects.iter().map(document).collect();
    documents.join("---\n")
}

fn test(rng: &mut Rng, sort: Kind, seed: u64) -> Value {
    let mut args = json!({"placement": "QuotaOnly"});
    if sort == Kind::Fair {
        args["fairSharing"] = match rng.up_to(4) {
            0 => json!({"enable": true, "preemptionStrategies": ["LessThanOrEqualToFinalShare"]}),
            1 => json!({"enable": true, "preemptionStrategies": ["LessThanInitialShare"]}),
            _ => json!({"enable": true}),
        };
    }
    json!({
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "PreemptionTest",
        "metadata": {"name": format!("random-cohorts-{}-{seed}", sort.name())},
        "spec": {
            "now": NOW,
            "profile": {"policy": "Kueue", "args": args},
            "preemptor": {"kind": "Workload", "namespace": "default", "name": "in"},
        },
    })
}

/// What there is quota of.
struct Supply {
    flavors: Vec<Flavor>,
    groups: Vec<Group>,
}

struct Flavor {
    name: String,
    /// Whether its nodes are labelled with its name.
    labelled: bool,
    /// Whether pods must tolerate its taint.
    tainted: bool,
    object: Value,
}

/// Resources that take one flavor together.
struct Group {
    resources: Vec<&'static str>,
    /// By their place among the flavors.
    flavors: Vec<usize>,
}

impl Supply {
    fn new(rng: &mut Rng) -> Self {
        let mut supply = Self { flavors: Vec::new(), groups: Vec::new() };
        let mut main = vec!["cpu"];
        if rng.chance(45) {
            main.push("memory");
        }
        if rng.chance(8) {
            main.push("pods");
        }
        let n = *rng.pick(&[1, 1, 2, 2, 3]);
        supply.add_group(rng, main, "f", n);
        if rng.chance(20) {
            let n = *rng.pick(&[1, 2]);
            supply.add_group(rng, vec!["example.com/gpu"], "g", n);
        }
        supply
    }

    fn add_group(&mut self, rng: &mut Rng, resources: Vec<&'static str>, prefix: &str, n: usize) {
        let first = self.flavors.len();
        for at in 1..=n {
            let name = format!("{prefix}{at}");
            let (labelled, tainted) = (rng.chance(40), rng.chance(12));
            let mut spec = json!({});
            if labelled {
                spec["nodeLabels"] = json!({"type": &name});
            }
            if tainted {
                let effect = *rng.pick(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
                spec["nodeTaints"] = json!([{"key": "own", "value": &name, "effect": effect}]);
                if rng.chance(15) {
                    spec["tolerations"] = json!([{"key": "own", "operator": "Exists"}]);
                }
            }
            let object =
                json!({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": &name}, "spec": spec});
            self.flavors.push(Flavor { name, labelled, tainted, object });
        }
        self.groups.push(Group { resources, flavors: (first..first + n).collect() });
    }
}

/// So much of a resource, as people write it.
fn written(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" if amount % 2 != 0 => format!("{}m", amount * 500),
        "cpu" => (amount / 2).to_string(),
        "memory" => format!("{amount}Gi"),
        _ => amount.to_string(),
    }
}
