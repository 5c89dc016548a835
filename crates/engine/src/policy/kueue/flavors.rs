//! Which flavor each resource of each pod set takes. (Rules 5 to 11 of the flat cohorts, 5 to 9 of the trees.)

use std::collections::BTreeMap;

use crate::explanation::{FlavorAttempt, FlavorMode, NoRecorder};
use crate::ids::{FlavorId, FlavorResourceId, QuotaResourceId};
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{AssignedResource, Assignment, PodSetAssignment, PreemptionReason, Search};
use crate::workloads::{BorrowWithinCohort, Fungibility, PodSet, ReclaimWithinCohort, ResourceGroup};

/// What all pod sets ask for, and of that what does not fit as things are.
pub(super) struct Assigned {
    pub assignment: Assignment,
    pub contested: Vec<FlavorResourceId>,
}

/// Where the flavors that were tried are kept, if they are recorded.
pub(super) type FlavorTrace<'t> = Option<&'t mut Vec<FlavorAttempt>>;

/// How a flavor would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlavorGrade {
    mode: FlavorMode,
    /// How far up it would borrow.
    level: usize,
}

impl FlavorGrade {
    /// Greater is better.
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

/// The assignment with so many pods of each set; `None` where a resource has no flavor that could ever do.
pub(super) fn assign(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    counts: &[i64],
    mut trace: FlavorTrace<'_>,
) -> Option<Assigned> {
    let mut taken: BTreeMap<FlavorResourceId, i64> = BTreeMap::new();
    let mut contested = Vec::new();
    let mut pod_sets = Vec::new();
    let mut borrowing = 0;
    for (at, (set, &count)) in search.workload.pod_sets.iter().zip(counts).enumerate() {
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
            let pods = PodSetRequest { index: at, set, wanted: &wanted };
            let (flavor, grade, choice) = best_flavor(search, quota, &pods, group, &taken, trace.as_deref_mut())?;
            borrowing = borrowing.max(grade.level);
            for (pair, amount, mode) in choice {
                resources.push(AssignedResource { resource: quota.rules.resource_of[pair.index()], flavor, amount });
                *taken.entry(pair).or_default() += amount;
                if mode != FlavorMode::Fit && !contested.contains(&pair) {
                    contested.push(pair);
                }
            }
        }
        pod_sets.push(PodSetAssignment { count, resources });
    }
    let usage = taken.into_iter().collect();
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

/// The pods of one set, and what they want of one resource group.
struct PodSetRequest<'a> {
    index: usize,
    set: &'a PodSet,
    wanted: &'a [(QuotaResourceId, i64)],
}

/// The first of the best flavors, or the first that is good enough to stop at.
fn best_flavor(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    pods: &PodSetRequest<'_>,
    group: &ResourceGroup,
    taken: &BTreeMap<FlavorResourceId, i64>,
    mut trace: FlavorTrace<'_>,
) -> Option<(FlavorId, FlavorGrade, FlavorChoices)> {
    let rules = &quota.rules.queues[search.queue.index()];
    let mut best: Option<(FlavorId, FlavorGrade, FlavorChoices)> = None;
    for &flavor in &group.flavors {
        let may_use = pods.set.may_use[flavor.index()] && !search.banned.contains(&(pods.index, flavor));
        let graded = may_use.then(|| grade_flavor(search, quota, flavor, pods.wanted, taken)).flatten();
        if let Some(trace) = &mut trace {
            let (mode, level) = graded.as_ref().map_or((None, 0), |(grade, _)| (Some(grade.mode), grade.level));
            let choice = graded.as_ref().map_or(&[] as &[_], |(_, choice)| choice);
            let short = shortages(search, quota, choice, taken);
            trace.push(FlavorAttempt { pod_set: pods.index, flavor, mode, level, chosen: false, short });
        }
        let Some((grade, choice)) = graded else { continue };
        let goes_on = grade.mode <= FlavorMode::NoCandidates
            || grade.mode < FlavorMode::Fit && rules.when_can_preempt == Fungibility::TryNextFlavor
            || grade.level > 0 && rules.when_can_borrow == Fungibility::TryNextFlavor;
        let key = grade.key(rules.preempts_before_borrowing);
        // Where the search may stop it does, even behind a flavor that would do with less.
        if !goes_on || best.as_ref().is_none_or(|(_, best, _)| key > best.key(rules.preempts_before_borrowing)) {
            best = Some((flavor, grade, choice));
        }
        if !goes_on {
            break;
        }
    }
    let best = best.filter(|(_, grade, _)| grade.mode != FlavorMode::NoFit);
    if let (Some(trace), Some((chosen, ..))) = (trace, &best) {
        let mut own = trace.iter_mut().filter(|tried| tried.pod_set == pods.index && tried.flavor == *chosen);
        if let Some(tried) = own.next() {
            tried.chosen = true;
        }
    }
    best
}

/// The resources of a flavor that do not fit as things are, and by how much.
fn shortages(
    search: &Search<'_>,
    quota: &QuotaUsage<'_>,
    choice: &[(FlavorResourceId, i64, FlavorMode)],
    taken: &BTreeMap<FlavorResourceId, i64>,
) -> Vec<(QuotaResourceId, i64)> {
    let short = |&(pair, amount, mode): &(FlavorResourceId, i64, FlavorMode)| {
        let wanted = amount.saturating_add(taken.get(&pair).copied().unwrap_or_default());
        let short = wanted.saturating_sub(quota.available(search.queue, pair).max(0));
        (mode != FlavorMode::Fit && short > 0).then_some((quota.rules.resource_of[pair.index()], short))
    };
    choice.iter().filter_map(short).collect()
}

/// A flavor is as good as its worst resource.
fn grade_flavor(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    flavor: FlavorId,
    wanted: &[(QuotaResourceId, i64)],
    taken: &BTreeMap<FlavorResourceId, i64>,
) -> Option<(FlavorGrade, FlavorChoices)> {
    let preempts_before_borrowing = quota.rules.queues[search.queue.index()].preempts_before_borrowing;
    let mut worst: Option<FlavorGrade> = None;
    let mut choice = Vec::new();
    for &(resource, amount) in wanted {
        let pair = quota.rules.flavor_resource(flavor, resource)?;
        let grade = grade_cell(search, quota, pair, amount + taken.get(&pair).copied().unwrap_or_default());
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

fn grade_cell(search: &Search<'_>, quota: &mut QuotaUsage<'_>, pair: FlavorResourceId, amount: i64) -> FlavorGrade {
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
    let at_home = victims.iter().any(|(_, ground)| *ground == PreemptionReason::InClusterQueue);
    let level = quota.without(&victims, |quota| quota.borrowing_level(queue, pair, amount));
    FlavorGrade { mode: if at_home { FlavorMode::Preempt } else { FlavorMode::Reclaim }, level }
}
