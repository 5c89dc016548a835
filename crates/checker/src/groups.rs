//! The groups: a PodGroup, or the part of a Workload that defines one.

use reprieve_api::workload::{PreemptionMode, Workload, WorkloadGroup};
use reprieve_api::{NamespacedName, ObjectSet};

use crate::classes::Classes;
use crate::cluster::PodFacts;

const PREEMPTION_PRIORITY_CLASS: &str = "reprieve.dev/preemption-priority-class";

/// A group, as a preemptor and as a victim.
#[derive(Clone)]
pub struct Group {
    /// The number of members that must run for any to be placed.
    pub min_count: usize,
    /// The priority as a preemptor.
    pub priority: i64,
    /// docs/rules/kubernetes-groups.md#g16: the priority as a victim.
    pub victim_priority: i64,
    /// Whether it may preempt.
    pub preempts: bool,
    /// Whether the group itself, or its class, sets the preemption policy.
    pub sets_policy: bool,
    /// The class that it names.
    pub class: Option<String>,
    /// docs/rules/kubernetes-groups.md#g1: whether it is preempted as a whole.
    pub whole: bool,
    /// docs/rules/kubernetes-groups.md#g12: labels whose values the nodes of all its pods must share.
    pub topology_keys: Vec<String>,
}

/// The group of this name, if it is defined.
pub fn read(objects: &ObjectSet, classes: &Classes, max_excess: u32, name: &NamespacedName) -> Option<Group> {
    let pod_group = objects
        .pod_groups
        .iter()
        .map(|sourced| &*sourced.object)
        .find(|group| NamespacedName::from_meta(&group.metadata) == *name);
    let Some(pod_group) = pod_group else {
        let (workload, part) = workload_of(objects, name)?;
        return Some(from_workload(classes, max_excess, workload, part));
    };
    let (spec, namespace) = (&pod_group.spec, name.namespace.as_str());
    let class = spec.priority_class_name.as_deref();
    let victim_class = pod_group.metadata.annotations.as_ref().and_then(|all| all.get(PREEMPTION_PRIORITY_CLASS));
    let constraints = spec.scheduling_constraints.as_ref().and_then(|constraints| constraints.topology.as_ref());
    let priority = classes.priority(spec.priority, class);
    Some(Group {
        min_count: spec.scheduling_policy.gang.as_ref().map_or(1, |gang| usize::try_from(gang.min_count).unwrap_or(0)),
        priority,
        victim_priority: victim_priority(classes, max_excess, namespace, priority, victim_class),
        preempts: classes.preempts(spec.preemption_policy.as_deref(), class),
        sets_policy: spec.preemption_policy.is_some() || named(class).is_some(),
        class: named(class),
        whole: spec.disruption_mode.as_ref().is_some_and(|mode| mode.all.is_some()),
        topology_keys: constraints.into_iter().flatten().map(|constraint| constraint.key.clone()).collect(),
    })
}

/// docs/rules/kubernetes-groups.md#g21: the part of a Workload that defines the group `workload/part`, or its replica `workload/part/key`.
fn workload_of<'o>(objects: &'o ObjectSet, name: &NamespacedName) -> Option<(&'o Workload, &'o WorkloadGroup)> {
    let mut words = name.name.splitn(3, '/');
    let (workload, part) = (words.next()?, words.next()?);
    let named = NamespacedName::new(&name.namespace, workload);
    let mut all = objects.workloads.iter().map(|sourced| &*sourced.object);
    let workload = all.find(|workload| NamespacedName::from_meta(&workload.metadata) == named)?;
    workload.spec.pod_groups.iter().find(|group| group.name == part).map(|part| (workload, part))
}

fn from_workload(classes: &Classes, max_excess: u32, workload: &Workload, part: &WorkloadGroup) -> Group {
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    let class = workload.spec.priority_class_name.as_deref();
    let priority = classes.priority(None, class);
    let gang = part.policy.gang.as_ref();
    let victim_class = workload.spec.preemption_priority_class_name.as_ref();
    Group {
        min_count: gang.map_or(1, |gang| usize::try_from(gang.min_count).unwrap_or(0)),
        priority,
        victim_priority: victim_priority(classes, max_excess, namespace, priority, victim_class),
        preempts: classes.preempts(None, class),
        sets_policy: named(class).is_some(),
        class: named(class),
        whole: is_preempted_whole(part),
        topology_keys: Vec::new(),
    }
}

/// docs/rules/kubernetes-groups.md#ga8: the group that an owner of these pods forms. All pods that exist are placed, or none.
pub fn from_owner(pods: &[&PodFacts]) -> Group {
    let bound = pods.iter().filter(|pod| pod.node.is_some());
    let is_placed = |pod: &&&PodFacts| pod.node.is_none() && !pod.gated && !pod.of_other_scheduler && !pod.terminating;
    let placed = pods.iter().filter(is_placed);
    Group {
        min_count: bound.clone().filter(|pod| !pod.terminating).count() + placed.clone().count(),
        priority: placed.map(|pod| pod.priority).min().unwrap_or(0),
        victim_priority: bound.map(|pod| pod.priority).min().unwrap_or(0),
        preempts: true,
        sets_policy: false,
        class: None,
        whole: true,
        topology_keys: Vec::new(),
    }
}

/// docs/rules/kubernetes-groups.md#g16: a preemption priority below the scheduling priority, too far above it, or of an undefined class is
/// ignored, and so is a class of the system outside `kube-system`.
fn victim_priority(classes: &Classes, max_excess: u32, namespace: &str, priority: i64, class: Option<&String>) -> i64 {
    let is_for_all = |class: &&String| namespace == "kube-system" || !class.starts_with("system-");
    let allowed = |value: &i64| value - priority <= i64::from(max_excess);
    class
        .filter(is_for_all)
        .and_then(|class| classes.value(class))
        .filter(allowed)
        .map_or(priority, |value| value.max(priority))
}

fn named(class: Option<&str>) -> Option<String> {
    class.filter(|class| !class.is_empty()).map(str::to_owned)
}

fn is_preempted_whole(part: &WorkloadGroup) -> bool {
    part.policy.gang.as_ref().and_then(|gang| gang.preemption_mode) == Some(PreemptionMode::PodGroup)
}
