//! Reads Kueue's objects: the quota tree, the rules of each queue (this file), and the workloads (`workloads`). The rules are in
//! `docs/rules/kueue.md` and `docs/rules/kueue-cohorts.md`.

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

use crate::index::{Lost, forest};
use crate::names::{Numbered, QueueNames};
use crate::namespace_selector::{self, Namespaces};
use crate::preemption_options::{parse_choice, sorting};
use crate::protected_namespaces::protected;
use crate::quarantine::{Problem, Quarantine, key_of};
use crate::requests::{self, text_of};
use crate::workload_classes::WorkloadClasses;
use crate::{Interner, QueueSpec, by_name};
use reprieve_api::kueue::{
    BorrowWithinCohortSpec, ClusterQueueSpec, CohortSpec, FlavorSpec, KueueWorkload, PreemptionSpec, ResourceGroupSpec,
    ResourceQuota,
};
use reprieve_api::{InputError, Kind, NamespacedName, ObjectKey, ObjectSet, ProblemCode, quantity};
use workloads::{PlacedPods, held_by_unreadable, unfinished};
pub use workloads::{WorkloadReader, workload_order_key};

const NANO_PER_UNIT: i64 = 1_000_000_000;
/// The largest sum of quotas. A larger sum counts as this one.
const MAX_SUM: i64 = 1 << 61;

/// The tables of a snapshot that come from Kueue's objects.
pub struct KueueTables {
    pub queues: QueueTree,
    pub rules: QuotaRules,
    pub workloads: Vec<Workload>,
    pub(crate) names: QueueNames,
    pub warnings: Vec<String>,
    /// Converts workloads that change later.
    pub reader: WorkloadReader,
}

/// Collects warnings, and texts for explanations.
struct Notes<'a> {
    texts: &'a mut Interner,
    warnings: &'a mut Vec<String>,
}

/// What another part of the loader found wrong with Kueue's objects.
#[derive(Default)]
pub struct BrokenForKueue {
    /// The flavors whose nodes cannot be found.
    pub flavors: BTreeSet<String>,
    /// The pending workloads whose pods cannot be read.
    pub workloads: BTreeSet<NamespacedName>,
}

/// Reads Kueue's objects; `None` if there is no ClusterQueue. If `places_all`, this scheduler places the pods of all workloads, otherwise
/// only those whose template names it.
pub fn kueue_tables(
    objects: &ObjectSet,
    (scheduler, places_all): (&str, bool),
    broken: &BrokenForKueue,
    texts: &mut Interner,
    quarantine: &mut Quarantine,
) -> Option<KueueTables> {
    if objects.cluster_queues.is_empty() {
        return None;
    }
    let tree = QuotaTreeBuilder::new(objects, &broken.flavors, quarantine);
    let (queues, rules) = tree.tree();
    let queue_names = tree.drafts.iter().map(|draft| draft.name.clone()).collect();
    let mut warnings = Vec::new();
    let notes = &mut Notes { texts, warnings: &mut warnings };
    let places = PlacedPods { all: places_all, scheduler: scheduler.to_owned() };
    let mut reader = WorkloadReader::new(tree, &rules, objects, places, notes, quarantine);
    let held = held_by_unreadable(objects);
    let mut named = unfinished(objects);
    named.retain(|name, _| !broken.workloads.contains(name));
    named.extend(held.iter().map(|workload| (workload.name(), workload)));
    let workloads = reader.all(&mut named, &held, notes, quarantine);
    Some(KueueTables {
        queues,
        rules,
        workloads,
        names: QueueNames {
            queues: queue_names,
            pod_sets: named.values().map(|workload| pod_set_names(&workload.object)).collect(),
            workloads: Numbered::new(named.into_keys().collect(), WorkloadId::new),
            flavors: reader.tree.flavors.keys().cloned().collect(),
            resources: reader.tree.resources.keys().cloned().collect(),
        },
        warnings,
        reader,
    })
}

