//! Replays Kueue cycles: an admitted workload holds its quota from the next cycle on; a preempted workload is pending again, with its age.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use reprieve_api::kueue::{AdmissionSpec, KueueWorkload, KueueWorkloadStatus, PodSetAssignment};
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::TestSpec;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{Assignment, CycleResult, run_cycle};
use reprieve_engine::{Outcome, WorkloadId};
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::policy;

const CYCLE: SignedDuration = SignedDuration::from_secs(60);

pub struct Replay {
    objects: ObjectSet,
    spec: TestSpec,
    now: Timestamp,
    /// The number of preemptions.
    pub preemptions: usize,
}

impl Replay {
    /// Starts with the objects of a PreemptionTest file, after all evicted workloads have ended.
    pub fn new(text: &str) -> Self {
        let mut objects = ObjectSet::default();
        let mut test = None;
        for document in documents("replay", text) {
            let read = document.read(&mut objects).expect("the file can be read");
            test = test.or(read.map(|sourced| sourced.object));
        }
        let spec = test.expect("the first document is the test").spec.clone();
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        let mut replay = Self { objects, spec, now, preemptions: 0 };
        for workload in &mut replay.objects.kueue_workloads {
            let conditions = workload.object.status.iter().flat_map(|status| &status.conditions);
            if conditions.into_iter().any(|condition| condition.type_ == "Evicted") {
                Arc::make_mut(&mut workload.object).status = None;
            }
        }
        replay
    }

    /// Adds a pending copy of every third admitted workload.
    pub fn add_pending_copies(&mut self) {
        let admitted = self.objects.kueue_workloads.iter().filter(|workload| is_admitted(&workload.object));
        let copies: Vec<_> = admitted.step_by(3).cloned().collect();
        for mut copy in copies {
            let workload = Arc::make_mut(&mut copy.object);
            workload.metadata.name = workload.metadata.name.as_ref().map(|name| format!("{name}-too"));
            workload.metadata.uid = None;
            workload.status = None;
            self.objects.kueue_workloads.push(copy);
        }
    }

    /// Whether a cycle changes nothing, within three cycles per workload plus ten.
    pub fn reaches_a_fixed_point(&mut self) -> bool {
        let bound = 3 * self.objects.kueue_workloads.len() + 10;
        (0..bound).any(|_| !self.cycle())
    }

    /// The names of the admitted workloads.
    pub fn admitted(&self) -> Vec<String> {
        let admitted = self.objects.kueue_workloads.iter().filter(|workload| is_admitted(&workload.object));
        let mut names: Vec<String> = admitted.filter_map(|workload| workload.object.metadata.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Runs one cycle and returns whether it changed anything.
    fn cycle(&mut self) -> bool {
        self.now += CYCLE;
        let loaded = load(&self.objects, OnInvalid::Reject).expect("the objects are valid");
        let Ok(Policy::Kueue(policy)) = policy(&self.spec.profile) else {
            panic!("the policy is Kueue");
        };
        let now = reprieve_engine::Timestamp(self.now.as_microsecond());
        let pending: Vec<WorkloadId> = loaded.snapshot.workload_ids().collect();
        let mut changed = false;
        for considered in run_cycle(&loaded.snapshot, &policy, &pending, now) {
            match (considered.result, considered.assignment) {
                (CycleResult::Decided(Outcome::Schedule(_)), Some(given)) => {
                    self.admit(&loaded, considered.workload, &given)
                }
                (CycleResult::Decided(Outcome::Preempt(plan)), _) => {
                    self.preemptions += 1;
                    for victim in plan.victims.iter().filter_map(|&unit| loaded.snapshot.unit(unit).workload) {
                        self.workload(loaded.names.workload(victim)).status = None;
                    }
                }
                (CycleResult::Decided(_) | CycleResult::Skipped(_), _) => continue,
            }
            changed = true;
        }
        changed
    }

    fn admit(&mut self, loaded: &Loaded, id: WorkloadId, given: &Assignment) {
        let queue = loaded.snapshot.workload(id).queue.expect("the workload is in a queue");
        let assignment = |(index, set): (usize, &reprieve_engine::policy::kueue::PodSetAssignment)| {
            let name = |resource| loaded.names.quota_resource(resource).to_owned();
            let flavor = |id| loaded.names.flavor(id).to_owned();
            PodSetAssignment {
                name: loaded.names.pod_sets(id)[index].clone(),
                flavors: set
                    .resources
                    .iter()
                    .map(|assigned| (name(assigned.resource), flavor(assigned.flavor)))
                    .collect(),
                resource_usage: set
                    .resources
                    .iter()
                    .map(|assigned| (name(assigned.resource), quantity(&name(assigned.resource), assigned.amount)))
                    .collect::<BTreeMap<_, _>>(),
                count: Some(set.count),
            }
        };
        let admission = AdmissionSpec {
            cluster_queue: loaded.names.queue(queue).to_owned(),
            pod_set_assignments: given.pod_sets.iter().enumerate().map(assignment).collect(),
        };
        let reserved = Condition {
            type_: "QuotaReserved".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Time(self.now),
            reason: "QuotaReserved".to_owned(),
            message: String::new(),
            observed_generation: None,
        };
        self.workload(loaded.names.workload(id)).status =
            Some(KueueWorkloadStatus { admission: Some(admission), conditions: vec![reserved], ..Default::default() });
    }

    fn workload(&mut self, name: &NamespacedName) -> &mut KueueWorkload {
        let mut workloads = self.objects.kueue_workloads.iter_mut().map(|workload| &mut workload.object);
        Arc::make_mut(
            workloads
                .find(|workload| NamespacedName::from_meta(&workload.metadata) == *name)
                .expect("the workload exists"),
        )
    }
}

fn quantity(resource: &str, amount: i64) -> serde_json::Value {
    if resource == "cpu" { format!("{amount}m").into() } else { amount.to_string().into() }
}

fn is_admitted(workload: &KueueWorkload) -> bool {
    workload.status.as_ref().is_some_and(|status| status.admission.is_some())
}
