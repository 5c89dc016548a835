//! Kueue's objects become the quota tree, its rules, and workloads.

mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reprieve_engine::queues::{PriorityRule, Queue, Queues, UNDEFINED};
use reprieve_engine::workloads::{
    BorrowWithin, Fungibility, QueueRules, Queueing, QuotaRules, Reclaim, ResourceGroup, Within, Workload,
};
use reprieve_engine::{CellId, FlavorId, Priority, QueueId, QuotaResourceId, WorkloadId};
use serde_json::Value;

use crate::disturbance::sorting;
use crate::names::{Numbered, QueueNames};
use crate::namespace_selector::{self, Namespaces};
use crate::protected::protected;
use crate::workload_classes::WorkloadClasses;
use crate::{Account, Interner, by_name};
use reprieve_api::kueue::{
    ClusterQueue, KueueWorkload, PreemptionSpec, ResourceFlavor, ResourceGroupSpec, ResourceQuota,
};
use reprieve_api::{FullName, InputError, Kind, ObjectRef, Objects, Sourced, quantity};
use workloads::Places;
pub use workloads::{Workloads, ranked_by};

const BILLION: i64 = 1_000_000_000;

/// What Kueue's objects add to a snapshot.
pub struct KueueWorld {
    pub queues: Queues,
    pub rules: QuotaRules,
    pub workloads: Vec<Workload>,
    pub(crate) names: QueueNames,
    /// What is wrong with some of them.
    pub warnings: Vec<String>,
    /// Reads more of them.
    pub reader: Workloads,
}

/// Where what is not evaluated is noted down.
struct Notes<'a> {
    texts: &'a mut Interner,
    warnings: &'a mut Vec<String>,
}

/// `None` where there is no ClusterQueue. `places_all` says whether the pods of all workloads are this scheduler's to place; else only
/// those are whose template names it.
pub fn world(
    objects: &Objects,
    scheduler: &str,
    places_all: bool,
    texts: &mut Interner,
) -> Result<Option<KueueWorld>, InputError> {
    if objects.cluster_queues.is_empty() {
        return Ok(None);
    }
    let mut reading = Reading::new(objects)?;
    reading.add_cohorts(objects)?;
    reading.add_queues(objects)?;
    let (queues, rules) = reading.tree()?;
    let queue_names = reading.nodes.iter().map(|node| node.name.clone()).collect();
    let mut warnings = Vec::new();
    let notes = &mut Notes { texts, warnings: &mut warnings };
    let places = Places { all: places_all, scheduler: scheduler.to_owned() };
    let mut reader = Workloads::new(reading, &rules, objects, places, notes)?;
    let (workload_names, workloads) = reader.all(objects, notes)?;
    let pod_set_names = pod_set_names(objects);
    let pod_set_names = workload_names.iter().map(|name| pod_set_names[name].clone()).collect();
    Ok(Some(KueueWorld {
        queues,
        rules,
        workloads,
        names: QueueNames {
            queues: queue_names,
            workloads: Numbered::new(workload_names, WorkloadId::new),
            pod_sets: pod_set_names,
            flavors: reader.flavor_names(),
            resources: reader.resource_names(),
        },
        warnings,
        reader,
    }))
}

fn pod_set_names(objects: &Objects) -> BTreeMap<FullName, Vec<String>> {
    let names = |workload: &KueueWorkload| workload.spec.pod_sets.iter().map(|set| set.name.clone()).collect();
    let workloads = objects.kueue_workloads.iter().map(|workload| &workload.object);
    workloads.map(|workload| (FullName::of(&workload.metadata), names(workload))).collect()
}

/// Queues and cohorts as plain accounts; flavors are added up.
pub fn accounts(objects: &Objects) -> Result<Vec<Account>, InputError> {
    let mut reading = Reading::new(objects)?;
    reading.add_cohorts(objects)?;
    reading.add_queues(objects)?;
    let names: BTreeMap<QuotaResourceId, &String> = reading.resources.iter().map(|(name, id)| (*id, name)).collect();
    let account = |node: &Node| {
        let mut account = Account { name: node.name.clone(), parent: node.parent, ..Account::default() };
        let mut limited: BTreeMap<&String, Option<i64>> = BTreeMap::new();
        for ((_, resource), quota) in &node.quota {
            let name = names[resource];
            let guarantee = account.guarantee.entry(name.clone()).or_default();
            *guarantee = guarantee.saturating_add(quota.nominal);
            let ceiling = quota.borrowing_limit.map(|limit| quota.nominal.saturating_add(limit));
            let sum = limited.entry(name).or_insert(Some(0));
            *sum = sum.zip(ceiling).map(|(sum, ceiling)| sum.saturating_add(ceiling));
        }
        let ceilings = limited.into_iter().filter_map(|(name, ceiling)| Some((name.clone(), ceiling?)));
        account.ceiling = ceilings.collect();
        account
    };
    Ok(reading.nodes.iter().map(account).collect())
}

