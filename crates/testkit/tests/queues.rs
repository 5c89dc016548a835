//! Properties of every decision under policy YuniKorn, on random queue trees. This test computes the laws itself, without the functions of the
//! engine.

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::{OutcomeName, TestSpec};
use reprieve_engine::choose::Plan;
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::queues::UNDEFINED;
use reprieve_engine::{Outcome, PodId, QueueId, UnitId};
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::Question;
use reprieve_report::answer;
use reprieve_report::decision::PlaceResult;
use reprieve_report::report::decide_and_report;
use reprieve_testkit::random_queues::{Rng, cluster};

const SEEDS: std::ops::Range<u64> = 1_000..1_300;

/// A random cluster with its question.
struct Case {
    seed: u64,
    objects: ObjectSet,
    spec: TestSpec,
}

impl Case {
    fn new(seed: u64) -> Self {
        Self::read(seed, &cluster(seed))
    }

    fn read(seed: u64, text: &str) -> Self {
        let mut objects = ObjectSet::default();
        let mut test = None;
        for document in documents("random", text) {
            let read = document.read(&mut objects).expect("the cluster can be read");
            test = test.or(read.map(|sourced| sourced.object));
        }
        Self { seed, objects, spec: test.expect("it begins with a test").spec.clone() }
    }

    fn load(&self) -> (Loaded, Question) {
        let loaded =
            load(&self.objects, OnInvalid::Reject).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let question = Question::new(&self.spec, &loaded).expect("the preemptor is there");
        (loaded, question)
    }
}

/// A plan with its queue tree.
struct CheckedPlan<'l> {
    seed: u64,
    loaded: &'l Loaded,
    preemptor: PodId,
    own: QueueId,
    victims: Vec<PodId>,
}

impl<'l> CheckedPlan<'l> {
    fn new(seed: u64, loaded: &'l Loaded, preemptor: PodId, plan: &Plan) -> Self {
        let own = loaded.snapshot.pod(preemptor).queue.expect("the pod is in a queue");
        let victims = plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods).copied().collect();
        Self { seed, loaded, preemptor, own, victims }
    }

    fn requests(&self, pod: PodId) -> &[i64] {
        self.loaded.snapshot.requests(self.loaded.snapshot.pod(pod).shape)
    }

    fn queue(&self, pod: PodId) -> QueueId {
        self.loaded.snapshot.pod(pod).queue.expect("the pod is in a queue")
    }

    fn is_on_path(&self, from: QueueId, queue: QueueId) -> bool {
        self.loaded.snapshot.queues().path(from).any(|id| id == queue)
    }

    /// The amount that the victims in the queue and its subtree use.
    fn freed(&self, queue: QueueId, resource: usize) -> i64 {
        let inside = self.victims.iter().filter(|&&victim| self.is_on_path(self.queue(victim), queue));
        inside.map(|&victim| self.requests(victim)[resource]).sum()
    }

    /// No queue of a victim falls below its guarantee of the victim's resources, except for queues that also contain the preemptor.
    fn guarantees_hold(&self) {
        let queues = self.loaded.snapshot.queues();
        for &victim in &self.victims {
            for id in queues.path(self.queue(victim)).filter(|&id| !self.is_on_path(self.own, id)) {
                for (index, _) in self.requests(victim).iter().enumerate().filter(|(_, amount)| **amount > 0) {
                    let (guarantee, after) = (
                        queues.get(id).guarantee[index],
                        queues.used_without_terminating(id, index) - self.freed(id, index),
                    );
                    assert!(
                        guarantee == UNDEFINED || after >= guarantee,
                        "seed {}: {id:?} {after} < {guarantee}",
                        self.seed
                    );
                }
            }
        }
    }

    /// All victims are below the first queue on the preemptor's path that is fenced, full or the root.
    fn fence_holds(&self) {
        let queues = self.loaded.snapshot.queues();
        let full = |id: QueueId| {
            self.requests(self.preemptor).iter().enumerate().any(|(index, want)| {
                let limit = queues.path(id).map(|above| queues.get(above).limit[index]).min().unwrap_or(UNDEFINED);
                *want > 0 && limit != UNDEFINED && queues.used(id)[index] + want > limit
            })
        };
        let root =
            queues.path(self.own).find(|&id| queues.get(id).fence || queues.get(id).parent.is_none() || full(id));
        for &victim in &self.victims {
            assert!(self.is_on_path(self.queue(victim), root.expect("the root ends the path")), "seed {}", self.seed);
        }
    }

    fn victims_are_of_other_queues_and_applications(&self) {
        let pod = |pod: PodId| self.loaded.snapshot.pod(pod);
        for &victim in &self.victims {
            assert_ne!(self.queue(victim), self.own, "seed {}", self.seed);
            assert_ne!(pod(victim).application, pod(self.preemptor).application, "seed {}", self.seed);
        }
    }

    fn limits_hold(&self) {
        let queues = self.loaded.snapshot.queues();
        for id in queues.path(self.own) {
            for (index, want) in self.requests(self.preemptor).iter().enumerate().filter(|(_, want)| **want > 0) {
                let after = queues.used(id)[index] + want - self.freed(id, index);
                assert!(after <= queues.get(id).limit[index], "seed {}: {id:?}", self.seed);
            }
        }
    }

    fn victims_are_no_daemons_and_not_terminating(&self) {
        for &victim in &self.victims {
            let pod = self.loaded.snapshot.pod(victim);
            assert!(!pod.daemon && pod.terminating.is_none(), "seed {}", self.seed);
        }
    }
}

