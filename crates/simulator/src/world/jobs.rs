//! The controller of `batch/v1` Jobs: one that is suspended has no pods, one that is not has those that it lacks.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job as BatchJob, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use reprieve_engine::policy::Policy;
use reprieve_objects::load::time;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;
use reprieve_scheduler::action::Action;

use super::{Happening, World};
use crate::run::Eviction;

/// How long the controller takes to notice a change.
const SYNC_MICROS: i64 = 100_000;
/// How long a Job that is over is kept.
const COLLECT_MICROS: i64 = 60_000_000;

/// What a pod has from its controller; nothing where it has none.
#[derive(Default)]
pub(super) struct Controller {
    owner: Option<OwnerReference>,
    node_selector: Option<BTreeMap<String, String>>,
    tolerations: Option<Vec<Toleration>>,
}

impl Controller {
    pub(super) fn shape(&self, pod: &mut Pod) {
        if let Some(owner) = &self.owner {
            pod.metadata.owner_references = Some(vec![owner.clone()]);
            let spec = pod.spec_mut();
            spec.node_selector.clone_from(&self.node_selector);
            spec.tolerations.clone_from(&self.tolerations);
        }
    }
}

impl World {
    /// The controller of a part's pods; `None` where none may be made, or they are there.
    pub(super) fn may_make_pods(&self, job: usize, part: usize) -> Option<Controller> {
        if !self.has_batch_jobs() {
            return Some(Controller::default());
        }
        let job = &self.jobs[job];
        let object = self.batch_job(&job.submission.name)?;
        let spec = object.spec.as_ref()?;
        if spec.suspend == Some(true) || !job.parts[part].pods.is_empty() {
            return None;
        }
        let owner = OwnerReference {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            name: object.metadata.name.clone()?,
            uid: object.metadata.uid.clone()?,
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let pod = spec.template.spec.as_ref();
        Some(Controller {
            owner: Some(owner),
            node_selector: pod.and_then(|pod| pod.node_selector.clone()),
            tolerations: pod.and_then(|pod| pod.tolerations.clone()),
        })
    }

    /// Whether pods are made by the controller of Jobs.
    pub(super) fn has_batch_jobs(&self) -> bool {
        matches!(self.setup.policy, Policy::Kueue(_))
    }

    fn batch_job(&self, name: &FullName) -> Option<&BatchJob> {
        match self.api.get(&Key::new(Kind::Job, name.clone()))? {
            Object::Job(job) => Some(job),
            _ => None,
        }
    }

    /// The controller has heard that something about a Job changed.
    pub(super) fn sync_later(&mut self, name: &FullName) {
        if let Some(&job) = self.job_names.get(name) {
            self.arrange_sync(job);
        }
    }

    pub(super) fn sync_owner(&mut self, pod: &FullName) {
        if let Some(&(job, _)) = self.owners.get(pod) {
            self.arrange_sync(job);
        }
    }

    fn arrange_sync(&mut self, job: usize) {
        if self.has_batch_jobs() && self.syncing.insert(job) {
            self.timeline.after(SYNC_MICROS, Happening::Sync(job));
        }
    }

    pub(super) fn sync(&mut self, job: usize) {
        self.syncing.remove(&job);
        let now = self.timeline.now();
        let name = self.jobs[job].submission.name.clone();
        let Some(object) = self.batch_job(&name).cloned() else { return };
        let suspended = object.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        let pods: Vec<FullName> = self.jobs[job].parts.iter().flat_map(|part| part.pods.keys()).cloned().collect();
        if suspended {
            for pod in &pods {
                self.api.delete(pod, now);
            }
        } else {
            for part in 0..self.jobs[job].parts.len() {
                if !self.jobs[job].parts[part].done {
                    self.make_pods(job, part);
                }
            }
        }
        let status = self.job_status(job, &object, suspended);
        if object.status.as_ref() != Some(&status) {
            self.api.store(Object::from(BatchJob { status: Some(status), ..object }));
        }
    }

    fn job_status(&self, job: usize, object: &BatchJob, suspended: bool) -> JobStatus {
        let parts = &self.jobs[job].parts;
        let pods = parts.iter().flat_map(|part| part.pods.keys()).filter_map(|pod| self.api.pod(pod));
        let (leaving, active): (Vec<_>, Vec<_>) =
            pods.filter(|pod| !pod.is_finished()).partition(|pod| pod.metadata.deletion_timestamp.is_some());
        let before = object.status.clone().unwrap_or_default();
        let count = |pods: &[_]| i32::try_from(pods.len()).ok();
        let condition = |type_: &str, is: bool| {
            let status = if is { "True" } else { "False" };
            let known = before.conditions.iter().flatten().find(|one| one.type_ == type_ && one.status == status);
            known.cloned().unwrap_or_else(|| JobCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                last_transition_time: time(self.timeline.now()).map(Time),
                ..JobCondition::default()
            })
        };
        let mut conditions = vec![condition("Suspended", suspended)];
        if self.jobs[job].is_done() {
            conditions.push(condition("Complete", true));
        }
        JobStatus {
            active: count(&active),
            terminating: count(&leaving),
            conditions: Some(conditions),
            ..JobStatus::default()
        }
    }

    /// A Job is over: its controller says so, and later it goes.
    pub(super) fn arrange_collection(&mut self, job: usize) {
        self.arrange_sync(job);
        self.timeline.after(COLLECT_MICROS, Happening::Collect(job));
    }

    /// What is over goes, with all that it owns.
    pub(super) fn collect(&mut self, job: usize) {
        let name = self.jobs[job].submission.name.clone();
        let Some(uid) = self.batch_job(&name).and_then(|job| job.metadata.uid.clone()) else { return };
        let owned: Vec<Key> = self.api.owned_by(&uid).cloned().collect();
        self.api.remove(&Key::new(Kind::Job, name));
        for key in owned {
            self.api.remove(&key);
        }
    }

    /// A workload was admitted, or told to yield: then its pods are evicted.
    pub(super) fn workload_changed(&mut self, action: &Action) {
        match action {
            Action::Admit { workload, .. } => *self.admissions.entry(workload.uid.clone()).or_default() += 1,
            Action::EvictWorkload { workload, preemptor, .. } => {
                let by = self.job_of(preemptor).map(|job| &self.jobs[job]);
                let second_order = by.is_some_and(|job| job.parts.iter().any(|part| part.was_preempted));
                let preemptor_job = by.map(|job| job.submission.name.to_string());
                let Some(job) = self.job_of(&workload.name) else { return };
                let at = self.timeline.now().0;
                let job = &mut self.jobs[job];
                for part in &mut job.parts {
                    part.was_preempted = true;
                    for pod in part.pods.keys() {
                        job.evictions += 1;
                        self.run.evictions.push(Eviction {
                            at,
                            pod: pod.to_string(),
                            job: job.submission.name.to_string(),
                            preemptor: format!("Workload {preemptor}"),
                            preemptor_job: preemptor_job.clone(),
                            second_order,
                        });
                    }
                }
            }
            _ => {}
        }
    }

    /// The Job of a workload.
    pub(super) fn job_of(&self, workload: &FullName) -> Option<usize> {
        let object = self.api.get(&Key::new(Kind::Workload, workload.clone()))?;
        let owner = object.metadata().owner_references.as_ref()?.first()?;
        let name = FullName::new(&workload.namespace, &owner.name);
        self.job_names.get(&name).copied()
    }
}
