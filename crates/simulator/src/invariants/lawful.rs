//! No victim is unlawful. For policy Kubernetes the independent checker says so; for the others what can be told from the objects alone.

use std::sync::Arc;

use reprieve_api::answer::Answer;
use reprieve_api::kinds::Object;
use reprieve_api::meta::NamespacedName;
use reprieve_api::test_file::{OutcomeName, PreemptorRef, VictimRef};
use reprieve_checker::Claim;
use reprieve_engine::policy::Policy;
use reprieve_loader::time::time;
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::Held;
use super::quota::{Quota, queue_of};
use crate::virtual_cluster::{SCHEDULER, VirtualCluster};

pub(super) fn check(world: &VirtualCluster, step: &Step) -> Held {
    if let (Some(UnitRef::Workload(preemptor)), StepOutcome::Evict { victims, .. }) = (&step.unit, &step.outcome) {
        return within_quota(world, preemptor, victims);
    }
    let (Some(unit), StepOutcome::MarkVictims { placement, victims }) = (&step.unit, &step.outcome) else {
        return Ok(());
    };
    match world.setup.policy {
        Policy::Kubernetes(_) => by_checker(world, unit, placement, victims),
        Policy::Koordinator(_) => victims.iter().try_for_each(|victim| lower(world, unit, placement, victim)),
        Policy::YuniKorn => victims.iter().try_for_each(|victim| within_fence(world, placement, victim)),
        Policy::Kueue(_) => Ok(()),
    }
}

fn by_checker(
    world: &VirtualCluster,
    unit: &UnitRef,
    placement: &[(NamespacedName, String)],
    victims: &[NamespacedName],
) -> Held {
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
    // As it was when it was decided: the nominations are what came of it.
    let mut objects = world.scheduler().live().all_objects();
    for pod in objects.pods.iter_mut().map(|pod| &mut pod.object) {
        let name = NamespacedName::from_meta(&pod.metadata);
        if placement.iter().any(|(placed, _)| *placed == name)
            && let Some(status) = &mut Arc::make_mut(pod).status
        {
            status.nominated_node_name = None;
        }
    }
    let now = time(world.now()).ok_or("there is no such time")?;
    let claim = Claim {
        objects: &objects,
        now,
        preemptor: &preemptor,
        priority_cut: true,
        max_preemption_priority_excess: None,
        scheduler_name: Some(SCHEDULER),
        answer: &answer,
    };
    match reprieve_checker::check(&claim).first() {
        Some(complaint) => Err(format!("{unit}: {complaint}")),
        None => Ok(()),
    }
}

fn lower(
    world: &VirtualCluster,
    unit: &UnitRef,
    placement: &[(NamespacedName, String)],
    victim: &NamespacedName,
) -> Held {
    let priority = |pod: &NamespacedName| {
        let pod = world.scheduler().live().pod(pod);
        pod.and_then(|pod| pod.spec.as_ref()?.priority).unwrap_or(0)
    };
    let highest = placement.iter().map(|(pod, _)| priority(pod)).max().unwrap_or(i32::MIN);
    match priority(victim) < highest {
        true => Ok(()),
        false => Err(format!("{victim} is not below {unit}")),
    }
}

/// Nobody of another queue is taken that uses no more than its own; at home, nobody who is not lower.
fn within_quota(world: &VirtualCluster, preemptor: &NamespacedName, victims: &[NamespacedName]) -> Held {
    let objects = world.scheduler().live().all_objects();
    let mut quota = Quota::of(&objects)?;
    let find = |name: &NamespacedName| {
        let mut all = objects.kueue_workloads.iter().map(|workload| &workload.object);
        all.find(|workload| NamespacedName::from_meta(&workload.metadata) == *name)
            .ok_or(format!("there is no workload {name}"))
    };
    let own = find(preemptor)?;
    for victim in victims {
        let workload = find(victim)?;
        let queue = queue_of(workload).ok_or(format!("{victim} holds no quota"))?;
        if queue == own.spec.queue_name && workload.spec.priority >= own.spec.priority {
            return Err(format!("{victim} is not below {preemptor}, and of the same queue"));
        }
        if queue != own.spec.queue_name && !quota.is_borrowing(queue) {
            return Err(format!("{victim} of {queue} is taken for {preemptor}, and {queue} uses no more than its own"));
        }
        quota.take(workload)?;
    }
    Ok(())
}

/// Law 7: nobody is taken outside the preemptor's fence.
fn within_fence(world: &VirtualCluster, placement: &[(NamespacedName, String)], victim: &NamespacedName) -> Held {
    let queue = |pod: &NamespacedName| {
        let labels = world.scheduler().live().pod(pod)?.metadata.labels.clone()?;
        labels.get("queue").cloned()
    };
    let preemptor = placement.first().and_then(|(pod, _)| queue(pod)).unwrap_or_default();
    let (victim_queue, fences) = (queue(victim).unwrap_or_default(), fences(world));
    let inside = |path: &str, fence: &str| path == fence || path.starts_with(&format!("{fence}."));
    match fences.iter().find(|fence| inside(&preemptor, fence) && !inside(&victim_queue, fence)) {
        Some(fence) => Err(format!("{victim} of {victim_queue} is outside the fence {fence} of {preemptor}")),
        None => Ok(()),
    }
}

/// The paths of the queues that are fences, as the setup wrote them.
fn fences(world: &VirtualCluster) -> Vec<String> {
    let texts = world.setup.objects.iter().filter_map(|object| match object {
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
