//! The disruption budgets that a plan violates, counted over the pods that it evicts.
//!
//! The cost of a plan charges all candidates before any is reprieved, as kube-scheduler does, so it may count a violation that the
//! plan does not have. This module counts the violations of the final plan.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::snapshot::Snapshot;
use reprieve_engine::{BudgetId, PodId, UnitId, WorkloadId};
use serde::Serialize;

use crate::plural::count;
use crate::reasons::list;
use reprieve_loader::Loaded;

/// A PodDisruptionBudget that is violated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReport {
    /// `namespace/name`.
    pub name: String,
    /// The budget's `status.disruptionsAllowed`.
    pub allowed: usize,
    /// The number of evicted pods that the budget selects.
    pub evicted: usize,
}

impl BudgetReport {
    /// `violates PodDisruptionBudget serving/web: 0 more disruptions allowed, the plan evicts 2 of its pods`; `actor` is `the plan` or
    /// `the cycle`.
    pub fn sentence(&self, actor: &str) -> String {
        let Self { name, allowed, evicted } = self;
        let allowed = count(*allowed, "more disruption", "more disruptions");
        format!("violates PodDisruptionBudget {name}: {allowed} allowed, {actor} evicts {evicted} of its pods")
    }
}

/// `violates PodDisruptionBudget serving/web`; empty where no budget is violated.
pub fn violates(budgets: &[String]) -> String {
    match budgets {
        [] => String::new(),
        [budget] => format!("violates PodDisruptionBudget {budget}"),
        budgets => format!("violates PodDisruptionBudgets {}", list(budgets.iter().cloned())),
    }
}

/// The budgets that evicting these pods violates, by name. A pod that is terminating already is no new disruption.
pub fn violated(loaded: &Loaded, pods: impl IntoIterator<Item = PodId>) -> Vec<BudgetReport> {
    Violations { loaded, budgets: violated_budgets(&loaded.snapshot, pods) }.reports()
}

/// The number of pods of these victims whose eviction exceeds what a budget allows.
pub fn pods_against_budgets(snapshot: &Snapshot, victims: &[UnitId]) -> usize {
    let pods: BTreeSet<PodId> = victims.iter().flat_map(|&unit| evicted_with(snapshot, unit)).copied().collect();
    let mut left: BTreeMap<BudgetId, i64> = BTreeMap::new();
    let mut violates_budget = |pod: &PodId| {
        let mut exceeds = false;
        for budget in disrupts(snapshot, *pod) {
            let left = left.entry(*budget).or_insert_with(|| i64::from(snapshot.budgets()[budget.index()]));
            *left -= 1;
            exceeds |= *left < 0;
        }
        exceeds
    };
    pods.iter().filter(|pod| violates_budget(pod)).count()
}

/// The violated budgets with the number of disruptions that each allows and the number that evicting these pods causes.
fn violated_budgets(snapshot: &Snapshot, pods: impl IntoIterator<Item = PodId>) -> BTreeMap<BudgetId, (usize, usize)> {
    let pods: BTreeSet<PodId> = pods.into_iter().collect();
    let mut evicted: BTreeMap<BudgetId, usize> = BTreeMap::new();
    for budget in pods.iter().flat_map(|&pod| disrupts(snapshot, pod)) {
        *evicted.entry(*budget).or_default() += 1;
    }
    let allowed = |budget: BudgetId| usize::try_from(snapshot.budgets()[budget.index()]).unwrap_or(0);
    let counts = evicted.into_iter().map(|(budget, evicted)| (budget, (allowed(budget), evicted)));
    counts.filter(|(_, (allowed, evicted))| evicted > allowed).collect()
}

/// The budgets that evicting a pod counts against; none where it is terminating already.
fn disrupts(snapshot: &Snapshot, pod: PodId) -> &[BudgetId] {
    let pod = snapshot.pod(pod);
    if pod.terminating.is_some() { &[] } else { &pod.budgets }
}

/// The budgets that a set of victims violates, and which victim violates which.
pub struct Violations<'a> {
    loaded: &'a Loaded,
    budgets: BTreeMap<BudgetId, (usize, usize)>,
}

impl<'a> Violations<'a> {
    pub(crate) fn of(loaded: &'a Loaded, victims: &[UnitId]) -> Self {
        let pods = victims.iter().flat_map(|&unit| evicted_in(loaded, unit)).copied();
        Self { loaded, budgets: violated_budgets(&loaded.snapshot, pods) }
    }

    /// The violated budgets, by name.
    pub fn reports(&self) -> Vec<BudgetReport> {
        let report = |(&budget, &(allowed, evicted)): (&BudgetId, &(usize, usize))| BudgetReport {
            name: self.loaded.names.budget(budget).to_string(),
            allowed,
            evicted,
        };
        self.budgets.iter().map(report).collect()
    }

    /// The names of the violated budgets that select a pod of this victim.
    pub fn by(&self, victim: UnitId) -> Vec<String> {
        let snapshot = &self.loaded.snapshot;
        let pods = evicted_in(self.loaded, victim).iter();
        let budgets: BTreeSet<&BudgetId> = pods.flat_map(|&pod| disrupts(snapshot, pod)).collect();
        let violated = budgets.into_iter().filter(|budget| self.budgets.contains_key(budget));
        violated.map(|&budget| self.loaded.names.budget(budget).to_string()).collect()
    }
}

/// The pods that are evicted with a unit, including pods of a workload that the snapshot does not list in its unit.
fn evicted_in(loaded: &Loaded, unit: UnitId) -> &[PodId] {
    let pods = evicted_with(&loaded.snapshot, unit);
    let workload = loaded.snapshot.unit(unit).workload.filter(|_| pods.is_empty());
    let admitted = workload.filter(|&workload| !is_evicted(&loaded.snapshot, workload));
    admitted.and_then(|workload| loaded.workload_pods.get(&workload)).map_or(pods, Vec::as_slice)
}

/// The pods that are evicted with a unit; none for a workload that is evicted already.
fn evicted_with(snapshot: &Snapshot, unit: UnitId) -> &[PodId] {
    let unit = snapshot.unit(unit);
    if unit.workload.is_some_and(|workload| is_evicted(snapshot, workload)) { &[] } else { &unit.pods }
}

fn is_evicted(snapshot: &Snapshot, workload: WorkloadId) -> bool {
    snapshot.workload(workload).admission.as_ref().is_some_and(|admission| admission.evicted)
}
