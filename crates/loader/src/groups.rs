//! Reads PodGroups, and the Workloads of Kubernetes 1.35 and of the design, which define pod groups themselves. A PodGroup inherits nothing
//! from a Workload: its controller has copied the template. See `docs/rules/kubernetes-groups.md#g21`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use reprieve_engine::TextId;
use reprieve_engine::snapshot::{DisruptionMode, Group};

use crate::member_values::GroupValues;
use crate::preemption_priority::{InvalidPreemptionPriority, preemption_priority};
use crate::quarantine::Quarantine;
use crate::unsupported::field_of_group;
use crate::untrusted::Untrusted;
use crate::{Classes, Interner, Warning, by_name};
use reprieve_api::workload::{PreemptionMode, Workload, WorkloadGroup};
use reprieve_api::{
    InputError, Kind, NamespacedName, ObjectKey, ObjectRef, ObjectSet, Source, Sourced, group_of, owner_gang_of,
    workload_group,
};

/// The annotation of a PodGroup that names its preemption priority class: `docs/rules/kubernetes-groups.md#g16`.
pub const PREEMPTION_PRIORITY_CLASS: &str = "reprieve.dev/preemption-priority-class";

/// A group without its members, and the topology key in whose domains it is placed.
pub(crate) struct GroupDraft {
    pub(crate) group: Group,
    /// `None` for the gang that an owner forms.
    pub(crate) values: Option<GroupValues>,
    pub(crate) topology_key: Option<String>,
}

/// The groups of a cluster by name.
pub(crate) struct Groups {
    pub(crate) good: BTreeMap<NamespacedName, GroupDraft>,
    /// The groups that are set aside, with the PodGroup or Workload that defines them.
    pub(crate) broken: BTreeMap<NamespacedName, ObjectKey>,
}

/// Returns all groups by name.
pub(crate) fn groups(
    objects: &ObjectSet,
    classes: &Classes,
    texts: &mut Interner,
    warnings: &mut Vec<Warning>,
    quarantine: &mut Quarantine,
) -> Groups {
    let workloads = by_name::<NamespacedName, _>(&objects.workloads);
    let pod_groups = by_name::<NamespacedName, _>(&objects.pod_groups);
    let mut groups = Groups { good: BTreeMap::new(), broken: BTreeMap::new() };
    for (name, sourced @ Sourced { object: workload, source }) in &workloads {
        quarantine.reads(sourced);
        for part in &workload.spec.pod_groups {
            let part_name = NamespacedName::new(&name.namespace, &workload_group(&name.name, &part.name, None));
            for replica in replicas(objects, &part_name) {
                let read = GroupReader { classes, texts, warnings, kind: Kind::Workload, name, source };
                let read = read.workload_group(workload, part);
                groups.insert(replica, read, ObjectKey::new(Kind::Workload, name.clone()), quarantine);
            }
        }
    }
    for (name, sourced @ Sourced { object: group, source }) in &pod_groups {
        quarantine.reads(sourced);
        let read = GroupReader { classes, texts, warnings, kind: Kind::PodGroup, name, source };
        let read = read.pod_group(group);
        groups.insert(name.clone(), read, ObjectKey::new(Kind::PodGroup, name.clone()), quarantine);
    }
    for gang in objects.pods.iter().filter_map(|pod| owner_gang_of(&pod.object)) {
        groups.good.insert(gang, GroupDraft { group: Group::of_owner(), values: None, topology_key: None });
    }
    quarantine.reading = None;
    groups
}

impl Groups {
    /// Adds a group, in place of one with the same name.
    fn insert(
        &mut self,
        name: NamespacedName,
        read: Result<GroupDraft, InputError>,
        object: ObjectKey,
        quarantine: &mut Quarantine,
    ) {
        match read {
            Ok(draft) => {
                self.broken.remove(&name);
                self.good.insert(name, draft);
            }
            Err(error) => {
                self.good.remove(&name);
                quarantine.add(object.clone(), None, error);
                self.broken.insert(name, object);
            }
        }
    }
}

/// Reads a PodGroup; `None` if it causes a warning.
pub(crate) fn read_pod_group(
    name: &NamespacedName,
    object: &PodGroup,
    classes: &Classes,
    texts: &mut Interner,
) -> Result<Option<GroupDraft>, InputError> {
    let mut warnings = Vec::new();
    let source = Source { file: "the cluster".into(), document: 1, item: None };
    let read = GroupReader { classes, texts, warnings: &mut warnings, kind: Kind::PodGroup, name, source: &source };
    let group = read.pod_group(object)?;
    Ok(Some(group).filter(|_| warnings.is_empty()))
}