#[test]
fn plans_follow_the_laws() {
    let mut plans = 0;
    for seed in SEEDS {
        let (mut loaded, question) = Case::new(seed).load();
        let Outcome::Preempt(plan) = question.decide(&mut loaded) else { continue };
        let PreemptorId::Pod(preemptor) = question.preemptor else { panic!("only pods are preemptors") };
        let plan = CheckedPlan::new(seed, &loaded, preemptor, &plan);
        plan.victims_are_no_daemons_and_not_terminating();
        plan.limits_hold();
        if !loaded.snapshot.pod(preemptor).daemon {
            plan.guarantees_hold();
            plan.fence_holds();
            plan.victims_are_of_other_queues_and_applications();
        }
        plans += 1;
    }
    assert!(plans > 30, "only {plans} plans");
}

#[test]
fn deciding_and_explaining_change_nothing() {
    for seed in SEEDS {
        let (mut loaded, question) = Case::new(seed).load();
        let before = loaded.snapshot.clone();
        let outcome = question.decide(&mut loaded);
        assert_eq!(loaded.snapshot, before, "seed {seed}: decide");
        let (decision, _) = question.decide_and_explain(&mut loaded);
        assert_eq!(decision.outcome, outcome, "seed {seed}: explaining changed the outcome");
        assert_eq!(loaded.snapshot, before, "seed {seed}: explain");
    }
}

#[test]
fn decision_does_not_depend_on_the_order_of_objects() {
    for seed in SEEDS {
        let mut case = Case::new(seed);
        let (mut loaded, question) = case.load();
        let answer = answer::answer(&question, &mut loaded);
        let mut rng = Rng::new(seed);
        rng.shuffle(&mut case.objects.pods);
        rng.shuffle(&mut case.objects.nodes);
        rng.shuffle(&mut case.objects.priority_classes);
        let (mut loaded, question) = case.load();
        assert_eq!(answer::answer(&question, &mut loaded), answer, "seed {seed}");
    }
}

#[test]
fn every_victim_has_a_reason() {
    let daemons = [
        include_str!("../../../conformance/yunikorn/daemonset-skips-terminating-pod.yaml"),
        include_str!("../../../conformance/yunikorn/daemonset-takes-opted-out-after-ordinary.yaml"),
    ];
    let daemons = daemons.into_iter().enumerate().map(|(index, text)| Case::read(index as u64, text));
    for case in SEEDS.map(Case::new).chain(daemons) {
        let (seed, (mut loaded, question)) = (case.seed, case.load());
        let (decision, explanation) = question.decide_and_explain(&mut loaded);
        if let Outcome::Preempt(plan) = decision.outcome {
            let mut explained: Vec<UnitId> = explanation.victims.iter().map(|reason| reason.unit).collect();
            let mut victims = plan.victims;
            explained.sort_unstable();
            victims.sort_unstable();
            assert_eq!(explained, victims, "seed {seed}");
        }
    }
}

#[test]
fn every_refusal_has_a_reason() {
    for seed in SEEDS {
        let (mut loaded, question) = Case::new(seed).load();
        let report = decide_and_report(&question, &mut loaded);
        if matches!(report.answer.outcome, OutcomeName::Schedule | OutcomeName::Preempt) {
            continue;
        }
        let nodes = &report.explanation.nodes;
        let listed = nodes.len() == loaded.snapshot.node_ids().len()
            && nodes.iter().all(|node| node.result == PlaceResult::Infeasible && !node.text.is_empty());
        let law = report.explanation.law.as_ref().is_some_and(|law| !law.name.is_empty() && !law.text.is_empty());
        assert!(law || listed, "seed {seed}: {:?}", report.explanation);
    }
}