/// Returns the names of a workload's pod sets.
pub fn pod_set_names(workload: &KueueWorkload) -> Vec<String> {
    workload.spec.pod_sets.iter().map(|set| set.name.clone()).collect()
}

/// Returns ClusterQueues and cohorts with their quotas summed over all flavors.
pub fn queue_specs(objects: &ObjectSet, quarantine: &mut Quarantine) -> Vec<QueueSpec> {
    let tree = QuotaTreeBuilder::new(objects, &BTreeSet::new(), quarantine);
    let names: BTreeMap<QuotaResourceId, &String> = tree.resources.iter().map(|(name, id)| (*id, name)).collect();
    let spec = |draft: &QueueDraft| {
        let mut spec = QueueSpec { name: draft.name.clone(), parent: draft.parent, ..QueueSpec::default() };
        let mut limited: BTreeMap<&String, Option<i64>> = BTreeMap::new();
        for ((_, resource), quota) in &draft.quota {
            let name = names[resource];
            let guarantee = spec.guarantee.entry(name.clone()).or_default();
            *guarantee = guarantee.saturating_add(quota.nominal);
            let limit = quota.borrowing_limit.map(|limit| quota.nominal.saturating_add(limit));
            let sum = limited.entry(name).or_insert(Some(0));
            *sum = sum.zip(limit).map(|(sum, limit)| sum.saturating_add(limit));
        }
        let limits = limited.into_iter().filter_map(|(name, limit)| Some((name.clone(), limit?)));
        spec.limit = limits.collect();
        spec
    };
    tree.drafts.iter().map(spec).collect()
}

/// The quota of each resource of each flavor.
type Quotas = BTreeMap<(FlavorId, QuotaResourceId), QuotaLimits>;

/// A ClusterQueue or cohort before its quota includes that of the queues below it.
struct QueueDraft {
    name: String,
    /// The index of the cohort in `QuotaTreeBuilder::drafts`.
    parent: Option<usize>,
    quota: Quotas,
    /// `None`: the field is missing, and all namespaces are selected; `Some(None)`: it is null, and none is.
    namespace_selector: Option<Option<LabelSelector>>,
    /// The rules without the borrowing limits.
    rules: QueueRules,
}

#[derive(Clone, Copy)]
struct QuotaLimits {
    nominal: i64,
    borrowing_limit: Option<i64>,
    lending_limit: Option<i64>,
}

/// Reads Kueue's objects except LocalQueues and Workloads, and builds the queue tree from them. Workloads are read with it afterwards.
struct QuotaTreeBuilder {
    flavors: BTreeMap<String, (FlavorId, FlavorSpec)>,
    resources: BTreeMap<String, QuotaResourceId>,
    /// INVARIANT: the index of a draft is the number of its `QueueId`. Cohorts come first.
    drafts: Vec<QueueDraft>,
    /// The index of each cohort in `drafts`.
    cohorts: BTreeMap<String, usize>,
    cluster_queues: BTreeMap<String, QueueId>,
    lost: LostQuota,
    classes: WorkloadClasses,
    namespaces: Namespaces,
    /// The namespaces whose workloads are never victims.
    protected: BTreeSet<String>,
}

/// Kueue's objects that are set aside, by name.
#[derive(Default)]
struct LostQuota {
    flavors: BTreeMap<String, ObjectKey>,
    cohorts: BTreeMap<String, ObjectKey>,
    cluster_queues: BTreeMap<String, ObjectKey>,
}