/// Returns why the preemption priority of a group is refused, if it is.
pub(crate) fn refused_priority(object: &PodGroup, classes: &Classes) -> Option<InvalidPreemptionPriority> {
    let priority = classes.priority(object.spec.priority, object.spec.priority_class_name.as_deref()).ok()?;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    preemption_priority(preemption_class(object), namespace, priority, classes).err()
}

fn preemption_class(object: &PodGroup) -> Option<Untrusted<&str>> {
    object.metadata.annotations.as_ref()?.get(PREEMPTION_PRIORITY_CLASS).map(|class| Untrusted::new(class.as_str()))
}

/// Returns the group itself and each replica of it that a pod names.
fn replicas(objects: &ObjectSet, part: &NamespacedName) -> BTreeSet<NamespacedName> {
    let prefix = format!("{}/", part.name);
    let named = objects.pods.iter().filter_map(|pod| group_of(&pod.object));
    let replicas = named.filter(|group| group.namespace == part.namespace && group.name.starts_with(&prefix));
    replicas.chain(std::iter::once(part.clone())).collect()
}

struct GroupReader<'a> {
    classes: &'a Classes,
    texts: &'a mut Interner,
    warnings: &'a mut Vec<Warning>,
    kind: Kind,
    name: &'a NamespacedName,
    source: &'a Source,
}

impl GroupReader<'_> {
    fn pod_group(mut self, object: &PodGroup) -> Result<GroupDraft, InputError> {
        let spec = &object.spec;
        let gang = spec.scheduling_policy.gang.as_ref();
        let constraints = spec.scheduling_constraints.as_ref().and_then(|constraints| constraints.topology.as_ref());
        let unsupported = field_of_group(object);
        let unsupported = unsupported.map(|field| TextId(self.texts.id(&format!("PodGroup {}: {field}", self.name))));
        let (group, values) = self.group(GroupFields {
            priority: spec.priority,
            class: spec.priority_class_name.as_deref(),
            preemption_class: preemption_class(object),
            preemption_policy: spec.preemption_policy.as_deref(),
            min_count: gang.map_or(1, |gang| gang.min_count),
            evicts_whole: spec.disruption_mode.as_ref().is_some_and(|mode| mode.all.is_some()),
        })?;
        let topology_key = constraints.and_then(|topology| topology.first()).map(|topology| topology.key.clone());
        Ok(GroupDraft { group: Group { unsupported, ..group }, values: Some(values), topology_key })
    }

    fn workload_group(mut self, workload: &Workload, part: &WorkloadGroup) -> Result<GroupDraft, InputError> {
        let (group, values) = self.group(GroupFields {
            priority: None,
            class: workload.spec.priority_class_name.as_deref(),
            preemption_class: workload.spec.preemption_priority_class_name.as_deref().map(Untrusted::new),
            preemption_policy: None,
            min_count: part.policy.gang.as_ref().map_or(1, |gang| gang.min_count),
            evicts_whole: evicts_whole(part),
        })?;
        Ok(GroupDraft { group, values: Some(values), topology_key: None })
    }

    fn group(&mut self, fields: GroupFields<'_>) -> Result<(Group, GroupValues), InputError> {
        let object = ObjectRef::of(self.kind, self.name);
        let located = |error: InputError| error.at(self.source).object(object.clone());
        let priority = self.classes.priority(fields.priority, fields.class).map_err(located)?;
        let min_count = usize::try_from(fields.min_count)
            .map_err(|_| InputError::new(format!("{} is negative; write 1 or more", fields.min_count)))
            .map_err(|error| located(error.field("minCount")))?;
        let victim_priority =
            preemption_priority(fields.preemption_class, &self.name.namespace, priority, self.classes).unwrap_or_else(
                |refused| {
                    self.warnings.push(format!("{object}: {refused}").into());
                    priority
                },
            );
        let preempts = self.classes.preempts(fields.preemption_policy, fields.class);
        let class = fields.class.filter(|class| !class.is_empty()).map(str::to_owned);
        let sets_policy = fields.preemption_policy.is_some() || class.is_some();
        let values = GroupValues { priority, preempts, sets_policy, class };
        let group = Group {
            min_count,
            priority,
            victim_priority,
            preempts,
            mode: if fields.evicts_whole { DisruptionMode::All } else { DisruptionMode::Single },
            topology: None,
            unsupported: None,
            from_owner: false,
            members: Vec::new(),
        };
        Ok((group, values))
    }
}

/// The fields of a PodGroup or Workload that define a group.
struct GroupFields<'a> {
    priority: Option<i32>,
    class: Option<&'a str>,
    preemption_class: Option<Untrusted<&'a str>>,
    preemption_policy: Option<&'a str>,
    min_count: i32,
    evicts_whole: bool,
}

fn evicts_whole(part: &WorkloadGroup) -> bool {
    part.policy.gang.as_ref().and_then(|gang| gang.preemption_mode) == Some(PreemptionMode::PodGroup)
}
