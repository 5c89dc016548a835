//! Replays a cluster over many rounds. In each round every pending pod is decided in order of creation: a pod that fits is bound; a victim is
//! recreated as a pending pod of the same name, and its preemptor is bound. The clock advances by more than any delay.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::Pod;
use reprieve_api::read::documents;
use reprieve_api::test_file::{PreemptorRef, Profile, TestSpec};
use reprieve_engine::Outcome;
use reprieve_loader::build::{Loaded, OnInvalid, load_for};
use reprieve_loader::policy::{Question, policy};

/// Longer than any queue's delay.
const ROUND: SignedDuration = SignedDuration::from_secs(600);

pub struct Replay {
    objects: ObjectSet,
    profile: Profile,
    now: Timestamp,
    /// The number of preemptions.
    pub preemptions: usize,
}

impl Replay {
    /// Starts with the objects of a PreemptionTest file, without terminating pods.
    pub fn new(text: &str) -> Self {
        let mut objects = ObjectSet::default();
        let mut profile = Profile::default();
        for document in documents("replay", text) {
            if let Some(test) = document.read(&mut objects).expect("the file can be read") {
                profile = test.object.spec.profile.clone();
            }
        }
        objects.pods.retain(|pod| pod.object.metadata.deletion_timestamp.is_none());
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        Self { objects, profile, now, preemptions: 0 }
    }

    /// Adds a pending copy of every third running pod.
    pub fn add_pending_copies(&mut self) {
        let replicas: Vec<_> =
            self.objects.pods.iter().filter(|pod| is_bound(&pod.object)).step_by(3).cloned().collect();
        for mut replica in replicas {
            let pod = Arc::make_mut(&mut replica.object);
            pod.metadata.name = pod.metadata.name.as_ref().map(|name| format!("{name}-too"));
            pod.metadata.owner_references = None;
            self.objects.pods.push(replica);
            let name = NamespacedName::from_meta(&self.objects.pods[self.objects.pods.len() - 1].object.metadata);
            self.recreate(&name);
        }
    }

    /// Whether a round changes nothing, within three rounds per pod plus ten.
    pub fn reaches_a_fixed_point(&mut self) -> bool {
        let bound = 3 * self.objects.pods.len() + 10;
        (0..bound).any(|_| !self.round())
    }

    /// The names of the running pods.
    pub fn running(&self) -> Vec<String> {
        let running = self.objects.pods.iter().filter(|pod| is_bound(&pod.object));
        let mut names: Vec<String> = running.filter_map(|pod| pod.object.metadata.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Decides for every pending pod and returns whether anything changed.
    fn round(&mut self) -> bool {
        self.now += ROUND;
        let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let mut pending: Vec<_> = self
            .objects
            .pods
            .iter()
            .filter(|pod| !is_bound(&pod.object))
            .map(|pod| (created(&pod.object), NamespacedName::from_meta(&pod.object.metadata)))
            .collect();
        pending.sort_unstable();
        let mut changed = false;
        for (_, name) in pending {
            changed |= self.decide_for(&name);
        }
        changed
    }

    fn decide_for(&mut self, name: &NamespacedName) -> bool {
        let policy = policy(&self.profile).expect("the profile is valid");
        let mut loaded = load_for(&self.objects, OnInvalid::Reject, &policy).expect("the objects are valid");
        let preemptor =
            PreemptorRef { kind: "Pod".to_owned(), namespace: name.namespace.clone(), name: name.name.clone() };
        let profile = self.profile.clone();
        let spec = TestSpec { now: Some(self.now.to_string()), profile, preemptor, expect: None };
        let question = Question::new(&spec, &loaded).expect("the pod is pending");
        let outcome = question.decide(&mut loaded);
        match &outcome {
            Outcome::Schedule(placement) => self.bind(&loaded, placement),
            Outcome::Preempt(plan) => {
                self.preemptions += 1;
                for &victim in plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods) {
                    self.recreate(loaded.names.pod(victim));
                }
                self.bind(&loaded, &plan.placement);
            }
            // As under the scheduler, a pod that is refused gives up its nomination.
            Outcome::Unschedulable(_) => {
                return self.pod(name).status.as_mut().expect("a status").nominated_node_name.take().is_some();
            }
            Outcome::Wait(_) => return false,
        }
        true
    }

    fn bind(&mut self, loaded: &Loaded, placement: &[(reprieve_engine::PodId, reprieve_engine::NodeId)]) {
        for &(pod, node) in placement {
            let node = loaded.names.node(node).to_owned();
            let pod = self.pod(loaded.names.pod(pod));
            pod.node_name = Some(node);
            let status = pod.status.as_mut().expect("a status");
            (status.phase, status.nominated_node_name) = (Some("Running".to_owned()), None);
        }
    }

    fn recreate(&mut self, name: &NamespacedName) {
        let now = self.now;
        let pod = self.pod(name);
        pod.metadata.creation_timestamp = Some(Time(now));
        pod.node_name = None;
        pod.status.as_mut().expect("a status").phase = Some("Pending".to_owned());
    }

    fn pod(&mut self, name: &NamespacedName) -> &mut Pod {
        let mut pods = self.objects.pods.iter_mut().map(|pod| &mut pod.object);
        Arc::make_mut(pods.find(|pod| NamespacedName::from_meta(&pod.metadata) == *name).expect("the pod exists"))
    }
}

fn is_bound(pod: &Pod) -> bool {
    pod.node_name.is_some()
}
