//! The job controller: creates the pods of submitted jobs, recreates pods that were deleted early, and removes finished ones. Under policy
//! Kueue it is the controller of `batch/v1` Jobs, which have no pods while they are suspended.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{Job as BatchJob, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::{Policy, Timestamp};
use reprieve_loader::time::time;
use reprieve_scheduler::UnitRef;

use super::run_config::SCHEDULER;
use super::sim_event::{RESTART_MICROS, SimEvent};
use crate::api::Api;
use crate::job::Job;
use crate::run::Gang;
use crate::submission::Submission;
use crate::timeline::Timeline;

/// The time between a change and the reaction of the controller.
const SYNC_MICROS: i64 = 100_000;
/// The time between the end of a Job and its removal.
const COLLECT_MICROS: i64 = 60_000_000;

pub(super) struct JobController {
    policy: Policy,
    pub jobs: Vec<Job>,
    /// The job of each pod, and the part of the job.
    owners: BTreeMap<NamespacedName, (usize, usize)>,
    /// The index of each job, by name.
    names: BTreeMap<NamespacedName, usize>,
    /// The jobs with a pending [`SimEvent::Sync`].
    syncing: BTreeSet<usize>,
}

/// The fields that a pod inherits from its `batch/v1` Job.
struct Template {
    owner: OwnerReference,
    /// The node selector and the tolerations; `None` if the pod keeps those of its submission.
    placement: Option<Placement>,
}

struct Placement {
    node_selector: Option<BTreeMap<String, String>>,
    tolerations: Option<Vec<Toleration>>,
}

impl Template {
    fn apply(&self, pod: &mut Pod) {
        pod.metadata.owner_references = Some(vec![self.owner.clone()]);
        if let Some(Placement { node_selector, tolerations }) = &self.placement {
            let spec = pod.spec_mut();
            spec.node_selector.clone_from(node_selector);
            spec.tolerations.clone_from(tolerations);
        }
    }
}

