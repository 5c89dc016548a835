//! The facts of the objects: nodes, pods, groups and units, each identified by its index in the order of names. Nothing here decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, PodCondition, Taint};
use reprieve_api::{NamespacedName, ObjectSet, Pod, PodSpec};

use crate::Settings;
use crate::amount::{self, Amounts};
use crate::classes::Classes;
use crate::finding::Finding;
use crate::groups::{self, Group};
use crate::obstacle::is_unsupported;
use crate::owners;
use crate::selector::Labels;
use crate::term::{Term, required_terms};

const RETURNS: &str = "reprieve.dev/returns";

/// The cluster as the objects describe it.
#[derive(Clone)]
pub struct Cluster<'o> {
    /// The raw objects; budgets are read from here.
    pub objects: &'o ObjectSet,
    /// The priority classes.
    pub classes: Classes,
    /// Sorted by name.
    pub nodes: Vec<NodeFacts>,
    /// Sorted by name, without pods that ended.
    pub pods: Vec<PodFacts>,
    /// The groups that a pod names and that are defined.
    pub groups: BTreeMap<NamespacedName, Group>,
    /// The units; every bound pod is in exactly one.
    pub units: Vec<Unit>,
    /// By pod: its unit; `None` if it is not bound.
    pub unit_of: Vec<Option<usize>>,
    /// By budget: the disruptions that the objects do not show yet.
    pub charged: Vec<i64>,
    namespaces: BTreeMap<String, Labels>,
}

/// A node.
#[derive(Clone)]
pub struct NodeFacts {
    pub name: String,
    pub labels: Labels,
    pub allocatable: Amounts,
    pub taints: Vec<Taint>,
    pub cordoned: bool,
    /// Whether preemption for resized pods is disabled on the node.
    pub resize_preemption_disabled: bool,
}

/// A bound or pending pod.
// Fields: flat, because no rule reads particular fields together.
#[derive(Clone)]
pub struct PodFacts {
    pub name: NamespacedName,
    pub labels: Labels,
    pub spec: Arc<PodSpec>,
    /// The requests, which count when the pod is placed.
    pub requests: Amounts,
    /// The allocation, which counts while the pod is on a node.
    pub allocated: Amounts,
    pub node: Option<usize>,
    pub nominated: Option<usize>,
    pub priority: i64,
    pub preempts: bool,
    pub start: Option<Timestamp>,
    pub scheduled: Option<Timestamp>,
    pub terminating: bool,
    /// Terminating because a scheduler preempted it.
    pub preempted: bool,
    /// Running, with a deferred resize.
    pub resizing: bool,
    /// docs/rules/kubernetes-groups.md#g28: bound, and created again after an eviction, as a pod that this scheduler places.
    pub returns: bool,
    /// The priority class: that of its group if the group names one.
    pub class: Option<String>,
    /// Whether its own priority or preemption policy is not that of its group.
    pub differs_from_group: bool,
    /// The group that the pod names, defined or not.
    pub group: Option<NamespacedName>,
    /// Whether owners form this group.
    pub of_owner: bool,
    /// Pending with scheduling gates.
    pub gated: bool,
    /// A pending member of a group that another scheduler places.
    pub of_other_scheduler: bool,
    pub affinity: Vec<Term>,
    pub anti_affinity: Vec<Term>,
}

impl PodFacts {
    /// The name of the priority class that counts.
    pub fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }
}

/// The unit of preemption.
#[derive(Clone)]
pub struct Unit {
    /// Sorted by name.
    pub pods: Vec<usize>,
    /// The priority as a victim.
    pub priority: i64,
    /// Whether its pods name a group.
    pub grouped: bool,
}

