//! The names of the ids in a snapshot. `report` and `scheduler` look names up for output.

use std::collections::BTreeMap;

use reprieve_engine::shape::{Effect, Taint};
use reprieve_engine::{
    BudgetId, FlavorId, GroupId, JobId, NodeId, PodId, QueueId, QuotaResourceId, ResourceId, TextId, TopologyId,
    WorkloadId,
};

use reprieve_api::NamespacedName;

/// The names of everything in a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub(crate) nodes: Vec<String>,
    pub(crate) pods: Numbered<PodId>,
    pub(crate) groups: Numbered<GroupId>,
    pub(crate) jobs: Vec<NamespacedName>,
    pub(crate) budgets: Vec<NamespacedName>,
    pub(crate) queues: QueueNames,
    pub(crate) resources: Vec<String>,
    pub(crate) topologies: Vec<String>,
    /// Indexed by topology and domain.
    pub(crate) domains: Vec<Vec<String>>,
    pub(crate) keys: Vec<String>,
    pub(crate) values: Vec<String>,
    pub(crate) texts: Vec<String>,
}

/// The names of queues, and of Kueue's workloads and flavors.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueNames {
    pub(crate) queues: Vec<String>,
    pub(crate) workloads: Numbered<WorkloadId>,
    /// Indexed by workload.
    pub(crate) pod_sets: Vec<Vec<String>>,
    pub(crate) flavors: Vec<String>,
    pub(crate) resources: Vec<String>,
}

/// Names by id, and ids by name. The id of a deleted object keeps its name until another object gets the id.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<Id> {
    pub(crate) names: Vec<NamespacedName>,
    pub(crate) ids: BTreeMap<NamespacedName, Id>,
}

impl<Id> Default for Numbered<Id> {
    fn default() -> Self {
        Self { names: Vec::new(), ids: BTreeMap::new() }
    }
}

impl<Id: Copy> Numbered<Id> {
    /// Gives names ids in their order.
    pub(crate) fn new(names: Vec<NamespacedName>, id: impl Fn(usize) -> Id) -> Self {
        let ids = names.iter().cloned().enumerate().map(|(index, name)| (name, id(index))).collect();
        Self { names, ids }
    }

    pub(crate) fn id(&self, name: &NamespacedName) -> Option<Id> {
        self.ids.get(name).copied()
    }
}

/// Defines functions that return a name by its id.
macro_rules! by_id {
    ($($(#[$doc:meta])* $name:ident($id:ty) -> $type:ty: $($field:ident).+;)+) => {
        impl Names {
            $($(#[$doc])* pub fn $name(&self, id: $id) -> &$type {
                &self.$($field).+[id.index()]
            })+
        }
    };
}
by_id! {
    /// A node's name.
    node(NodeId) -> str: nodes;
    /// A pod's namespace and name.
    pod(PodId) -> NamespacedName: pods.names;
    /// A text from the input that an explanation quotes.
    text(TextId) -> str: texts;
    /// A group's namespace and name.
    group(GroupId) -> NamespacedName: groups.names;
    /// A workload's namespace and name.
    workload(WorkloadId) -> NamespacedName: queues.workloads.names;
    /// A flavor's name.
    flavor(FlavorId) -> str: queues.flavors;
    /// The name of a resource that quota is about.
    quota_resource(QuotaResourceId) -> str: queues.resources;
    /// The names of a workload's pod sets.
    pod_sets(WorkloadId) -> [String]: queues.pod_sets;
    /// A job's namespace and name.
    job(JobId) -> NamespacedName: jobs;
    /// A disruption budget's namespace and name.
    budget(BudgetId) -> NamespacedName: budgets;
    /// A queue's path.
    queue(QueueId) -> str: queues.queues;
    /// A resource's name.
    resource(ResourceId) -> str: resources;
    /// The label key of a topology.
    topology(TopologyId) -> str: topologies;
}

impl Names {
    /// Returns all pods in the order of their names.
    pub fn pod_ids(&self) -> impl Iterator<Item = PodId> + '_ {
        self.pods.ids.values().copied()
    }

    /// Finds a workload by name.
    pub fn workload_id(&self, name: &NamespacedName) -> Option<WorkloadId> {
        self.queues.workloads.id(name)
    }

    /// Returns the name of a domain of a topology.
    pub fn domain(&self, topology: TopologyId, domain: u32) -> &str {
        &self.domains[topology.index()][domain as usize]
    }

    /// Formats a taint as kubectl does.
    pub fn taint(&self, taint: &Taint) -> String {
        let effect = match taint.effect {
            Effect::NoSchedule => "NoSchedule",
            Effect::PreferNoSchedule => "PreferNoSchedule",
            Effect::NoExecute => "NoExecute",
        };
        let (key, value) = (&self.keys[taint.key.index()], &self.values[taint.value.index()]);
        if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
    }

    /// Finds a node by name.
    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.nodes.binary_search_by(|node| node.as_str().cmp(name)).ok().map(NodeId::new)
    }

    /// Finds a pod by name.
    pub fn pod_id(&self, name: &NamespacedName) -> Option<PodId> {
        self.pods.id(name)
    }

    /// Finds a group by name.
    pub fn group_id(&self, name: &NamespacedName) -> Option<GroupId> {
        self.groups.id(name)
    }
}
