//! The workload of a Job.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use reprieve_api::kueue::{KueueWorkload, KueueWorkloadSpec, PodSetSpec};
use reprieve_api::meta::NamespacedName;

/// The label by which a Job names its LocalQueue.
pub(super) const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// The annotation that says with how few pods a Job would do.
const LEAST: &str = "kueue.x-k8s.io/job-min-parallelism";
/// How long a name may be.
const LONGEST: usize = 253;

/// The workload that asks for quota for a Job. Its name follows from the Job, so that nobody makes two.
pub(super) fn workload(job: &Job, priority: i32) -> KueueWorkload {
    let NamespacedName { namespace, name } = NamespacedName::from_meta(&job.metadata);
    let uid = job.metadata.uid.clone().unwrap_or_default();
    let spec = job.spec.clone().unwrap_or_default();
    let parallelism = spec.parallelism.unwrap_or(1);
    let count = i64::from(spec.completions.map_or(parallelism, |completions| completions.min(parallelism)));
    let annotations = job.metadata.annotations.as_ref();
    let least = annotations.and_then(|annotations| annotations.get(LEAST)?.parse().ok());
    let labels = job.metadata.labels.as_ref();
    let short: String = name.chars().take(LONGEST - "job--00000".len()).collect();
    KueueWorkload {
        api_version: "kueue.x-k8s.io/v1beta2".to_owned(),
        kind: "Workload".to_owned(),
        metadata: ObjectMeta {
            namespace: Some(namespace),
            name: Some(format!("job-{short}-{}", digest(&uid))),
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
                min_count: least.filter(|least| (0..count).contains(least)),
                template: spec.template,
                topology_request: None,
            }],
            ..KueueWorkloadSpec::default()
        },
        status: None,
    }
}

/// Five letters that tell one uid from another: FNV-1a.
fn digest(uid: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{:05x}", hash & 0xf_ffff)
}
