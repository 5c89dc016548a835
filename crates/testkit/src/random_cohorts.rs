//! Small random clusters for policy Kueue, each with one question: one to five queues, alone, in cohorts or in a tree of cohorts, nearly full of
//! workloads that borrow from each other, and one preempting workload. All preemption policies, limits, weights and fungibilities occur; there
//! are few different times and priorities, so that ties occur. The same seed gives the same bytes.

mod tree;
mod workloads;

use serde_json::{Value, json};

use crate::limits::write_some_as_limits;
pub use crate::random::Rng;
use crate::random::yaml::document;
use tree::Tree;
use workloads::Workloads;

/// The time of every question.
pub const NOW: &str = "2026-01-01T01:00:00Z";
/// The API version of all objects.
const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// The structure of the cohorts, and whether fair sharing is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One cohort or two.
    Flat,
    /// A tree of cohorts.
    Tree,
    /// One of the others, with fair sharing.
    Fair,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Flat, Self::Tree, Self::Fair];

    /// The name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Tree => "tree",
            Self::Fair => "fair",
        }
    }
}

/// The cluster of this seed, as a PreemptionTest file without an expectation.
pub fn cluster(kind: Kind, seed: u64) -> String {
    let mut rng = Rng::new(seed.wrapping_mul(3).wrapping_add(kind as u64));
    let supply = Supply::new(&mut rng);
    let tree = Tree::new(&mut rng, kind, &supply);
    let mut workloads = Workloads::new(&supply, &tree);
    workloads.fill(&mut rng);
    workloads.preemptor(&mut rng);
    let mut objects = vec![test(&mut rng, kind, seed)];
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

fn test(rng: &mut Rng, kind: Kind, seed: u64) -> Value {
    let mut args = json!({"placement": "QuotaOnly"});
    if kind == Kind::Fair {
        args["fairSharing"] = match rng.up_to(4) {
            0 => json!({"enable": true, "preemptionStrategies": ["LessThanOrEqualToFinalShare"]}),
            1 => json!({"enable": true, "preemptionStrategies": ["LessThanInitialShare"]}),
            _ => json!({"enable": true}),
        };
    }
    json!({
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "PreemptionTest",
        "metadata": {"name": format!("random-cohorts-{}-{seed}", kind.name())},
        "spec": {
            "now": NOW,
            "profile": {"policy": "Kueue", "args": args},
            "preemptor": {"kind": "Workload", "namespace": "default", "name": "in"},
        },
    })
}

/// The flavors, and the groups of resources that share flavors.
struct Supply {
    flavors: Vec<Flavor>,
    groups: Vec<Group>,
}

struct Flavor {
    name: String,
    /// Whether its nodes have a label with its name.
    labelled: bool,
    /// Whether its nodes have a taint.
    tainted: bool,
    object: Value,
}

/// Resources that get the same flavor.
struct Group {
    resources: Vec<&'static str>,
    /// Indices into the flavors.
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
        for index in 1..=n {
            let name = format!("{prefix}{index}");
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

/// The quantity of an amount of a resource.
fn quantity(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" if amount % 2 != 0 => format!("{}m", amount * 500),
        "cpu" => (amount / 2).to_string(),
        "memory" => format!("{amount}Gi"),
        _ => amount.to_string(),
    }
}
