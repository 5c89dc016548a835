//! Adds submitted objects to a cluster for `plan --submit`, with the pods that their controllers would create, and finds the preemptor.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{PodSchedulingGroup, PodTemplateSpec};
use k8s_openapi::api::scheduling::v1beta1::{
    BasicSchedulingPolicy, GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::controlled::PodController;
use reprieve_api::volumes::Volumes;
use reprieve_api::{
    InputError, Kind, NamespacedName, ObjectRef, ObjectSet, Pod, PodSpec, PodStatus, PreemptorRef, Source, Sourced,
    group_of,
};

use crate::Defaults;

/// A plan for more pods of a Job is refused.
const MAX_PODS: i32 = 10_000;

/// The preemptor among the submitted objects, and warnings about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Submitted {
    /// The only submitted group, else the only pod, unless `--for` names another.
    pub preemptor: PreemptorRef,
    /// Why the API server would reject the pods, and what is unknown about them.
    pub warnings: Vec<String>,
    /// The Jobs that name a LocalQueue of Kueue, with that name.
    pub queued_jobs: Vec<(NamespacedName, String)>,
}

/// The label with which a Job names a LocalQueue of Kueue.
const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// Adds submitted objects to the cluster, completed as by the API server. `named` is the preemptor that `--for` names.
pub fn submit(
    cluster: &mut ObjectSet,
    mut submitted: ObjectSet,
    controlled: Vec<Sourced<PodController>>,
    named: Option<&PreemptorRef>,
) -> Result<Submitted, InputError> {
    let (mut warnings, mut queued_jobs) = (Vec::new(), Vec::new());
    for Sourced { object, .. } in &controlled {
        let PodController::Job(job, _) = &**object else { continue };
        let name = NamespacedName::from_meta(&job.metadata);
        if let Some(queue) = job.metadata.labels.as_ref().and_then(|labels| labels.get(QUEUE_NAME)) {
            queued_jobs.push((name, queue.clone()));
        } else if job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true)) {
            warnings.push(format!(
                "Job {name}: spec.suspend is true: the Job creates no pods until it is resumed; the plan assumes that it is resumed"
            ));
        }
    }
    for Sourced { object, source } in controlled {
        submitted.extend(pods_of(Arc::unwrap_or_clone(object), &source)?);
    }
    let preemptor = match (submitted.pod_groups.as_slice(), submitted.pods.as_slice(), named) {
        ([group], _, None) => reference("PodGroup", &group.object.metadata),
        ([], [pod], None) => reference("Pod", &pod.object.metadata),
        ([], [], _) => {
            let problem = "no object creates a pod; submit a Pod, a PodGroup with its pods, a Job, a Deployment, a ReplicaSet or a StatefulSet";
            return Err(InputError::new(problem));
        }
        (_, _, Some(named)) => named.clone(),
        (groups, pods, None) => {
            let names = preemptors(groups, pods);
            let problem = format!("there are several preemptors, but a plan is for one; name it with --for: {names}");
            return Err(InputError::new(problem));
        }
    };
    let (pods, groups) = (std::mem::take(&mut submitted.pods), std::mem::take(&mut submitted.pod_groups));
    cluster.extend(submitted);
    warnings.extend(admit(cluster, pods, groups)?);
    Ok(Submitted { preemptor, warnings, queued_jobs })
}

/// Lists the first groups, and pods outside these groups, in the form of `--for`.
fn preemptors(groups: &[Sourced<PodGroup>], pods: &[Sourced<Pod>]) -> String {
    const SHOWN: usize = 5;
    let name = |metadata: &ObjectMeta| {
        let NamespacedName { namespace, name } = NamespacedName::from_meta(metadata);
        let flag = if namespace == "default" { String::new() } else { format!(" -n {namespace}") };
        name + &flag
    };
    let known: BTreeSet<NamespacedName> = groups.iter().map(|group| group.name()).collect();
    let single = pods.iter().filter(|pod| group_of(&pod.object).is_none_or(|group| !known.contains(&group)));
    let groups = groups.iter().map(|group| format!("podgroup/{}", name(&group.object.metadata)));
    let all: Vec<String> = groups.chain(single.map(|pod| format!("pod/{}", name(&pod.object.metadata)))).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..SHOWN].join(", ")),
    }
}

/// Completes submitted pods and groups with the LimitRanges and classes of the cluster, and adds them to it.
fn admit(
    cluster: &mut ObjectSet,
    pods: Vec<Sourced<Pod>>,
    groups: Vec<Sourced<PodGroup>>,
) -> Result<Vec<String>, InputError> {
    let defaults = Defaults::new(cluster);
    // The pods of a Job have the same problems; only the first pod is named.
    let (mut known, mut warnings) = (BTreeSet::new(), Vec::new());
    for mut pod in pods {
        let object = Arc::make_mut(&mut pod.object);
        let runtime_class = object.spec.as_ref().and_then(|spec| spec.runtime_class_name.as_deref());
        defaults.check(&NamespacedName::from_meta(&object.metadata).namespace, runtime_class)?;
        let problems = defaults.admit(object);
        for problem in problems.into_iter().filter(|problem| known.insert(problem.clone())) {
            warnings.push(format!("Pod {}: {problem}", NamespacedName::from_meta(&object.metadata)));
        }
        cluster.pods.push(pod);
    }
    for mut group in groups {
        defaults.admit_group(Arc::make_mut(&mut group.object));
        cluster.pod_groups.push(group);
    }
    Ok(warnings)
}

