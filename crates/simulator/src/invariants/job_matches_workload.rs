//! Under policy Kueue the state of a Job follows that of its workload within minutes, and a Job without quota has no pods. The Jobs of the
//! hostile tenant are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kueue::KueueWorkload;
use reprieve_api::{NamespacedName, Object, Pod};
use reprieve_engine::{Policy, Timestamp};
use reprieve_scheduler::UnitRef;
use reprieve_scheduler::effects::is_true;

use super::CheckResult;
use crate::hostile::{TENANT, is_of_tenant};
use crate::virtual_cluster::VirtualCluster;

/// The time within which a Job follows its workload, also with faults.
const MAX_MISMATCH_MICROS: i64 = 300_000_000;

#[derive(Default)]
pub(super) struct JobMatchesWorkload {
    /// For each Job that does not match its workload: the mismatch, and its start.
    mismatches: BTreeMap<NamespacedName, (&'static str, Timestamp)>,
}

impl JobMatchesWorkload {
    pub fn check(&mut self, cluster: &VirtualCluster, is_changed: bool) -> CheckResult {
        if !matches!(cluster.setup.policy, Policy::Kueue(_)) {
            return Ok(());
        }
        self.check_durations(cluster)?;
        if !is_changed && self.mismatches.is_empty() {
            return Ok(());
        }
        let mut workloads: BTreeMap<&str, &KueueWorkload> = BTreeMap::new();
        let mut jobs: Vec<&Job> = Vec::new();
        for object in cluster.api.all().filter(|object| !is_of_tenant(object)) {
            match object {
                Object::KueueWorkload(workload) => {
                    workloads.insert(owner(&workload.metadata).unwrap_or_default(), workload);
                }
                Object::Job(job) => jobs.push(job),
                _ => {}
            }
        }
        let of_others = |pod: &&Arc<Pod>| pod.metadata.namespace.as_deref() != Some(TENANT);
        for pod in cluster.api.pods().filter(|pod| !pod.is_finished()).filter(of_others) {
            let Some(job) = owner(&pod.metadata) else { continue };
            let admission = workloads.get(job).and_then(|workload| workload.status.as_ref()?.admission.as_ref());
            if admission.is_none() {
                let name = NamespacedName::from_meta(&pod.metadata);
                return Err(format!("pod {name} exists, but its workload has no quota"));
            }
        }
        let waiting: BTreeSet<&UnitRef> = cluster.scheduler().waiting().map(|(unit, _)| unit).collect();
        let mut mismatches = BTreeMap::new();
        for job in jobs {
            let name = NamespacedName::from_meta(&job.metadata);
            let workload = workloads.get(job.metadata.uid.as_deref().unwrap_or_default()).copied();
            if let Some(mismatch) = find_mismatch(job, workload, &waiting) {
                let known = self.mismatches.get(&name).filter(|(before, _)| *before == mismatch);
                mismatches.insert(name, (mismatch, known.map_or(cluster.now(), |(_, since)| *since)));
            }
        }
        self.mismatches = mismatches;
        Ok(())
    }

    fn check_durations(&self, cluster: &VirtualCluster) -> CheckResult {
        let deadline = |since: Timestamp| since.max(cluster.process.started).plus_micros(MAX_MISMATCH_MICROS);
        match self.mismatches.iter().find(|(_, (_, since))| cluster.now() > deadline(*since)) {
            Some((job, (mismatch, _))) => Err(format!("Job {job} {mismatch}, for more than 5 minutes")),
            None => Ok(()),
        }
    }
}

fn find_mismatch(job: &Job, workload: Option<&KueueWorkload>, waiting: &BTreeSet<&UnitRef>) -> Option<&'static str> {
    let Some(workload) = workload else { return Some("has no workload") };
    let status = workload.status.clone().unwrap_or_default();
    let suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let complete = conditions.into_iter().flatten().any(|condition| condition.type_ == "Complete");
    let selector = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.node_selector.as_ref());
    let evicted = is_true(&status.conditions, "Evicted");
    match status.admission.is_some() {
        _ if is_true(&status.conditions, "Finished") => None,
        _ if complete => Some("is complete, but its workload is not finished"),
        true if evicted && !suspended => Some("runs, but its workload is evicted"),
        true if !evicted && suspended => Some("is suspended, but its workload is admitted"),
        true => None,
        false if !suspended => Some("runs, but its workload has no quota"),
        false if selector.is_some() => Some("has no quota, but the node selector of a flavor"),
        false => {
            let unit = UnitRef::Workload(NamespacedName::from_meta(&workload.metadata));
            (!waiting.contains(&unit)).then_some("waits for quota, but is not in the queue of the scheduler")
        }
    }
}

fn owner(metadata: &ObjectMeta) -> Option<&str> {
    metadata.owner_references.as_ref()?.first().map(|owner| owner.uid.as_str())
}
