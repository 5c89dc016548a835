//! Under policy Kueue a Job and its workload keep in step: no pod of a Job without quota, and what the one says the other follows.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::Object;
use reprieve_api::kueue::KueueWorkload;
use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_scheduler::UnitRef;
use reprieve_scheduler::effects::is_true;

use super::Held;
use crate::virtual_cluster::VirtualCluster;

/// By then a Job follows its workload, whatever went wrong in between.
const FOLLOWED_MICROS: i64 = 300_000_000;

#[derive(Default)]
pub(super) struct JobMatchesWorkload {
    /// By Job: since when it is out of step, and how.
    out_of_step: BTreeMap<NamespacedName, (&'static str, Timestamp)>,
}

impl JobMatchesWorkload {
    pub fn check(&mut self, world: &VirtualCluster, is_changed: bool) -> Held {
        if !matches!(world.setup.policy, Policy::Kueue(_)) {
            return Ok(());
        }
        self.follows(world)?;
        if !is_changed && self.out_of_step.is_empty() {
            return Ok(());
        }
        let mut workloads: BTreeMap<&str, &KueueWorkload> = BTreeMap::new();
        let mut jobs: Vec<&Job> = Vec::new();
        for object in world.api.all() {
            match object {
                Object::KueueWorkload(workload) => {
                    workloads.insert(owner(&workload.metadata).unwrap_or_default(), workload);
                }
                Object::Job(job) => jobs.push(job),
                _ => {}
            }
        }
        for pod in world.api.pods().filter(|pod| !pod.is_finished()) {
            let Some(job) = owner(&pod.metadata) else { continue };
            let admission = workloads.get(job).and_then(|workload| workload.status.as_ref()?.admission.as_ref());
            if admission.is_none() {
                let name = NamespacedName::from_meta(&pod.metadata);
                return Err(format!("pod {name} is there, and its workload has no quota"));
            }
        }
        let waiting: BTreeSet<&UnitRef> = world.scheduler().waiting().map(|(unit, _)| unit).collect();
        let mut out = BTreeMap::new();
        for job in jobs {
            let name = NamespacedName::from_meta(&job.metadata);
            let workload = workloads.get(job.metadata.uid.as_deref().unwrap_or_default()).copied();
            if let Some(how) = how_out_of_step(job, workload, &waiting) {
                let known = self.out_of_step.get(&name).filter(|(before, _)| *before == how);
                out.insert(name, (how, known.map_or(world.now(), |(_, since)| *since)));
            }
        }
        self.out_of_step = out;
        Ok(())
    }

    fn follows(&self, world: &VirtualCluster) -> Held {
        let from = |since: Timestamp| since.max(world.process.started).plus_micros(FOLLOWED_MICROS);
        match self.out_of_step.iter().find(|(_, (_, since))| world.now() > from(*since)) {
            Some((job, (how, _))) => Err(format!("Job {job} {how}, for minutes")),
            None => Ok(()),
        }
    }
}

fn how_out_of_step(job: &Job, workload: Option<&KueueWorkload>, waiting: &BTreeSet<&UnitRef>) -> Option<&'static str> {
    let Some(workload) = workload else { return Some("has no workload") };
    let status = workload.status.clone().unwrap_or_default();
    let suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let complete = conditions.into_iter().flatten().any(|one| one.type_ == "Complete");
    let selector = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.node_selector.as_ref());
    let evicted = is_true(&status.conditions, "Evicted");
    match status.admission.is_some() {
        _ if is_true(&status.conditions, "Finished") => None,
        _ if complete => Some("is complete, and its workload is not finished"),
        true if evicted && !suspended => Some("goes on, and its workload was evicted"),
        true if !evicted && suspended => Some("is suspended, and its workload was admitted"),
        true => None,
        false if !suspended => Some("goes on, and its workload has no quota"),
        false if selector.is_some() => Some("has no quota, and the node selectors of a flavor"),
        false => {
            let unit = UnitRef::Workload(NamespacedName::from_meta(&workload.metadata));
            (!waiting.contains(&unit)).then_some("waits for quota, and the scheduler does not know")
        }
    }
}

fn owner(metadata: &ObjectMeta) -> Option<&str> {
    metadata.owner_references.as_ref()?.first().map(|owner| owner.uid.as_str())
}
