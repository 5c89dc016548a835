//! Properties of every decision under policy Koordinator, on random clusters. A seed that fails becomes a case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::answer::Answer;
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::Pod as ApiPod;
use reprieve_api::read::documents;
use reprieve_api::test_file::{OutcomeName, TestSpec};
use reprieve_engine::queues::UNDEFINED;
use reprieve_engine::{NodeId, Outcome, PodId, QueueId};
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};
use reprieve_loader::time::parse_time;
use reprieve_report::answer::named;
use reprieve_testkit::random_jobs::{NOW, Options, cluster};

const SEEDS: u64 = 1_000;

const JOB: &str = "pod-group.scheduling.sigs.k8s.io";
const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
const DISABLE_PREEMPTIBLE: &str = "scheduling.koordinator.sh/disable-preemptible";

#[test]
fn properties_hold() {
    let mut outcomes: BTreeMap<OutcomeName, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let text = cluster(seed, &Options::EVERYTHING);
        assert_eq!(text, cluster(seed, &Options::EVERYTHING), "seed {seed} gives the same cluster twice");
        let (spec, objects) = read(&text);
        let mut decided = Decided::new(seed, spec, objects);
        decided.changes_nothing();
        decided.does_not_depend_on_the_order_of_objects();
        decided.places_all_members_or_evicts_no_pod();
        decided.evicts_only_lawful_victims();
        decided.keeps_every_limit();
        decided.overfills_no_node();
        decided.needs_every_victim();
        decided.keeps_gangs_whole();
        decided.does_not_preempt_again_while_victims_terminate();
        decided.fits_after_the_victims_have_ended();
        *outcomes.entry(decided.answer.outcome).or_default() += 1;
    }
    for (outcome, least) in [
        (OutcomeName::Preempt, SEEDS / 5),
        (OutcomeName::Schedule, SEEDS / 50),
        (OutcomeName::Wait, SEEDS / 100),
        (OutcomeName::Unschedulable, SEEDS / 10),
    ] {
        let seen = outcomes.get(&outcome).copied().unwrap_or_default();
        assert!(seen as u64 >= least, "too few {outcome:?}: {outcomes:?}");
    }
}

/// A question with its decision.
struct Decided {
    seed: u64,
    spec: TestSpec,
    objects: ObjectSet,
    loaded: Loaded,
    question: Question,
    before: reprieve_engine::snapshot::Snapshot,
    outcome: Outcome,
    answer: Answer,
}

impl Decided {
    fn new(seed: u64, spec: TestSpec, objects: ObjectSet) -> Self {
        let policy = policy(&spec.profile).expect("the profile is valid");
        let loaded = load_for(&objects, OnInvalid::Reject, &policy);
        let mut loaded = loaded.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let question = Question::new(&spec, &loaded).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let before = loaded.snapshot.clone();
        let outcome = question.decide(&mut loaded);
        let answer = named(&loaded, &question.preemptor(&loaded).members, &outcome);
        Self { seed, spec, objects, loaded, question, before, outcome, answer }
    }

    fn victims(&self) -> BTreeSet<&str> {
        self.answer.victims.iter().filter_map(|victim| victim.pod.as_deref()).collect()
    }

    fn pod_id(&self, name: &str) -> PodId {
        let (namespace, name) = name.split_once('/').expect("a pod has a namespace");
        self.loaded.names.pod_id(&NamespacedName::new(namespace, name)).expect("the pod exists")
    }

    fn pods(&self) -> impl Iterator<Item = (String, &ApiPod)> {
        self.objects
            .pods
            .iter()
            .map(|sourced| (NamespacedName::from_meta(&sourced.object.metadata).to_string(), &*sourced.object))
    }

    fn preemptor(&self) -> &ApiPod {
        let name = self.spec.preemptor.full_name().to_string();
        self.pods().find(|(pod, _)| *pod == name).expect("the preemptor exists").1
    }

    /// The preemptor and all pending pods of its job, without those with scheduling gates or of another scheduler.
    fn members(&self) -> BTreeSet<String> {
        let job = label(self.preemptor(), JOB);
        let takes_part = |pod: &ApiPod| {
            let spec = pod.spec.as_ref();
            spec.is_some_and(|spec| spec.scheduling_gates.is_none() && spec.scheduler_name.is_none())
        };
        let is_member = |pod: &ApiPod| {
            std::ptr::eq(pod, self.preemptor()) || job.is_some() && label(pod, JOB) == job && takes_part(pod)
        };
        self.pods().filter(|(_, pod)| is_member(pod) && node_of(pod).is_none()).map(|(name, _)| name).collect()
    }

