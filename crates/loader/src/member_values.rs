//! The values of a group that count for its pods: `docs/rules/kubernetes-groups.md#g20` and `docs/rules/toleration.md#t2`.

use std::collections::BTreeMap;

use reprieve_engine::policy::kubernetes::PriorityMismatch;
use reprieve_engine::snapshot::{Mismatch, Pod};
use reprieve_engine::{GroupId, Policy, Priority};

use crate::Classes;

/// The priority, the preemption policy and the class of a group.
#[derive(Clone)]
pub(crate) struct GroupValues {
    pub priority: Priority,
    /// Whether the group may preempt.
    pub preempts: bool,
    /// Whether the group itself, or its class, sets the preemption policy.
    pub sets_policy: bool,
    pub class: Option<String>,
}

/// The values of all groups, and which of them count.
pub struct MemberValues {
    groups: BTreeMap<GroupId, GroupValues>,
    /// Whether priority and preemption policy of the group count for its pods.
    replaces_priority: bool,
}

impl MemberValues {
    /// Priority and preemption policy of groups count under policy Kubernetes, unless a mismatch is refused.
    pub(crate) fn new(policy: &Policy, groups: impl Iterator<Item = Option<GroupValues>>) -> Self {
        let replaces_priority = match policy {
            Policy::Kubernetes(kubernetes) => kubernetes.priority_mismatch == PriorityMismatch::Report,
            Policy::YuniKorn(_) | Policy::Kueue(_) | Policy::Koordinator(_) => false,
        };
        let groups = groups.enumerate().filter_map(|(index, values)| Some((GroupId::new(index), values?))).collect();
        Self { groups, replaces_priority }
    }

    /// Adds a group.
    pub(crate) fn insert(&mut self, group: GroupId, values: GroupValues) {
        self.groups.insert(group, values);
    }

    /// Sets the values of a pod that its group determines.
    pub(crate) fn apply(&self, mut pod: Pod, classes: &Classes) -> Pod {
        let Some(values) = pod.group.and_then(|group| self.groups.get(&group)) else { return pod };
        if pod.priority != values.priority {
            pod.mismatch = Some(Mismatch::Priority { member: pod.priority, group: values.priority });
        } else if pod.preempts != values.preempts {
            pod.mismatch = Some(Mismatch::Preempting { member: pod.preempts, group: values.preempts });
        }
        if let Some(class) = values.class.as_deref().filter(|class| !class.is_empty()) {
            pod.toleration = classes.toleration(Some(class));
            pod.opted_out = classes.opted_out(Some(class));
            pod.class_unknown = !pod.set_aside && classes.is_undefined(Some(class));
        }
        if self.replaces_priority {
            pod.priority = values.priority;
            pod.preempts = if values.sets_policy { values.preempts } else { pod.preempts };
        }
        pod
    }
}
