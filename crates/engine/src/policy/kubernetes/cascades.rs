//! docs/rules/kubernetes-groups.md#g28: second-order evictions. A victim whose controller creates it again returns as a pending unit, and may
//! evict others in turn. The returning victims of a plan are decided by the same policy in the cluster after the plan; what they evict
//! is added to the cost of the plan. Returning victims of second order are not followed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Cascades, Kubernetes};
use crate::decision::{Cost, Difference, Outcome, Plan, SecondOrder, SecondOrderEviction};
use crate::explanation::{Recorder, ReturnEntry, ReturnResult};
use crate::fit::{Placement, PreemptorId};
use crate::ids::{BudgetId, NodeId, PodId, Priority, ShapeId, Timestamp, UnitId};
use crate::laws::obstacle;
use crate::policy::Policy;
use crate::snapshot::{Group, Obstacle, Pod, Recreation, Snapshot};
use crate::what_if::WhatIf;

/// How many plans are judged with their second-order evictions.
pub(super) const MAX_JUDGED: usize = 8;

/// A plan and the position of its node or domain in the order of names, which decides between equal costs.
pub(super) struct RankedPlan {
    pub plan: Plan,
    pub rank: usize,
}

impl RankedPlan {
    fn key(&self) -> (Cost, usize) {
        (self.plan.total_cost(), self.rank)
    }
}

/// Whether a victim of the plan may return, so that the cost of the plan depends on more than its own victims.
pub(super) fn may_return(snapshot: &Snapshot, policy: &Kubernetes, plan: &Plan) -> bool {
    let mut pods = plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods).map(|&pod| snapshot.pod(pod));
    policy.cascades == Cascades::Include && pods.any(returns)
}

/// The first criterion in which a plan differs from the chosen one.
pub(super) fn difference(plan: &Plan, chosen: &Plan) -> Difference {
    let was_cheaper = chosen.second_order.is_some() && plan.second_order.is_none() && plan.cost < chosen.total_cost();
    if was_cheaper { Difference::NotJudged } else { plan.total_cost().difference(&chosen.total_cost()) }
}

/// The plan of the lowest cost, second-order evictions included. `first` has the lowest cost of its own; `others` returns at least the first
/// `MAX_JUDGED` of the other plans that cost less than the judged first one, in the order of their own cost.
///
/// Second-order evictions only add to a cost, so no later plan can win once the own cost of the next one is not lower than the best total.
pub(super) fn lowest<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    now: Timestamp,
    first: RankedPlan,
    others: impl FnOnce(&mut WhatIf<'_>, &RankedPlan) -> Vec<RankedPlan>,
    recorder: &mut R,
) -> RankedPlan {
    let policy = Kubernetes { cascades: Cascades::Ignore, ..*policy };
    let judge = |what_if: &mut WhatIf<'_>, mut ranked: RankedPlan, bound: Option<(Cost, usize)>, recorder: &mut R| {
        let returns = what_if.outside(|snapshot| judge(snapshot, &policy, now, &mut ranked, bound, recorder));
        recorder.judged(&ranked.plan);
        (ranked, returns)
    };
    let (mut best, mut returns) = judge(what_if, first, None, recorder);
    let mut judging_ended = false;
    if best.plan.total_cost() != best.plan.cost {
        for (index, next) in others(what_if, &best).into_iter().enumerate() {
            if next.key() >= best.key() {
                break;
            }
            if index + 1 == MAX_JUDGED {
                judging_ended = true;
                recorder.depends_on_everything();
                break;
            }
            let (judged, its_returns) = judge(what_if, next, Some(best.key()), recorder);
            if judged.key() < best.key() {
                (best, returns) = (judged, its_returns);
            }
        }
    }
    recorder.returns(returns, judging_ended);
    best
}

