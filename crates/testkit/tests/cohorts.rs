//! Properties of every decision under policy Kueue, on random cohorts: flat, in trees and with fair sharing. This test computes usage and limits
//! itself, from the workloads and the tree, without the functions of the engine.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_api::kueue::{KueueWorkload, MilestoneSpec, WorkloadPreemptionSpec};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::source::Sourced;
use reprieve_api::test_file::TestSpec;
use reprieve_engine::explanation::{Explanation, Spared};
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{Assignment, CycleResult, WorkloadClassKey, decide, run_cycle};
use reprieve_engine::snapshot::Snapshot;
use reprieve_engine::{Decision, FlavorResourceId, Outcome, QueueId, UnitId, WorkloadId};
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::Question;
use reprieve_report::answer;
use reprieve_testkit::random_cohorts::{Kind, Rng, cluster};

const SEEDS: std::ops::Range<u64> = 100_000..100_120;

/// A random cluster with its question.
struct Case {
    name: String,
    objects: ObjectSet,
    spec: TestSpec,
}

impl Case {
    fn new(sort: Kind, seed: u64) -> Self {
        let mut objects = ObjectSet::default();
        let mut test = None;
        for document in documents("random", &cluster(sort, seed)) {
            let read = document.read(&mut objects).expect("the cluster can be read");
            test = test.or(read.map(|sourced| sourced.object));
        }
        let name = format!("{} {seed}", sort.name());
        Self { name, objects, spec: test.expect("it begins with a test").spec.clone() }
    }

    fn all() -> impl Iterator<Item = Self> {
        SEEDS.flat_map(|seed| Kind::ALL.map(|sort| Self::new(sort, seed)))
    }

    fn load(&self) -> (Loaded, Question) {
        let loaded = load(&self.objects, OnInvalid::Reject).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let question = Question::new(&self.spec, &loaded).expect("the preemptor exists");
        (loaded, question)
    }
}

/// A plan: the victims, and the assignment of the preemptor.
struct CheckedPlan<'l> {
    snapshot: &'l Snapshot,
    queue: QueueId,
    victims: Vec<WorkloadId>,
    gets: Assignment,
}

impl<'l> CheckedPlan<'l> {
    /// `None` if there are no victims.
    fn new(loaded: &'l Loaded, question: &Question) -> Option<Self> {
        let (Policy::Kueue(policy), PreemptorId::Workload(preemptor)) = (&question.policy, question.preemptor) else {
            panic!("under policy Kueue only workloads are preemptors");
        };
        let snapshot = &loaded.snapshot;
        let decision = decide(snapshot, policy, preemptor, question.now);
        let Outcome::Preempt(plan) = decision.outcome else {
            return None;
        };
        let victims = plan.victims.iter().map(|&unit| snapshot.unit(unit).workload.expect("a workload")).collect();
        let queue = snapshot.workload(preemptor).queue.expect("the workload is in a queue");
        Some(Self { snapshot, queue, victims, gets: decision.assignment.expect("a plan gives something") })
    }

    /// The usage of a queue and its subtree without the workloads in `removed`, with or without the preemptor.
    fn used(&self, queue: QueueId, cell: FlavorResourceId, removed: &[WorkloadId], with: bool) -> i64 {
        let tree = self.snapshot.queues();
        let held = self.snapshot.workload_ids().filter(|id| !removed.contains(id)).map(|id| self.snapshot.workload(id));
        let held =
            held.filter(|workload| workload.queue == Some(queue)).filter_map(|workload| workload.admission.as_ref());
        let mut sum = amount(held.flat_map(|admission| &admission.usage), cell);
        if with && queue == self.queue {
            sum += amount(self.gets.usage.iter(), cell);
        }
        for child in tree.ids().filter(|&id| tree.get(id).parent == Some(queue)) {
            sum += (self.used(child, cell, removed, with) - tree.get(child).local_quota[cell.index()]).max(0);
        }
        sum
    }

    fn own(&self, queue: QueueId, cell: FlavorResourceId) -> i64 {
        self.snapshot.queues().get(queue).guarantee[cell.index()]
    }

