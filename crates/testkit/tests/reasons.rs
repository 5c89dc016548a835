//! The reasons of explanations are true: each is compared with an experiment that changes the objects and decides again, on random clusters
//! of every policy. Cases in which a reason was wrong are listed with the right one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::quantity::format;
use reprieve_api::read::documents;
use reprieve_api::test_file::TestSpec;
use reprieve_engine::explanation::{Explanation, NodeRefusal, PlacementResult, RefusedNode, Spared};
use reprieve_engine::filters::FilterFailure;
use reprieve_engine::fit::Shortage;
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::queue_usage;
use reprieve_engine::{NodeId, Outcome, UnitId};
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};
use reprieve_report::report::decide_and_report;
use reprieve_testkit::random_cohorts::Kind;
use reprieve_testkit::{random, random_cohorts, random_jobs, random_queues};

/// The seeds of a test; more with `SEEDS=20`, by that factor.
fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let factor = std::env::var("SEEDS").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    0..count * factor
}

#[test]
fn kubernetes() {
    let kinds = [
        ("resources", random::Options::resources()),
        ("pods", random::Options::pods()),
        ("groups", random::Options::groups()),
        ("everything", random::Options::everything()),
    ];
    for seed in seeds(200) {
        for (name, options) in &kinds {
            check(&format!("{name} {seed}"), &random::cluster(seed, options).to_json());
        }
    }
}

#[test]
fn yunikorn() {
    seeds(300).for_each(|seed| check(&format!("seed {seed}"), &random_queues::cluster(seed)));
}

#[test]
fn koordinator() {
    let options = random_jobs::Options::EVERYTHING;
    seeds(300).for_each(|seed| check(&format!("seed {seed}"), &random_jobs::cluster(seed, &options)));
}

#[test]
fn kueue() {
    for seed in seeds(300) {
        for kind in Kind::ALL {
            check(&format!("{} {seed}", kind.name()), &random_cohorts::cluster(kind, seed));
        }
    }
}

/// Each unit of these cases once had a wrong reason.
#[test]
fn known_cases() {
    for (file, unit, law) in [
        ("kueue-classical/own-workload-given-back-lets-its-queue-borrow-again", "b-2", "Reprieved"),
        ("kueue-classical/own-workload-given-back-lets-its-queue-borrow-again", "b-3", "Reprieved"),
        ("kueue-classical/own-without-borrowing-the-borrowers-are-not-enough", "b-1", "QueuePolicyNever"),
        ("kueue-classical/borrower-preempted-only-down-to-nominal", "c2-low-1", "QueuePolicyNever"),
        ("kueue-classical/borrower-preempted-only-down-to-nominal", "c2-low-2", "QueuePolicyNever"),
        ("kueue-cohort/fair-equal-shares-take-nothing", "b1", "FairShare"),
        ("kueue-options/own-trigger-after-spares-only-the-victims", "small", "Reprieved"),
        ("kueue-options/own-trigger-after-spares-only-the-victims", "large", "PreemptionDelay"),
        ("yunikorn/own-pod-given-back-keeps-the-guarantee", "b-1", "Reprieved"),
        ("yunikorn/own-pod-given-back-keeps-the-guarantee", "b-2", "Reprieved"),
        ("yunikorn/own-pod-given-back-keeps-the-guarantee", "b-3", "Reprieved"),
        ("koordinator/own-pod-of-an-unknown-class-closes-its-node", "orphan", "UnknownPriorityClass"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(file).with_extension("yaml");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let case = Case::read(file, &text);
        let (mut loaded, question) = case.load(&case.objects).expect("the case loads");
        let report = decide_and_report(&question, &mut loaded);
        let is_unit = |name: &str| name == format!("default/{unit}");
        let spared = report.explanation.spared.iter().find(|spared| {
            spared.unit.workload.as_deref().is_some_and(is_unit) || spared.unit.pods.iter().any(|pod| is_unit(pod))
        });
        assert_eq!(spared.map(|spared| spared.law), Some(law), "{file}: {unit}");
    }
}

struct Case<'n> {
    name: &'n str,
    spec: TestSpec,
    objects: ObjectSet,
}

fn check(name: &str, text: &str) {
    let case = Case::read(name, text);
    let (mut loaded, question) = case.load(&case.objects).expect("a random cluster loads");
    let (decision, why) = question.decide_and_explain(&mut loaded);
    let experiment = Experiment { case: &case, loaded, question, outcome: decision.outcome, why };
    experiment.candidates_are_not_enough();
    experiment.victims_are_enough();
    experiment.each_victim_is_needed();
    experiment.each_node_has_its_result_alone();
    experiment.order_of_names_decides();
    experiment.laws_hold_after_the_plan();
}