/// Decides what follows the evictions of a plan, and adds the second-order evictions to it. Stops when the plan costs more than `bound`,
/// unless it is recorded. The snapshot is unchanged afterwards.
fn judge<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Kubernetes,
    now: Timestamp,
    ranked: &mut RankedPlan,
    bound: Option<(Cost, usize)>,
    recorder: &mut R,
) -> Vec<ReturnEntry> {
    ranked.plan.second_order = Some(SecondOrder::default());
    let (returning, mut results) = returning_units(snapshot, &ranked.plan, now, R::RECORDS);
    if returning.is_empty() {
        return results;
    }
    let mut after = AfterPlan::new(snapshot, &ranked.plan, now);
    let mut refused = Vec::new();
    for unit in returning {
        // The units come in the order of their priority, so no later one can evict anything either.
        let can_evict = after.snapshot.lowest_priority().is_some_and(|lowest| lowest < unit.priority);
        let is_beyond = bound.is_some_and(|bound| ranked.key() > bound);
        if !R::RECORDS && (is_beyond || !can_evict) {
            break;
        }
        let class_key = after.class_key(&unit);
        let outcome = if class_key.is_some_and(|key| refused.contains(&key)) {
            Outcome::Unschedulable(None)
        } else {
            after.decide(policy, &unit, now, can_evict, recorder)
        };
        let (placement, evicted) = match outcome {
            Outcome::Schedule(placement) => (placement, Vec::new()),
            Outcome::Preempt(plan) => {
                let second = ranked.plan.second_order.get_or_insert_default();
                second.violations += plan.cost.violations;
                second.weight += plan.cost.weight;
                second.pods += plan.cost.pods;
                let evicted: Vec<UnitId> =
                    plan.victims.iter().copied().filter(|&unit| after.is_original(unit)).collect();
                let returning = unit.victims[0];
                second.evictions.extend(evicted.iter().map(|&evicted| SecondOrderEviction { returning, evicted }));
                after.evict(&plan, |_| Pod::default());
                (plan.placement, evicted)
            }
            Outcome::Wait(_) | Outcome::Unschedulable(_) => {
                refused.extend(class_key);
                (Placement::new(), Vec::new())
            }
        };
        if R::RECORDS {
            results.extend(unit.victims.iter().map(|&victim| after.entry(victim, &placement, &evicted)));
        }
        if !placement.is_empty() {
            refused.clear();
            after.place(&placement, now);
        }
    }
    results
}

/// Whether the eviction of a pod makes it return.
fn returns(pod: &Pod) -> bool {
    pod.terminating.is_none() && pod.recreation != Recreation::Never
}

/// Victims that return together: one pod, or the pods of one group.
struct Returning {
    id: PreemptorId,
    priority: Priority,
    victims: Vec<UnitId>,
}

/// The victims that return and are decided, in the order in which the scheduler decides them: by priority, then by age, then pods before
/// groups, by name. Also what follows the eviction of the other victims, if that is wanted.
fn returning_units(
    snapshot: &Snapshot,
    plan: &Plan,
    now: Timestamp,
    explains: bool,
) -> (Vec<Returning>, Vec<ReturnEntry>) {
    let mut others = Vec::new();
    let mut decided: BTreeMap<_, Returning> = BTreeMap::new();
    for &victim in &plan.victims {
        let pods = || snapshot.unit(victim).pods.iter().map(|&pod| (pod, snapshot.pod(pod)));
        let Some((first, pod)) = pods().find(|(_, pod)| returns(pod)) else {
            let terminating = pods().any(|(_, pod)| pod.terminating.is_some() && pod.recreation != Recreation::Never);
            let result = if terminating { ReturnResult::Terminating } else { ReturnResult::NotRecreated };
            others.extend(explains.then_some(ReturnEntry { victim, result }));
            continue;
        };
        if pods().any(|(_, pod)| returns(pod) && pod.recreation == Recreation::NotDecided) {
            others.extend(explains.then_some(ReturnEntry { victim, result: ReturnResult::NotDecided }));
            continue;
        }
        let (id, priority, since, is_group) = match pod.group {
            None => (PreemptorId::Pod(first), pod.priority, now, None),
            Some(id) => {
                let group = snapshot.group(id);
                let pending = group.members.iter().map(|&pod| snapshot.pod(pod)).filter(|pod| pod.node.is_none());
                let since = pending.map(|pod| pod.created).min().unwrap_or(now).min(now);
                (PreemptorId::Group(id), priority_after(snapshot, plan, group), since, Some(id))
            }
        };
        // All victims of one group have the same key only if it does not contain their own rank.
        let rank = is_group.and_then(|group| snapshot.group(group).members.first().copied()).unwrap_or(first);
        let key = (Reverse(priority), since, is_group, snapshot.pod(rank).rank);
        decided.entry(key).or_insert(Returning { id, priority, victims: Vec::new() }).victims.push(victim);
    }
    (decided.into_values().collect(), others)
}

