//! Properties of every decision under policy Kubernetes, on random clusters of every kind. A seed that fails becomes a case.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reprieve_api::answer::Answer;
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::Pod as ApiPod;
use reprieve_api::read::documents;
use reprieve_api::test_file::{OutcomeName, TestSpec};
use reprieve_engine::choose::Difference;
use reprieve_engine::explanation::{
    DomainEntry, DomainRefusal, DomainResult, Explanation, NodeEntry, NodeRefusal, NodeResult, RefusedNode,
};
use reprieve_engine::filters::FilterFailure;
use reprieve_engine::fit::{Placement, Preemptor, PreemptorId, Shortage};
use reprieve_engine::node_plans;
use reprieve_engine::what_if::WhatIf;
use reprieve_engine::{NodeId, Outcome, PodId, ShapeId, UnitId};
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::Question;
use reprieve_report::answer::named;
use reprieve_report::report::decide_and_report;
use reprieve_testkit::random::{Case, Options, Rng, cluster};

const SEEDS: u64 = 2_000;

#[test]
fn resources() {
    properties_hold(&Options::resources());
}

#[test]
fn pods() {
    properties_hold(&Options::pods());
}

#[test]
fn groups() {
    properties_hold(&Options::groups());
}

#[test]
fn tolerations() {
    properties_hold(&Options::tolerations());
}

#[test]
fn cascades() {
    properties_hold(&Options::cascades());
}

#[test]
fn everything() {
    properties_hold(&Options::everything());
}

fn properties_hold(options: &Options) {
    let mut outcomes: BTreeMap<OutcomeName, usize> = BTreeMap::new();
    let mut violations = 0;
    for seed in 0..SEEDS {
        let case = cluster(seed, options);
        assert_eq!(case, cluster(seed, options), "seed {seed} gives the same cluster twice");
        let mut decided = Decided::new(seed, &case.to_json());
        decided.changes_nothing();
        decided.does_not_depend_on_the_order_of_objects(&case);
        if seed % 20 == 0 {
            decided.decides_the_same_from_yaml(&case);
        }
        decided.evicts_only_lower_priorities();
        decided.evicts_gangs_whole();
        decided.overfills_no_node();
        decided.needs_every_victim();
        decided.undoes_a_what_if();
        violations += decided.reports_violated_budgets();
        decided.lists_the_first_shortage_first();
        decided.chooses_the_lowest_cost();
        *outcomes.entry(decided.answer.outcome).or_default() += 1;
    }
    let preemptions = outcomes.get(&OutcomeName::Preempt).copied().unwrap_or_default();
    assert!(preemptions * 3 > SEEDS as usize, "most clusters are tight: {outcomes:?}");
    assert_eq!(violations > 20, options.budgets, "{violations} violated budgets");
    assert!(outcomes.contains_key(&OutcomeName::Schedule), "{outcomes:?}");
    assert!(outcomes.contains_key(&OutcomeName::Unschedulable), "{outcomes:?}");
    assert_eq!(outcomes.contains_key(&OutcomeName::Wait), options.terminating, "{outcomes:?}");
}

/// A question with its decision.
struct Decided {
    seed: u64,
    objects: ObjectSet,
    loaded: Loaded,
    question: Question,
    before: reprieve_engine::snapshot::Snapshot,
    outcome: Outcome,
    answer: Answer,
}

impl Decided {
    fn new(seed: u64, text: &str) -> Self {
        let (spec, objects) = read(text);
        let mut loaded = load(&objects, OnInvalid::Reject).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let question = Question::new(&spec, &loaded).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let before = loaded.snapshot.clone();
        let outcome = question.decide(&mut loaded);
        let answer = named(&loaded, &Preemptor::new(&before, question.preemptor).members, &outcome);
        Self { seed, objects, loaded, question, before, outcome, answer }
    }

    /// Neither deciding nor explaining changes the snapshot.
    fn changes_nothing(&mut self) {
        assert!(self.loaded.snapshot == self.before, "seed {}: deciding changed the snapshot", self.seed);
        let (decision, _) = self.question.decide_and_explain(&mut self.loaded);
        assert_eq!(decision.outcome, self.outcome, "seed {}: explaining changed the outcome", self.seed);
        assert!(self.loaded.snapshot == self.before, "seed {}: explaining changed the snapshot", self.seed);
    }

    fn does_not_depend_on_the_order_of_objects(&self, case: &Case) {
        let shuffled = Self::new(self.seed, &case.shuffled(self.seed).to_json());
        assert_eq!(shuffled.answer, self.answer, "seed {}: the order of the objects shows", self.seed);
    }

    fn decides_the_same_from_yaml(&self, case: &Case) {
        let again = Self::new(self.seed, &case.to_yaml());
        assert_eq!(again.answer, self.answer, "seed {}: YAML is not read as JSON is", self.seed);
    }