impl<'o> Cluster<'o> {
    /// Reads the objects. An invalid amount is a finding.
    pub fn read(objects: &'o ObjectSet, settings: Settings, scheduler: Option<&str>) -> Result<Self, Finding> {
        let nodes: Result<Vec<_>, _> = objects.nodes.iter().map(|node| read_node(&node.object)).collect();
        let mut nodes = nodes?;
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let classes = Classes::read(objects);
        let mut pods = Vec::new();
        for pod in &objects.pods {
            if let Some(facts) = read_pod(&pod.object, &nodes, &classes)? {
                let group = owners::group_of(objects, settings, &pod.object);
                let of_owner = group.as_ref().is_some_and(|(_, of_owner)| *of_owner);
                pods.push(PodFacts { group: group.map(|(group, _)| group), of_owner, ..facts });
            }
        }
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        mark_members_of_other_schedulers(&mut pods, scheduler);
        for pod in &mut pods {
            pod.returns &= !is_unsupported(pod) && scheduler.is_none_or(|name| scheduler_of(pod) == name);
        }
        let mut groups = BTreeMap::new();
        for name in pods.iter().filter_map(|pod| pod.group.as_ref()) {
            if let Some(group) = groups::read(objects, &classes, settings.max_preemption_priority_excess, name) {
                groups.insert(name.clone(), group);
            }
        }
        for name in pods.iter().filter(|pod| pod.of_owner).filter_map(|pod| pod.group.as_ref()) {
            let members: Vec<&PodFacts> = pods.iter().filter(|pod| pod.group.as_ref() == Some(name)).collect();
            groups.insert(name.clone(), groups::from_owner(&members));
        }
        for pod in pods.iter_mut().filter(|pod| !pod.of_owner) {
            if let Some(group) = pod.group.as_ref().and_then(|name| groups.get(name)) {
                take_values_of_group(pod, group, settings);
            }
        }
        let labels = |namespace: &Namespace| {
            (namespace.metadata.name.clone().unwrap_or_default(), namespace.metadata.labels.clone().unwrap_or_default())
        };
        let namespaces = objects.namespaces.iter().map(|namespace| labels(&namespace.object)).collect();
        let charged = vec![0; objects.budgets.len()];
        let (units, unit_of) = (Vec::new(), Vec::new());
        let mut cluster = Self { objects, classes, nodes, pods, groups, units, unit_of, charged, namespaces };
        cluster.form_units();
        Ok(cluster)
    }

    fn form_units(&mut self) {
        self.units = units(&self.pods, &self.groups);
        self.unit_of = vec![None; self.pods.len()];
        for (index, unit) in self.units.iter().enumerate() {
            unit.pods.iter().for_each(|&pod| self.unit_of[pod] = Some(index));
        }
    }

    /// Removes pods from their nodes.
    pub fn unbind(&mut self, pods: &[usize]) {
        for &pod in pods {
            let facts = &mut self.pods[pod];
            // An equal pod requests what this one was allocated.
            facts.requests = facts.allocated.clone();
            (facts.node, facts.start, facts.scheduled, facts.resizing) = (None, None, None, false);
            (facts.terminating, facts.preempted) = (false, false);
        }
        self.form_units();
    }

    /// Binds a pod to a node.
    pub fn place(&mut self, pod: usize, node: usize, now: Timestamp) {
        let facts = &mut self.pods[pod];
        facts.allocated = facts.requests.clone();
        (facts.node, facts.nominated, facts.scheduled, facts.resizing) = (Some(node), None, Some(now), false);
        self.form_units();
    }

    /// The sum of (priority + 2^31) over the pods of these units, and the number of the pods.
    pub fn weight(&self, units: &[usize]) -> (i128, usize) {
        let units = || units.iter().map(|&unit| &self.units[unit]);
        let sum = units().map(|unit| i128::from(unit.priority + (1 << 31)) * unit.pods.len() as i128).sum();
        (sum, units().map(|unit| unit.pods.len()).sum())
    }

    /// The pod of this name.
    pub fn pod(&self, name: &str) -> Option<usize> {
        self.pods.iter().position(|pod| pod.name.to_string() == name)
    }