impl<'n> Case<'n> {
    fn read(name: &'n str, text: &str) -> Self {
        let mut objects = ObjectSet::default();
        let mut test = None;
        for document in documents("cluster", text) {
            let read = document.read(&mut objects).unwrap_or_else(|error| panic!("{name}: {error}"));
            test = test.or(read);
        }
        let spec = test.expect("the cluster begins with a test").object.spec.clone();
        Self { name, spec, objects }
    }

    /// `None` if the changed objects are no longer valid.
    fn load(&self, objects: &ObjectSet) -> Option<(Loaded, Question)> {
        let policy = policy(&self.spec.profile).expect("the profile is valid");
        let loaded = load_for(objects, OnInvalid::Reject, &policy).ok()?;
        let question = Question::new(&self.spec, &loaded).ok()?;
        Some((loaded, question))
    }
}

/// A decision, to be compared with those about changed objects.
struct Experiment<'c> {
    case: &'c Case<'c>,
    loaded: Loaded,
    question: Question,
    outcome: Outcome,
    why: Explanation,
}

/// A decision about changed objects.
struct Changed {
    loaded: Loaded,
    outcome: Outcome,
    why: Explanation,
}

/// The name of a unit: of its workload, or of its first pod.
fn name_of(loaded: &Loaded, unit: UnitId) -> String {
    let unit = loaded.snapshot.unit(unit);
    let pods = || unit.pods.iter().map(|&pod| loaded.names.pod(pod).to_string()).min();
    unit.workload.map(|id| loaded.names.workload(id).to_string()).or_else(pods).unwrap_or_default()
}

fn names_of(loaded: &Loaded, units: &[UnitId]) -> BTreeSet<String> {
    units.iter().map(|&unit| name_of(loaded, unit)).collect()
}

impl Changed {
    fn victims(&self) -> Option<BTreeSet<String>> {
        match &self.outcome {
            Outcome::Preempt(plan) => Some(names_of(&self.loaded, &plan.victims)),
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => None,
        }
    }
}