    fn victims(&self) -> &[UnitId] {
        match &self.outcome {
            Outcome::Preempt(plan) => &plan.victims,
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => &[],
        }
    }

    fn placement(&self) -> Placement {
        match &self.outcome {
            Outcome::Preempt(plan) => plan.placement.clone(),
            Outcome::Schedule(placement) => placement.clone(),
            Outcome::Wait(_) | Outcome::Unschedulable(_) => Placement::new(),
        }
    }

    fn evicts_only_lower_priorities(&self) {
        let snapshot = &self.loaded.snapshot;
        let preemptor = match self.question.preemptor {
            PreemptorId::Pod(pod) => snapshot.pod(pod).priority,
            PreemptorId::Group(group) => snapshot.group(group).priority,
            PreemptorId::Workload(_) => unreachable!("no workload asks under this policy"),
        };
        for &pod in self.victims().iter().flat_map(|&unit| &snapshot.unit(unit).pods) {
            let group = snapshot.pod(pod).group.map(|group| snapshot.group(group).victim_priority);
            let priority = group.unwrap_or(snapshot.pod(pod).priority);
            assert!(priority < preemptor, "seed {}: {} is not lower", self.seed, self.loaded.names.pod(pod));
        }
    }

    /// Checked on the objects: of a group with disruption mode `all`, all running pods are evicted, or none.
    fn evicts_gangs_whole(&self) {
        let taken: Vec<&str> = self.answer.victims.iter().filter_map(|victim| victim.pod.as_deref()).collect();
        let whole = self.objects.pod_groups.iter().map(|sourced| &sourced.object);
        for group in whole.filter(|group| group.spec.disruption_mode.as_ref().is_some_and(|mode| mode.all.is_some())) {
            let group = NamespacedName::from_meta(&group.metadata);
            let members = self.objects.pods.iter().map(|sourced| &*sourced.object);
            let members = members.filter(|pod| group_of(pod).as_ref() == Some(&group) && runs(pod));
            let is_taken =
                |pod: &ApiPod| taken.contains(&NamespacedName::from_meta(&pod.metadata).to_string().as_str());
            let (gone, left): (Vec<&ApiPod>, Vec<&ApiPod>) = members.partition(|pod| is_taken(pod));
            assert!(gone.is_empty() || left.is_empty(), "seed {}: {group} is taken in part", self.seed);
        }
    }

    /// No node of the placement exceeds its capacity in a resource that the preemptor requests.
    fn overfills_no_node(&self) {
        let snapshot = &self.loaded.snapshot;
        let placement = self.placement();
        let requests = |pod: PodId| snapshot.requests(snapshot.pod(pod).shape);
        let gone: Vec<PodId> = self.victims().iter().flat_map(|&unit| snapshot.unit(unit).pods.clone()).collect();
        for &(_, node) in &placement {
            let arrivals: Vec<PodId> =
                placement.iter().filter(|(_, target)| *target == node).map(|(pod, _)| *pod).collect();
            for resource in snapshot.resource_ids().map(|resource| resource.index()) {
                let arriving: i64 = arrivals.iter().map(|&pod| requests(pod)[resource]).sum();
                if arriving == 0 {
                    continue;
                }
                let leaves = |pod: &&PodId| snapshot.bound_node(**pod) == Some(node);
                let freed: i64 = gone.iter().chain(&arrivals).filter(leaves).map(|&pod| requests(pod)[resource]).sum();
                let used = snapshot.used(node)[resource] - freed + arriving;
                let name = self.loaded.names.node(node);
                assert!(used <= snapshot.allocatable(node)[resource], "seed {}: {name} is overfull", self.seed);
            }
        }
    }

    /// For a pod: it would not fit on its node without only some of the victims.
    fn needs_every_victim(&self) {
        let (PreemptorId::Pod(pod), Outcome::Preempt(plan)) = (self.question.preemptor, &self.outcome) else {
            return;
        };
        let (_, node) = plan.placement[0];
        if plan.victims.len() > 5 {
            return;
        }
        for chosen in 0..(1_u32 << plan.victims.len()) - 1 {
            let some = plan.victims.iter().enumerate().filter(|(index, _)| chosen & (1 << index) != 0);
            let some: Vec<UnitId> = some.map(|(_, &unit)| unit).collect();
            assert!(
                !self.fits_without(&some, pod, node),
                "seed {}: {some:?} of {:?} is enough",
                self.seed,
                plan.victims
            );
        }
    }

