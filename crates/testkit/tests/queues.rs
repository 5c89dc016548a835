//! Properties of every decision under policy YuniKorn, on random queue trees. This test computes the laws itself, without the functions of the
//! engine.

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::{OutcomeName, TestSpec};
use reprieve_engine::choose::Plan;
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_engine::queues::UNDEFINED;
use reprieve_engine::snapshot::DisruptionMode;
use reprieve_engine::{NodeId, Outcome, PodId, Policy, QueueId, UnitId};
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};
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
        let policy = policy(&self.spec.profile).expect("the profile is valid");
        let loaded = load_for(&self.objects, OnInvalid::Reject, &policy);
        let loaded = loaded.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let question = Question::new(&self.spec, &loaded).expect("the preemptor is there");
        (loaded, question)
    }
}

/// A plan with its queue tree.
struct CheckedPlan<'l> {
    seed: u64,
    loaded: &'l Loaded,
    settings: YuniKorn,
    preemptor: PodId,
    own: QueueId,
    node: NodeId,
    victims: Vec<PodId>,
    /// The other pods that are nominated, and the pods that terminate on their nodes; none with the code of YuniKorn.
    nominated: Vec<PodId>,
    leaving: Vec<PodId>,
}

impl<'l> CheckedPlan<'l> {
    fn new(seed: u64, loaded: &'l Loaded, policy: &Policy, preemptor: PodId, plan: &Plan) -> Self {
        let Policy::YuniKorn(settings) = *policy else { panic!("it is policy YuniKorn") };
        let snapshot = &loaded.snapshot;
        let own = snapshot.pod(preemptor).queue.expect("the pod is in a queue");
        let victims = plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods).copied().collect();
        let is_nominated = |&pod: &PodId| {
            pod != preemptor && snapshot.pod(pod).node.is_none() && snapshot.pod(pod).nominated.is_some()
        };
        let others = || loaded.names.pod_ids().filter(|_| !settings.follows_code);
        let nominated: Vec<PodId> = others().filter(is_nominated).collect();
        let is_leaving = |&pod: &PodId| {
            let node = snapshot.pod(pod).node;
            let of_nominated = nominated.iter().any(|&other| snapshot.pod(other).nominated == node);
            node.is_some() && snapshot.pod(pod).terminating.is_some() && of_nominated
        };
        let leaving = others().filter(is_leaving).collect();
        let node = plan.placement[0].1;
        Self { seed, loaded, settings, preemptor, own, node, victims, nominated, leaving }
    }

    /// What these pods request in the queue and its subtree.
    fn sum(&self, pods: &[PodId], queue: QueueId, resource: usize) -> i64 {
        let is_inside = |pod: PodId| self.loaded.snapshot.pod(pod).queue.is_some_and(|of| self.is_on_path(of, queue));
        pods.iter().filter(|&&pod| is_inside(pod)).map(|&pod| self.requests(pod)[resource]).sum()
    }

    /// The usage that counts below a maximum: now, or once nominated pods have taken the place of those that leave for them.
    fn used(&self, queue: QueueId, resource: usize) -> i64 {
        let held = self.sum(&self.nominated, queue, resource) - self.sum(&self.leaving, queue, resource);
        self.loaded.snapshot.queues().used(queue)[resource] + held.max(0)
    }

    /// The usage that counts for a guarantee.
    fn used_of_guarantee(&self, queue: QueueId, resource: usize) -> i64 {
        let used = self.loaded.snapshot.queues().used_without_terminating(queue, resource);
        used + self.sum(&self.nominated, queue, resource)
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
        self.sum(&self.victims, queue, resource)
    }

    /// No queue of a victim falls below its guarantee of the victim's resources, except for queues that also contain the preemptor.
    fn guarantees_hold(&self) {
        let queues = self.loaded.snapshot.queues();
        for &victim in &self.victims {
            for id in queues.path(self.queue(victim)).filter(|&id| !self.is_on_path(self.own, id)) {
                for (index, _) in self.requests(victim).iter().enumerate().filter(|(_, amount)| **amount > 0) {
                    let (guarantee, after) =
                        (queues.get(id).guarantee[index], self.used_of_guarantee(id, index) - self.freed(id, index));
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
                *want > 0 && limit != UNDEFINED && self.used(id, index) + want > limit
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
            let (own, other) = (pod(self.preemptor).application, pod(victim).application);
            assert!(self.settings.follows_code || own.is_none() || own != other, "seed {}", self.seed);
        }
    }

    /// The capacity of the cluster does not limit the pod of a DaemonSet.
    fn limits_hold(&self) {
        assert!(self.exceeds_no_limit(|_| false), "seed {}", self.seed);
    }

    /// Whether all maxima on the path of the preemptor hold, without the victims for which `stays` is false.
    fn exceeds_no_limit(&self, stays: impl Fn(PodId) -> bool) -> bool {
        let queues = self.loaded.snapshot.queues();
        let ignores_root = self.loaded.snapshot.pod(self.preemptor).daemon && !self.settings.follows_code;
        let gone: Vec<PodId> = self.victims.iter().copied().filter(|&victim| !stays(victim)).collect();
        queues.path(self.own).filter(|&id| !ignores_root || queues.get(id).parent.is_some()).all(|id| {
            let wants = self.requests(self.preemptor).iter().enumerate().filter(|(_, want)| **want > 0);
            let after = |index: usize, want: i64| self.used(id, index) + want - self.sum(&gone, id, index);
            wants.into_iter().all(|(index, &want)| after(index, want) <= queues.get(id).limit[index])
        })
    }

    /// Whether the preemptor has room on its node, without the victims for which `stays` is false.
    fn has_room(&self, stays: impl Fn(PodId) -> bool) -> bool {
        let snapshot = &self.loaded.snapshot;
        let is_gone = |&&pod: &&PodId| snapshot.bound_node(pod) == Some(self.node) && !stays(pod);
        self.requests(self.preemptor).iter().enumerate().filter(|(_, want)| **want > 0).all(|(index, want)| {
            let freed: i64 = self.victims.iter().filter(is_gone).map(|&pod| self.requests(pod)[index]).sum();
            snapshot.used(self.node)[index] + want - freed <= snapshot.allocatable(self.node)[index]
        })
    }

    /// The running pods of a gang, if it is kept whole.
    fn gang(&self, pod: PodId) -> Vec<PodId> {
        let snapshot = &self.loaded.snapshot;
        let Some(group) = snapshot.pod(pod).group.filter(|_| self.settings.whole_gangs) else { return Vec::new() };
        let runs = |pod: &PodId| snapshot.pod(*pod).node.is_some() && snapshot.pod(*pod).terminating.is_none();
        let running: Vec<PodId> = snapshot.group(group).members.iter().copied().filter(runs).collect();
        let is_broken = running.len() < snapshot.group(group).min_count;
        if is_broken && snapshot.group(group).mode == DisruptionMode::Single { Vec::new() } else { running }
    }

    /// A gang that would fall below its minimum goes as a whole. Pods on other nodes go only with it.
    fn gangs_are_whole_and_other_victims_on_one_node(&self) {
        let snapshot = &self.loaded.snapshot;
        for &victim in &self.victims {
            let gang = self.gang(victim);
            let taken = gang.iter().filter(|pod| self.victims.contains(pod)).count();
            let is_whole = taken == gang.len();
            if let Some(group) = snapshot.pod(victim).group.filter(|_| !gang.is_empty()) {
                let group = snapshot.group(group);
                let may_lose = group.mode == DisruptionMode::Single && gang.len() - taken >= group.min_count;
                assert!(is_whole || may_lose, "seed {}: half a gang", self.seed);
            }
            let is_elsewhere = snapshot.bound_node(victim) != Some(self.node);
            let may_be_elsewhere = self.settings.follows_code || is_whole && !gang.is_empty();
            assert!(!is_elsewhere || may_be_elsewhere, "seed {}: a victim on another node", self.seed);
        }
    }

    /// The preemptor does not fit if a victim stays, or the gang with which the victim goes.
    fn needs_every_victim(&self) {
        for &victim in &self.victims {
            let gang = self.gang(victim);
            let stays = |pod: PodId| pod == victim || gang.contains(&pod);
            assert!(!self.has_room(stays) || !self.exceeds_no_limit(stays), "seed {}: a spare victim", self.seed);
        }
    }

    /// The queue is under its guarantee before the request: it is above it in no requested type, and below it in one.
    fn queue_is_under_its_guarantee(&self) {
        let queues = self.loaded.snapshot.queues();
        let is_guaranteed = |id: &QueueId| queues.get(*id).guarantee.iter().any(|&amount| amount != UNDEFINED);
        let queue = queues.path(self.own).find(is_guaranteed).expect("a queue has a guarantee");
        let wants = self.requests(self.preemptor).iter().enumerate().filter(|(_, want)| **want > 0);
        let guaranteed = wants.map(|(index, _)| (index, queues.get(queue).guarantee[index]));
        let left: Vec<i64> = guaranteed
            .filter(|(_, guarantee)| *guarantee != UNDEFINED)
            .map(|(index, guarantee)| guarantee - self.used_of_guarantee(queue, index))
            .collect();
        assert!(left.iter().all(|&left| left >= 0) && left.iter().any(|&left| left > 0), "seed {}", self.seed);
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
    let mut plans = [0, 0];
    for seed in SEEDS {
        let (mut loaded, question) = Case::new(seed).load();
        let Outcome::Preempt(plan) = question.decide(&mut loaded) else { continue };
        let PreemptorId::Pod(preemptor) = question.preemptor else { panic!("only pods are preemptors") };
        let plan = CheckedPlan::new(seed, &loaded, &question.policy, preemptor, &plan);
        let (is_daemon, follows_code) = (loaded.snapshot.pod(preemptor).daemon, plan.settings.follows_code);
        plan.victims_are_no_daemons_and_not_terminating();
        plan.limits_hold();
        plan.gangs_are_whole_and_other_victims_on_one_node();
        if !is_daemon || !follows_code {
            plan.needs_every_victim();
        }
        if !is_daemon {
            plan.guarantees_hold();
            plan.fence_holds();
            plan.victims_are_of_other_queues_and_applications();
        }
        if !is_daemon && !follows_code {
            plan.queue_is_under_its_guarantee();
        }
        plans[usize::from(follows_code)] += 1;
    }
    assert!(plans.iter().all(|&plans| plans > 15), "only {plans:?} plans");
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
