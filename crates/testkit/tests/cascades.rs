//! Second-order evictions on random clusters, against a direct computation: each plan is carried out on the objects, the returning victims
//! are added as pending pods, and each is decided in a cluster that is loaded anew.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::Pod as ApiPod;
use reprieve_api::read::documents;
use reprieve_api::test_file::{PreemptorRef, TestSpec};
use reprieve_engine::choose::{Cost, Plan};
use reprieve_engine::fit::{Placement, PreemptorId};
use reprieve_engine::snapshot::Recreation;
use reprieve_engine::{NodeId, Outcome, UnitId, node_plans};
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};
use reprieve_testkit::random::{Options, cluster};

/// How many plans are judged.
const MAX_JUDGED: usize = 8;

#[test]
fn the_chosen_plan_has_the_lowest_cost_with_second_order_evictions() {
    let (mut cascades, mut changed) = (0, 0);
    for seed in 0..1_500 {
        let case = Case::read(seed);
        let (mut loaded, question) = case.load(&case.spec, &case.objects);
        let PreemptorId::Pod(pod) = question.preemptor else { unreachable!("the preemptor is a pod") };
        let Outcome::Preempt(chosen) = question.decide(&mut loaded) else { continue };
        let mut plans = node_plans(&mut loaded.snapshot, &question.policy, pod, question.now);
        plans.retain(|(_, plan)| !plan.victims.is_empty());
        plans.sort_by_key(|(node, plan)| (plan.cost, *node));
        let mut best: Option<(Cost, NodeId)> = None;
        for (node, plan) in plans.iter().take(MAX_JUDGED) {
            if best.is_some_and(|best| best <= (plan.cost, *node)) {
                break;
            }
            let total = (case.total_cost(&loaded, plan), *node);
            best = Some(best.map_or(total, |best| best.min(total)));
        }
        let (cost, node) = best.expect("a plan was chosen");
        assert_eq!((chosen.total_cost(), chosen.placement[0].1), (cost, node), "seed {seed}: {chosen:?}");
        cascades += usize::from(chosen.total_cost() != chosen.cost);
        changed += usize::from(node != plans[0].0);
    }
    assert!(cascades > 10 && changed > 10, "{cascades} chosen plans cascade, {changed} decisions change");
}

/// A cluster with a question.
struct Case {
    seed: u64,
    spec: TestSpec,
    objects: ObjectSet,
}

impl Case {
    fn read(seed: u64) -> Self {
        let mut objects = ObjectSet::default();
        let mut test = None;
        for document in documents("random", &cluster(seed, &Options::cascades()).to_json()) {
            test = test.or(document.read(&mut objects).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
        }
        let spec = test.expect("the first document is the test").object.spec.clone();
        Self { seed, spec, objects }
    }

    fn load(&self, spec: &TestSpec, objects: &ObjectSet) -> (Loaded, Question) {
        let policy = policy(&spec.profile).expect("the profile is valid");
        let loaded = load_for(objects, OnInvalid::Reject, &policy);
        let loaded = loaded.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let question = Question::new(spec, &loaded).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        (loaded, question)
    }

    /// The cost of a plan with what its returning victims evict.
    fn total_cost(&self, loaded: &Loaded, plan: &Plan) -> Cost {
        let snapshot = &loaded.snapshot;
        let mut objects = self.objects.clone();
        // Pods come before groups of the same priority, then by name.
        let mut returning = BTreeMap::new();
        for &pod in plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods) {
            let facts = snapshot.pod(pod);
            if facts.recreation == Recreation::Never || facts.terminating.is_some() {
                continue;
            }
            let name = loaded.names.pod(pod).clone();
            let (kind, priority, name) = match facts.group {
                Some(group) => ("PodGroup", snapshot.group(group).priority, loaded.names.group(group).clone()),
                None => ("Pod", facts.priority, name),
            };
            let NamespacedName { namespace, name } = name;
            returning.insert(
                (Reverse(priority), kind == "PodGroup", namespace.clone(), name.clone()),
                PreemptorRef { kind: kind.to_owned(), namespace, name },
            );
        }
        evict(&mut objects, loaded, &plan.victims, true);
        place(&mut objects, loaded, &plan.placement);
        let mut cost = plan.cost;
        for preemptor in returning.into_values() {
            let mut spec = TestSpec { preemptor, ..self.spec.clone() };
            spec.profile.args.insert("cascades".to_owned(), "Ignore".into());
            let (mut loaded, question) = self.load(&spec, &objects);
            match question.decide(&mut loaded) {
                Outcome::Schedule(placement) => place(&mut objects, &loaded, &placement),
                Outcome::Preempt(plan) => {
                    cost.violations += plan.cost.violations;
                    cost.weight += plan.cost.weight;
                    cost.pods += plan.cost.pods;
                    evict(&mut objects, &loaded, &plan.victims, false);
                    place(&mut objects, &loaded, &plan.placement);
                }
                Outcome::Wait(_) | Outcome::Unschedulable(_) => {}
            }
        }
        cost
    }
}

/// Removes the pods of the victims, or leaves those that return as pending pods, and charges the budgets.
fn evict(objects: &mut ObjectSet, loaded: &Loaded, victims: &[UnitId], may_return: bool) {
    let snapshot = &loaded.snapshot;
    let mut returns = BTreeMap::new();
    let mut charged = vec![0; snapshot.budgets().len()];
    for &pod in victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods) {
        let facts = snapshot.pod(pod);
        let is_returning = facts.recreation == Recreation::Decided && facts.terminating.is_none();
        returns.insert(loaded.names.pod(pod).clone(), is_returning && may_return);
        facts.budgets.iter().for_each(|budget| charged[budget.index()] += 1);
    }
    let name = |pod: &ApiPod| NamespacedName::from_meta(&pod.metadata);
    objects.pods.retain(|pod| returns.get(&name(&pod.object)).is_none_or(|returns| *returns));
    for pod in objects.pods.iter_mut().filter(|pod| returns.contains_key(&name(&pod.object))) {
        let pod = Arc::make_mut(&mut pod.object);
        (pod.node_name, pod.status) = (None, None);
    }
    let names = |objects: &ObjectSet, index: usize| NamespacedName::from_meta(&objects.budgets[index].object.metadata);
    let mut order: Vec<usize> = (0..objects.budgets.len()).collect();
    order.sort_by_key(|&index| names(objects, index));
    for (index, charged) in order.into_iter().zip(charged) {
        let budget = Arc::make_mut(&mut objects.budgets[index].object);
        let status = budget.status.get_or_insert_default();
        status.disruptions_allowed = Some(status.disruptions_allowed.unwrap_or(0) - charged);
    }
}

/// Binds the pods of a placement.
fn place(objects: &mut ObjectSet, loaded: &Loaded, placement: &Placement) {
    for &(pod, node) in placement {
        let name = loaded.names.pod(pod);
        let is_it = |object: &&mut _| pod_name(object) == *name;
        if let Some(pod) = objects.pods.iter_mut().map(|pod| &mut pod.object).find(is_it) {
            let pod = Arc::make_mut(pod);
            (pod.node_name, pod.status) = (Some(loaded.names.node(node).to_owned()), None);
        }
    }
}

fn pod_name(pod: &Arc<ApiPod>) -> NamespacedName {
    NamespacedName::from_meta(&pod.metadata)
}