impl QuotaTreeBuilder {
    fn new(objects: &ObjectSet, broken_flavors: &BTreeSet<String>, quarantine: &mut Quarantine) -> Self {
        let named = by_name::<String, _>(&objects.resource_flavors);
        let mut flavors = BTreeMap::new();
        let mut lost = LostQuota::default();
        for (index, (name, flavor)) in named.into_iter().enumerate() {
            if broken_flavors.contains(&name) {
                lost.flavors.insert(name.clone(), key_of(flavor));
            }
            flavors.insert(name, (FlavorId::new(index), flavor.object.spec.clone()));
        }
        for key in objects.unreadable.iter().map(|entry| &entry.object) {
            let list = match key.kind {
                Kind::ResourceFlavor => &mut lost.flavors,
                Kind::Cohort => &mut lost.cohorts,
                Kind::ClusterQueue => &mut lost.cluster_queues,
                _ => continue,
            };
            list.insert(key.name.name.clone(), key.clone());
        }
        let groups = objects.cluster_queues.iter().flat_map(|queue| &queue.object.spec.resource_groups);
        let groups = groups.chain(objects.cohorts.iter().flat_map(|cohort| &cohort.object.spec.resource_groups));
        let named: BTreeSet<&String> = groups.flat_map(|group| &group.covered_resources).collect();
        let resources = named.into_iter().enumerate();
        let resources = resources.map(|(index, name)| (name.clone(), QuotaResourceId::new(index))).collect();
        let mut tree = Self {
            flavors,
            resources,
            drafts: Vec::new(),
            cohorts: BTreeMap::new(),
            cluster_queues: BTreeMap::new(),
            lost,
            classes: WorkloadClasses::new(objects),
            namespaces: Namespaces::new(objects),
            protected: protected(objects),
        };
        tree.add_cohorts(objects, quarantine);
        tree.add_queues(objects, quarantine);
        tree
    }

    /// Adds cohorts, parents first. A cohort needs no object: a ClusterQueue or cohort may just name it. A cohort that cannot be read is
    /// set aside with what is in it; so are all cohorts of a cycle.
    fn add_cohorts(&mut self, objects: &ObjectSet, quarantine: &mut Quarantine) {
        let defined = by_name::<String, _>(&objects.cohorts);
        let mut names: BTreeSet<String> = defined.keys().cloned().collect();
        names.extend(defined.values().filter_map(|cohort| cohort.object.spec.parent_name.clone()));
        names.extend(objects.cluster_queues.iter().filter_map(|queue| queue.object.spec.cohort_name.clone()));
        names.retain(|name| !name.is_empty());
        let parent_of = |name: &str| {
            defined.get(name).and_then(|cohort| cohort.object.spec.parent_name.clone()).filter(|name| !name.is_empty())
        };
        let mut drafts = BTreeMap::new();
        for name in &names {
            let Some(cohort) = defined.get(name) else {
                if self.lost.cohorts.contains_key(name) {
                    continue;
                }
                drafts.extend(self.draft(name, &ClusterQueueSpec::default()).ok().map(|draft| (name.clone(), draft)));
                continue;
            };
            quarantine.reads(cohort);
            let CohortSpec { resource_groups, fair_sharing, .. } = cohort.object.spec.clone();
            let spec = ClusterQueueSpec { resource_groups, fair_sharing, ..ClusterQueueSpec::default() };
            match self.draft(name, &spec) {
                Ok(draft) => _ = drafts.insert(name.clone(), draft),
                Err(problem) => {
                    quarantine.add(key_of(cohort), Some(&cohort.source), problem);
                    self.lost.cohorts.insert(name.clone(), key_of(cohort));
                }
            }
        }
        let (order, lost) = forest(&names, parent_of, |name| drafts.contains_key(name));
        for (name, why) in lost {
            let Some(cohort) = defined.get(&name) else { continue };
            let field = "spec.parentName";
            let problem = match why {
                Lost::Parent(parent) => {
                    let parent = NamespacedName::new("default", &parent);
                    Problem::refers_to(ObjectKey::new(Kind::Cohort, parent), field)
                }
                Lost::Cycle => {
                    let problem = format!("cohort {name:?} is an ancestor of itself; break the cycle");
                    InputError::new(problem).field(field).code(ProblemCode::Cycle).into()
                }
            };
            quarantine.add(key_of(cohort), Some(&cohort.source), problem);
            self.lost.cohorts.insert(name, key_of(cohort));
        }
        for name in order {
            let Some(draft) = drafts.remove(&name) else { continue };
            let parent = parent_of(&name).and_then(|parent| self.cohorts.get(&parent).copied());
            self.cohorts.insert(name, self.drafts.len());
            self.drafts.push(QueueDraft { parent, rules: QueueRules { is_cohort: true, ..draft.rules }, ..draft });
        }
    }