/// A queue or cohort before quotas are summed.
struct Node {
    name: String,
    is_cohort: bool,
    parent: Option<usize>,
    quota: BTreeMap<(FlavorId, QuotaResourceId), CellQuota>,
    groups: Vec<ResourceGroup>,
    preemption: PreemptionSpec,
    namespace_selector: Option<Option<LabelSelector>>,
    when_can_borrow: Fungibility,
    when_can_preempt: Fungibility,
    preempts_before_borrowing: bool,
    queueing: Queueing,
    weight: i64,
}

#[derive(Clone, Copy)]
struct CellQuota {
    nominal: i64,
    borrowing_limit: Option<i64>,
    lending_limit: Option<i64>,
}

struct Reading<'o> {
    flavors: BTreeMap<String, (FlavorId, &'o ResourceFlavor)>,
    resources: BTreeMap<String, QuotaResourceId>,
    nodes: Vec<Node>,
    cohorts: BTreeMap<String, usize>,
    queues: BTreeMap<String, usize>,
    classes: WorkloadClasses,
    namespaces: Namespaces,
    protected: BTreeSet<String>,
}

impl<'o> Reading<'o> {
    fn new(objects: &'o Objects) -> Result<Self, InputError> {
        let named = by_name(Kind::ResourceFlavor, &objects.resource_flavors, |flavor| {
            flavor.metadata.name.clone().unwrap_or_default()
        })?;
        let flavors = named.into_iter().enumerate();
        let flavors = flavors.map(|(at, (name, flavor))| (name, (FlavorId::new(at), &*flavor.object))).collect();
        let groups = objects.cluster_queues.iter().flat_map(|queue| &queue.object.spec.resource_groups);
        let groups = groups.chain(objects.cohorts.iter().flat_map(|cohort| &cohort.object.spec.resource_groups));
        let named: BTreeSet<&String> = groups.flat_map(|group| &group.covered_resources).collect();
        let resources = named.into_iter().enumerate();
        let resources = resources.map(|(at, name)| (name.clone(), QuotaResourceId::new(at))).collect();
        Ok(Self {
            flavors,
            resources,
            nodes: Vec::new(),
            cohorts: BTreeMap::new(),
            queues: BTreeMap::new(),
            classes: WorkloadClasses::new(objects)?,
            namespaces: Namespaces::new(objects),
            protected: protected(objects),
        })
    }

    /// Cohorts, those that are only named among them, parents first.
    fn add_cohorts(&mut self, objects: &'o Objects) -> Result<(), InputError> {
        let defined =
            by_name(Kind::Cohort, &objects.cohorts, |cohort| cohort.metadata.name.clone().unwrap_or_default())?;
        let mut names: BTreeSet<String> = defined.keys().cloned().collect();
        names.extend(defined.values().filter_map(|cohort| cohort.object.spec.parent_name.clone()));
        names.extend(objects.cluster_queues.iter().filter_map(|queue| queue.object.spec.cohort_name.clone()));
        names.retain(|name| !name.is_empty());
        let parent_of = |name: &String| {
            defined.get(name).and_then(|cohort| cohort.object.spec.parent_name.clone()).filter(|name| !name.is_empty())
        };
        for name in &names {
            let mut path = vec![name.clone()];
            while let Some(parent) = parent_of(&path[path.len() - 1]) {
                if path.contains(&parent) {
                    let cohort = defined[name];
                    let problem = format!("cohort {parent:?} is above itself; break the cycle");
                    return Err(InputError::new(problem)
                        .at(&cohort.source)
                        .object(ObjectRef::of(Kind::Cohort, name))
                        .field("spec.parentName"));
                }
                path.push(parent);
            }
            for name in path.into_iter().rev() {
                if self.cohorts.contains_key(&name) {
                    continue;
                }
                let parent = parent_of(&name).map(|parent| self.cohorts[&parent]);
                let spec = defined.get(&name).map(|cohort| (&cohort.object.spec, &cohort.source));
                let object = ObjectRef::of(Kind::Cohort, &name);
                let (quota, groups) = match spec {
                    Some((spec, source)) => {
                        self.quota(&spec.resource_groups).map_err(|error| error.at(source).object(object.clone()))?
                    }
                    None => (BTreeMap::new(), Vec::new()),
                };
                let weight = spec.and_then(|(spec, _)| spec.fair_sharing.weight.as_ref());
                let weight = weight_of(weight).map_err(|error| match spec {
                    Some((_, source)) => error.at(source).object(object.clone()),
                    None => error,
                })?;
                self.cohorts.insert(name.clone(), self.nodes.len());
                self.nodes.push(Node {
                    name,
                    is_cohort: true,
                    parent,
                    quota,
                    groups,
                    preemption: PreemptionSpec::default(),
                    namespace_selector: None,
                    when_can_borrow: Fungibility::MayStopSearch,
                    when_can_preempt: Fungibility::TryNextFlavor,
                    preempts_before_borrowing: false,
                    queueing: Queueing::BestEffortFifo,
                    weight,
                });
            }
        }
        Ok(())
    }

