//! Kueue's objects become the quota tree, its rules, and workloads.

mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reprieve_engine::queues::{Queue, QueuePriority, QueueTree, UNDEFINED};
use reprieve_engine::workloads::{
    BorrowWithinCohort, Fungibility, QueueRules, QueueingStrategy, QuotaRules, ReclaimWithinCohort, ResourceGroup,
    WithinClusterQueue, Workload,
};
use reprieve_engine::{FlavorId, FlavorResourceId, Priority, QueueId, QuotaResourceId, WorkloadId};
use serde_json::Value;

use crate::names::{Numbered, QueueNames};
use crate::namespace_selector::{self, Namespaces};
use crate::preemption_options::{choice, sorting};
use crate::protected_namespaces::protected;
use crate::requests::{self, text_of};
use crate::workload_classes::WorkloadClasses;
use crate::{Interner, QueueSpec, by_name};
use reprieve_api::kueue::{
    BorrowWithinCohortSpec, ClusterQueueSpec, CohortSpec, FlavorSpec, KueueWorkload, PreemptionSpec, ResourceGroupSpec,
    ResourceQuota,
};
use reprieve_api::{InputError, ObjectSet, quantity};
use workloads::{Places, unfinished};
pub use workloads::{WorkloadReader, ranked_by};

const BILLION: i64 = 1_000_000_000;

/// What Kueue's objects add to a snapshot.
pub struct KueueTables {
    pub queues: QueueTree,
    pub rules: QuotaRules,
    pub workloads: Vec<Workload>,
    pub(crate) names: QueueNames,
    /// What is wrong with some of them.
    pub warnings: Vec<String>,
    /// Reads more of them.
    pub reader: WorkloadReader,
}

/// Where what is not evaluated is noted down.
struct Notes<'a> {
    texts: &'a mut Interner,
    warnings: &'a mut Vec<String>,
}

/// `None` where there is no ClusterQueue. `places_all` says whether the pods of all workloads are this scheduler's to place; else only
/// those are whose template names it.
pub fn kueue_tables(
    objects: &ObjectSet,
    scheduler: &str,
    places_all: bool,
    texts: &mut Interner,
) -> Result<Option<KueueTables>, InputError> {
    if objects.cluster_queues.is_empty() {
        return Ok(None);
    }
    let reading = QuotaTreeBuilder::new(objects)?;
    let (queues, rules) = reading.tree()?;
    let queue_names = reading.nodes.iter().map(|node| node.name.clone()).collect();
    let mut warnings = Vec::new();
    let notes = &mut Notes { texts, warnings: &mut warnings };
    let places = Places { all: places_all, scheduler: scheduler.to_owned() };
    let mut reader = WorkloadReader::new(reading, &rules, objects, places, notes)?;
    let named = unfinished(objects)?;
    let workloads = reader.all(&named, notes)?;
    Ok(Some(KueueTables {
        queues,
        rules,
        workloads,
        names: QueueNames {
            queues: queue_names,
            pod_sets: named.values().map(|one| pod_set_names(&one.object)).collect(),
            workloads: Numbered::new(named.into_keys().collect(), WorkloadId::new),
            flavors: reader.reading.flavors.keys().cloned().collect(),
            resources: reader.reading.resources.keys().cloned().collect(),
        },
        warnings,
        reader,
    }))
}

/// The names of a workload's pod sets, in its order.
pub fn pod_set_names(workload: &KueueWorkload) -> Vec<String> {
    workload.spec.pod_sets.iter().map(|set| set.name.clone()).collect()
}