/// The priority of a group that returns; a gang that an owner forms has the lowest priority of the pods that are pending then.
fn priority_after(snapshot: &Snapshot, plan: &Plan, group: &Group) -> Priority {
    let is_victim = |pod: PodId| snapshot.unit_of(pod).is_some_and(|unit| plan.victims.contains(&unit));
    let will_wait = |&&id: &&PodId| match snapshot.pod(id) {
        pod if pod.node.is_some() => returns(pod) && is_victim(id),
        pod => pod.takes_part() && pod.terminating.is_none(),
    };
    let own = group.members.iter().filter(will_wait).map(|&pod| snapshot.pod(pod).priority).min();
    own.filter(|_| group.from_owner).unwrap_or(group.priority)
}

/// The cluster after a plan: the preemptor is placed, the victims are gone, and those that return are pending. Dropping it restores the
/// snapshot.
struct AfterPlan<'s> {
    snapshot: &'s mut Snapshot,
    /// The pods of each victim of the plan.
    victims: BTreeMap<UnitId, Vec<PodId>>,
    replaced: Vec<Vec<(PodId, Pod)>>,
    budgets: Vec<i32>,
    n_units: usize,
}

impl<'s> AfterPlan<'s> {
    fn new(snapshot: &'s mut Snapshot, plan: &Plan, now: Timestamp) -> Self {
        let victims = plan.victims.iter().map(|&unit| (unit, snapshot.unit(unit).pods.clone())).collect();
        let (budgets, n_units) = (snapshot.budgets().to_vec(), snapshot.n_units());
        let mut after = Self { snapshot, victims, replaced: Vec::new(), budgets, n_units };
        after.evict(plan, |pod| if returns(pod) { pending(pod, now) } else { Pod::default() });
        after.place(&plan.placement, now);
        after
    }

    fn replace(&mut self, pods: Vec<(PodId, Pod)>) {
        let replaced = self.snapshot.replace_pods(pods);
        self.replaced.push(replaced);
    }

    /// Whether a unit exists without the plan, too: its id is not that of a victim whose entry is used again.
    fn is_original(&self, unit: UnitId) -> bool {
        let pods = &self.snapshot.unit(unit).pods;
        let mut replaced = self.replaced.iter().flatten().map(|(pod, _)| pod);
        unit.index() < self.n_units && !replaced.any(|pod| pods.contains(pod))
    }

