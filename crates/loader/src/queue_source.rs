//! Whose objects the queues come from.

use reprieve_api::{InputError, Pod};
use reprieve_engine::QueueId;
use reprieve_engine::snapshot::Cluster;

use crate::koordinator::ElasticQuotaTree;
use crate::names::QueueNames;
use crate::quota::{KueueTables, WorkloadReader};
use crate::yunikorn::{YuniKornTree, queue_of};

/// Whose objects the queues come from. One source counts: where the input has several, YuniKorn's before Koordinator's before Kueue's.
pub enum QueueSource {
    /// The ConfigMap of YuniKorn.
    YuniKorn(YuniKornTree),
    /// The ElasticQuotas of Koordinator.
    Koordinator(ElasticQuotaTree),
    /// The ClusterQueues of Kueue; pods are in none of them, workloads are.
    Kueue(Box<WorkloadReader>),
    /// The input has no queues, or those of Kueue are not read yet.
    None,
}

impl QueueSource {
    pub fn new(tree: Option<YuniKornTree>, quotas: Option<ElasticQuotaTree>) -> Self {
        match (tree, quotas) {
            (Some(tree), _) => Self::YuniKorn(tree),
            (None, Some(quotas)) => Self::Koordinator(quotas),
            (None, None) => Self::None,
        }
    }

    /// The queue whose quota a pod uses. An error where the pod names a quota that does not exist.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, InputError> {
        match self {
            Self::YuniKorn(tree) => Ok(queue_of(pod).and_then(|path| tree.queue_id(&path))),
            Self::Koordinator(quotas) => quotas.queue_of(pod),
            Self::Kueue(_) | Self::None => Ok(None),
        }
    }

    /// Whether a pod names a queue that YuniKorn would create for it.
    pub fn lacks_queue_of(&self, pod: &Pod) -> bool {
        match self {
            Self::YuniKorn(tree) => queue_of(pod).is_some_and(|path| tree.queue_id(&path).is_none()),
            Self::Koordinator(_) | Self::Kueue(_) | Self::None => false,
        }
    }

    /// The reader of workloads.
    pub fn workloads(&self) -> Option<&WorkloadReader> {
        match self {
            Self::Kueue(workloads) => Some(workloads),
            Self::YuniKorn(_) | Self::Koordinator(_) | Self::None => None,
        }
    }

    /// The reader of workloads, to keep their order.
    pub fn workloads_mut(&mut self) -> Option<&mut WorkloadReader> {
        match self {
            Self::Kueue(workloads) => Some(workloads),
            Self::YuniKorn(_) | Self::Koordinator(_) | Self::None => None,
        }
    }

    /// Puts the queues into the tables, with Kueue's workloads where they are in them. Returns the names, and what is wrong with
    /// some of Kueue's objects if they count.
    pub(crate) fn fill(
        &mut self,
        cluster: &mut Cluster,
        resources: &[String],
        kueue: Option<KueueTables>,
    ) -> (QueueNames, Vec<String>) {
        let named = |queues: Vec<String>| (QueueNames { queues, ..QueueNames::default() }, Vec::new());
        match (&*self, kueue) {
            (Self::YuniKorn(tree), _) => {
                let offered = |index: usize| cluster.nodes.iter().map(|node| node.allocatable[index]).sum();
                let offered: Vec<i64> = (0..resources.len()).map(offered).collect();
                cluster.queues = tree.to_queue_tree(resources, &offered);
                named(tree.queues.iter().map(|queue| queue.spec.name.clone()).collect())
            }
            (Self::Koordinator(quotas), _) => {
                cluster.queues = quotas.to_queue_tree(resources);
                named(quotas.specs.iter().map(|spec| spec.name.clone()).collect())
            }
            (Self::Kueue(_) | Self::None, Some(kueue)) => {
                let KueueTables { queues, rules, workloads, names, warnings, reader } = kueue;
                (cluster.queues, cluster.quota_rules, cluster.workloads) = (queues, rules, workloads);
                *self = Self::Kueue(Box::new(reader));
                (names, warnings)
            }
            (Self::Kueue(_) | Self::None, None) => (QueueNames::default(), Vec::new()),
        }
    }
}