/// Queues and cohorts as plain accounts; flavors are added up.
pub fn accounts(objects: &ObjectSet) -> Result<Vec<QueueSpec>, InputError> {
    let reading = QuotaTreeBuilder::new(objects)?;
    let names: BTreeMap<QuotaResourceId, &String> = reading.resources.iter().map(|(name, id)| (*id, name)).collect();
    let account = |node: &QueueDraft| {
        let mut account = QueueSpec { name: node.name.clone(), parent: node.parent, ..QueueSpec::default() };
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
struct QueueDraft {
    name: String,
    parent: Option<usize>,
    quota: BTreeMap<(FlavorId, QuotaResourceId), CellQuota>,
    namespace_selector: Option<Option<LabelSelector>>,
    /// Its rules, except for what it may borrow.
    rules: QueueRules,
}

#[derive(Clone, Copy)]
struct CellQuota {
    nominal: i64,
    borrowing_limit: Option<i64>,
    lending_limit: Option<i64>,
}

/// What is known of Kueue's objects but for LocalQueues and Workloads.
struct QuotaTreeBuilder {
    flavors: BTreeMap<String, (FlavorId, FlavorSpec)>,
    resources: BTreeMap<String, QuotaResourceId>,
    nodes: Vec<QueueDraft>,
    cohorts: BTreeMap<String, usize>,
    queues: BTreeMap<String, QueueId>,
    classes: WorkloadClasses,
    namespaces: Namespaces,
    /// The namespaces in which nobody is taken.
    protected: BTreeSet<String>,
}

impl QuotaTreeBuilder {
    fn new(objects: &ObjectSet) -> Result<Self, InputError> {
        let named = by_name::<String, _>(&objects.resource_flavors)?;
        let flavors = named.into_iter().enumerate();
        let flavors = flavors.map(|(at, (name, one))| (name, (FlavorId::new(at), one.object.spec.clone()))).collect();
        let groups = objects.cluster_queues.iter().flat_map(|queue| &queue.object.spec.resource_groups);
        let groups = groups.chain(objects.cohorts.iter().flat_map(|cohort| &cohort.object.spec.resource_groups));
        let named: BTreeSet<&String> = groups.flat_map(|group| &group.covered_resources).collect();
        let resources = named.into_iter().enumerate();
        let resources = resources.map(|(at, name)| (name.clone(), QuotaResourceId::new(at))).collect();
        let mut reading = Self {
            flavors,
            resources,
            nodes: Vec::new(),
            cohorts: BTreeMap::new(),
            queues: BTreeMap::new(),
            classes: WorkloadClasses::new(objects)?,
            namespaces: Namespaces::new(objects),
            protected: protected(objects),
        };
        reading.add_cohorts(objects)?;
        reading.add_queues(objects)?;
        Ok(reading)
    }

    /// Cohorts, those that are only named among them, parents first.
    fn add_cohorts(&mut self, objects: &ObjectSet) -> Result<(), InputError> {
        let defined = by_name::<String, _>(&objects.cohorts)?;
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
                    let problem = format!("cohort {parent:?} is above itself; break the cycle");
                    return Err(defined[name].locate(InputError::new(problem).field("spec.parentName")));
                }
                path.push(parent);
            }
            for name in path.into_iter().rev() {
                if self.cohorts.contains_key(&name) {
                    continue;
                }
                let parent = parent_of(&name).map(|parent| self.cohorts[&parent]);
                let node = match defined.get(&name) {
                    None => self.node(&name, parent, &ClusterQueueSpec::default())?,
                    Some(cohort) => {
                        let CohortSpec { resource_groups, fair_sharing, .. } = cohort.object.spec.clone();
                        let spec = ClusterQueueSpec { resource_groups, fair_sharing, ..ClusterQueueSpec::default() };
                        self.node(&name, parent, &spec).map_err(|error| cohort.locate(error))?
                    }
                };
                self.cohorts.insert(name, self.nodes.len());
                self.nodes.push(QueueDraft { rules: QueueRules { is_cohort: true, ..node.rules }, ..node });
            }
        }
        Ok(())
    }

    fn add_queues(&mut self, objects: &ObjectSet) -> Result<(), InputError> {
        for (name, queue) in by_name::<String, _>(&objects.cluster_queues)? {
            let spec = &queue.object.spec;
            let cohort = spec.cohort_name.as_ref().filter(|name| !name.is_empty());
            let parent = cohort.map(|cohort| self.cohorts[cohort]);
            let node = self.node(&name, parent, spec).map_err(|error| queue.locate(error))?;
            self.queues.insert(name, QueueId::new(self.nodes.len()));
            self.nodes.push(node);
        }
        Ok(())
    }

    fn node(&self, name: &str, parent: Option<usize>, spec: &ClusterQueueSpec) -> Result<QueueDraft, InputError> {
        let (quota, groups) = self.quota(&spec.resource_groups)?;
        namespace_selector::check(&spec.namespace_selector)?;
        let namespace_selector = spec.namespace_selector.clone();
        Ok(QueueDraft { name: name.to_owned(), parent, quota, namespace_selector, rules: queue_rules(spec, groups)? })
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
    fn tree(&self) -> Result<(QueueTree, QuotaRules), InputError> {
        let mut cells: BTreeSet<(FlavorId, QuotaResourceId)> = BTreeSet::new();
        for node in &self.nodes {
            cells.extend(node.quota.keys());
        }
        let cells: Vec<(FlavorId, QuotaResourceId)> = cells.into_iter().collect();
        let n = cells.len();
        let quota = |node: &QueueDraft, cell: usize| node.quota.get(&cells[cell]).copied();
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
            limit: vec![UNDEFINED; n],
            local_quota: kept[at].clone(),
            fence: false,
            preemptible: true,
            delay_micros: 0,
            priority: QueuePriority::Offset(0),
        });
        let queues = QueueTree::new(true, n, queues.collect());
        let mut table = vec![vec![None; self.resources.len()]; self.flavors.len()];
        for (at, (flavor, resource)) in cells.iter().enumerate() {
            table[flavor.index()][resource.index()] = Some(FlavorResourceId::new(at));
        }
        let rules = self.nodes.iter().map(|node| {
            let limit = |cell| node.quota.get(cell).and_then(|quota| quota.borrowing_limit);
            QueueRules { borrowing_limit: cells.iter().map(limit).collect(), ..node.rules.clone() }
        });
        let rules = rules.collect();
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