    fn add_queues(&mut self, objects: &'o Objects) -> Result<(), InputError> {
        let named = by_name(Kind::ClusterQueue, &objects.cluster_queues, |queue| {
            queue.metadata.name.clone().unwrap_or_default()
        })?;
        for (name, Sourced { object, source }) in named {
            let node = self
                .queue(&name, object)
                .map_err(|error| error.at(source).object(ObjectRef::of(Kind::ClusterQueue, &name)))?;
            self.queues.insert(name, self.nodes.len());
            self.nodes.push(node);
        }
        Ok(())
    }

    fn queue(&self, name: &str, object: &ClusterQueue) -> Result<Node, InputError> {
        let spec = &object.spec;
        let (quota, groups) = self.quota(&spec.resource_groups)?;
        let fungibility = |value: Option<&str>, stops: [&str; 2], default, field: &str| match value {
            None => Ok(default),
            Some("TryNextFlavor") => Ok(Fungibility::TryNextFlavor),
            Some(value) if stops.contains(&value) => Ok(Fungibility::MayStopSearch),
            Some(other) => {
                let problem = format!("{other:?} is not understood; write MayStopSearch or TryNextFlavor");
                Err(InputError::new(problem).field(format!("spec.flavorFungibility.{field}")))
            }
        };
        let chosen = &spec.flavor_fungibility;
        namespace_selector::check(&spec.namespace_selector)?;
        Ok(Node {
            name: name.to_owned(),
            is_cohort: false,
            parent: spec.cohort_name.as_ref().filter(|name| !name.is_empty()).map(|cohort| self.cohorts[cohort]),
            quota,
            groups,
            preemption: spec.preemption.clone(),
            namespace_selector: spec.namespace_selector.clone(),
            when_can_borrow: fungibility(
                chosen.when_can_borrow.as_deref(),
                ["MayStopSearch", "Borrow"],
                Fungibility::MayStopSearch,
                "whenCanBorrow",
            )?,
            when_can_preempt: fungibility(
                chosen.when_can_preempt.as_deref(),
                ["MayStopSearch", "Preempt"],
                Fungibility::TryNextFlavor,
                "whenCanPreempt",
            )?,
            preempts_before_borrowing: chosen.preference.as_deref() == Some("PreemptionOverBorrowing"),
            queueing: match spec.queueing_strategy.as_deref() {
                None | Some("BestEffortFIFO") => Queueing::BestEffortFifo,
                Some("StrictFIFO") => Queueing::StrictFifo,
                Some(other) => {
                    let problem = format!("{other:?} is not understood; write BestEffortFIFO or StrictFIFO");
                    return Err(InputError::new(problem).field("spec.queueingStrategy"));
                }
            },
            weight: weight_of(spec.fair_sharing.weight.as_ref())?,
        })
    }