    /// What follows the eviction of a victim that is decided together with others.
    fn entry(&self, victim: UnitId, placement: &Placement, evicted: &[UnitId]) -> ReturnEntry {
        let pods = self.victims.get(&victim);
        let is_of_victim = |pod: &PodId| pods.is_some_and(|pods| pods.contains(pod));
        let mut nodes: Vec<NodeId> =
            placement.iter().filter(|(pod, _)| is_of_victim(pod)).map(|&(_, node)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let result = match (nodes.is_empty(), evicted.is_empty()) {
            (true, _) => ReturnResult::Waits,
            (false, true) => ReturnResult::Fits(nodes),
            (false, false) => ReturnResult::Evicts(nodes, evicted.to_vec()),
        };
        ReturnEntry { victim, result }
    }

    /// Replaces each victim pod, and charges it to its budgets.
    fn evict(&mut self, plan: &Plan, replacement: impl Fn(&Pod) -> Pod) {
        let pods = plan.victims.iter().flat_map(|&unit| &self.snapshot.unit(unit).pods);
        let pods: Vec<(PodId, Pod)> = pods.map(|&pod| (pod, replacement(self.snapshot.pod(pod)))).collect();
        for &(pod, _) in &pods {
            for budget in self.snapshot.pod(pod).budgets.clone() {
                let allowed = self.snapshot.budgets()[budget.index()].saturating_sub(1);
                self.snapshot.set_budget(budget, allowed);
            }
        }
        self.replace(pods);
    }

    /// Binds the pods of a placement.
    fn place(&mut self, placement: &Placement, now: Timestamp) {
        let bound = |&(pod, node): &(PodId, NodeId)| {
            let bound = Pod {
                node: Some(node),
                nominated: None,
                scheduled: Some(now),
                resizing: false,
                ..self.snapshot.pod(pod).clone()
            };
            (pod, bound)
        };
        let pods = placement.iter().map(bound).collect();
        self.replace(pods);
    }

    /// Decides for a returning unit.
    fn decide<R: Recorder>(
        &mut self,
        policy: &Kubernetes,
        unit: &Returning,
        now: Timestamp,
        can_evict: bool,
        recorder: &mut R,
    ) -> Outcome {
        let preemptor = Policy::Kubernetes(*policy).preemptor(self.snapshot, unit.id);
        let of_gang = match unit.id {
            PreemptorId::Pod(pod) => obstacle::refuses_gang_of(self.snapshot, pod),
            PreemptorId::Group(_) | PreemptorId::Workload(_) => None,
        };
        if let Some(law) = obstacle::refuses(self.snapshot, &preemptor).or(of_gang) {
            return Outcome::Unschedulable(Some(law));
        }
        let mut nested = recorder.nested(self.snapshot);
        let outcome = super::decide(self.snapshot, policy, &preemptor, now, &mut nested);
        if can_evict {
            let nowhere = Placement::new();
            let placement = match &outcome {
                Outcome::Schedule(placement) => placement,
                Outcome::Preempt(plan) => &plan.placement,
                Outcome::Wait(_) | Outcome::Unschedulable(_) => &nowhere,
            };
            recorder.depends_on_nested(nested, placement);
        }
        outcome
    }

    /// What single pods agree in that are refused together.
    fn class_key(&self, unit: &Returning) -> Option<(ShapeId, Priority, bool, bool)> {
        match unit.id {
            PreemptorId::Pod(pod) => {
                let pod = self.snapshot.pod(pod);
                Some((pod.shape, pod.priority, pod.preempts, pod.names_group))
            }
            PreemptorId::Group(_) | PreemptorId::Workload(_) => None,
        }
    }
}

impl Drop for AfterPlan<'_> {
    fn drop(&mut self) {
        for replaced in std::mem::take(&mut self.replaced).into_iter().rev() {
            self.snapshot.replace_pods(replaced);
        }
        self.snapshot.forget_units_from(self.n_units);
        for (budget, &allowed) in self.budgets.iter().enumerate() {
            self.snapshot.set_budget(BudgetId::new(budget), allowed);
        }
    }
}

/// The pod that a controller creates again.
fn pending(pod: &Pod, now: Timestamp) -> Pod {
    Pod {
        node: None,
        nominated: None,
        start: Timestamp::NOT_STARTED,
        scheduled: None,
        resizing: false,
        created: now,
        marked_for: None,
        obstacle: (pod.recreation == Recreation::NotDecided).then_some(Obstacle::OtherScheduler),
        ..pod.clone()
    }
}