    /// docs/rules/kubernetes-groups.md#g27: the group that the pending pod of this name stands for.
    pub fn gang_of(&self, name: &str) -> Option<NamespacedName> {
        let pod = &self.pods[self.pod(name)?];
        let takes_part = pod.node.is_none() && !pod.gated && !pod.of_other_scheduler;
        pod.group.clone().filter(|group| takes_part && self.groups.contains_key(group))
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The full name of a pod.
    pub fn pod_name(&self, pod: usize) -> String {
        self.pods[pod].name.to_string()
    }

    /// The sorted names of pods.
    pub fn pod_names(&self, pods: &[usize]) -> Vec<String> {
        let mut pods = pods.to_vec();
        pods.sort_unstable();
        pods.iter().map(|&pod| self.pod_name(pod)).collect()
    }

    /// The name of a node.
    pub fn node_name(&self, node: usize) -> String {
        self.nodes[node].name.clone()
    }

    /// docs/rules/kubernetes-pods.md#p23: whether a namespace is protected.
    pub fn is_protected(&self, namespace: &str) -> bool {
        self.namespace_labels(namespace).get("reprieve.dev/protected").is_some_and(|value| value == "true")
    }

    /// The labels of a namespace; every namespace has its own name as a label.
    pub fn namespace_labels(&self, namespace: &str) -> Labels {
        let mut labels = self.namespaces.get(namespace).cloned().unwrap_or_default();
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        labels
    }
}

fn read_node(node: &Node) -> Result<NodeFacts, Finding> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    let status = node.status.clone().unwrap_or_default();
    let list = status.allocatable.as_ref().or(status.capacity.as_ref());
    let allocatable = amount::allocatable(list, "status.allocatable")
        .map_err(|field| Finding::Unreadable { object: format!("node {name}"), field })?;
    let disabled = spec.pod_preemption_policy.and_then(|policy| policy.disable_resize_preemption);
    Ok(NodeFacts {
        labels: node.metadata.labels.clone().unwrap_or_default(),
        allocatable,
        taints: spec.taints.unwrap_or_default(),
        cordoned: spec.unschedulable == Some(true),
        resize_preemption_disabled: disabled.is_some_and(|by| !by.is_empty()),
        name,
    })
}

/// `None` for a pod that ended or is bound to an unknown node.
fn read_pod(pod: &Pod, nodes: &[NodeFacts], classes: &Classes) -> Result<Option<PodFacts>, Finding> {
    let name = NamespacedName::from_meta(&pod.metadata);
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return Ok(None);
    }
    let known = |name: &String| nodes.iter().position(|node| node.name == *name);
    let bound_to = pod.node_name.as_ref().filter(|node| !node.is_empty());
    let node = bound_to.and_then(known);
    if bound_to.is_some() && node.is_none() {
        return Ok(None);
    }
    let condition = |type_: &str, of: &dyn Fn(&PodCondition) -> bool| {
        status.conditions.iter().flatten().find(|condition| condition.type_ == type_ && of(condition)).cloned()
    };
    let scheduled = condition("PodScheduled", &|condition| condition.status == "True");
    let preempted = condition("DisruptionTarget", &|condition| {
        condition.status == "True" && condition.reason.as_deref() == Some("PreemptionByScheduler")
    });
    let deferred = condition("PodResizePending", &|condition| {
        condition.status == "True" && condition.reason.as_deref() == Some("Deferred")
    });
    let unreadable = |field| Finding::Unreadable { object: format!("pod {name}"), field };
    let labels = pod.metadata.labels.clone().unwrap_or_default();
    let (affinity, anti_affinity) = required_terms(&spec, &labels, &name.namespace);
    let class = spec.priority_class_name.as_deref();
    let requests = amount::requested(pod).map_err(unreadable)?;
    let gated = node.is_none() && spec.scheduling_gates.iter().flatten().next().is_some();
    Ok(Some(PodFacts {
        allocated: if node.is_some() { amount::allocated(pod).map_err(unreadable)? } else { requests.clone() },
        requests,
        node,
        nominated: status.nominated_node_name.as_ref().filter(|_| !gated).and_then(known),
        priority: classes.priority(spec.priority, class),
        preempts: classes.preempts(spec.preemption_policy.as_deref(), class),
        start: status.start_time.as_ref().map(|time| time.0),
        scheduled: scheduled.and_then(|condition| condition.last_transition_time).map(|time| time.0),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        preempted: pod.metadata.deletion_timestamp.is_some() && preempted.is_some(),
        resizing: node.is_some() && deferred.is_some(),
        returns: node.is_some() && is_created_again(pod),
        group: None,
        of_owner: false,
        class: spec.priority_class_name.clone(),
        differs_from_group: false,
        gated,
        of_other_scheduler: false,
        affinity,
        anti_affinity,
        labels,
        spec,
        name,
    }))
}