/// The reference of a pod to its Job.
fn owned_by(name: String, uid: String) -> OwnerReference {
    OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name,
        uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

impl JobController {
    pub fn new(policy: Policy) -> Self {
        Self { policy, jobs: Vec::new(), owners: BTreeMap::new(), names: BTreeMap::new(), syncing: BTreeSet::new() }
    }

    pub fn submit(&mut self, submission: Submission, api: &mut Api, now: Timestamp) {
        if let Some(group) = submission.group(&self.policy) {
            api.create(group, now);
        }
        let object = submission.job(&self.policy, SCHEDULER);
        let job = Job::new(submission);
        let (index, parts) = (self.jobs.len(), job.parts.len());
        self.names.entry(job.submission.name.clone()).or_insert(index);
        self.jobs.push(job);
        if let Some(object) = object {
            api.create(object, now);
            return;
        }
        for part in 0..parts {
            self.create_pods(api, index, part, now);
        }
    }

    /// Creates the pods of a part, initially or again.
    pub fn create_pods(&mut self, api: &mut Api, job: usize, part: usize, now: Timestamp) {
        let members = self.jobs[job].members(part);
        let Some(template) = self.template(api, job, part) else { return };
        let Job { submission, parts, .. } = &mut self.jobs[job];
        let state = &mut parts[part];
        state.interrupted = false;
        for member in members {
            let mut pod = submission.pod(&self.policy, SCHEDULER, member, state.generation);
            template.apply(&mut pod);
            let name = NamespacedName::from_meta(&pod.metadata);
            state.pods.insert(name.clone(), false);
            self.owners.insert(name, (job, part));
            api.create(Object::from(pod), now);
        }
        state.generation += 1;
    }

    /// The template for the pods of a part; `None` if the Job is suspended or the pods exist.
    fn template(&self, api: &Api, job: usize, part: usize) -> Option<Template> {
        let job = &self.jobs[job];
        if !self.has_batch_jobs() {
            // The virtual cluster has no object for such a job.
            let name = &job.submission.name;
            return Some(Template { owner: owned_by(name.name.clone(), format!("job {name}")), placement: None });
        }
        let object = batch_job(api, &job.submission.name)?;
        let spec = object.spec.as_ref()?;
        if spec.suspend == Some(true) || !job.parts[part].pods.is_empty() {
            return None;
        }
        let pod = spec.template.spec.as_ref();
        let placement = Placement {
            node_selector: pod.and_then(|pod| pod.node_selector.clone()),
            tolerations: pod.and_then(|pod| pod.tolerations.clone()),
        };
        let owner = owned_by(object.metadata.name.clone()?, object.metadata.uid.clone()?);
        Some(Template { owner, placement: Some(placement) })
    }

    fn has_batch_jobs(&self) -> bool {
        matches!(self.policy, Policy::Kueue(_))
    }

    /// The job of a pod, and the part of the job.
    pub fn owner(&mut self, pod: &NamespacedName) -> Option<(&mut Job, usize)> {
        let (job, part) = *self.owners.get(pod)?;
        Some((&mut self.jobs[job], part))
    }

    /// The job of a pod of a gang.
    pub fn gang_of(&self, pod: &NamespacedName) -> Option<(usize, Gang)> {
        let (job, _) = *self.owners.get(pod)?;
        Some((job, self.jobs.get(job)?.submission.gang?))
    }

    /// The job of a unit, and the part of the job.
    pub fn part_of(&self, api: &Api, unit: &UnitRef) -> Option<(usize, usize)> {
        match unit {
            UnitRef::Pod(pod) => self.owners.get(pod).copied(),
            UnitRef::Group(name) | UnitRef::Job(name) | UnitRef::BatchJob(name) => {
                self.names.get(name).map(|job| (*job, 0))
            }
            UnitRef::Workload(name) => self.of_workload(api, name).map(|job| (job, 0)),
        }
    }

    /// The job of a workload.
    pub fn of_workload(&self, api: &Api, workload: &NamespacedName) -> Option<usize> {
        let object = api.get(&ObjectKey::new(Kind::KueueWorkload, workload.clone()))?;
        let owner = object.metadata().owner_references.as_ref()?.first()?;
        let name = NamespacedName::new(&workload.namespace, &owner.name);
        self.names.get(&name).copied()
    }

    /// Notes that a pod runs; if its part now runs, schedules the end of the part.
    pub fn started(&mut self, timeline: &mut Timeline<SimEvent>, pod: &NamespacedName) {
        let Some(&(job, part)) = self.owners.get(pod) else { return };
        if let Some(micros) = self.jobs[job].started(part, pod, timeline.now()) {
            let generation = self.jobs[job].parts[part].generation;
            timeline.add_after(micros.max(0), SimEvent::Finish { job, part, generation });
        }
    }

    /// Finishes a part, unless it was interrupted.
    pub fn finish_part(
        &mut self,
        api: &mut Api,
        timeline: &mut Timeline<SimEvent>,
        job: usize,
        part: usize,
        generation: u32,
    ) {
        let state = &mut self.jobs[job].parts[part];
        if state.generation != generation || state.interrupted || state.running_since.is_none() {
            return;
        }
        let pods: Vec<NamespacedName> = state.pods.keys().cloned().collect();
        self.jobs[job].finish(part, timeline.now());
        if self.has_batch_jobs() && self.jobs[job].is_done() {
            self.schedule_sync(timeline, job);
            timeline.add_after(COLLECT_MICROS, SimEvent::Collect(job));
        }
        for pod in &pods {
            api.change(pod, |pod| pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned()));
        }
        timeline.add_after(RESTART_MICROS, SimEvent::Sweep(pods));
    }

    /// Removes finished pods, and the group of a finished job.
    pub fn sweep(&mut self, api: &mut Api, pods: &[NamespacedName]) {
        for pod in pods {
            let owner = self.owners.remove(pod);
            api.remove(&ObjectKey::new(Kind::Pod, pod.clone()));
            if let Some((job, _)) = owner.filter(|(job, _)| self.jobs[*job].is_done())
                && let Some(group) = self.jobs[job].submission.group(&self.policy)
            {
                api.remove(&group.key());
            }
        }
    }

    /// After the deletion of a pod of an unfinished part: deletes the other pods of the part, then recreates all.
    pub fn pod_deleted(&mut self, api: &mut Api, timeline: &mut Timeline<SimEvent>, pod: &NamespacedName) {
        let now = timeline.now();
        let Some((index, part)) = self.owners.remove(pod) else { return };
        let job = &mut self.jobs[index];
        job.interrupt(part, now);
        let state = &mut job.parts[part];
        state.pods.remove(pod);
        if state.done {
            return;
        }
        if state.pods.is_empty() {
            timeline.add_after(RESTART_MICROS, SimEvent::RecreatePods { job: index, part });
            return;
        }
        for other in state.pods.keys() {
            api.delete(other, now);
        }
    }

    /// Schedules a sync after a change of a Job.
    pub fn sync_later(&mut self, timeline: &mut Timeline<SimEvent>, name: &NamespacedName) {
        if let Some(&job) = self.names.get(name) {
            self.schedule_sync(timeline, job);
        }
    }

    /// Schedules a sync after a change of a pod.
    pub fn sync_owner(&mut self, timeline: &mut Timeline<SimEvent>, pod: &NamespacedName) {
        if let Some(&(job, _)) = self.owners.get(pod) {
            self.schedule_sync(timeline, job);
        }
    }

    fn schedule_sync(&mut self, timeline: &mut Timeline<SimEvent>, job: usize) {
        if self.has_batch_jobs() && self.syncing.insert(job) {
            timeline.add_after(SYNC_MICROS, SimEvent::Sync(job));
        }
    }

    /// Creates the missing pods of a Job, or deletes the pods of a suspended one, and updates its status.
    pub fn sync(&mut self, api: &mut Api, job: usize, now: Timestamp) {
        self.syncing.remove(&job);
        let name = self.jobs[job].submission.name.clone();
        let Some(object) = batch_job(api, &name).cloned() else { return };
        let suspended = object.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        if suspended {
            for pod in self.jobs[job].parts.iter().flat_map(|part| part.pods.keys()) {
                api.delete(pod, now);
            }
        } else {
            for part in 0..self.jobs[job].parts.len() {
                if !self.jobs[job].parts[part].done {
                    self.create_pods(api, job, part, now);
                }
            }
        }
        let status = job_status(api, &self.jobs[job], &object, suspended, now);
        if object.status.as_ref() != Some(&status) {
            api.store(Object::from(BatchJob { status: Some(status), ..object }));
        }
    }

    /// Removes a finished Job and the objects that it owns.
    pub fn collect(&self, api: &mut Api, job: usize) {
        let name = self.jobs[job].submission.name.clone();
        let Some(uid) = batch_job(api, &name).and_then(|job| job.metadata.uid.clone()) else { return };
        let owned: Vec<ObjectKey> = api.owned_by(&uid).cloned().collect();
        api.remove(&ObjectKey::new(Kind::Job, name));
        for key in owned {
            api.remove(&key);
        }
    }
}