    /// A queue on the preemptor's path and a flavor's resource that exceed a limit with the preemptor and without the workloads in `removed`;
    /// and whether the preemptor increases that usage.
    fn over_limit(&self, removed: &[WorkloadId]) -> Option<(QueueId, FlavorResourceId, bool)> {
        let tree = self.snapshot.queues();
        let cells = || self.gets.usage.iter().filter(|(_, amount)| *amount > 0).map(|(cell, _)| *cell);
        let over = tree.path(self.queue).flat_map(|id| cells().map(move |cell| (id, cell))).filter_map(|(id, cell)| {
            let (before, after) = (self.used(id, cell, removed, false), self.used(id, cell, removed, true));
            let limit = self.snapshot.quota_rules().queues[id.index()].borrowing_limit[cell.index()];
            let most = match tree.get(id).parent {
                None => Some(self.own(id, cell)),
                Some(_) => limit.map(|limit| self.own(id, cell) + limit),
            };
            most.is_some_and(|most| after > most).then_some((id, cell, after > before))
        });
        over.max_by_key(|(.., raised)| *raised)
    }

    fn borrows(&self, queue: QueueId, removed: &[WorkloadId], with: bool) -> bool {
        self.gets.usage.iter().any(|&(cell, _)| self.used(queue, cell, removed, with) > self.own(queue, cell))
    }
}

fn amount<'a>(usage: impl Iterator<Item = &'a (FlavorResourceId, i64)>, cell: FlavorResourceId) -> i64 {
    usage.filter(|(held, _)| *held == cell).map(|(_, amount)| amount).sum()
}

/// Quota that a queue does not lend is not part of its cohort's quota, so a plan within the cohort's quota respects all lending limits below.
#[test]
fn no_plan_exceeds_a_borrowing_or_lending_limit() {
    let mut plans = 0;
    for case in Case::all() {
        let (loaded, question) = case.load();
        let Some(plan) = CheckedPlan::new(&loaded, &question) else { continue };
        let over = plan.over_limit(&plan.victims).filter(|(.., raised)| *raised);
        assert_eq!(over, None, "{}", case.name);
        plans += 1;
    }
    assert!(plans > 45, "only {plans} plans");
}

#[test]
fn queue_within_its_quota_loses_no_workload_to_another_queue() {
    let mut losers = 0;
    for case in Case::all() {
        let (loaded, question) = case.load();
        let Some(plan) = CheckedPlan::new(&loaded, &question) else { continue };
        let queue_of = |victim: WorkloadId| plan.snapshot.workload(victim).queue.expect("the workload is in a queue");
        let queues: BTreeSet<QueueId> = plan.victims.iter().map(|&victim| queue_of(victim)).collect();
        for queue in queues.into_iter().filter(|&queue| queue != plan.queue) {
            let here: Vec<WorkloadId> =
                plan.victims.iter().copied().filter(|&victim| queue_of(victim) == queue).collect();
            let borrows_until_the_last = here.iter().any(|&last| {
                let others: Vec<WorkloadId> = here.iter().copied().filter(|&victim| victim != last).collect();
                plan.borrows(queue, &others, false)
            });
            assert!(borrows_until_the_last, "{}: {queue:?}", case.name);
            losers += 1;
        }
    }
    assert!(losers > 15, "only {losers} queues lose workloads");
}

/// Without any one of the victims, the preemptor would not fit or would have to borrow.
#[test]
fn every_victim_is_needed() {
    for case in Case::all() {
        let (loaded, question) = case.load();
        let Some(plan) = CheckedPlan::new(&loaded, &question) else { continue };
        for &victim in &plan.victims {
            let others: Vec<WorkloadId> = plan.victims.iter().copied().filter(|&other| other != victim).collect();
            let fits = plan.over_limit(&others).is_none() && !plan.borrows(plan.queue, &others, true);
            assert!(!fits, "{}: {victim:?}", case.name);
        }
    }
}

