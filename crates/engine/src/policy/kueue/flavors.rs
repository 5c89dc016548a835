//! docs/rules/kueue.md#k5 to docs/rules/kueue.md#k11, docs/rules/kueue-cohorts.md#c5 to docs/rules/kueue-cohorts.md#c9: selects the flavor
//! for each resource of each pod set.

use std::collections::BTreeMap;

use crate::explanation::{FlavorAttempt, FlavorMode, NoRecorder};
use crate::ids::{FlavorId, FlavorResourceId, QuotaResourceId};
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{AssignedResource, Assignment, PodSetAssignment, PreemptionReason, Search};
use crate::workloads::{BorrowWithinCohort, Fungibility, PodSet, ReclaimWithinCohort, ResourceGroup};

/// The quota for all pod sets, and the pairs of which too little is available.
pub(super) struct Assigned {
    pub assignment: Assignment,
    pub contested: Vec<FlavorResourceId>,
}

/// Receives the flavors that were tried, if they are recorded.
pub(super) type FlavorTrace<'t> = Option<&'t mut Vec<FlavorAttempt>>;

/// The grade of a flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlavorGrade {
    mode: FlavorMode,
    /// The borrowing level.
    level: usize,
}

impl FlavorGrade {
    /// The sort key; greater is better.
    fn key(self, preempts_before_borrowing: bool) -> (bool, i64, i64) {
        let (mode, level) = (self.mode as i64, -(self.level as i64));
        let usable = self.mode > FlavorMode::NoCandidates;
        match (usable, preempts_before_borrowing) {
            (true, true) => (true, level, mode),
            (true, false) => (true, mode, level),
            (false, _) => (false, mode, level),
        }
    }
}

/// The assignment with these numbers of pods, one for each pod set; `None` if a resource has no flavor with enough potential quota.
pub(super) fn assign(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    counts: &[i64],
    mut trace: FlavorTrace<'_>,
) -> Option<Assigned> {
    let mut assigned: BTreeMap<FlavorResourceId, i64> = BTreeMap::new();
    let mut contested = Vec::new();
    let mut pod_sets = Vec::new();
    let mut borrowing = 0;
    for (index, (set, &count)) in search.workload.pod_sets.iter().zip(counts).enumerate() {
        let requests = requests_of(search, quota, set, count);
        let groups = &quota.rules.queues[search.queue.index()].groups;
        let covered = |resource: QuotaResourceId| groups.iter().any(|group| group.resources.contains(&resource));
        if requests.iter().any(|&(resource, amount)| amount > 0 && !covered(resource)) {
            return None;
        }
        let mut resources = Vec::new();
        for group in groups {
            let wanted: Vec<(QuotaResourceId, i64)> = requests
                .iter()
                .copied()
                .filter(|(resource, amount)| *amount > 0 && group.resources.contains(resource))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let pods = PodSetRequest { index, set, wanted: &wanted };
            let (flavor, grade, choice) = best_flavor(search, quota, &pods, group, &assigned, trace.as_deref_mut())?;
            borrowing = borrowing.max(grade.level);
            for (pair, amount, mode) in choice {
                resources.push(AssignedResource { resource: quota.rules.resource_of[pair.index()], flavor, amount });
                let sum = assigned.entry(pair).or_default();
                *sum = sum.saturating_add(amount);
                if mode != FlavorMode::Fit && !contested.contains(&pair) {
                    contested.push(pair);
                }
            }
        }
        pod_sets.push(PodSetAssignment { count, resources });
    }
    let usage = assigned.into_iter().collect();
    Some(Assigned { assignment: Assignment { pod_sets, usage, borrowing }, contested })
}

fn requests_of(search: &Search<'_>, quota: &QuotaUsage<'_>, set: &PodSet, count: i64) -> Vec<(QuotaResourceId, i64)> {
    let mut requests: Vec<(QuotaResourceId, i64)> =
        set.requests.iter().map(|&(resource, amount)| (resource, amount.saturating_mul(count))).collect();
    let groups = &quota.rules.queues[search.queue.index()].groups;
    if let Some(pods) = quota.rules.pods
        && groups.iter().any(|group| group.resources.contains(&pods))
    {
        requests.retain(|(resource, _)| *resource != pods);
        requests.push((pods, count));
    }
    requests
}

type FlavorChoices = Vec<(FlavorResourceId, i64, FlavorMode)>;

/// A pod set and its requests in one resource group.
struct PodSetRequest<'a> {
    index: usize,
    set: &'a PodSet,
    wanted: &'a [(QuotaResourceId, i64)],
}