impl Experiment<'_> {
    fn decide(&self, objects: &ObjectSet) -> Option<Changed> {
        let (mut loaded, question) = self.case.load(objects)?;
        let (decision, why) = question.decide_and_explain(&mut loaded);
        Some(Changed { loaded, outcome: decision.outcome, why })
    }

    fn victims(&self) -> &[UnitId] {
        match &self.outcome {
            Outcome::Preempt(plan) => &plan.victims,
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => &[],
        }
    }

    fn is_kueue(&self) -> bool {
        matches!(self.question.policy, Policy::Kueue(_))
    }

    /// The objects without these units.
    fn without(&self, units: &[UnitId]) -> ObjectSet {
        let Loaded { snapshot, names, .. } = &self.loaded;
        let units = || units.iter().map(|&unit| snapshot.unit(unit));
        let pods: BTreeSet<&NamespacedName> = units().flat_map(|unit| &unit.pods).map(|&pod| names.pod(pod)).collect();
        let workloads: BTreeSet<&NamespacedName> =
            units().filter_map(|unit| unit.workload).map(|workload| names.workload(workload)).collect();
        let mut rest = self.case.objects.clone();
        rest.pods.retain(|pod| !pods.contains(&NamespacedName::from_meta(&pod.object.metadata)));
        rest.kueue_workloads
            .retain(|workload| !workloads.contains(&NamespacedName::from_meta(&workload.object.metadata)));
        rest
    }

    /// `NotEnough`: the preemptor does not fit without the units. A pod takes victims of one node only, and for a group the search tries one
    /// order of its members.
    fn candidates_are_not_enough(&self) {
        let not_enough = self.why.spared.iter().filter(|entry| entry.spared == Spared::NotEnough);
        let units: Vec<UnitId> = not_enough.map(|entry| entry.unit).collect();
        let is_of_pods = matches!(self.question.policy, Policy::Kubernetes(_) | Policy::Koordinator(_));
        if is_of_pods || units.is_empty() {
            return;
        }
        if let Some(changed) = self.decide(&self.without(&units)) {
            let fits = matches!(changed.outcome, Outcome::Schedule(_));
            assert!(!fits, "{}: fits without {:?}", self.case.name, names_of(&self.loaded, &units));
        }
    }

    fn victims_are_enough(&self) {
        // Members of a Koordinator job that are not nominated yet may be placed elsewhere.
        if self.victims().is_empty() || matches!(self.question.policy, Policy::Koordinator(_)) {
            return;
        }
        if let Some(changed) = self.decide(&self.without(self.victims())) {
            let fits = matches!(changed.outcome, Outcome::Schedule(_));
            assert!(fits, "{}: {:?} without its victims", self.case.name, changed.outcome);
        }
    }

    /// The reason for a victim: the preemptor does not fit if it stays. Only single pods: the members of a gang may be placed elsewhere.
    fn each_victim_is_needed(&self) {
        let members = self.question.preemptor(&self.loaded).members;
        if self.is_kueue() || members.len() != 1 {
            return;
        }
        // A DaemonSet pod gives no victim back.
        let gives_back =
            !(matches!(self.question.policy, Policy::YuniKorn(_)) && self.loaded.snapshot.pod(members[0]).daemon);
        for &victim in self.victims().iter().filter(|_| gives_back) {
            let others: Vec<UnitId> = self.victims().iter().copied().filter(|other| *other != victim).collect();
            if let Some(changed) = self.decide(&self.without(&others)) {
                let fits = matches!(changed.outcome, Outcome::Schedule(_));
                assert!(!fits, "{}: fits beside {}", self.case.name, name_of(&self.loaded, victim));
            }
        }
        let explained: BTreeSet<UnitId> = self.why.victims.iter().map(|reason| reason.unit).collect();
        let victims: BTreeSet<UnitId> = self.victims().iter().copied().collect();
        assert_eq!(explained, victims, "{}: the victims with a reason", self.case.name);
    }

    /// The objects with all nodes cordoned but one.
    fn with_only(&self, node: NodeId, objects: &ObjectSet) -> ObjectSet {
        let mut objects = objects.clone();
        let name = self.loaded.names.node(node);
        for other in objects.nodes.iter_mut().filter(|other| other.object.metadata.name.as_deref() != Some(name)) {
            let mut changed = (*other.object).clone();
            changed.spec.get_or_insert_default().unschedulable = Some(true);
            other.object = Arc::new(changed);
        }
        objects
    }

    /// The result of a node does not depend on where else the pod could go.
    fn each_node_has_its_result_alone(&self) {
        let preemptor = self.question.preemptor(&self.loaded);
        let (Some(&member), false) = (preemptor.members.first(), self.why.nodes.is_empty()) else { return };
        let name = self.loaded.names.pod(member);
        let tolerates = self.case.objects.pods.iter().any(|pod| {
            let is_asking = NamespacedName::from_meta(&pod.object.metadata) == *name;
            let tolerations = pod.object.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
            is_asking && tolerations.is_some_and(|tolerations| !tolerations.is_empty())
        });
        // These pods may use cordoned nodes.
        if tolerates || preemptor.resizes_on.is_some() {
            return;
        }
        for entry in &self.why.nodes {
            let Some(alone) = self.decide(&self.with_only(entry.node, &self.case.objects)) else { continue };
            let expected = match &entry.result {
                PlacementResult::Chosen => Some(names_of(&self.loaded, self.victims())),
                PlacementResult::HigherCost(plan, _) => Some(names_of(&self.loaded, &plan.victims)),
                PlacementResult::Infeasible(_) => None,
            };
            let at = format!("{}: {} alone", self.case.name, self.loaded.names.node(entry.node));
            assert_eq!(alone.victims(), expected, "{at}, {:?}", entry.result);
            if let PlacementResult::Infeasible(RefusedNode { refusal, shortages }) = &entry.result {
                assert!(matches!(alone.outcome, Outcome::Unschedulable(_)), "{at}: {:?}", alone.outcome);
                if let NodeRefusal::NoCandidate(failure) | NodeRefusal::FilterFailed(failure) = refusal
                    && matches!(failure, FilterFailure::Resource { .. })
                {
                    self.shortages_are_exact(entry.node, shortages);
                }
            }
        }
    }

    /// With the missing amounts the node lacks no resource, and with one unit less it does. What exceeds the node's total is counted with
    /// all pods in place, so that less may be enough.
    fn shortages_are_exact(&self, node: NodeId, shortages: &[Shortage]) {
        assert!(!shortages.is_empty(), "{}: no resource is named", self.case.name);
        let is_beyond = shortages.iter().any(|shortage| shortage.beyond);
        let name = self.loaded.names.node(node);
        for less in if is_beyond { &[0][..] } else { &[0, 1] } {
            let mut objects = self.with_only(node, &self.case.objects);
            let own = objects.nodes.iter_mut().find(|known| known.object.metadata.name.as_deref() == Some(name));
            let own = own.expect("the node exists");
            let mut changed = (*own.object).clone();
            let allocatable = changed.status.get_or_insert_default().allocatable.get_or_insert_default();
            for (index, shortage) in shortages.iter().enumerate() {
                let resource = self.loaded.names.resource(shortage.resource);
                let before = self.loaded.snapshot.allocatable(node)[shortage.resource.index()];
                let total = before + shortage.amount - if index == 0 { *less } else { 0 };
                allocatable.insert(resource.to_owned(), Quantity(format(resource, total)));
            }
            own.object = Arc::new(changed);
            let Some(changed) = self.decide(&objects) else { continue };
            let entry = changed.why.nodes.iter().find(|entry| changed.loaded.names.node(entry.node) == name);
            let is_short = entry.is_some_and(|entry| match &entry.result {
                PlacementResult::Infeasible(RefusedNode { refusal, .. }) => match refusal {
                    NodeRefusal::NoCandidate(failure) | NodeRefusal::FilterFailed(failure) => {
                        matches!(failure, FilterFailure::Resource { .. })
                    }
                    NodeRefusal::Law(_) => false,
                },
                PlacementResult::Chosen | PlacementResult::HigherCost(..) => false,
            });
            assert_eq!(is_short, *less == 1, "{}: {name} with {less} less than {shortages:?}", self.case.name);
        }
    }

    /// `EqualCost`: if the victim may not be taken, the plan costs the same; under Kueue, if both swap their names, the other is the victim.
    fn order_of_names_decides(&self) {
        let Outcome::Preempt(plan) = &self.outcome else { return };
        for entry in &self.why.spared {
            let Spared::EqualCost(victim) = entry.spared else { continue };
            let names = [name_of(&self.loaded, entry.unit), name_of(&self.loaded, victim)];
            let mut objects = self.case.objects.clone();
            for workload in &mut objects.kueue_workloads {
                let own = NamespacedName::from_meta(&workload.object.metadata).to_string();
                if let Some(index) = names.iter().position(|name| *name == own) {
                    let mut changed = (*workload.object).clone();
                    changed.metadata.name = names[1 - index].split('/').nth(1).map(str::to_owned);
                    workload.object = Arc::new(changed);
                }
            }
            for pod in &mut objects.pods {
                if NamespacedName::from_meta(&pod.object.metadata).to_string() == names[1] {
                    let mut changed = (*pod.object).clone();
                    changed.spec_mut().priority = Some(self.question.preemptor(&self.loaded).priority.0);
                    changed.spec_mut().priority_class_name = None;
                    pod.object = Arc::new(changed);
                }
            }
            let Some(changed) = self.decide(&objects) else { continue };
            let is_equal = match &changed.outcome {
                Outcome::Preempt(_) if self.is_kueue() => {
                    changed.victims() == Some(names_of(&self.loaded, &plan.victims))
                }
                Outcome::Preempt(other) => other.cost == plan.cost,
                Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => false,
            };
            assert!(is_equal, "{}: {names:?}: {:?}, not {plan:?}", self.case.name, changed.outcome);
        }
    }

    /// Laws about queues hold with the victims of the plan removed and no others.
    fn laws_hold_after_the_plan(&self) {
        if self.victims().is_empty() {
            return;
        }
        let snapshot = &self.loaded.snapshot;
        let removed: Vec<_> = self.victims().iter().filter_map(|&unit| snapshot.unit(unit).workload).collect();
        for entry in &self.why.spared {
            match (&entry.spared, self.question.policy) {
                (Spared::Law(Law::WithinQuota { queue, has_lost: true }), Policy::Kueue(policy)) => {
                    let workload = snapshot.unit(entry.unit).workload.map(|id| snapshot.workload(id));
                    let admission = workload.and_then(|workload| workload.admission.as_ref()).expect("it holds quota");
                    let pairs: Vec<_> = admission.usage.iter().map(|(pair, _)| *pair).collect();
                    let usage = queue_usage(snapshot, &policy, *queue, &pairs, &removed, None);
                    let own = usage.iter().find(|usage| usage.queue == *queue).expect("the queue has a usage");
                    let borrows = own.flavor_resources.iter().all(|usage| usage.borrowed > 0);
                    assert!(!borrows, "{}: {} borrows", self.case.name, self.loaded.names.queue(*queue));
                }
                (&Spared::Law(Law::WouldBreakGuarantee { queue, resource, guarantee, .. }), _) => {
                    let tree = snapshot.queues();
                    let gone = self.victims().iter().chain([&entry.unit]).flat_map(|&unit| &snapshot.unit(unit).pods);
                    let is_in_queue = |own| tree.path(own).any(|id| id == queue);
                    let lost = gone.map(|&pod| snapshot.pod(pod)).filter(|pod| pod.queue.is_some_and(is_in_queue));
                    let lost: i64 = lost.map(|pod| snapshot.requests(pod.shape)[resource.index()]).sum();
                    let left = tree.used_without_terminating(queue, resource.index()) - lost;
                    let name = name_of(&self.loaded, entry.unit);
                    assert!(left < guarantee, "{}: {name} leaves {left}, not below {guarantee}", self.case.name);
                }
                _ => {}
            }
        }
    }
}
