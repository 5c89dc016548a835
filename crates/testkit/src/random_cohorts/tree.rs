//! Cohorts and queues with quota, limits for lending and borrowing, and preemption policies.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{KUEUE, Kind, Rng, Supply, quantity};

/// Cohorts, and the queues below them.
pub(super) struct Tree {
    pub queues: Vec<Queue>,
    /// The total quota by flavor and resource.
    pub total: BTreeMap<(usize, &'static str), i64>,
    pub objects: Vec<Value>,
}

pub(super) struct Queue {
    pub name: String,
    /// By resource group: the flavors with quota, in the queue's order.
    pub flavors: Vec<Vec<usize>>,
}

impl Tree {
    pub fn new(rng: &mut Rng, kind: Kind, supply: &Supply) -> Self {
        let mut tree = Self { queues: Vec::new(), total: BTreeMap::new(), objects: Vec::new() };
        let cohorts = tree.cohorts(rng, kind, supply);
        for index in 0..*rng.pick(&[1, 2, 2, 3, 3, 4, 5]) {
            let cohort = (!rng.chance(7)).then(|| rng.pick(&cohorts).clone());
            tree.queue(rng, kind, supply, index, cohort);
        }
        tree
    }

    fn cohorts(&mut self, rng: &mut Rng, kind: Kind, supply: &Supply) -> Vec<String> {
        let mut names = vec!["root".to_owned()];
        let mut parents: Vec<Option<String>> = vec![None];
        let below = match kind {
            Kind::Flat => 0,
            Kind::Tree => *rng.pick(&[1, 2, 3, 4]),
            Kind::Fair => *rng.pick(&[0, 0, 1, 2, 3]),
        };
        for index in 0..below {
            let parent = rng.pick(&names).clone();
            names.push(format!("cohort-{index}"));
            parents.push(Some(parent));
        }
        if rng.chance(6) {
            names.push("elsewhere".to_owned());
            parents.push(None);
        }
        for (name, parent) in names.iter().zip(parents) {
            // A root cohort exists implicitly if a queue names it.
            if parent.is_none() && rng.chance(60) {
                continue;
            }
            let mut spec = json!({});
            if rng.chance(35) {
                let flavors: Vec<Vec<usize>> = supply.groups.iter().map(|group| group.flavors.clone()).collect();
                spec["resourceGroups"] = self.quota(rng, supply, &flavors, parent.is_some());
            }
            if let Some(parent) = parent {
                spec["parentName"] = parent.into();
            }
            weigh(rng, kind, &mut spec);
            self.objects.push(json!({"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}));
        }
        names
    }

    fn queue(&mut self, rng: &mut Rng, kind: Kind, supply: &Supply, index: usize, cohort: Option<String>) {
        let name = format!("queue-{index}");
        let mut flavors = Vec::new();
        for (index, group) in supply.groups.iter().enumerate() {
            let mut own: Vec<usize> = group.flavors.iter().copied().filter(|_| rng.chance(88)).collect();
            if own.is_empty() && (index == 0 || rng.chance(80)) {
                own.push(group.flavors[0]);
            }
            if rng.chance(20) {
                rng.shuffle(&mut own);
            }
            flavors.push(own);
        }
        let mut spec = json!({"namespaceSelector": {}, "preemption": preemption(rng, kind)});
        spec["resourceGroups"] = self.quota(rng, supply, &flavors, cohort.is_some());
        if let Some(cohort) = cohort {
            spec["cohortName"] = cohort.into();
        }
        if rng.chance(50) {
            spec["flavorFungibility"] = fungibility(rng);
        }
        weigh(rng, kind, &mut spec);
        self.objects
            .push(json!({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": &name}, "spec": spec}));
        let local = json!({"name": format!("to-{name}"), "namespace": "default"});
        self.objects.push(
            json!({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": &name}}),
        );
        self.queues.push(Queue { name, flavors });
    }

    fn quota(&mut self, rng: &mut Rng, supply: &Supply, flavors: &[Vec<usize>], in_cohort: bool) -> Value {
        let mut groups = Vec::new();
        for (group, own) in supply.groups.iter().zip(flavors).filter(|(_, own)| !own.is_empty()) {
            let mut listed = Vec::new();
            for &flavor in own {
                let mut quotas = Vec::new();
                for &resource in &group.resources {
                    let nominal = *rng.pick(&[0, 0, 3, 4, 6, 8, 10]);
                    *self.total.entry((flavor, resource)).or_default() += nominal;
                    let mut quota = json!({"name": resource, "nominalQuota": quantity(resource, nominal)});
                    if in_cohort && rng.chance(25) {
                        quota["borrowingLimit"] = quantity(resource, *rng.pick(&[0, 1, 2, 4, 8])).into();
                    }
                    if in_cohort && rng.chance(25) {
                        quota["lendingLimit"] = quantity(resource, nominal.min(*rng.pick(&[0, 1, 2, 4]))).into();
                    }
                    quotas.push(quota);
                }
                listed.push(json!({"name": supply.flavors[flavor].name, "resources": quotas}));
            }
            groups.push(json!({"coveredResources": group.resources, "flavors": listed}));
        }
        groups.into()
    }
}

fn weigh(rng: &mut Rng, kind: Kind, spec: &mut Value) {
    if kind == Kind::Fair && rng.chance(40) {
        spec["fairSharing"] = json!({"weight": *rng.pick(&["1", "2", "2", "4", "500m", "0.25", "0", "3"])});
    }
}

fn preemption(rng: &mut Rng, kind: Kind) -> Value {
    let mut spec = json!({});
    if rng.chance(80) {
        let policy = *rng.pick(&["Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"]);
        spec["withinClusterQueue"] = policy.into();
    }
    if rng.chance(90) {
        let policy = *rng.pick(&["Never", "LowerPriority", "LowerPriority", "Any", "Any"]);
        spec["reclaimWithinCohort"] = policy.into();
        if policy != "Never" && kind != Kind::Fair && rng.chance(45) {
            spec["borrowWithinCohort"] = json!({"policy": "LowerPriority"});
            if rng.chance(55) {
                spec["borrowWithinCohort"]["maxPriorityThreshold"] = (*rng.pick(&[-1, 0, 1, 2])).into();
            }
        }
    }
    spec
}

fn fungibility(rng: &mut Rng) -> Value {
    // Kueue accepts a preference only if both fields are TryNextFlavor.
    if rng.chance(10) {
        let preference = *rng.pick(&["BorrowingOverPreemption", "PreemptionOverBorrowing"]);
        return json!({"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": preference});
    }
    let mut spec = json!({});
    if rng.chance(60) {
        spec["whenCanBorrow"] = (*rng.pick(&["MayStopSearch", "TryNextFlavor"])).into();
    }
    if rng.chance(60) {
        spec["whenCanPreempt"] = (*rng.pick(&["MayStopSearch", "MayStopSearch", "TryNextFlavor"])).into();
    }
    spec
}