    /// Neither deciding nor explaining changes the snapshot.
    fn changes_nothing(&mut self) {
        assert!(self.loaded.snapshot == self.before, "seed {}: deciding changed the snapshot", self.seed);
        let (decision, _) = self.question.decide_and_explain(&mut self.loaded);
        assert_eq!(decision.outcome, self.outcome, "seed {}: explaining changed the outcome", self.seed);
        assert!(self.loaded.snapshot == self.before, "seed {}: explaining changed the snapshot", self.seed);
    }

    fn does_not_depend_on_the_order_of_objects(&self) {
        let mut objects = self.objects.clone();
        objects.nodes.reverse();
        objects.pods.reverse();
        objects.elastic_quotas.reverse();
        objects.koordinator_pod_groups.reverse();
        let reversed = Self::new(self.seed, self.spec.clone(), objects);
        assert_eq!(reversed.answer, self.answer, "seed {}: the order of the objects matters", self.seed);
    }

    fn places_all_members_or_evicts_no_pod(&self) {
        let placed: BTreeSet<String> = self.answer.nominated.keys().cloned().collect();
        match self.answer.outcome {
            OutcomeName::Preempt | OutcomeName::Schedule => {
                assert_eq!(placed, self.members(), "seed {}: the job is placed in part", self.seed);
            }
            OutcomeName::Wait | OutcomeName::Unschedulable => {}
        }
        let preempts = self.answer.outcome == OutcomeName::Preempt;
        assert_eq!(preempts, !self.answer.victims.is_empty(), "seed {}: {:?}", self.seed, self.answer);
    }

    /// Checked on the objects: victims have lower priority, are preemptible, and are not of the same job.
    fn evicts_only_lawful_victims(&self) {
        let default = self.spec.profile.args.get("disableDefaultPreemptible").is_none();
        let preemptor = self.preemptor();
        for (name, pod) in self.pods().filter(|(name, _)| self.victims().contains(name.as_str())) {
            let preemptible = label(pod, PREEMPTIBLE).map_or(default, |word| word != "false");
            let disabled = label(pod, DISABLE_PREEMPTIBLE) == Some("true");
            let same_job = label(pod, JOB).is_some() && label(pod, JOB) == label(preemptor, JOB);
            assert!(preemptible && !disabled && !same_job, "seed {}: {name} must not be evicted", self.seed);
            assert!(priority(pod) < priority(preemptor), "seed {}: {name} is not lower", self.seed);
        }
    }

    /// The first limit on the path of the preemptor's quota that is exceeded with the job in place and without these pods.
    fn first_exceeded_limit(&self, evicted: &BTreeSet<&str>) -> Option<(QueueId, usize)> {
        let snapshot = &self.loaded.snapshot;
        let own = snapshot.pod(self.pod_id(&self.spec.preemptor.full_name().to_string())).queue?;
        let mut requested = vec![0; snapshot.resource_ids().len()];
        for member in self.answer.nominated.keys() {
            self.add_requests(&mut requested, member, 1);
        }
        snapshot.queues().path(own).find_map(|queue| {
            let used = self.used_without(queue, evicted);
            let limit = &snapshot.queues().get(queue).limit;
            // In the quotas above its own, only the resources that the job requests count.
            let exceeded = |&index: &usize| {
                let counts = queue == own || requested[index] > 0;
                counts && limit[index] != UNDEFINED && used[index] + requested[index] > limit[index]
            };
            (0..requested.len()).find(exceeded).map(|index| (queue, index))
        })
    }

    /// What the pods of a quota use without the evicted ones; the nominated pods of other jobs use it, too.
    fn used_without(&self, queue: QueueId, evicted: &BTreeSet<&str>) -> Vec<i64> {
        let snapshot = &self.loaded.snapshot;
        let is_below = |name: &str| {
            let own = snapshot.pod(self.pod_id(name)).queue;
            own.is_some_and(|id| snapshot.queues().path(id).any(|above| above == queue))
        };
        let mut used = snapshot.queues().used(queue).to_vec();
        for pod in evicted.iter().filter(|pod| is_below(pod)) {
            self.add_requests(&mut used, pod, -1);
        }
        for (name, pod) in self.pods() {
            let state = snapshot.pod(self.pod_id(&name));
            let holds_quota = node_of(pod).is_none() && state.nominated.is_some() && state.terminating.is_none();
            if holds_quota && !self.members().contains(&name) && is_below(&name) {
                self.add_requests(&mut used, &name, 1);
            }
        }
        used
    }

