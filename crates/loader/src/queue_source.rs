//! The policy objects from which the queues of a snapshot come.

use reprieve_api::{NamespacedName, Pod};
use reprieve_engine::QueueId;
use reprieve_engine::snapshot::{Cluster, QueueRefusal};

use crate::koordinator::ElasticQuotaTree;
use crate::names::QueueNames;
use crate::quarantine::Problem;
use crate::queue_settings::QueueScope;
use crate::quota::{KueueTables, WorkloadReader};
use crate::yunikorn::YuniKornTree;
use crate::yunikorn_pods::queue_of;

/// The objects from which the queues come. If the input has objects of several policies, YuniKorn's are used before Koordinator's, and
/// those before Kueue's.
pub enum QueueSource {
    /// The ConfigMap of YuniKorn.
    YuniKorn(YuniKornTree),
    /// The ElasticQuotas of Koordinator.
    Koordinator(ElasticQuotaTree),
    /// The ClusterQueues of Kueue, whose quota workloads use, not pods.
    Kueue(Box<WorkloadReader>),
    /// The input has no queues, or Kueue's are not read yet.
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

    /// Returns the queue whose quota a pod uses. A pod that names a queue in which it cannot run has a problem.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, Problem> {
        match self {
            Self::YuniKorn(tree) => queue_of(pod).and_then(|path| tree.queue_id(&path)).transpose(),
            Self::Koordinator(quotas) => quotas.queue_of(pod),
            Self::Kueue(_) | Self::None => Ok(None),
        }
    }

    /// Returns the queue that a pod names and may not use, and why. A queue that an administrator restricted to users is refused, because
    /// the users of pods are not known.
    pub fn refused_queue(&self, pod: &Pod, scope: &QueueScope) -> Option<(String, QueueRefusal)> {
        let queue = match self {
            Self::YuniKorn(tree) => {
                let path = queue_of(pod)?;
                if let Some(queue) = tree.restricted(&path) {
                    return Some((queue.to_owned(), QueueRefusal::RestrictedToUsers));
                }
                path
            }
            Self::Koordinator(quotas) => quotas.key_of(pod)?,
            Self::Kueue(_) | Self::None => return None,
        };
        let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
        (!scope.permits(&namespace, &queue)).then_some((queue, QueueRefusal::NamespaceHasNoAccess))
    }

    /// Whether an administrator defined the queue. Only YuniKorn has others: the dynamic queues that pods name.
    pub fn is_configured(&self, queue: QueueId) -> bool {
        match self {
            Self::YuniKorn(tree) => tree.is_configured(queue),
            Self::Koordinator(_) | Self::Kueue(_) | Self::None => true,
        }
    }

    /// Whether the tree must be built again before the queue of this pod is known: YuniKorn creates queues that pods name
    /// and may use.
    pub fn lacks_queue_of(&self, pod: &Pod, scope: &QueueScope) -> bool {
        match self {
            Self::YuniKorn(tree) => {
                queue_of(pod).is_some_and(|path| tree.queue_id(&path).is_none())
                    && self.refused_queue(pod, scope).is_none()
            }
            Self::Koordinator(_) | Self::Kueue(_) | Self::None => false,
        }
    }

    /// Whether the tree must be built again when this pod comes or goes, because its queue and those of other pods exclude each other.
    pub fn depends_on(&self, pod: &Pod) -> bool {
        match self {
            Self::YuniKorn(tree) => queue_of(pod).is_some_and(|path| tree.depends_on_pods_of(&path)),
            Self::Koordinator(_) | Self::Kueue(_) | Self::None => false,
        }
    }

    /// Returns the reader of Kueue's workloads.
    pub fn workloads(&self) -> Option<&WorkloadReader> {
        if let Self::Kueue(workloads) = self { Some(workloads) } else { None }
    }

    /// Returns the reader of Kueue's workloads, to update their order.
    pub fn workloads_mut(&mut self) -> Option<&mut WorkloadReader> {
        if let Self::Kueue(workloads) = self { Some(workloads) } else { None }
    }

    /// Writes the queues and Kueue's workloads into the tables. Returns their names, and warnings about Kueue's objects.
    pub(crate) fn fill(
        &mut self,
        cluster: &mut Cluster,
        resources: &[String],
        kueue: Option<KueueTables>,
    ) -> (QueueNames, Vec<String>) {
        let named = |queues: Vec<String>| (QueueNames { queues, ..QueueNames::default() }, Vec::new());
        match (&*self, kueue) {
            (Self::YuniKorn(tree), _) => {
                let offered = |index: usize| {
                    cluster.nodes.iter().fold(0_i64, |sum, node| sum.saturating_add(node.allocatable[index]))
                };
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