/// The best flavor, the first of equals, or the first at which the search may stop.
fn best_flavor(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    pods: &PodSetRequest<'_>,
    group: &ResourceGroup,
    assigned: &BTreeMap<FlavorResourceId, i64>,
    mut trace: FlavorTrace<'_>,
) -> Option<(FlavorId, FlavorGrade, FlavorChoices)> {
    let rules = &quota.rules.queues[search.queue.index()];
    let mut best: Option<(FlavorId, FlavorGrade, FlavorChoices)> = None;
    for &flavor in &group.flavors {
        let may_use = pods.set.may_use[flavor.index()] && !search.banned.contains(&(pods.index, flavor));
        let graded = may_use.then(|| grade_flavor(search, quota, flavor, pods.wanted, assigned)).flatten();
        if let Some(trace) = &mut trace {
            let (mode, level) = graded.as_ref().map_or((None, 0), |(grade, _)| (Some(grade.mode), grade.level));
            let choice = graded.as_ref().map_or(&[] as &[_], |(_, choice)| choice);
            let short = shortages(search, quota, choice, assigned);
            trace.push(FlavorAttempt { pod_set: pods.index, flavor, mode, level, chosen: false, short });
        }
        let Some((grade, choice)) = graded else { continue };
        let goes_on = grade.mode <= FlavorMode::NoCandidates
            || grade.mode < FlavorMode::Fit && rules.when_can_preempt == Fungibility::TryNextFlavor
            || grade.level > 0 && rules.when_can_borrow == Fungibility::TryNextFlavor;
        let key = grade.key(rules.preempts_before_borrowing);
        // If the search may stop here it does, even after a flavor with a better grade.
        if !goes_on || best.as_ref().is_none_or(|(_, best, _)| key > best.key(rules.preempts_before_borrowing)) {
            best = Some((flavor, grade, choice));
        }
        if !goes_on {
            break;
        }
    }
    let best = best.filter(|(_, grade, _)| grade.mode != FlavorMode::NoFit);
    if let (Some(trace), Some((chosen, ..))) = (trace, &best) {
        let mut own = trace.iter_mut().filter(|attempt| attempt.pod_set == pods.index && attempt.flavor == *chosen);
        if let Some(attempt) = own.next() {
            attempt.chosen = true;
        }
    }
    best
}

/// The resources of a flavor of which too little is available, and the missing amounts.
fn shortages(
    search: &Search<'_>,
    quota: &QuotaUsage<'_>,
    choice: &[(FlavorResourceId, i64, FlavorMode)],
    assigned: &BTreeMap<FlavorResourceId, i64>,
) -> Vec<(QuotaResourceId, i64)> {
    let short = |&(pair, amount, mode): &(FlavorResourceId, i64, FlavorMode)| {
        let wanted = amount.saturating_add(assigned.get(&pair).copied().unwrap_or_default());
        let short = wanted.saturating_sub(quota.available(search.queue, pair).max(0));
        (mode != FlavorMode::Fit && short > 0).then_some((quota.rules.resource_of[pair.index()], short))
    };
    choice.iter().filter_map(short).collect()
}

/// The grade of a flavor is that of its worst resource.
fn grade_flavor(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    flavor: FlavorId,
    wanted: &[(QuotaResourceId, i64)],
    assigned: &BTreeMap<FlavorResourceId, i64>,
) -> Option<(FlavorGrade, FlavorChoices)> {
    let preempts_before_borrowing = quota.rules.queues[search.queue.index()].preempts_before_borrowing;
    let mut worst: Option<FlavorGrade> = None;
    let mut choice = Vec::new();
    for &(resource, amount) in wanted {
        let pair = quota.rules.flavor_resource(flavor, resource)?;
        let grade = grade_flavor_resource(
            search,
            quota,
            pair,
            amount.saturating_add(assigned.get(&pair).copied().unwrap_or_default()),
        );
        choice.push((pair, amount, grade.mode));
        worst = Some(match worst {
            None => grade,
            Some(worst) if preempts_before_borrowing => {
                FlavorGrade { mode: worst.mode.min(grade.mode), level: worst.level.max(grade.level) }
            }
            Some(worst) if grade.key(false) < worst.key(false) => grade,
            Some(worst) => worst,
        });
    }
    worst.map(|worst| (worst, choice))
}

fn grade_flavor_resource(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    pair: FlavorResourceId,
    amount: i64,
) -> FlavorGrade {
    let queue = search.queue;
    let no_fit = FlavorGrade { mode: FlavorMode::NoFit, level: 0 };
    if amount > quota.potential(queue, pair) {
        return no_fit;
    }
    let level = quota.borrowing_level(queue, pair, amount);
    if amount <= quota.available(queue, pair).max(0) {
        return FlavorGrade { mode: FlavorMode::Fit, level };
    }
    let rules = &quota.rules.queues[queue.index()];
    let below_the_root =
        quota.lowest_subtree_that_fits(queue, pair, amount).is_some_and(|id| quota.tree.get(id).parent.is_some());
    let may_search = quota.nominal(queue, pair) >= amount
        || below_the_root
        || rules.borrow != BorrowWithinCohort::Never
        || search.policy.fair_sharing.is_some() && rules.reclaim != ReclaimWithinCohort::Never;
    if !may_search {
        return no_fit;
    }
    let Some(victims) = search.victims(quota, &[(pair, amount)], &[pair], &mut NoRecorder) else {
        return FlavorGrade { mode: FlavorMode::NoCandidates, level };
    };
    let in_own_queue = victims.iter().any(|(_, reason)| *reason == PreemptionReason::InClusterQueue);
    let level = quota.without(&victims, |quota| quota.borrowing_level(queue, pair, amount));
    FlavorGrade { mode: if in_own_queue { FlavorMode::Preempt } else { FlavorMode::Reclaim }, level }
}
