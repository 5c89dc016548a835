//! What people submit: jobs that run to an end, in gangs or pod by pod, and services that run for ever.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec as BatchSpec};
use k8s_openapi::api::core::v1::{PodSchedulingGroup, PodTemplateSpec};
use k8s_openapi::api::scheduling::v1beta1::{
    AllDisruptionMode, DisruptionMode, GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::Object;
use reprieve_api::koordinator::{KoordinatorPodGroup, KoordinatorPodGroupSpec};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;

use crate::run::Gang;

/// The label by which a pod of policy Koordinator names its job.
const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

/// The label by which a Job of policy Kueue names its queue.
const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// What somebody submits.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its namespace and name.
    pub name: NamespacedName,
    /// When.
    pub at: Timestamp,
    /// How many pods it has.
    pub pods: usize,
    /// How they belong together; `None` where each runs and starts anew on its own.
    pub gang: Option<Gang>,
    /// What each of them is like; many submissions are alike.
    pub template: Arc<Pod>,
    /// How long it runs; `None` is for ever.
    pub running_micros: Option<i64>,
    /// How often it saves what it has done; `None` is never.
    pub checkpoint_micros: Option<i64>,
    /// How long a pod takes from being bound to running.
    pub startup_micros: i64,
    /// How long a pod takes to go once it is deleted.
    pub stop_micros: i64,
}

impl Submission {
    /// The priority of its pods.
    pub fn priority(&self) -> i32 {
        self.template.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)
    }

    fn metadata(&self) -> ObjectMeta {
        let NamespacedName { namespace, name } = self.name.clone();
        ObjectMeta { namespace: Some(namespace), name: Some(name), ..ObjectMeta::default() }
    }

    /// The object that makes a gang of its pods, if its policy knows one.
    pub(crate) fn group(&self, policy: &Policy) -> Option<Object> {
        let Gang { min, whole } = self.gang?;
        let metadata = self.metadata();
        match policy {
            Policy::Kubernetes(_) => {
                let gang = GangSchedulingPolicy { min_count: i32::try_from(min).unwrap_or(i32::MAX) };
                Some(Object::from(PodGroup {
                    metadata,
                    spec: PodGroupSpec {
                        scheduling_policy: PodGroupSchedulingPolicy { gang: Some(gang), basic: None },
                        disruption_mode: whole
                            .then(|| DisruptionMode { all: Some(AllDisruptionMode::default()), single: None }),
                        priority: Some(self.priority()),
                        ..PodGroupSpec::default()
                    },
                    status: None,
                }))
            }
            Policy::Koordinator(_) => {
                let min_member = i64::try_from(min).unwrap_or(i64::MAX);
                Some(Object::from(KoordinatorPodGroup {
                    metadata,
                    spec: KoordinatorPodGroupSpec { min_member },
                    ..KoordinatorPodGroup::default()
                }))
            }
            Policy::YuniKorn | Policy::Kueue(_) => None,
        }
    }

    /// The Job that makes its pods, under a policy that minds; one that names a queue waits for quota.
    pub(crate) fn job(&self, policy: &Policy, scheduler: &str) -> Option<Object> {
        if !matches!(policy, Policy::Kueue(_)) {
            return None;
        }
        let Pod { metadata, spec, .. } = Pod::clone(&self.template);
        let labels = metadata.labels.clone().unwrap_or_default();
        let queue = labels.get_key_value(KUEUE_QUEUE).map(|(key, queue)| (key.clone(), queue.clone()));
        let mut spec = spec.map(Arc::unwrap_or_clone).unwrap_or_default();
        spec.scheduler_name = Some(scheduler.to_owned());
        let parallelism = i32::try_from(self.pods).unwrap_or(i32::MAX);
        Some(Object::from(Job {
            metadata: ObjectMeta { labels: Some(queue.iter().cloned().collect()), ..self.metadata() },
            spec: Some(BatchSpec {
                suspend: Some(queue.is_some()),
                parallelism: Some(parallelism),
                completions: Some(parallelism),
                template: PodTemplateSpec { metadata: Some(metadata), spec: Some(spec.into()) },
                ..BatchSpec::default()
            }),
            status: None,
        }))
    }

    /// One of its pods, for the nth time.
    pub(crate) fn pod(&self, policy: &Policy, scheduler: &str, member: usize, turn: u32) -> Pod {
        let mut pod = Pod::clone(&self.template);
        let name = match turn {
            0 => format!("{}-{member}", self.name.name),
            _ => format!("{}-{member}-r{turn}", self.name.name),
        };
        pod.metadata.namespace = Some(self.name.namespace.clone());
        pod.metadata.name = Some(name);
        let spec = pod.spec_mut();
        spec.scheduler_name = Some(scheduler.to_owned());
        if self.gang.is_some() {
            match policy {
                Policy::Kubernetes(_) => {
                    let pod_group_name = Some(self.name.name.clone());
                    spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name });
                }
                Policy::Koordinator(_) => {
                    let labels = pod.metadata.labels.get_or_insert_default();
                    labels.insert(JOB.to_owned(), self.name.name.clone());
                }
                Policy::YuniKorn | Policy::Kueue(_) => {}
            }
        }
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.entry("applicationId".to_owned()).or_insert_with(|| self.name.name.clone());
        pod
    }
}
