//! Admitted workloads that use most of the quota, and the preempting workload.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::tree::{Queue, Tree};
use super::{KUEUE, Rng, Supply, quantity};

pub(super) struct Workloads<'c> {
    supply: &'c Supply,
    tree: &'c Tree,
    used: BTreeMap<(usize, &'static str), i64>,
    pub objects: Vec<Value>,
}

/// A pod set: the number of pods and the requests of each.
struct PodSet {
    name: &'static str,
    count: i64,
    requests: BTreeMap<&'static str, i64>,
}

impl<'c> Workloads<'c> {
    pub fn new(supply: &'c Supply, tree: &'c Tree) -> Self {
        Self { supply, tree, used: BTreeMap::new(), objects: Vec::new() }
    }

    /// Admits workloads as long as there is quota, and rarely one more.
    pub fn fill(&mut self, rng: &mut Rng) {
        let has_uids = rng.chance(30);
        for index in 0..rng.within(4, 24) {
            let queue = rng.pick(&self.tree.queues);
            let flavors: Vec<Option<usize>> =
                queue.flavors.iter().map(|own| if own.is_empty() { None } else { Some(*rng.pick(own)) }).collect();
            let sets = self.pod_sets(rng, queue, &[1, 1, 2, 3], 90);
            let mut usage: BTreeMap<(usize, &'static str), i64> = BTreeMap::new();
            for set in &sets {
                for (&resource, amount) in &set.requests {
                    *usage.entry((self.flavor_of(&flavors, resource), resource)).or_default() += amount * set.count;
                }
            }
            let fits = usage.iter().all(|(flavor_resource, amount)| {
                self.used.get(flavor_resource).unwrap_or(&0) + amount
                    <= *self.tree.total.get(flavor_resource).unwrap_or(&0)
            });
            if !fits && !rng.chance(6) {
                continue;
            }
            for (flavor_resource, amount) in usage {
                *self.used.entry(flavor_resource).or_default() += amount;
            }
            let object = self.admitted(rng, index, queue, &flavors, &sets, has_uids);
            self.objects.push(object);
        }
    }

    fn admitted(
        &self,
        rng: &mut Rng,
        index: usize,
        queue: &Queue,
        flavors: &[Option<usize>],
        sets: &[PodSet],
        has_uids: bool,
    ) -> Value {
        let assignments: Vec<Value> = sets
            .iter()
            .map(|set| {
                let names = set.requests.keys().map(|&resource| {
                    let flavor = self.flavor_of(flavors, resource);
                    (resource.to_owned(), Value::from(self.supply.flavors[flavor].name.clone()))
                });
                let usage = set.requests.iter().map(|(&resource, amount)| {
                    (resource.to_owned(), Value::from(quantity(resource, amount * set.count)))
                });
                json!({
                    "name": set.name,
                    "count": set.count,
                    "flavors": Value::Object(names.collect()),
                    "resourceUsage": Value::Object(usage.collect()),
                })
            })
            .collect();
        let mut conditions = vec![condition("QuotaReserved", rng.up_to(7))];
        if rng.chance(7) {
            conditions.push(condition("Evicted", 50));
        }
        let mut metadata = json!({
            "name": format!("held-{index:02}"),
            "namespace": "default",
            "creationTimestamp": format!("2026-01-01T00:{:02}:00Z", 10 * rng.up_to(4)),
        });
        if has_uids {
            metadata["uid"] = format!("{:04x}", rng.up_to(0x1_0000)).into();
        }
        json!({
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": metadata,
            "spec": {
                "queueName": format!("to-{}", queue.name),
                "priority": *rng.pick(&[-1, 0, 0, 0, 1, 2]),
                "podSets": sets.iter().map(|set| spec_of(set, json!({}))).collect::<Vec<_>>(),
            },
            "status": {
                "admission": {"clusterQueue": &queue.name, "podSetAssignments": assignments},
                "conditions": conditions,
            },
        })
    }

    /// Adds the preemptor.
    pub fn preemptor(&mut self, rng: &mut Rng) {
        let queue = rng.pick(&self.tree.queues);
        let sets = self.pod_sets(rng, queue, &[1, 1, 2, 2, 3, 4, 6], 95);
        let mut specs = Vec::new();
        let mut flexible = rng.chance(30);
        for set in &sets {
            let mut pod = json!({});
            self.add_constraints(rng, &mut pod);
            let mut spec = spec_of(set, pod);
            // Kueue allows a minCount for one pod set only.
            if set.count > 1 && std::mem::take(&mut flexible) {
                spec["minCount"] = (rng.within(1, set.count as usize - 1) as i64).into();
            }
            specs.push(spec);
        }
        self.objects.push(json!({
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": {"name": "in", "namespace": "default", "creationTimestamp": "2026-01-01T00:20:00Z"},
            "spec": {
                "queueName": format!("to-{}", queue.name),
                "priority": *rng.pick(&[0, 1, 1, 2]),
                "podSets": specs,
            },
        }));
    }

    /// Adds tolerations of flavors' taints, node selectors and node affinity.
    fn add_constraints(&self, rng: &mut Rng, pod: &mut Value) {
        if self.supply.flavors.iter().any(|flavor| flavor.tainted) && rng.chance(50) {
            pod["tolerations"] = if rng.chance(50) {
                json!([{"key": "own", "operator": "Exists"}])
            } else {
                json!([{"key": "own", "operator": "Equal", "value": "f1", "effect": "NoSchedule"}])
            };
        }
        let labelled: Vec<&str> =
            self.supply.flavors.iter().filter(|flavor| flavor.labelled).map(|flavor| flavor.name.as_str()).collect();
        if labelled.is_empty() {
            return;
        }
        let wanted = *rng.pick(&labelled);
        match rng.up_to(12) {
            0 => pod["nodeSelector"] = json!({"type": wanted}),
            1 => pod["nodeSelector"] = json!({"unheard-of": "x"}),
            2 => {
                let (key, operator) = (*rng.pick(&["type", "type", "unheard-of"]), *rng.pick(&["In", "NotIn"]));
                let term = json!({"matchExpressions": [{"key": key, "operator": operator, "values": [wanted]}]});
                pod["affinity"] = json!({
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
                });
            }
            _ => {}
        }
    }

    fn pod_sets(&self, rng: &mut Rng, queue: &Queue, amounts: &[i64], percent: u64) -> Vec<PodSet> {
        let names: &[&'static str] = if rng.chance(15) { &["driver", "workers"] } else { &["main"] };
        let mut sets = Vec::new();
        for &name in names {
            let count = *rng.pick(&[1, 1, 1, 2, 3]);
            let mut requests = BTreeMap::new();
            for (group, _) in self.supply.groups.iter().zip(&queue.flavors).filter(|(_, own)| !own.is_empty()) {
                for &resource in &group.resources {
                    if resource == "pods" {
                        requests.insert(resource, 1);
                    } else if rng.chance(percent) {
                        requests.insert(resource, *rng.pick(amounts));
                    }
                }
            }
            if requests.is_empty() {
                requests.insert("cpu", 1);
            }
            sets.push(PodSet { name, count, requests });
        }
        sets
    }

    fn flavor_of(&self, flavors: &[Option<usize>], resource: &str) -> usize {
        let of =
            |(group, flavor): (&super::Group, &Option<usize>)| flavor.filter(|_| group.resources.contains(&resource));
        self.supply.groups.iter().zip(flavors).find_map(of).expect("a queue with quota of the resource")
    }
}

fn spec_of(set: &PodSet, mut pod: Value) -> Value {
    let listed = set.requests.iter().filter(|(resource, _)| **resource != "pods");
    let requests = listed.map(|(&resource, &amount)| (resource.to_owned(), Value::from(quantity(resource, amount))));
    pod["containers"] = json!([{"name": "main", "resources": {"requests": Value::Object(requests.collect())}}]);
    json!({"name": set.name, "count": set.count, "template": {"spec": pod}})
}

fn condition(kind: &str, minute: usize) -> Value {
    json!({
        "type": kind,
        "status": "True",
        "reason": kind,
        "message": "",
        "lastTransitionTime": format!("2026-01-01T00:{minute:02}:00Z"),
    })
}