fn batch_job<'a>(api: &'a Api, name: &NamespacedName) -> Option<&'a BatchJob> {
    match api.get(&ObjectKey::new(Kind::Job, name.clone()))? {
        Object::Job(job) => Some(job),
        _ => None,
    }
}

fn job_status(api: &Api, job: &Job, object: &BatchJob, suspended: bool, now: Timestamp) -> JobStatus {
    let pods = job.parts.iter().flat_map(|part| part.pods.keys()).filter_map(|pod| api.pod(pod));
    let (terminating, active): (Vec<_>, Vec<_>) =
        pods.filter(|pod| !pod.is_finished()).partition(|pod| pod.metadata.deletion_timestamp.is_some());
    let before = object.status.clone().unwrap_or_default();
    let count = |pods: &[_]| i32::try_from(pods.len()).ok();
    let condition = |type_: &str, is: bool| {
        let status = if is { "True" } else { "False" };
        let known = before.conditions.iter().flatten().find(|known| known.type_ == type_ && known.status == status);
        known.cloned().unwrap_or_else(|| JobCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            last_transition_time: time(now).map(Time),
            ..JobCondition::default()
        })
    };
    let mut conditions = vec![condition("Suspended", suspended)];
    if job.is_done() {
        conditions.push(condition("Complete", true));
    }
    JobStatus {
        active: count(&active),
        terminating: count(&terminating),
        conditions: Some(conditions),
        ..JobStatus::default()
    }
}
