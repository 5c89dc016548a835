//! A submission: a job that runs for some time, or a service that runs without end, as a gang or as independent pods.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec as BatchSpec};
use k8s_openapi::api::core::v1::{PodSchedulingGroup, PodTemplateSpec};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::{
    AllDisruptionMode, DisruptionMode, GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::koordinator::{KoordinatorPodGroup, KoordinatorPodGroupSpec};
use reprieve_api::{NamespacedName, Object, Pod};
use reprieve_engine::{Policy, Timestamp};

use crate::run::Gang;

/// The label of a pod with its Koordinator PodGroup.
const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

/// The label of a Job with its Kueue LocalQueue.
const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// A job or service to submit.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Namespace and name.
    pub name: NamespacedName,
    /// The time of the submission.
    pub at: Timestamp,
    /// The number of pods.
    pub pods: usize,
    /// The gang of the pods; `None` if they run independently.
    pub gang: Option<Gang>,
    /// The pod template, shared by submissions of the same kind.
    pub template: Arc<Pod>,
    /// The time that it runs; `None` for a service.
    pub running_micros: Option<i64>,
    /// The time between two checkpoints; `None` without checkpoints.
    pub checkpoint_micros: Option<i64>,
    /// The time from the binding of a pod to its start.
    pub startup_micros: i64,
    /// The time from the deletion of a pod to its end.
    pub stop_micros: i64,
}

impl Submission {
    /// The priority of its pods.
    pub fn priority(&self) -> i32 {
        self.template.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)
    }

    /// The priority of its pods, if they name no class.
    pub(crate) fn bare_priority(&self) -> Option<i32> {
        self.template.spec.as_ref().filter(|spec| spec.priority_class_name.is_none())?.priority
    }

    fn metadata(&self) -> ObjectMeta {
        let NamespacedName { namespace, name } = self.name.clone();
        ObjectMeta { namespace: Some(namespace), name: Some(name), ..ObjectMeta::default() }
    }

    /// The object that represents the gang, if the policy has one.
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
            Policy::YuniKorn(_) | Policy::Kueue(_) => None,
        }
    }

    /// The `batch/v1` Job under policy Kueue; suspended if it names a queue.
    pub(crate) fn job(&self, policy: &Policy, scheduler: &str) -> Option<Object> {
        if !matches!(policy, Policy::Kueue(_)) {
            return None;
        }
        let Pod { metadata, spec, .. } = Pod::clone(&self.template);
        let labels = metadata.labels.clone().unwrap_or_default();
        let queue = labels.get_key_value(KUEUE_QUEUE).map(|(key, queue)| (key.clone(), queue.clone()));
        let mut spec = spec.map(Arc::unwrap_or_clone).unwrap_or_default();
        spec.scheduler_name = Some(scheduler.to_owned());
        spec.priority_class_name = spec.priority_class_name.or_else(|| self.bare_priority().map(class_name));
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

    /// The pod with index `member`, created for the nth time (`generation`).
    pub(crate) fn pod(&self, policy: &Policy, scheduler: &str, member: usize, generation: u32) -> Pod {
        let mut pod = Pod::clone(&self.template);
        let name = match generation {
            0 => format!("{}-{member}", self.name.name),
            _ => format!("{}-{member}-r{generation}", self.name.name),
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
                Policy::YuniKorn(_) | Policy::Kueue(_) => {}
            }
        }
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.entry("applicationId".to_owned()).or_insert_with(|| self.name.name.clone());
        pod
    }
}

/// A PriorityClass with this value, for Jobs under policy Kueue: the priority of a Job is that of its class alone.
pub(crate) fn class_of(priority: i32) -> Object {
    Object::from(PriorityClass {
        metadata: ObjectMeta { name: Some(class_name(priority)), ..ObjectMeta::default() },
        value: Some(priority),
        ..PriorityClass::default()
    })
}

fn class_name(priority: i32) -> String {
    let sign = if priority < 0 { "minus-" } else { "" };
    format!("simulated-priority-{sign}{}", priority.unsigned_abs())
}