    /// Whether the pod fits on the node in a cluster without these units.
    fn fits_without(&self, removed: &[UnitId], pod: PodId, node: NodeId) -> bool {
        let names = &self.loaded.names;
        let pods = removed.iter().flat_map(|&unit| &self.loaded.snapshot.unit(unit).pods);
        let gone: Vec<&NamespacedName> = pods.map(|&pod| names.pod(pod)).collect();
        let mut objects = self.objects.clone();
        objects.pods.retain(|pod| !gone.contains(&&NamespacedName::from_meta(&pod.object.metadata)));
        let mut loaded = load(&objects, OnInvalid::Reject).expect("the whole cluster loads, so a part of it does");
        let pod = loaded.names.pod_id(names.pod(pod)).expect("the preemptor is there");
        let plans = node_plans(&mut loaded.snapshot, &self.question.policy, pod, self.question.now);
        plans.iter().any(|(target, plan)| *target == node && plan.victims.is_empty())
    }

    /// After a what-if ends or returns to a mark, pods that were moved at random are where they were.
    fn undoes_a_what_if(&mut self) {
        let mut rng = Rng::new(self.seed);
        let snapshot = &mut self.loaded.snapshot;
        let n_pods = self.objects.pods.iter().filter(|pod| !is_done(&pod.object)).count();
        let n_nodes = snapshot.node_ids().len();
        let shapes: Vec<ShapeId> = (0..n_pods).map(|pod| snapshot.pod(PodId::new(pod)).shape).collect();
        let mut what_if = WhatIf::new(snapshot, &shapes);
        for _ in 0..3 {
            move_about(&mut what_if, &mut rng, n_pods, n_nodes);
            let (mark, then) = (what_if.mark(), what_if.snapshot().clone());
            move_about(&mut what_if, &mut rng, n_pods, n_nodes);
            what_if.back_to(mark);
            assert!(*what_if.snapshot() == then, "seed {}: not what it was at the mark", self.seed);
        }
        drop(what_if);
        assert!(self.loaded.snapshot == self.before, "seed {}: not what it was", self.seed);
    }
}

/// Properties of the explanation.
impl Decided {
    /// Checked on the objects: the report lists each budget that covers more victims than it allows, with the number. A terminating pod, or one that the
    /// budget lists as disrupted, is not a new disruption. Returns the number of violated budgets.
    fn reports_violated_budgets(&mut self) -> usize {
        let taken: Vec<&str> = self.answer.victims.iter().filter_map(|victim| victim.pod.as_deref()).collect();
        let pods = self.objects.pods.iter().map(|sourced| &*sourced.object);
        let evicted: Vec<&ApiPod> = pods
            .filter(|pod| taken.contains(&NamespacedName::from_meta(&pod.metadata).to_string().as_str()))
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .collect();
        let mut violated = BTreeMap::new();
        for budget in self.objects.budgets.iter().map(|sourced| &sourced.object) {
            let status = budget.status.clone().unwrap_or_default();
            let disrupted = status.disrupted_pods.unwrap_or_default();
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let covers = |pod: &&&ApiPod| {
                let NamespacedName { namespace, name } = NamespacedName::from_meta(&pod.metadata);
                let labels = pod.metadata.labels.clone().unwrap_or_default();
                budget.metadata.namespace.as_ref() == Some(&namespace)
                    && !disrupted.contains_key(&name)
                    && selector.is_some_and(|selector| selects(selector, &labels))
            };
            let n = evicted.iter().filter(covers).count();
            let allowed = usize::try_from(status.disruptions_allowed.unwrap_or(0)).unwrap_or(0);
            if n > allowed {
                violated.insert(NamespacedName::from_meta(&budget.metadata).to_string(), (allowed, n));
            }
        }
        let report = decide_and_report(&self.question, &mut self.loaded);
        let budgets = report.explanation.budgets.iter();
        let reported: BTreeMap<String, (usize, usize)> =
            budgets.map(|budget| (budget.name.clone(), (budget.allowed, budget.evicted))).collect();
        assert_eq!(reported, violated, "seed {}", self.seed);
        let by_victim: BTreeSet<&String> =
            report.explanation.victims.iter().flat_map(|victim| &victim.violates).collect();
        assert!(by_victim.into_iter().eq(violated.keys()), "seed {}: {violated:?}", self.seed);
        violated.len()
    }

    fn explanation(&mut self) -> Explanation {
        self.question.decide_and_explain(&mut self.loaded).1
    }

