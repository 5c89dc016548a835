//! Every victim is lawful. For policy Kubernetes the independent checker decides; for the others this file checks what follows from the objects
//! alone: priority (Koordinator), fences, queues, applications and nodes (YuniKorn), quota (Kueue).

use std::sync::Arc;

use reprieve_api::answer::Answer;
use reprieve_api::{NamespacedName, Object, OutcomeName, Pod, PreemptorRef, VictimRef};
use reprieve_checker::{Claim, Settings};
use reprieve_engine::Policy;
use reprieve_loader::time::time;
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::quota::{Quota, queue_of};
use super::{CheckResult, ensure};
use crate::virtual_cluster::{SCHEDULER, VirtualCluster};

pub(super) fn check(cluster: &VirtualCluster, step: &Step) -> CheckResult {
    if let (Some(UnitRef::Workload(preemptor)), StepOutcome::Evict { victims, .. }) = (&step.unit, &step.outcome) {
        return check_quota(cluster, preemptor, victims);
    }
    let (Some(unit), StepOutcome::MarkVictims { placement, victims }) = (&step.unit, &step.outcome) else {
        return Ok(());
    };
    match cluster.setup.policy {
        Policy::Kubernetes(_) => check_independently(cluster, unit, placement, victims),
        Policy::Koordinator(_) => {
            victims.iter().try_for_each(|victim| check_priority(cluster, unit, placement, victim))
        }
        Policy::YuniKorn(settings) => victims.iter().try_for_each(|victim| {
            check_fence(cluster, placement, victim)?;
            if settings.follows_code { Ok(()) } else { check_application_and_node(cluster, placement, victim) }
        }),
        Policy::Kueue(_) => Ok(()),
    }
}

fn check_independently(
    cluster: &VirtualCluster,
    unit: &UnitRef,
    placement: &[(NamespacedName, String)],
    victims: &[NamespacedName],
) -> CheckResult {
    let (kind, name) = match unit {
        UnitRef::Pod(name) => ("Pod", name),
        UnitRef::Group(name) | UnitRef::Job(name) => ("PodGroup", name),
        UnitRef::Workload(name) | UnitRef::BatchJob(name) => ("Workload", name),
    };
    let preemptor = PreemptorRef { kind: kind.to_owned(), namespace: name.namespace.clone(), name: name.name.clone() };
    let mut refs: Vec<VictimRef> =
        victims.iter().map(|pod| VictimRef { pod: Some(pod.to_string()), ..VictimRef::default() }).collect();
    refs.sort_unstable();
    let answer = Answer {
        outcome: OutcomeName::Preempt,
        victims: refs,
        nominated: placement.iter().map(|(pod, node)| (pod.to_string(), node.clone())).collect(),
    };
    // The decision was made before the nominations that follow from it.
    let mut objects = cluster.known_objects();
    for pod in objects.pods.iter_mut().map(|pod| &mut pod.object) {
        let name = NamespacedName::from_meta(&pod.metadata);
        if placement.iter().any(|(placed, _)| *placed == name)
            && let Some(status) = &mut Arc::make_mut(pod).status
        {
            status.nominated_node_name = None;
        }
    }
    let now = time(cluster.now()).ok_or("the time cannot be represented")?;
    let claim = Claim {
        objects: &objects,
        now,
        preemptor: &preemptor,
        settings: Settings::default(),
        scheduler_name: Some(SCHEDULER),
        answer: &answer,
    };
    match reprieve_checker::check(&claim).first() {
        Some(finding) => Err(format!("{unit}: {finding}")),
        None => Ok(()),
    }
}

fn check_priority(
    cluster: &VirtualCluster,
    unit: &UnitRef,
    placement: &[(NamespacedName, String)],
    victim: &NamespacedName,
) -> CheckResult {
    let priority = |pod: &NamespacedName| {
        let pod = cluster.scheduler().live().pod(pod);
        pod.and_then(|pod| pod.spec.as_ref()?.priority).unwrap_or(0)
    };
    let highest = placement.iter().map(|(pod, _)| priority(pod)).max().unwrap_or(i32::MIN);
    ensure(priority(victim) < highest, || format!("the priority of {victim} is not below that of {unit}"))
}