fn reference(kind: &str, metadata: &ObjectMeta) -> PreemptorRef {
    let NamespacedName { namespace, name } = NamespacedName::from_meta(metadata);
    PreemptorRef { kind: kind.to_owned(), namespace, name }
}

fn pods_of(object: PodController, source: &Source) -> Result<ObjectSet, InputError> {
    let pod = match object {
        PodController::Job(job, volumes) => return job_pods(*job, &volumes, source),
        PodController::Replicas(controller, volumes) => {
            let mut pod = pod(&controller.metadata, "new", &controller.spec.template, &volumes);
            for claim in controller.spec.volume_claim_templates.into_iter().flatten() {
                let (volume, owner) =
                    (claim.metadata.name.unwrap_or_default(), NamespacedName::from_meta(&pod.metadata).name);
                pod.spec_mut().volumes.push_claim(&volume, &format!("{volume}-{owner}"));
            }
            pod
        }
    };
    Ok(ObjectSet { pods: vec![Sourced { object: Arc::new(pod), source: source.clone() }], ..ObjectSet::default() })
}

/// Returns all pods of a Job and a PodGroup for them. The pods of an indexed Job that runs all its indexes at once form a gang; the pods of
/// other Jobs are placed as far as they fit.
fn job_pods(job: Job, volumes: &Volumes, source: &Source) -> Result<ObjectSet, InputError> {
    let spec = job.spec.unwrap_or_default();
    let parallelism = spec.parallelism.unwrap_or(1);
    if !(1..=MAX_PODS).contains(&parallelism) {
        let problem = format!("{parallelism} is out of range; write 1 to {MAX_PODS}");
        let object = ObjectRef::of(Kind::Job, &NamespacedName::from_meta(&job.metadata));
        return Err(InputError::new(problem).at(source).object(object).field("spec.parallelism"));
    }
    let mut pods: Vec<Pod> =
        (0..parallelism).map(|index| pod(&job.metadata, &index.to_string(), &spec.template, volumes)).collect();
    let mut groups = Vec::new();
    let names_group = spec.template.spec.as_ref().is_some_and(|spec| spec.scheduling_group.is_some());
    if parallelism > 1 && !names_group {
        let group = job_group(&job.metadata, &spec, parallelism);
        for pod in &mut pods {
            pod.spec_mut().scheduling_group = Some(PodSchedulingGroup { pod_group_name: job.metadata.name.clone() });
        }
        groups.push(Sourced { object: Arc::new(group), source: source.clone() });
    }
    let pods = pods.into_iter().map(|object| Sourced { object: Arc::new(object), source: source.clone() }).collect();
    Ok(ObjectSet { pods, pod_groups: groups, ..ObjectSet::default() })
}

fn job_group(metadata: &ObjectMeta, spec: &JobSpec, parallelism: i32) -> PodGroup {
    let indexed = spec.completion_mode.as_deref() == Some("Indexed") && spec.completions == Some(parallelism);
    let scheduling_policy = PodGroupSchedulingPolicy {
        gang: indexed.then_some(GangSchedulingPolicy { min_count: parallelism }),
        basic: (!indexed).then(BasicSchedulingPolicy::default),
    };
    let pod_spec = spec.template.spec.clone().unwrap_or_default();
    let (name, namespace) = (metadata.name.clone(), metadata.namespace.clone());
    PodGroup {
        metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() },
        spec: PodGroupSpec {
            scheduling_policy,
            priority: pod_spec.priority,
            priority_class_name: pod_spec.priority_class_name,
            preemption_policy: pod_spec.preemption_policy,
            ..PodGroupSpec::default()
        },
        ..PodGroup::default()
    }
}

/// Creates a pod from a template, named after its owner.
fn pod(owner: &ObjectMeta, suffix: &str, template: &PodTemplateSpec, volumes: &Volumes) -> Pod {
    let from_template = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        name: Some(format!("{}-{suffix}", owner.name.as_deref().unwrap_or_default())),
        namespace: owner.namespace.clone(),
        labels: from_template.labels,
        annotations: from_template.annotations,
        ..ObjectMeta::default()
    };
    let status = PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() };
    let mut spec = template.spec.clone().map(PodSpec::from).unwrap_or_default();
    spec.volumes = volumes.clone();
    Pod { status: Some(status), ..Pod::new(metadata, spec) }
}