    /// If a resource is the reason, all resources that are short are listed in order; the first is the one that the decision found.
    fn lists_the_first_shortage_first(&mut self) {
        let seed = self.seed;
        let check = |failure: &FilterFailure, shortages: &[Shortage]| match *failure {
            FilterFailure::Resource { resource, short, beyond } => {
                let first = shortages.first().map(|first| (first.resource, first.amount));
                assert_eq!(first, Some((resource, short)), "seed {seed}");
                assert_eq!(shortages.iter().any(|shortage| shortage.beyond), beyond, "seed {seed}");
                assert!(shortages.is_sorted_by_key(|shortage| shortage.resource), "seed {seed}");
                assert!(shortages.iter().all(|shortage| shortage.amount > 0), "seed {seed}");
            }
            // The reason is a port; resources that are also short are listed.
            FilterFailure::Ports => assert!(shortages.iter().all(|shortage| shortage.amount > 0), "seed {seed}"),
            _ => assert!(shortages.is_empty(), "seed {seed}: {failure:?}"),
        };
        let explanation = self.explanation();
        for reason in &explanation.victims {
            check(&reason.failure, &reason.shortages);
        }
        for NodeEntry { result, .. } in &explanation.nodes {
            if let NodeResult::Infeasible(RefusedNode { refusal, shortages }) = result
                && let NodeRefusal::FilterFailed(failure) | NodeRefusal::NoCandidate(failure) = refusal
            {
                check(failure, shortages);
            }
        }
        for DomainEntry { result, .. } in &explanation.domains {
            if let DomainResult::Infeasible(
                DomainRefusal::TooFewPlaced(few) | DomainRefusal::NoCandidate(few) | DomainRefusal::SearchLimit(few),
            ) = result
            {
                few.failures.iter().for_each(|node| check(&node.failure, &node.shortages));
            }
        }
    }

    /// No feasible node or domain costs less than the chosen one; it is reported as equal exactly if it has the same cost and comes later.
    fn chooses_the_lowest_cost(&mut self) {
        let explanation = self.explanation();
        let Outcome::Preempt(chosen) = &self.outcome else { return };
        let nodes = explanation.nodes.iter().map(|entry| match &entry.result {
            NodeResult::Chosen => Some(None),
            NodeResult::HigherCost(plan, difference) => Some(Some((plan, difference))),
            NodeResult::Infeasible(..) => None,
        });
        let domains = explanation.domains.iter().map(|entry| match &entry.result {
            DomainResult::Chosen => Some(None),
            DomainResult::HigherCost(plan, difference) => Some(Some((plan, difference))),
            DomainResult::Infeasible(_) => None,
        });
        let mut chosen_seen = false;
        for place in nodes.chain(domains).flatten() {
            let Some((plan, difference)) = place else {
                chosen_seen = true;
                continue;
            };
            let is_equal = difference.is_some_and(Difference::is_equal_cost);
            let (cost, lowest) = (plan.total_cost(), chosen.total_cost());
            let is_judged = *difference != Some(Difference::NotJudged);
            assert!(cost >= lowest || !is_judged, "seed {}: {plan:?}", self.seed);
            assert_eq!(is_equal, cost == lowest && is_judged, "seed {}: {difference:?}", self.seed);
            assert!(!is_equal || chosen_seen, "seed {}: the chosen place is the first by name", self.seed);
        }
    }
}

/// An empty selector selects no pod, as in kube-scheduler's handling of budgets.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let (wanted, expressions) = (selector.match_labels.iter().flatten(), selector.match_expressions.iter().flatten());
    let demands = wanted.clone().count() + expressions.clone().count() > 0;
    demands
        && !labels.is_empty()
        && wanted.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().all(|one| {
            let (value, values) = (labels.get(&one.key), one.values.clone().unwrap_or_default());
            match one.operator.as_str() {
                "In" => value.is_some_and(|value| values.contains(value)),
                "NotIn" => value.is_none_or(|value| !values.contains(value)),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                other => panic!("{other} is no operator"),
            }
        })
}

fn move_about(what_if: &mut WhatIf<'_>, rng: &mut Rng, n_pods: usize, n_nodes: usize) {
    for _ in 0..rng.up_to(8) {
        let pod = PodId::new(rng.up_to(n_pods));
        if what_if.snapshot().pod(pod).node.is_some() && rng.chance(70) {
            what_if.remove(pod);
        } else {
            what_if.place(pod, NodeId::new(rng.up_to(n_nodes)));
        }
    }
}

fn read(text: &str) -> (TestSpec, ObjectSet) {
    let mut objects = ObjectSet::default();
    let mut test = None;
    for document in documents("random", text) {
        let read = document.read(&mut objects).unwrap_or_else(|error| panic!("{error}\n{text}"));
        test = test.or(read);
    }
    (test.expect("the first document is the test").object.spec.clone(), objects)
}

fn group_of(pod: &ApiPod) -> Option<NamespacedName> {
    let group = pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_ref()?;
    Some(NamespacedName::new(pod.metadata.namespace.as_deref().unwrap_or_default(), group))
}

fn runs(pod: &ApiPod) -> bool {
    pod.node_name.is_some() && !is_done(pod)
}

fn is_done(pod: &ApiPod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