#[test]
fn deciding_and_explaining_change_nothing() {
    for case in Case::all() {
        let (mut loaded, question) = case.load();
        let before = loaded.snapshot.clone();
        let outcome = question.decide(&mut loaded);
        assert_eq!(loaded.snapshot, before, "{}: decide", case.name);
        let (decision, _) = question.decide_and_explain(&mut loaded);
        assert_eq!(decision.outcome, outcome, "{}: explaining changed the outcome", case.name);
        assert_eq!(loaded.snapshot, before, "{}: explain", case.name);
    }
}

/// A decision with its explanation, checked against the decision without one.
fn explained(case: &Case, loaded: &mut Loaded, question: &Question) -> (Decision, Explanation) {
    let (Policy::Kueue(policy), PreemptorId::Workload(preemptor)) = (&question.policy, question.preemptor) else {
        panic!("under policy Kueue only workloads are preemptors");
    };
    let (decision, explanation) = question.decide_and_explain(loaded);
    assert_eq!(decision, decide(&loaded.snapshot, policy, preemptor, question.now), "{}", case.name);
    (decision, explanation)
}

#[test]
fn every_workload_that_holds_quota_is_a_victim_or_spared_for_one_reason() {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for case in Case::all() {
        let (mut loaded, question) = case.load();
        let (decision, explanation) = explained(&case, &mut loaded, &question);
        let victims = match &decision.outcome {
            Outcome::Preempt(plan) => plan.victims.clone(),
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => Vec::new(),
        };
        let mut accounted: Vec<UnitId> = explanation.spared.iter().map(|entry| entry.unit).chain(victims).collect();
        accounted.sort_unstable();
        assert!(accounted.into_iter().eq(loaded.snapshot.unit_ids()), "{}", case.name);
        let is_outside = |spared: &Spared| matches!(spared, Spared::NotReached | Spared::Law(Law::OtherCohort));
        let has_searched = explanation.spared.iter().any(|entry| !is_outside(&entry.spared));
        for entry in explanation.spared {
            let name = match (&entry.spared, &decision.outcome) {
                (Spared::Law(law), _) => format!("{law:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
                (Spared::NotReached, Outcome::Unschedulable(None)) if has_searched => {
                    panic!("{}: a failed search reaches every workload of the tree", case.name)
                }
                (Spared::EqualCost(_), _) => "EqualCost".to_owned(),
                (other, _) => format!("{other:?}"),
            };
            *reasons.entry(name).or_default() += 1;
        }
    }
    for reason in [
        "AboveThreshold",
        "FairShare",
        "NotEnough",
        "QueuePolicyNever",
        "NotContested",
        "NotReached",
        "OtherCohort",
        "Priority",
        "Reprieved",
        "WithinQuota",
    ] {
        assert!(reasons.get(reason).is_some_and(|&n| n > 2), "{reason} is too rare to tell: {reasons:?}");
    }
}

/// The search checks the law when it reaches a workload: a queue that borrowed at the start of the search may not borrow any more.
#[test]
fn queue_that_lost_workloads_borrowed_before_the_search() {
    let mut lost = 0;
    for case in Case::all() {
        let (mut loaded, question) = case.load();
        let (_, explanation) = explained(&case, &mut loaded, &question);
        for entry in explanation.spared {
            if let Spared::Law(Law::WithinQuota { queue, has_lost }) = entry.spared {
                let (tree, rules) = (loaded.snapshot.queues(), loaded.snapshot.quota_rules());
                let over = |(used, nominal): (&i64, &i64)| used > nominal;
                let borrows = tree.used(queue).iter().zip(&tree.get(queue).guarantee).any(over);
                assert!(borrows || !has_lost, "{}: {queue:?} of {}", case.name, rules.queues.len());
                lost += usize::from(has_lost);
            }
        }
    }
    assert!(lost > 5, "only {lost} queues stopped borrowing");
}

#[test]
fn decision_does_not_depend_on_what_is_not_decisive() {
    let (mut removed, mut kept) = (0, 0);
    for mut case in Case::all() {
        let (mut loaded, question) = case.load();
        let (decision, explanation) = explained(&case, &mut loaded, &question);
        let answer = answer::answer(&question, &mut loaded);
        let mut needless = BTreeSet::new();
        for entry in &explanation.spared {
            let workload = loaded.snapshot.unit(entry.unit).workload.expect("there are only workloads");
            if entry.decisive {
                kept += 1;
            } else {
                needless.insert(loaded.names.workload(workload).name.clone());
            }
        }
        removed += needless.len();
        case.objects.kueue_workloads.retain(|workload| {
            !needless.contains(workload.object.metadata.name.as_deref().expect("a workload has a name"))
        });
        let (mut loaded, question) = case.load();
        let (without, _) = explained(&case, &mut loaded, &question);
        assert_eq!(answer::answer(&question, &mut loaded), answer, "{}", case.name);
        assert_eq!(without.assignment, decision.assignment, "{}", case.name);
    }
    assert!(removed > 100 && kept > 100, "{removed} removed, {kept} kept");
}

/// A disruption cost of 0 is like no cost. With costs, however, the engine sorts the candidates for each decision instead of keeping them in order.
#[test]
fn sorted_candidates_give_the_same_decision_as_those_kept_in_order() {
    for mut case in Case::all() {
        let (mut loaded, question) = case.load();
        let answer = answer::answer(&question, &mut loaded);
        for workload in &mut case.objects.kueue_workloads {
            let free = MilestoneSpec { seconds: 1, cost: 0 };
            Arc::make_mut(&mut workload.object).spec.preemption =
                Some(WorkloadPreemptionSpec { disruption_cost_milestones: vec![free] });
        }
        let (mut loaded, question) = case.load();
        assert_eq!(answer::answer(&question, &mut loaded), answer, "{}", case.name);
    }
}

#[test]
fn decision_does_not_depend_on_the_order_of_objects() {
    for (seed, mut case) in (0..).zip(Case::all()) {
        let (mut loaded, question) = case.load();
        let answer = answer::answer(&question, &mut loaded);
        let mut rng = Rng::new(seed);
        rng.shuffle(&mut case.objects.kueue_workloads);
        rng.shuffle(&mut case.objects.cluster_queues);
        rng.shuffle(&mut case.objects.cohorts);
        rng.shuffle(&mut case.objects.resource_flavors);
        let (mut loaded, question) = case.load();
        assert_eq!(answer::answer(&question, &mut loaded), answer, "{}", case.name);
    }
}

#[test]
fn cycle_needs_only_the_first_of_equal_workloads() {
    let mut left_out = 0;
    for mut case in Case::all() {
        let pending = |workload: &Sourced<KueueWorkload>| {
            workload.object.status.as_ref().is_none_or(|status| status.admission.is_none())
        };
        let again: Vec<_> = case.objects.kueue_workloads.iter().filter(|workload| pending(workload)).cloned().collect();
        for mut workload in again {
            let metadata = &mut Arc::make_mut(&mut workload.object).metadata;
            let name = format!("{}-again", metadata.name.take().unwrap_or_default());
            metadata.uid = Some(name.clone());
            metadata.name = Some(name);
            case.objects.kueue_workloads.push(workload);
        }
        let (loaded, question) = case.load();
        let Policy::Kueue(policy) = question.policy else { panic!("{}: the policy is Kueue", case.name) };
        let snapshot = &loaded.snapshot;
        let mut pending: Vec<WorkloadId> =
            snapshot.workload_ids().filter(|&id| snapshot.workload(id).admission.is_none()).collect();
        pending.sort_by_key(|&id| {
            let workload = snapshot.workload(id);
            (Reverse(workload.priority), workload.created, workload.rank)
        });
        let mut firsts = BTreeMap::new();
        for &id in &pending {
            firsts.entry(WorkloadClassKey::of(snapshot, &policy, id)).or_insert(id);
        }
        let firsts: Vec<WorkloadId> = firsts.into_values().collect();
        left_out += pending.len() - firsts.len();
        let gets = |pending: &[WorkloadId]| {
            let mut heads = run_cycle(snapshot, &policy, pending, question.now);
            heads.retain(|head| !matches!(head.result, CycleResult::Decided(Outcome::Unschedulable(_))));
            heads
        };
        assert_eq!(gets(&pending), gets(&firsts), "{}", case.name);
    }
    assert!(left_out > 300, "only {left_out} are equal to another");
}