    fn add_queues(&mut self, objects: &ObjectSet, quarantine: &mut Quarantine) {
        for (name, queue) in by_name::<String, _>(&objects.cluster_queues) {
            quarantine.reads(queue);
            match self.queue_draft(&name, &queue.object.spec) {
                Ok(draft) => {
                    self.cluster_queues.insert(name, QueueId::new(self.drafts.len()));
                    self.drafts.push(draft);
                }
                Err(problem) => {
                    quarantine.add(key_of(queue), Some(&queue.source), problem);
                    self.lost.cluster_queues.insert(name, key_of(queue));
                }
            }
        }
    }

    fn queue_draft(&self, name: &str, spec: &ClusterQueueSpec) -> Result<QueueDraft, Problem> {
        let cohort = spec.cohort_name.as_ref().filter(|name| !name.is_empty());
        if let Some(lost) = cohort.and_then(|cohort| self.lost.cohorts.get(cohort)) {
            return Err(Problem::refers_to(lost.clone(), "spec.cohortName"));
        }
        let parent = cohort.and_then(|cohort| self.cohorts.get(cohort).copied());
        Ok(QueueDraft { parent, ..self.draft(name, spec)? })
    }

    fn draft(&self, name: &str, spec: &ClusterQueueSpec) -> Result<QueueDraft, Problem> {
        let (quota, groups) = self.quota(&spec.resource_groups)?;
        namespace_selector::check(&spec.namespace_selector)?;
        let namespace_selector = spec.namespace_selector.clone();
        let rules = queue_rules(spec, groups)?;
        Ok(QueueDraft { name: name.to_owned(), parent: None, quota, namespace_selector, rules })
    }