    #[allow(clippy::type_complexity, reason = "the pair has no name of its own")]
    fn quota(
        &self,
        groups: &[ResourceGroupSpec],
    ) -> Result<(BTreeMap<(FlavorId, QuotaResourceId), CellQuota>, Vec<ResourceGroup>), InputError> {
        let mut quota = BTreeMap::new();
        let mut read = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let mut flavors = Vec::new();
            for (flavor_at, flavor) in group.flavors.iter().enumerate() {
                let path = format!("spec.resourceGroups[{at}].flavors[{flavor_at}]");
                let Some((id, _)) = self.flavors.get(&flavor.name) else {
                    let problem = format!("ResourceFlavor {:?} is not in the input; add it", flavor.name);
                    return Err(InputError::new(problem).field(format!("{path}.name")));
                };
                flavors.push(*id);
                for resource in &flavor.resources {
                    let Some(&of) = self.resources.get(&resource.name) else {
                        let problem = format!("{:?} is not among the covered resources", resource.name);
                        return Err(InputError::new(problem).field(format!("{path}.resources")));
                    };
                    let cell = cell_quota(resource).map_err(|error| {
                        let field = error.field.clone().unwrap_or_default();
                        error.field(format!("{path}.{}.{field}", resource.name))
                    })?;
                    quota.insert((*id, of), cell);
                }
            }
            let resources = group.covered_resources.iter().map(|resource| self.resources[resource]).collect();
            read.push(ResourceGroup { resources, flavors });
        }
        Ok((quota, read))
    }

    /// Sums the quotas from the leaves up.
    fn tree(&self) -> Result<(Queues, QuotaRules), InputError> {
        let mut cells: BTreeSet<(FlavorId, QuotaResourceId)> = BTreeSet::new();
        for node in &self.nodes {
            cells.extend(node.quota.keys());
        }
        let cells: Vec<(FlavorId, QuotaResourceId)> = cells.into_iter().collect();
        let n = cells.len();
        let quota = |node: &Node, cell: usize| node.quota.get(&cells[cell]).copied();
        let mut subtree: Vec<Vec<i64>> = self
            .nodes
            .iter()
            .map(|node| (0..n).map(|cell| quota(node, cell).map_or(0, |quota| quota.nominal)).collect())
            .collect();
        let mut kept: Vec<Vec<i64>> = vec![vec![0; n]; self.nodes.len()];
        // Cohorts stand before what is in them only among themselves, so depth decides the order of the sums.
        let depth = |at: usize| std::iter::successors(Some(at), |&at| self.nodes[at].parent).count();
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(depth(at)));
        for at in order {
            for cell in 0..n {
                let lending = quota(&self.nodes[at], cell).and_then(|quota| quota.lending_limit);
                kept[at][cell] = lending.map_or(0, |limit| (subtree[at][cell] - limit).max(0));
                if let Some(parent) = self.nodes[at].parent {
                    let lent = subtree[at][cell] - kept[at][cell];
                    subtree[parent][cell] = subtree[parent][cell].checked_add(lent).ok_or_else(|| {
                        InputError::new(format!(
                            "the quotas below cohort {} add up to more than 2^63-1",
                            self.nodes[parent].name
                        ))
                    })?;
                }
            }
        }
        let queues = self.nodes.iter().enumerate().map(|(at, node)| Queue {
            parent: node.parent.map(QueueId::new),
            guarantee: subtree[at].clone(),
            ceiling: vec![UNDEFINED; n],
            keeps: kept[at].clone(),
            fence: false,
            yields: true,
            delay_micros: 0,
            priority: PriorityRule::Offset(0),
        });
        let queues = Queues::new(true, n, queues.collect());
        let mut table = vec![vec![None; self.resources.len()]; self.flavors.len()];
        for (at, (flavor, resource)) in cells.iter().enumerate() {
            table[flavor.index()][resource.index()] = Some(CellId::new(at));
        }
        let rules = self.nodes.iter().map(|node| node_rules(node, &cells)).collect::<Result<_, _>>()?;
        let resource_of = cells.iter().map(|(_, resource)| *resource).collect();
        let rules = QuotaRules::new(rules, table, resource_of, self.resources.get("pods").copied());
        Ok((queues, rules))
    }
}

/// A workload that is done holds nothing, though its admission stays written.
pub fn is_finished(workload: &KueueWorkload) -> bool {
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == "Finished" && one.status == "True")
}

