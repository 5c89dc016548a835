//! Properties of the explanation of every decision, on random clusters of every policy: it changes no decision, it lists every running unit once,
//! and removing everything that is not decisive does not change the decision.

use std::collections::BTreeSet;

use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::TestSpec;
use reprieve_engine::explanation::Explanation;
use reprieve_engine::{NodeId, Outcome, UnitId};
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};
use reprieve_report::answer::named;
use reprieve_testkit::random_cohorts::Kind;
use reprieve_testkit::{random, random_cohorts, random_jobs, random_queues};

#[test]
fn kubernetes_pods_by_resources() {
    let removed = (0..600).map(|seed| {
        let case = random::cluster(seed, &random::Options::resources());
        check(&format!("seed {seed}"), &case.to_json())
    });
    assert_some_is_removed(removed);
}

#[test]
fn kubernetes_pods() {
    let removed =
        (0..600).map(|seed| check(&format!("seed {seed}"), &random::cluster(seed, &random::Options::pods()).to_json()));
    assert_some_is_removed(removed);
}

#[test]
fn kubernetes_groups() {
    let removed = (0..600)
        .map(|seed| check(&format!("seed {seed}"), &random::cluster(seed, &random::Options::groups()).to_json()));
    assert_some_is_removed(removed);
}

#[test]
fn kubernetes_with_returning_victims() {
    let removed = (0..1_000)
        .map(|seed| check(&format!("seed {seed}"), &random::cluster(seed, &random::Options::cascades()).to_json()));
    assert_some_is_removed(removed);
}

#[test]
fn kubernetes_with_everything() {
    let removed = (0..1_000)
        .map(|seed| check(&format!("seed {seed}"), &random::cluster(seed, &random::Options::everything()).to_json()));
    assert_some_is_removed(removed);
}

#[test]
fn yunikorn_queues() {
    for seed in 0..400 {
        check(&format!("seed {seed}"), &random_queues::cluster(seed));
    }
}

#[test]
fn koordinator_jobs() {
    for seed in 0..400 {
        check(&format!("seed {seed}"), &random_jobs::cluster(seed, &random_jobs::Options::EVERYTHING));
    }
}

#[test]
fn kueue_cohorts() {
    for seed in 0..100 {
        for kind in Kind::ALL {
            check(&format!("{} {seed}", kind.name()), &random_cohorts::cluster(kind, seed));
        }
    }
}

/// The numbers of nodes and units that are not decisive.
type Removed = (usize, usize);

fn assert_some_is_removed(removed: impl Iterator<Item = Removed>) {
    let (nodes, units) = removed.fold((0, 0), |sum, removed| (sum.0 + removed.0, sum.1 + removed.1));
    assert!(nodes > 200 && units > 500, "only {nodes} nodes and {units} units are not decisive");
}

/// A cluster with a question.
struct Case<'n> {
    name: &'n str,
    spec: TestSpec,
    objects: ObjectSet,
}

fn check(name: &str, text: &str) -> Removed {
    let mut objects = ObjectSet::default();
    let mut test = None;
    for document in documents("random", text) {
        let read = document.read(&mut objects).unwrap_or_else(|error| panic!("{name}: {error}"));
        test = test.or(read);
    }
    let spec = test.expect("the cluster begins with a test").object.spec.clone();
    let case = Case { name, spec, objects };
    let (mut loaded, question) = case.load(&case.objects);
    let outcome = question.decide(&mut loaded);
    let (decision, explanation) = question.decide_and_explain(&mut loaded);
    assert_eq!(decision.outcome, outcome, "{name}: the decision with a recorder");
    case.accounts_for_every_unit(&loaded, &question, &outcome, &explanation);
    case.depends_on_what_is_decisive(&loaded, &question, &outcome, &explanation)
}

impl Case<'_> {
    fn load(&self, objects: &ObjectSet) -> (Loaded, Question) {
        let policy = policy(&self.spec.profile).expect("the profile is valid");
        let loaded = load_for(objects, OnInvalid::Reject, &policy);
        let loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let question = Question::new(&self.spec, &loaded).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        (loaded, question)
    }

    fn accounts_for_every_unit(&self, loaded: &Loaded, question: &Question, outcome: &Outcome, why: &Explanation) {
        let victims: &[UnitId] = match outcome {
            Outcome::Preempt(plan) => &plan.victims,
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => &[],
        };
        let victims: BTreeSet<UnitId> = victims.iter().copied().collect();
        let members = question.preemptor(loaded).members;
        let is_preemptor = |unit: &UnitId| loaded.snapshot.unit(*unit).pods.iter().any(|pod| members.contains(pod));
        let mut accounted: Vec<UnitId> = why.spared.iter().map(|entry| entry.unit).chain(victims).collect();
        accounted.sort_unstable();
        let units: Vec<UnitId> = loaded.snapshot.unit_ids().filter(|unit| !is_preemptor(unit)).collect();
        assert_eq!(accounted, units, "{}", self.name);
    }

    /// Decides again without the units and nodes that are not decisive.
    fn depends_on_what_is_decisive(
        &self,
        loaded: &Loaded,
        question: &Question,
        outcome: &Outcome,
        why: &Explanation,
    ) -> Removed {
        let nodes = why.nodes.iter().filter(|entry| !entry.decisive).map(|entry| entry.node);
        let domains = why.domains.iter().filter(|entry| !entry.decisive).flat_map(|entry| &entry.domain.nodes).copied();
        let nodes: BTreeSet<NodeId> = nodes.chain(domains).collect();
        let units: Vec<UnitId> = why.spared.iter().filter(|entry| !entry.decisive).map(|entry| entry.unit).collect();
        let node_names: BTreeSet<&str> = nodes.iter().map(|&node| loaded.names.node(node)).collect();
        let units_of = || units.iter().map(|&unit| loaded.snapshot.unit(unit));
        let pods: BTreeSet<&NamespacedName> =
            units_of().flat_map(|unit| &unit.pods).map(|&pod| loaded.names.pod(pod)).collect();
        let workloads: BTreeSet<&NamespacedName> =
            units_of().filter_map(|unit| unit.workload).map(|workload| loaded.names.workload(workload)).collect();
        let mut rest = self.objects.clone();
        rest.nodes.retain(|node| !node_names.contains(node.object.metadata.name.as_deref().unwrap_or_default()));
        rest.pods.retain(|pod| {
            let on_removed_node = pod.object.node_name.as_deref().is_some_and(|node| node_names.contains(node));
            !on_removed_node && !pods.contains(&NamespacedName::from_meta(&pod.object.metadata))
        });
        rest.kueue_workloads
            .retain(|workload| !workloads.contains(&NamespacedName::from_meta(&workload.object.metadata)));
        let answer = named(loaded, &question.preemptor(loaded).members, outcome);
        let (mut smaller, question) = self.load(&rest);
        let outcome = question.decide(&mut smaller);
        let again = named(&smaller, &question.preemptor(&smaller).members, &outcome);
        assert_eq!(again, answer, "{}: without {node_names:?}, {pods:?} and {workloads:?}", self.name);
        (nodes.len(), units.len())
    }
}