    /// Reads `spec.resourceGroups`: the quota of each pair of flavor and resource, and the groups with ids instead of names.
    fn quota(&self, groups: &[ResourceGroupSpec]) -> Result<(Quotas, Vec<ResourceGroup>), Problem> {
        let mut quota = BTreeMap::new();
        let mut read = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let mut flavors = Vec::new();
            for (flavor_index, flavor) in group.flavors.iter().enumerate() {
                let path = format!("spec.resourceGroups[{index}].flavors[{flavor_index}]");
                if let Some(lost) = self.lost.flavors.get(&flavor.name) {
                    return Err(Problem::refers_to(lost.clone(), &format!("{path}.name")));
                }
                let Some((id, _)) = self.flavors.get(&flavor.name) else {
                    let problem = format!("ResourceFlavor {:?} is not in the input; add it", flavor.name);
                    let error = InputError::new(problem).field(format!("{path}.name"));
                    return Err(error.code(ProblemCode::MissingReference).into());
                };
                flavors.push(*id);
                for resource in &flavor.resources {
                    let covered = group.covered_resources.contains(&resource.name);
                    let Some(&resource_id) = self.resources.get(&resource.name).filter(|_| covered) else {
                        let problem = format!("{:?} is not in coveredResources; add it there", resource.name);
                        return Err(InputError::new(problem).field(format!("{path}.resources")).into());
                    };
                    let limits = quota_limits(resource).map_err(|error| {
                        let field = error.field.clone().unwrap_or_default();
                        error.field(format!("{path}.{}.{field}", resource.name))
                    })?;
                    quota.insert((*id, resource_id), limits);
                }
            }
            let resources =
                group.covered_resources.iter().filter_map(|resource| self.resources.get(resource).copied()).collect();
            read.push(ResourceGroup { resources, flavors });
        }
        Ok((quota, read))
    }

    /// Returns the tree, in which the quota of a cohort includes what the queues below it lend.
    fn tree(&self) -> (QueueTree, QuotaRules) {
        let pairs: BTreeSet<_> = self.drafts.iter().flat_map(|draft| draft.quota.keys().copied()).collect();
        let pairs: Vec<(FlavorId, QuotaResourceId)> = pairs.into_iter().collect();
        // `pair` is an index in `pairs`, and becomes the number of its `FlavorResourceId`.
        let n = pairs.len();
        let quota = |draft: &QueueDraft, pair: usize| draft.quota.get(&pairs[pair]).copied();
        let mut subtree: Vec<Vec<i64>> = self
            .drafts
            .iter()
            .map(|draft| (0..n).map(|pair| quota(draft, pair).map_or(0, |quota| quota.nominal)).collect())
            .collect();
        let mut local: Vec<Vec<i64>> = vec![vec![0; n]; self.drafts.len()];
        // Drafts are not sorted by depth: ClusterQueues come after all cohorts.
        let depth = |index: usize| std::iter::successors(Some(index), |&index| self.drafts[index].parent).count();
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(depth(index)));
        for index in order {
            for pair in 0..n {
                let lending = quota(&self.drafts[index], pair).and_then(|quota| quota.lending_limit);
                local[index][pair] = lending.map_or(0, |limit| (subtree[index][pair] - limit).max(0));
                if let Some(parent) = self.drafts[index].parent {
                    let lent = subtree[index][pair] - local[index][pair];
                    subtree[parent][pair] = subtree[parent][pair].saturating_add(lent).min(MAX_SUM);
                }
            }
        }
        let queues = self.drafts.iter().enumerate().map(|(index, draft)| Queue {
            parent: draft.parent.map(QueueId::new),
            guarantee: subtree[index].clone(),
            limit: vec![UNDEFINED; n],
            local_quota: local[index].clone(),
            fence: false,
            preemptible: true,
            delay_micros: 0,
            priority: QueuePriority::Offset(0),
        });
        let queues = QueueTree::new(true, n, queues.collect());
        let mut table = vec![vec![None; self.resources.len()]; self.flavors.len()];
        for (index, (flavor, resource)) in pairs.iter().enumerate() {
            table[flavor.index()][resource.index()] = Some(FlavorResourceId::new(index));
        }
        let rules = self.drafts.iter().map(|draft| {
            let limit = |pair| draft.quota.get(pair).and_then(|quota| quota.borrowing_limit);
            QueueRules { borrowing_limit: pairs.iter().map(limit).collect(), ..draft.rules.clone() }
        });
        let rules = rules.collect();
        let resource_of = pairs.iter().map(|(_, resource)| *resource).collect();
        let rules = QuotaRules::new(rules, table, resource_of, self.resources.get("pods").copied());
        (queues, rules)
    }
}

/// Whether a workload has finished. A finished workload holds no quota, although `status.admission` stays.
pub fn is_finished(workload: &KueueWorkload) -> bool {
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == "Finished" && condition.status == "True")
}