/// The rules of a queue, except for what it may borrow.
fn queue_rules(spec: &ClusterQueueSpec, groups: Vec<ResourceGroup>) -> Result<QueueRules, InputError> {
    let ClusterQueueSpec { preemption, flavor_fungibility: fungibility, .. } = spec;
    Ok(QueueRules {
        is_cohort: false,
        borrowing_limit: Vec::new(),
        within: choice(
            "spec.preemption.withinClusterQueue",
            preemption.within_cluster_queue.as_deref(),
            &[
                ("Never", WithinClusterQueue::Never),
                ("LowerPriority", WithinClusterQueue::LowerPriority),
                ("LowerOrNewerEqualPriority", WithinClusterQueue::LowerOrNewerEqualPriority),
            ],
            "Never, LowerPriority or LowerOrNewerEqualPriority",
        )?,
        reclaim: choice(
            "spec.preemption.reclaimWithinCohort",
            preemption.reclaim_within_cohort.as_deref(),
            &[
                ("Never", ReclaimWithinCohort::Never),
                ("LowerPriority", ReclaimWithinCohort::LowerPriority),
                ("ReclaimFromLowerPriority", ReclaimWithinCohort::LowerPriority),
                ("Any", ReclaimWithinCohort::Any),
                ("ReclaimFromAny", ReclaimWithinCohort::Any),
                ("ReclaimAny", ReclaimWithinCohort::Any),
            ],
            "Never, LowerPriority or Any",
        )?,
        trigger_after_seconds: trigger_after_seconds(preemption)?,
        sorting: sorting(&preemption.workload_sorting)?,
        borrow: borrow_within(preemption.borrow_within_cohort.as_ref())?,
        when_can_borrow: stops_search(
            "spec.flavorFungibility.whenCanBorrow",
            fungibility.when_can_borrow.as_deref().unwrap_or("MayStopSearch"),
            "Borrow",
        )?,
        when_can_preempt: stops_search(
            "spec.flavorFungibility.whenCanPreempt",
            fungibility.when_can_preempt.as_deref().unwrap_or("TryNextFlavor"),
            "Preempt",
        )?,
        preempts_before_borrowing: fungibility.preference.as_deref() == Some("PreemptionOverBorrowing"),
        queueing: choice(
            "spec.queueingStrategy",
            spec.queueing_strategy.as_deref(),
            &[("BestEffortFIFO", QueueingStrategy::BestEffortFifo), ("StrictFIFO", QueueingStrategy::StrictFifo)],
            "BestEffortFIFO or StrictFIFO",
        )?,
        weight: weight_of(spec.fair_sharing.weight.as_ref())?,
        groups,
    })
}

/// `also` is the last version's word for `MayStopSearch`.
fn stops_search(field: &str, text: &str, also: &str) -> Result<Fungibility, InputError> {
    let choices = [
        ("MayStopSearch", Fungibility::MayStopSearch),
        (also, Fungibility::MayStopSearch),
        ("TryNextFlavor", Fungibility::TryNextFlavor),
    ];
    choice(field, Some(text), &choices, "MayStopSearch or TryNextFlavor")
}

fn trigger_after_seconds(preemption: &PreemptionSpec) -> Result<i64, InputError> {
    match preemption.trigger_after_workload_waiting_seconds {
        None => Ok(0),
        Some(seconds @ 0..) => Ok(seconds),
        Some(seconds) => {
            let problem = format!("{seconds} is below 0; write how many seconds, or leave it out");
            Err(InputError::new(problem).field("spec.preemption.triggerAfterWorkloadWaitingSeconds"))
        }
    }
}

fn borrow_within(spec: Option<&BorrowWithinCohortSpec>) -> Result<BorrowWithinCohort, InputError> {
    let Some(spec) = spec else { return Ok(BorrowWithinCohort::Never) };
    let threshold = spec.max_priority_threshold.map(Priority);
    choice(
        "spec.preemption.borrowWithinCohort.policy",
        spec.policy.as_deref(),
        &[("Never", BorrowWithinCohort::Never), ("LowerPriority", BorrowWithinCohort::LowerPriority { threshold })],
        "Never or LowerPriority",
    )
}

fn cell_quota(resource: &ResourceQuota) -> Result<CellQuota, InputError> {
    let amount =
        |value: &Value, field: &str| requests::amount(&resource.name, value).map_err(|error| error.field(field));
    let limit = |value: &Option<Value>, field: &str| value.as_ref().map(|value| amount(value, field)).transpose();
    let nominal = if resource.nominal_quota.is_null() { 0 } else { amount(&resource.nominal_quota, "nominalQuota")? };
    let borrowing_limit = match limit(&resource.max, "max")? {
        Some(max) => Some((max - nominal).max(0)),
        None => limit(&resource.borrowing_limit, "borrowingLimit")?,
    };
    Ok(CellQuota { nominal, borrowing_limit, lending_limit: limit(&resource.lending_limit, "lendingLimit")? })
}

fn weight_of(weight: Option<&Value>) -> Result<i64, InputError> {
    let Some(value) = weight else { return Ok(BILLION) };
    let text = text_of(value);
    let wrong =
        |error: quantity::QuantityError| InputError::new(format!("{text:?} {error}")).field("spec.fairSharing.weight");
    let exact = quantity::parse_nano(&text).map_err(wrong)?;
    i64::try_from(exact).map_err(|_| wrong(quantity::QuantityError::Overflow))
}