/// Whether a controller that is not tied to a node owns the pod, and the pod does not deny its return.
fn is_created_again(pod: &Pod) -> bool {
    let denies = pod.metadata.annotations.iter().flatten().any(|(key, value)| key == RETURNS && value == "false");
    let mut controllers = pod.metadata.owner_references.iter().flatten().filter(|owner| owner.controller == Some(true));
    !denies && controllers.any(|owner| owner.kind != "DaemonSet" && owner.kind != "Node")
}

/// docs/rules/kubernetes-groups.md#g20, docs/rules/toleration.md#t2: the values of a pod that its group determines.
fn take_values_of_group(pod: &mut PodFacts, group: &Group, settings: Settings) {
    pod.differs_from_group = pod.priority != group.priority || pod.preempts != group.preempts;
    if group.class.is_some() {
        pod.class.clone_from(&group.class);
    }
    if !settings.refuses_mismatch {
        pod.priority = group.priority;
        pod.preempts = if group.sets_policy { group.preempts } else { pod.preempts };
    }
}

/// docs/rules/kubernetes-groups.md#g1, docs/rules/kubernetes-groups.md#g2, docs/rules/kubernetes-groups.md#g16: all bound pods of a group
/// that is preempted as a whole are one unit; any other bound pod is its own unit.
fn units(pods: &[PodFacts], groups: &BTreeMap<NamespacedName, Group>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut whole: BTreeMap<&NamespacedName, usize> = BTreeMap::new();
    for (index, pod) in pods.iter().enumerate().filter(|(_, pod)| pod.node.is_some()) {
        let defined = pod.group.as_ref().and_then(|name| Some((name, groups.get(name)?)));
        let priority = defined.map_or(pod.priority, |(_, group)| group.victim_priority);
        let single = Unit { pods: vec![index], priority, grouped: pod.group.is_some() };
        match defined.filter(|(_, group)| group.whole) {
            None => units.push(single),
            Some((name, _)) => match whole.get(name) {
                Some(&unit) => units[unit].pods.push(index),
                None => {
                    whole.insert(name, units.len());
                    units.push(single);
                }
            },
        }
    }
    units
}

/// docs/rules/kubernetes-groups.md#g22: marks the pending members of groups that another scheduler places. This scheduler is the one of the
/// given name or, without a name, for each group `reprieve` if a pending member names it, else `default-scheduler`, else the first by name.
fn mark_members_of_other_schedulers(pods: &mut [PodFacts], scheduler: Option<&str>) {
    let mut named: BTreeMap<NamespacedName, BTreeSet<String>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.node.is_none() && !pod.terminating) {
        if let Some(group) = &pod.group {
            named.entry(group.clone()).or_default().insert(scheduler_of(pod));
        }
    }
    for pod in pods.iter_mut().filter(|pod| pod.node.is_none()) {
        let Some(names) = pod.group.as_ref().and_then(|group| named.get(group)) else { continue };
        let preferred = ["reprieve", "default-scheduler"].into_iter().find(|name| names.contains(*name));
        let first = names.first().map(String::as_str);
        pod.of_other_scheduler = scheduler.or(preferred).or(first) != Some(scheduler_of(pod).as_str());
        if pod.of_other_scheduler {
            pod.nominated = None;
        }
    }
}

fn scheduler_of(pod: &PodFacts) -> String {
    let name = pod.spec.scheduler_name.clone().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "default-scheduler".to_owned())
}