/// Reads the rules of a queue without its borrowing limits.
fn queue_rules(spec: &ClusterQueueSpec, groups: Vec<ResourceGroup>) -> Result<QueueRules, InputError> {
    let ClusterQueueSpec { preemption, flavor_fungibility: fungibility, .. } = spec;
    Ok(QueueRules {
        is_cohort: false,
        borrowing_limit: Vec::new(),
        within: parse_choice(
            "spec.preemption.withinClusterQueue",
            preemption.within_cluster_queue.as_deref(),
            &[
                ("Never", WithinClusterQueue::Never),
                ("LowerPriority", WithinClusterQueue::LowerPriority),
                ("LowerOrNewerEqualPriority", WithinClusterQueue::LowerOrNewerEqualPriority),
            ],
        )?,
        reclaim: parse_choice(
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
        )?,
        trigger_after_seconds: trigger_after_seconds(preemption)?,
        sorting: sorting(&preemption.workload_sorting)?,
        borrow: borrow_within(preemption.borrow_within_cohort.as_ref())?,
        when_can_borrow: parse_fungibility(
            "spec.flavorFungibility.whenCanBorrow",
            fungibility.when_can_borrow.as_deref().unwrap_or("MayStopSearch"),
            "Borrow",
        )?,
        when_can_preempt: parse_fungibility(
            "spec.flavorFungibility.whenCanPreempt",
            fungibility.when_can_preempt.as_deref().unwrap_or("TryNextFlavor"),
            "Preempt",
        )?,
        preempts_before_borrowing: fungibility.preference.as_deref() == Some("PreemptionOverBorrowing"),
        queueing: parse_choice(
            "spec.queueingStrategy",
            spec.queueing_strategy.as_deref(),
            &[("BestEffortFIFO", QueueingStrategy::BestEffortFifo), ("StrictFIFO", QueueingStrategy::StrictFifo)],
        )?,
        weight: weight_of(spec.fair_sharing.weight.as_ref())?,
        groups,
    })
}

/// `alias` is the name of `MayStopSearch` in the previous API version.
fn parse_fungibility(field: &str, text: &str, alias: &str) -> Result<Fungibility, InputError> {
    let choices = [
        ("MayStopSearch", Fungibility::MayStopSearch),
        (alias, Fungibility::MayStopSearch),
        ("TryNextFlavor", Fungibility::TryNextFlavor),
    ];
    parse_choice(field, Some(text), &choices)
}

fn trigger_after_seconds(preemption: &PreemptionSpec) -> Result<i64, InputError> {
    match preemption.trigger_after_workload_waiting_seconds.unwrap_or(0) {
        seconds @ 0.. => Ok(seconds),
        seconds => {
            let problem = format!("{seconds} is negative; write 0 or more seconds, or remove the field");
            Err(InputError::new(problem).field("spec.preemption.triggerAfterWorkloadWaitingSeconds"))
        }
    }
}

fn borrow_within(spec: Option<&BorrowWithinCohortSpec>) -> Result<BorrowWithinCohort, InputError> {
    let Some(spec) = spec else { return Ok(BorrowWithinCohort::Never) };
    let threshold = spec.max_priority_threshold.map(Priority);
    parse_choice(
        "spec.preemption.borrowWithinCohort.policy",
        spec.policy.as_deref(),
        &[("Never", BorrowWithinCohort::Never), ("LowerPriority", BorrowWithinCohort::LowerPriority { threshold })],
    )
}

fn quota_limits(resource: &ResourceQuota) -> Result<QuotaLimits, InputError> {
    let amount =
        |value: &Value, field: &str| requests::amount(&resource.name, value).map_err(|error| error.field(field));
    let limit = |value: &Option<Value>, field: &str| {
        let limit = |value| requests::limit(&resource.name, value).map_err(|error| error.field(field));
        value.as_ref().map(limit).transpose()
    };
    let nominal = if resource.nominal_quota.is_null() { 0 } else { amount(&resource.nominal_quota, "nominalQuota")? };
    let borrowing_limit = match limit(&resource.max, "max")? {
        Some(max) => Some((max - nominal).max(0)),
        None => limit(&resource.borrowing_limit, "borrowingLimit")?,
    };
    Ok(QuotaLimits { nominal, borrowing_limit, lending_limit: limit(&resource.lending_limit, "lendingLimit")? })
}

fn weight_of(weight: Option<&Value>) -> Result<i64, InputError> {
    let Some(value) = weight else { return Ok(NANO_PER_UNIT) };
    let text = text_of(value);
    let wrong =
        |error: quantity::QuantityError| InputError::new(format!("{text:?} {error}")).field("spec.fairSharing.weight");
    let exact = quantity::parse_nano(&text).map_err(wrong)?;
    i64::try_from(exact).map_err(|_| wrong(quantity::QuantityError::Overflow))
}
