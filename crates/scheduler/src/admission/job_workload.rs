//! Creates the Workload that requests quota for a Job, with the same fields as Kueue's Job integration.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use reprieve_api::NamespacedName;
use reprieve_api::kueue::{KueueWorkload, KueueWorkloadSpec, PodSetSpec, workload_of_job};

use super::job_sync::pods_of;

/// The label of a Job that names its LocalQueue.
pub(super) const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// The annotation of a Job with the smallest number of pods that it can run with.
const MIN_PARALLELISM: &str = "kueue.x-k8s.io/job-min-parallelism";

/// The Workload of a Job. Its name follows from the Job, so that a second one cannot be created.
pub(super) fn workload(job: &Job, priority: i32) -> KueueWorkload {
    let NamespacedName { namespace, name } = NamespacedName::from_meta(&job.metadata);
    let uid = job.metadata.uid.clone().unwrap_or_default();
    let spec = job.spec.clone().unwrap_or_default();
    let count = pods_of(job);
    let annotations = job.metadata.annotations.as_ref();
    let min_count = annotations.and_then(|annotations| annotations.get(MIN_PARALLELISM)?.parse().ok());
    let labels = job.metadata.labels.as_ref();
    KueueWorkload {
        api_version: "kueue.x-k8s.io/v1beta2".to_owned(),
        kind: "Workload".to_owned(),
        metadata: ObjectMeta {
            namespace: Some(namespace),
            name: Some(workload_of_job(&name, &uid)),
            owner_references: Some(vec![OwnerReference {
                api_version: "batch/v1".to_owned(),
                kind: "Job".to_owned(),
                name,
                uid,
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: KueueWorkloadSpec {
            queue_name: labels.and_then(|labels| labels.get(QUEUE)).cloned().unwrap_or_default(),
            priority: Some(priority),
            pod_sets: vec![PodSetSpec {
                name: "main".to_owned(),
                count,
                min_count: min_count.filter(|min_count| (0..count).contains(min_count)),
                template: spec.template,
                topology_request: None,
            }],
            ..KueueWorkloadSpec::default()
        },
        status: None,
    }
}