/// A victim in another queue belongs to a queue that borrows; a victim in the same queue has a lower priority.
fn check_quota(cluster: &VirtualCluster, preemptor: &NamespacedName, victims: &[NamespacedName]) -> CheckResult {
    let objects = cluster.known_objects();
    let mut quota = Quota::of(&objects)?;
    let find = |name: &NamespacedName| {
        let mut all = objects.kueue_workloads.iter().map(|workload| &workload.object);
        all.find(|workload| NamespacedName::from_meta(&workload.metadata) == *name)
            .ok_or(format!("workload {name} does not exist"))
    };
    let own = find(preemptor)?;
    for victim in victims {
        let workload = find(victim)?;
        let queue = queue_of(workload).ok_or(format!("{victim} has no quota"))?;
        if queue == own.spec.queue_name && workload.spec.priority >= own.spec.priority {
            return Err(format!("the priority of {victim} is not below that of {preemptor} in the same queue"));
        }
        if queue != own.spec.queue_name && !quota.is_borrowing(queue) {
            return Err(format!("{victim} is preempted for {preemptor}, but its queue {queue} does not borrow"));
        }
        quota.release(workload)?;
    }
    Ok(())
}

/// A victim is of another queue and application than the preemptor, and on its node unless the victim belongs to a gang
/// (docs/rules/yunikorn.md#y7, docs/rules/yunikorn.md#y15).
fn check_application_and_node(
    cluster: &VirtualCluster,
    placement: &[(NamespacedName, String)],
    victim: &NamespacedName,
) -> CheckResult {
    let live = cluster.scheduler().live();
    let Some((name, node)) = placement.first() else { return Ok(()) };
    let (Some(preemptor), Some(pod)) = (live.pod(name), live.pod(victim)) else { return Ok(()) };
    if preemptor.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "DaemonSet") {
        return Ok(());
    }
    let label = |pod: &Pod, key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let differs = |key| label(preemptor, key).is_none_or(|own| label(pod, key) != Some(own));
    ensure(differs("queue"), || format!("{victim} is in the queue of {name}"))?;
    let is_same_tenant = name.namespace == victim.namespace;
    ensure(!is_same_tenant || differs("applicationId"), || format!("{victim} is of the application of {name}"))?;
    let is_of_gang = pod.spec.as_ref().is_some_and(|spec| spec.scheduling_group.is_some());
    let is_on_node = pod.node_name.as_ref() == Some(node);
    ensure(is_on_node || is_of_gang, || format!("{victim} is not on {node}, where {name} is placed"))
}

/// A victim is inside the fence of the preemptor (docs/rules/yunikorn.md#y4).
fn check_fence(
    cluster: &VirtualCluster,
    placement: &[(NamespacedName, String)],
    victim: &NamespacedName,
) -> CheckResult {
    let queue = |pod: &NamespacedName| {
        let labels = cluster.scheduler().live().pod(pod)?.metadata.labels.clone()?;
        labels.get("queue").cloned()
    };
    let preemptor = placement.first().and_then(|(pod, _)| queue(pod)).unwrap_or_default();
    let (victim_queue, fences) = (queue(victim).unwrap_or_default(), fences(cluster));
    let inside = |path: &str, fence: &str| path == fence || path.starts_with(&format!("{fence}."));
    match fences.iter().find(|fence| inside(&preemptor, fence) && !inside(&victim_queue, fence)) {
        Some(fence) => Err(format!("{victim} in {victim_queue} is outside of the fence {fence} of {preemptor}")),
        None => Ok(()),
    }
}

/// The paths of the queues that are fences in the configuration.
fn fences(cluster: &VirtualCluster) -> Vec<String> {
    let texts = cluster.setup.objects.iter().filter_map(|object| match object {
        Object::ConfigMap(map) => map.data.as_ref()?.get("queues.yaml").cloned(),
        _ => None,
    });
    let mut fences = Vec::new();
    for text in texts {
        let value: serde_json::Value = serde_saphyr::from_str(&text).unwrap_or_default();
        let roots = value["partitions"][0]["queues"].as_array().cloned().unwrap_or_default();
        let mut open: Vec<(String, serde_json::Value)> =
            roots.into_iter().map(|queue| (queue["name"].as_str().unwrap_or_default().to_owned(), queue)).collect();
        while let Some((path, queue)) = open.pop() {
            if queue["properties"]["preemption.policy"] == "fence" {
                fences.push(path.clone());
            }
            for child in queue["queues"].as_array().into_iter().flatten() {
                open.push((format!("{path}.{}", child["name"].as_str().unwrap_or_default()), child.clone()));
            }
        }
    }
    fences
}