    fn add_requests(&self, sum: &mut [i64], pod: &str, sign: i64) {
        let snapshot = &self.loaded.snapshot;
        for (sum, request) in sum.iter_mut().zip(snapshot.requests(snapshot.pod(self.pod_id(pod)).shape)) {
            *sum += sign * request;
        }
    }

    /// A preemption leaves no quota above its max. Without a preemption a quota may exceed it, because the use of non-preemptible pods beyond their
    /// min does not count.
    fn keeps_every_limit(&self) {
        if self.answer.outcome == OutcomeName::Preempt {
            let exceeded = self.first_exceeded_limit(&self.victims());
            let exceeded = exceeded.map(|(queue, resource)| (self.loaded.names.queue(queue), resource));
            assert_eq!(exceeded, None, "seed {}: {:?}", self.seed, self.answer);
        }
    }

    /// The first node whose capacity is exceeded in a resource that the members request.
    fn first_overfull_node(&self, evicted: &BTreeSet<&str>) -> Option<NodeId> {
        let snapshot = &self.loaded.snapshot;
        snapshot.node_ids().find(|&node| {
            let name = self.loaded.names.node(node);
            let mut arriving = vec![0; snapshot.resource_ids().len()];
            for (member, _) in self.answer.nominated.iter().filter(|(_, node)| *node == name) {
                self.add_requests(&mut arriving, member, 1);
            }
            let mut used = snapshot.used(node).to_vec();
            for &pod in evicted.iter().filter(|pod| snapshot.bound_node(self.pod_id(pod)) == Some(node)) {
                self.add_requests(&mut used, pod, -1);
            }
            for (nominee, _) in self.pods().filter(|(pod, object)| self.is_competing_nominee(pod, object, name)) {
                self.add_requests(&mut used, &nominee, 1);
            }
            let offered = snapshot.allocatable(node);
            (0..used.len()).any(|index| arriving[index] > 0 && used[index] + arriving[index] > offered[index])
        })
    }

    /// Whether a pending pod that is not a member is nominated to the node and has at least the preemptor's priority.
    fn is_competing_nominee(&self, name: &str, pod: &ApiPod, node: &str) -> bool {
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
        let waits = node_of(pod).is_none() && nominated == Some(node);
        waits && priority(pod) >= priority(self.preemptor()) && !self.members().contains(name)
    }

    fn overfills_no_node(&self) {
        if self.answer.outcome == OutcomeName::Wait {
            return;
        }
        let overfull = self.first_overfull_node(&self.victims()).map(|node| self.loaded.names.node(node));
        assert_eq!(overfull, None, "seed {}: {:?}", self.seed, self.answer);
    }

    /// Without any one of the victims, the job would not fit or a limit would be exceeded.
    fn needs_every_victim(&self) {
        let victims = self.victims();
        for victim in &victims {
            let mut others = victims.clone();
            others.remove(victim);
            let needed = self.first_overfull_node(&others).is_some()
                || self.first_limit_exceeded_by(victim, &others).is_some()
                || self.falls_below_its_minimum(victim, &others);
            assert!(needed, "seed {}: {victim} is not needed in {:?}", self.seed, self.answer);
        }
    }

    /// Whether the running job of a pod has fewer pods than it needs, but some, without the evicted ones.
    fn falls_below_its_minimum(&self, pod: &str, evicted: &BTreeSet<&str>) -> bool {
        let snapshot = &self.loaded.snapshot;
        let Some(job) = snapshot.pod(self.pod_id(pod)).job.map(|job| snapshot.job(job)) else { return false };
        let ends = |id: &PodId| {
            let terminating = snapshot.pod(*id).terminating;
            terminating.is_some_and(|terminating| !terminating.by_preemption)
        };
        let running = job.members.iter().filter(|&&id| snapshot.bound_node(id).is_some() && !ends(&id));
        let name = |id: PodId| self.loaded.names.pod(id).to_string();
        let running: Vec<String> = running.map(|&id| name(id)).collect();
        let remaining = running.iter().filter(|name| !evicted.contains(name.as_str())).count();
        running.len() >= job.min_member && (1..job.min_member).contains(&remaining)
    }