fn node_rules(node: &Node, cells: &[(FlavorId, QuotaResourceId)]) -> Result<QueueRules, InputError> {
    let wrong = |field: &str, value: &str, known: &str| {
        let problem = format!("{value:?} is not understood; write {known}");
        Err(InputError::new(problem)
            .object(ObjectRef::of(Kind::ClusterQueue, &node.name))
            .field(format!("spec.preemption.{field}")))
    };
    let preemption = &node.preemption;
    let within = match preemption.within_cluster_queue.as_deref() {
        None | Some("Never") => Within::Never,
        Some("LowerPriority") => Within::LowerPriority,
        Some("LowerOrNewerEqualPriority") => Within::LowerOrNewerEqualPriority,
        Some(other) => return wrong("withinClusterQueue", other, "Never, LowerPriority or LowerOrNewerEqualPriority"),
    };
    let reclaim = match preemption.reclaim_within_cohort.as_deref() {
        None | Some("Never") => Reclaim::Never,
        Some("LowerPriority" | "ReclaimFromLowerPriority") => Reclaim::LowerPriority,
        Some("Any" | "ReclaimFromAny" | "ReclaimAny") => Reclaim::Any,
        Some(other) => return wrong("reclaimWithinCohort", other, "Never, LowerPriority or Any"),
    };
    let borrow = match &preemption.borrow_within_cohort {
        None => BorrowWithin::Never,
        Some(spec) => match spec.policy.as_deref() {
            None | Some("Never") => BorrowWithin::Never,
            Some("LowerPriority") => {
                BorrowWithin::LowerPriority { threshold: spec.max_priority_threshold.map(Priority) }
            }
            Some(other) => return wrong("borrowWithinCohort.policy", other, "Never or LowerPriority"),
        },
    };
    let sorting = match sorting(&preemption.workload_sorting) {
        Ok(sorting) => sorting,
        Err(criterion) => {
            let known = "ByLowestPriority, ByLowestRuntime or ByLongestRuntime, priority and runtime once each";
            return wrong("workloadSorting", &criterion, known);
        }
    };
    let trigger_after_seconds = match preemption.trigger_after_workload_waiting_seconds {
        None => 0,
        Some(seconds @ 0..) => seconds,
        Some(seconds) => {
            let problem = format!("{seconds} is below 0; write how many seconds, or leave it out");
            return Err(InputError::new(problem)
                .object(ObjectRef::of(Kind::ClusterQueue, &node.name))
                .field("spec.preemption.triggerAfterWorkloadWaitingSeconds"));
        }
    };
    let limit = |cell: &(FlavorId, QuotaResourceId)| node.quota.get(cell).and_then(|quota| quota.borrowing_limit);
    Ok(QueueRules {
        is_cohort: node.is_cohort,
        borrowing_limit: cells.iter().map(limit).collect(),
        within,
        reclaim,
        trigger_after_seconds,
        sorting,
        borrow,
        when_can_borrow: node.when_can_borrow,
        when_can_preempt: node.when_can_preempt,
        preempts_before_borrowing: node.preempts_before_borrowing,
        queueing: node.queueing,
        weight: node.weight,
        groups: node.groups.clone(),
    })
}

fn cell_quota(resource: &ResourceQuota) -> Result<CellQuota, InputError> {
    let amount = |value: &Value, field: &str| amount_of(&resource.name, value).map_err(|error| error.field(field));
    let limit = |value: &Option<Value>, field: &str| value.as_ref().map(|value| amount(value, field)).transpose();
    let nominal = if resource.nominal_quota.is_null() { 0 } else { amount(&resource.nominal_quota, "nominalQuota")? };
    let borrowing_limit = match limit(&resource.max, "max")? {
        Some(max) => Some((max - nominal).max(0)),
        None => limit(&resource.borrowing_limit, "borrowingLimit")?,
    };
    Ok(CellQuota { nominal, borrowing_limit, lending_limit: limit(&resource.lending_limit, "lendingLimit")? })
}

fn amount_of(resource: &str, value: &Value) -> Result<i64, InputError> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let exact = quantity::billionths(&text);
    let amount =
        exact.and_then(|exact| if resource == "cpu" { quantity::thousandths(exact) } else { quantity::units(exact) });
    amount.map_err(|error| InputError::new(format!("{text:?} {error}")))
}

fn weight_of(weight: Option<&Value>) -> Result<i64, InputError> {
    let Some(value) = weight else {
        return Ok(BILLION);
    };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let wrong =
        |error: quantity::QuantityError| InputError::new(format!("{text:?} {error}")).field("spec.fairSharing.weight");
    let exact = quantity::billionths(&text).map_err(wrong)?;
    i64::try_from(exact).map_err(|_| wrong(quantity::QuantityError::Overflow))
}
