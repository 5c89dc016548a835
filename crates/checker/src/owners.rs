//! docs/rules/kubernetes-groups.md#ga8: the gangs that owners form without a PodGroup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use reprieve_api::{NamespacedName, Object, ObjectSet, Pod, named_group_of};

use crate::settings::Settings;

/// The kinds of owners: group and kind, the value of `gangsFromOwners`, and the label with which pods name the owner.
pub const OWNERS: [(&str, &str, &str, &str); 6] = [
    ("jobset.x-k8s.io", "JobSet", "JobSet", "jobset.sigs.k8s.io/jobset-name"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name"),
    ("kubeflow.org", "MPIJob", "MPIJob", "training.kubeflow.org/job-name"),
    ("ray.io", "RayCluster", "RayCluster", ""),
    ("trainer.kubeflow.org", "TrainJob", "TrainJob", ""),
    ("batch", "Job", "IndexedJob", ""),
];

/// Kinds that are no owners themselves but stand between an owner and its pods.
const BETWEEN: [(&str, &str); 2] = [("apps", "StatefulSet"), ("", "Pod")];

/// The group of a pod: the one that it names, else the gang of its outermost owner. The flag says whether an owner forms it.
pub fn group_of(objects: &ObjectSet, settings: Settings, pod: &Pod) -> Option<(NamespacedName, bool)> {
    if let Some(named) = named_group_of(pod) {
        return Some((named, false));
    }
    let considered = |wanted: &str| {
        OWNERS.iter().zip(settings.gangs_from_owners).any(|((_, _, name, _), is_listed)| is_listed && *name == wanted)
    };
    let mut owner: Option<(&str, String, bool)> = None;
    let (mut next, mut steps) = (controller(&pod.metadata).cloned(), 0);
    while let Some(reference) = next.filter(|_| steps < 8) {
        steps += 1;
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        let row = OWNERS.iter().find(|(known, kind, ..)| (*known, *kind) == (group, reference.kind.as_str()));
        if row.is_none() && !BETWEEN.contains(&(group, reference.kind.as_str())) {
            break;
        }
        let row = row.filter(|(_, _, name, _)| considered(name));
        if is_absent(objects, group, &reference.kind) {
            let of_label = OWNERS.iter().filter(|(_, _, name, _)| considered(name)).find_map(|row| {
                let (group, kind, _, label) = *row;
                let owner = pod.metadata.labels.as_ref()?.get(label)?;
                if is_absent(objects, group, kind) {
                    return Some((kind, owner.clone(), true));
                }
                let found = find(objects, pod, group, kind, owner)?;
                Some((kind, owner.clone(), forms_gang(&found)))
            });
            let as_stated = row.filter(|(_, kind, ..)| *kind != "Job").map(|row| (row.1, reference.name.clone(), true));
            owner = of_label.or(as_stated).or(owner);
            break;
        }
        let found = find(objects, pod, group, &reference.kind, &reference.name);
        let Some(found) = found.filter(|found| !reference.uid.is_empty() && found.uid() == reference.uid) else {
            break;
        };
        if let Some((_, kind, ..)) = row {
            owner = Some((kind, reference.name.clone(), forms_gang(&found)));
        }
        next = controller(found.metadata()).cloned();
    }
    let (kind, name, _) = owner.filter(|(_, _, is_gang)| *is_gang)?;
    let part = match kind {
        "LeaderWorkerSet" => {
            format!("/{}", pod.metadata.labels.as_ref()?.get("leaderworkerset.sigs.k8s.io/group-index")?)
        }
        _ => String::new(),
    };
    let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
    Some((NamespacedName::new(&namespace, &format!("{kind}/{name}{part}")), true))
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn is_of(object: &Object, group: &str, kind: &str) -> bool {
    let resource = object.kind().resource();
    (resource.group, resource.kind) == (group, kind)
}

/// Whether the input is incomplete and has no object of a kind. Pods are never absent.
fn is_absent(objects: &ObjectSet, group: &str, kind: &str) -> bool {
    !objects.is_complete && kind != "Pod" && !objects.iter().any(|object| is_of(&object, group, kind))
}

fn find(objects: &ObjectSet, pod: &Pod, group: &str, kind: &str, name: &str) -> Option<Object> {
    let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
    let name = NamespacedName::new(&namespace, name);
    let is_running = |object: &Object| !matches!(object, Object::Pod(pod) if pod.is_finished());
    objects.iter().find(|object| is_of(object, group, kind) && object.key().name == name && is_running(object))
}

/// Whether the pods of an owner form a gang: `spec.scheduling` of a Job decides first, then the annotation, then the kind.
fn forms_gang(owner: &Object) -> bool {
    if matches!(owner, Object::OwnerJob(job) if job.spec.scheduling.is_some()) {
        return false;
    }
    let annotation = owner.metadata().annotations.as_ref().and_then(|all| all.get("reprieve.dev/gang"));
    match (annotation.map(String::as_str), owner) {
        (Some("true"), _) => true,
        (Some("false"), _) => false,
        (_, Object::RayCluster(cluster)) => cluster.spec.enable_in_tree_autoscaling != Some(true),
        (_, Object::OwnerJob(job)) => {
            let spec = &job.spec;
            spec.completion_mode.as_deref() == Some("Indexed")
                && spec.parallelism > Some(1)
                && spec.parallelism == spec.completions
                && spec.backoff_limit_per_index.is_none()
                && spec.template.spec.subdomain.as_deref().unwrap_or_default() != ""
        }
        (_, owner) => OWNERS.iter().any(|(group, kind, ..)| is_of(owner, group, kind)),
    }
}