    /// No running job loses some of its pods and keeps fewer than it needs.
    fn keeps_gangs_whole(&self) {
        let victims = self.victims();
        for victim in &victims {
            let broken = self.falls_below_its_minimum(victim, &victims);
            assert!(!broken, "seed {}: the job of {victim} is taken apart: {:?}", self.seed, self.answer);
        }
    }

    /// The first limit on the path of the preemptor's quota that a reprieve of the victim would exceed.
    fn first_limit_exceeded_by(&self, victim: &str, evicted: &BTreeSet<&str>) -> Option<QueueId> {
        let snapshot = &self.loaded.snapshot;
        let own = snapshot.pod(self.pod_id(&self.spec.preemptor.full_name().to_string())).queue?;
        let victim_queue = snapshot.pod(self.pod_id(victim)).queue?;
        let mut requested = vec![0; snapshot.resource_ids().len()];
        self.add_requests(&mut requested, victim, 1);
        snapshot
            .queues()
            .path(own)
            .filter(|&queue| snapshot.queues().path(victim_queue).any(|above| above == queue))
            .find(|&queue| {
                let mut used = self.used_without(queue, evicted);
                for member in self.answer.nominated.keys() {
                    self.add_requests(&mut used, member, 1);
                }
                let limit = &snapshot.queues().get(queue).limit;
                (0..used.len())
                    .any(|index| requested[index] > 0 && limit[index] != UNDEFINED && used[index] > limit[index])
            })
    }

    /// The cluster after the plan: the members are nominated, and `change` is applied to each victim.
    fn after(&self, mut change: impl FnMut(&mut ApiPod)) -> ObjectSet {
        let victims = self.victims();
        let mut objects = self.objects.clone();
        for sourced in &mut objects.pods {
            let name = NamespacedName::from_meta(&sourced.object.metadata).to_string();
            if victims.contains(name.as_str()) {
                change(Arc::make_mut(&mut sourced.object));
            }
            if let Some(node) = self.answer.nominated.get(&name) {
                let pod = Arc::make_mut(&mut sourced.object);
                pod.status.get_or_insert_default().nominated_node_name = Some(node.clone());
            }
        }
        objects
    }

    /// While its victims terminate, the preemptor waits or is scheduled, and no further pod is evicted. A plan whose victims are all on other nodes is
    /// found again unchanged.
    fn does_not_preempt_again_while_victims_terminate(&self) {
        if self.answer.outcome != OutcomeName::Preempt {
            return;
        }
        let terminating = self.after(|pod| {
            pod.metadata.deletion_timestamp = Some(Time(parse_time(NOW).expect("a time")));
            let status = pod.status.get_or_insert_default();
            status.conditions = Some(vec![PodCondition {
                type_: "DisruptionTarget".to_owned(),
                status: "True".to_owned(),
                reason: Some("PreemptionByScheduler".to_owned()),
                ..PodCondition::default()
            }]);
        });
        let again = Self::new(self.seed, self.spec.clone(), terminating);
        let victim_nodes: BTreeSet<Option<&str>> =
            self.pods().filter(|(pod, _)| self.victims().contains(pod.as_str())).map(|(_, pod)| node_of(pod)).collect();
        let nominated: BTreeSet<Option<&str>> =
            self.answer.nominated.values().map(|node| Some(node.as_str())).collect();
        match again.answer.outcome {
            OutcomeName::Wait | OutcomeName::Schedule => {}
            OutcomeName::Preempt if victim_nodes.is_disjoint(&nominated) => {
                assert_eq!(
                    again.answer.victims, self.answer.victims,
                    "seed {}: other victims in a second preemption",
                    self.seed
                );
            }
            OutcomeName::Preempt | OutcomeName::Unschedulable => {
                panic!("seed {}: {:?} while {:?} is in progress", self.seed, again.answer, self.answer)
            }
        }
    }

    /// After the victims have ended, the job is scheduled.
    fn fits_after_the_victims_have_ended(&self) {
        if self.answer.outcome != OutcomeName::Preempt {
            return;
        }
        let ended = self.after(|pod| pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned()));
        let then = Self::new(self.seed, self.spec.clone(), ended);
        let outcome = then.answer.outcome;
        assert_eq!(outcome, OutcomeName::Schedule, "seed {}: after {:?}", self.seed, self.answer);
    }
}

fn label<'p>(pod: &'p ApiPod, key: &str) -> Option<&'p str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn priority(pod: &ApiPod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}

fn node_of(pod: &ApiPod) -> Option<&str> {
    pod.node_name.as_deref()
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
