//! Workloads, which hold or request quota, and the settings of Kueue's queues. No type here refers to nodes except for flavors.

use std::cmp::Reverse;

use crate::ids::{
    FlavorId, FlavorResourceId, PodId, Priority, QueueId, QuotaResourceId, TextId, Timestamp, WorkloadId,
};
use crate::queues::QueueTree;
use crate::shape::TaintToleration;

/// A workload that requests or holds quota.
// Fields: flat, like those of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The queue that admitted the workload or in which it waits; `None` if that queue does not exist.
    pub queue: Option<QueueId>,
    /// The quota that an admitted workload holds.
    pub admission: Option<Admission>,
    /// The priority.
    pub priority: Priority,
    /// Whether its queue selects its namespace.
    pub namespace_fits: bool,
    /// Whether Kueue never admits it: a request exceeds its limit, or violates a LimitRange.
    pub invalid: bool,
    /// Whether its namespace is protected.
    pub protected: bool,
    /// Whether a part of the admitted workload cannot be read, so that the laws cannot judge it.
    pub set_aside: bool,
    /// The creation time.
    pub created: Timestamp,
    /// Whether it is active; a deactivated workload requests no quota.
    pub active: bool,
    /// The time since which it waits for quota; `None` if it never waited.
    pub waiting_since: Option<Timestamp>,
    /// The time from which it may preempt again after it was preempted.
    pub preempts_from: Option<Timestamp>,
    /// The position in the order of UIDs, which breaks ties.
    pub rank: u64,
    /// The pod sets.
    pub pod_sets: Vec<PodSet>,
    /// The cost of disrupting it by running time, sorted by time.
    pub milestones: Vec<Milestone>,
    /// What happens to it after preemption.
    pub on_preemption: OnPreemption,
    /// A field of the workload, or of an object on which its admission depends, that the engine does not evaluate.
    pub unsupported: Option<TextId>,
    /// The name of its Job. No decision reads it.
    pub job: Option<TextId>,
}

impl Workload {
    /// The order of pending workloads in a queue: higher priority, then older, then by UID.
    pub fn queue_order(&self) -> (Reverse<Priority>, Timestamp, u64) {
        (Reverse(self.priority), self.created, self.rank)
    }

    /// docs/rules/kueue.md#k15: the order in which candidates of a queue are taken: evicted first, then lower priority, then admitted
    /// later, then by UID.
    fn order(&self) -> impl Ord + use<> {
        let admission = self.admission.as_ref();
        let evicted = admission.is_some_and(|admission| admission.evicted);
        (!evicted, self.priority, Reverse(admission.map(|admission| admission.since)), self.rank)
    }
}

/// The cost of disrupting a workload at one running time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// The running time in seconds.
    pub seconds: u32,
    /// The cost at that time.
    pub cost: u32,
}

/// What happens to a workload after preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPreemption {
    /// It is requeued.
    #[default]
    Requeue,
    /// It ends.
    Terminate,
}

/// The quota of an admitted workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The amounts by flavor-resource pair.
    pub usage: Vec<(FlavorResourceId, i64)>,
    /// The time of admission.
    pub since: Timestamp,
    /// Whether it was evicted and still holds the quota.
    pub evicted: bool,
}

/// Pods made from one template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSet {
    /// The number of pods.
    pub count: i64,
    /// The minimum for partial admission.
    pub min_count: Option<i64>,
    /// The requests of each pod.
    pub requests: Vec<(QuotaResourceId, i64)>,
    /// By flavor: whether the pods may use it.
    pub may_use: Vec<bool>,
    /// The existing pods of an admitted workload, or the pods to place of a pending one. Empty under
    /// [`crate::policy::kueue::PlacementMode::QuotaOnly`].
    pub pods: Vec<PodId>,
}

/// The settings of ClusterQueues and Cohorts, by queue in the tree's order, and indexes over them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaRules {
    /// By queue: its settings.
    pub queues: Vec<QueueRules>,
    /// By flavor and resource: the id of the pair; `None` if no queue has quota for it.
    pub flavor_resources: Vec<Vec<Option<FlavorResourceId>>>,
    /// By pair: its resource.
    pub resource_of: Vec<QuotaResourceId>,
    /// The resource `pods`, if a queue has quota for it.
    pub pods: Option<QuotaResourceId>,
    /// By flavor: its nodes; empty if no pods are placed.
    pub flavors: Vec<FlavorNodes>,
    /// By queue: the number of levels below it.
    pub(crate) heights: Vec<usize>,
    /// By queue: its children.
    pub(crate) children: Vec<Vec<QueueId>>,
    /// By queue: its admitted workloads, in the default order of candidates.
    pub(crate) admitted: Vec<Vec<WorkloadId>>,
    /// By queue: whether disrupting one of its workloads has a cost, so that the order of candidates depends on the time.
    pub(crate) has_milestones: Vec<bool>,
    /// By queue and pair: the nominal quota of the queue, or of the subtree of a cohort.
    pub(crate) nominal: Vec<i64>,
    /// By queue and pair: the quota that would be available without any usage.
    pub(crate) potential: Vec<i64>,
    /// By resource: its pairs.
    pub(crate) flavor_resources_of: Vec<Vec<FlavorResourceId>>,
}

impl QuotaRules {
    /// Creates the settings from their tables; `pairs` is by flavor and resource, `resource_of` by pair.
    pub fn new(
        queues: Vec<QueueRules>,
        pairs: Vec<Vec<Option<FlavorResourceId>>>,
        resource_of: Vec<QuotaResourceId>,
        pods: Option<QuotaResourceId>,
    ) -> Self {
        Self { queues, flavor_resources: pairs, resource_of, pods, ..Self::default() }
    }

    /// Computes the indexes that a search reads.
    pub(crate) fn index(&mut self, queues: &QueueTree, workloads: &[Workload]) {
        let n = queues.ids().len();
        (self.heights, self.children, self.admitted) = (vec![0; n], vec![Vec::new(); n], vec![Vec::new(); n]);
        for index in (0..n).rev() {
            if let Some(parent) = queues.get(QueueId::new(index)).parent {
                self.heights[parent.index()] = self.heights[parent.index()].max(self.heights[index] + 1);
            }
        }
        for id in queues.ids() {
            if let Some(parent) = queues.get(id).parent {
                self.children[parent.index()].push(id);
            }
        }
        self.has_milestones = vec![false; n];
        for (index, workload) in workloads.iter().enumerate() {
            if let (Some(queue), Some(_)) = (workload.queue, &workload.admission) {
                self.admitted[queue.index()].push(WorkloadId::new(index));
                self.has_milestones[queue.index()] |= !workload.milestones.is_empty();
            }
        }
        for admitted in &mut self.admitted {
            admitted.sort_unstable_by_key(|id| workloads[id.index()].order());
        }
        self.index_quota(queues);
    }

    fn index_quota(&mut self, queues: &QueueTree) {
        self.flavor_resources_of =
            vec![Vec::new(); self.resource_of.iter().map(|resource| resource.index() + 1).max().unwrap_or(0)];
        for (index, resource) in self.resource_of.iter().enumerate() {
            self.flavor_resources_of[resource.index()].push(FlavorResourceId::new(index));
        }
        let n_pairs = queues.n_resources();
        (self.nominal, self.potential) = (Vec::new(), Vec::new());
        for (index, rules) in self.queues.iter().enumerate() {
            let queue = queues.get(QueueId::new(index));
            for pair in 0..n_pairs {
                let nominal = queue.guarantee[pair];
                let potential = queue.parent.map_or(nominal, |parent| {
                    let max = queue.local_quota[pair].saturating_add(self.potential[parent.index() * n_pairs + pair]);
                    rules.borrowing_limit[pair].map_or(max, |limit| max.min(nominal.saturating_add(limit)))
                });
                self.nominal.push(nominal);
                self.potential.push(potential);
            }
        }
    }

    /// Adds an admitted workload to the index.
    pub(crate) fn admit(&mut self, id: WorkloadId, queue: QueueId, workloads: &[Workload]) {
        let order = |id: WorkloadId| workloads[id.index()].order();
        let admitted = &mut self.admitted[queue.index()];
        let position = admitted.partition_point(|&other| order(other) < order(id));
        admitted.insert(position, id);
        self.has_milestones[queue.index()] |= !workloads[id.index()].milestones.is_empty();
    }

    /// Removes a workload from the index.
    pub(crate) fn remove_admitted(&mut self, id: WorkloadId, queue: QueueId, workloads: &[Workload]) {
        let admitted = &mut self.admitted[queue.index()];
        admitted.retain(|&other| other != id);
        let costs = |id: &WorkloadId| !workloads[id.index()].milestones.is_empty();
        self.has_milestones[queue.index()] = admitted.iter().any(costs);
    }

    /// The id of the pair; `None` if no queue has quota for it.
    pub fn flavor_resource(&self, flavor: FlavorId, resource: QuotaResourceId) -> Option<FlavorResourceId> {
        self.flavor_resources.get(flavor.index())?.get(resource.index()).copied().flatten()
    }
}

/// The nodes of a flavor.
#[derive(Clone, Debug, PartialEq)]
pub struct FlavorNodes {
    /// By node: whether it has the labels of the flavor.
    pub nodes: Vec<bool>,
    /// The tolerations that the flavor adds to its pods.
    pub tolerations: Vec<TaintToleration>,
}

/// The settings of one ClusterQueue or Cohort.
// Fields: one for each setting of the API object.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueRules {
    /// Whether it is a cohort.
    pub is_cohort: bool,
    /// By pair: the borrowing limit; `None` without one.
    pub borrowing_limit: Vec<Option<i64>>,
    /// `withinClusterQueue`: which of its own workloads it may preempt.
    pub within: WithinClusterQueue,
    /// `reclaimWithinCohort`: which workloads in its cohort it may preempt to reclaim quota.
    pub reclaim: ReclaimWithinCohort,
    /// The seconds that a workload waits before it may preempt.
    pub trigger_after_seconds: i64,
    /// The order in which it takes candidates.
    pub sorting: Sorting,
    /// `borrowWithinCohort`: which workloads it may preempt in order to borrow.
    pub borrow: BorrowWithinCohort,
    /// `whenCanBorrow`.
    pub when_can_borrow: Fungibility,
    /// `whenCanPreempt`.
    pub when_can_preempt: Fungibility,
    /// Whether it prefers preempting to borrowing.
    pub preempts_before_borrowing: bool,
    /// The fair sharing weight in billionths.
    pub weight: i64,
    /// `queueingStrategy`.
    pub queueing: QueueingStrategy,
    /// The resource groups of a ClusterQueue; empty for a cohort.
    pub groups: Vec<ResourceGroup>,
}

/// Resources that get the same flavor.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceGroup {
    /// The resources.
    pub resources: Vec<QuotaResourceId>,
    /// The flavors, in the order of the search.
    pub flavors: Vec<FlavorId>,
}

/// `workloadSorting`: the order of candidates. The cost of disruption is compared directly before the running time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sorting {
    /// When priority is compared.
    pub priority: ByPriority,
    /// How running time is compared.
    pub runtime: ByRuntime,
}

/// When priority is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByPriority {
    /// Before running time; lower first.
    #[default]
    First,
    /// After running time; lower first.
    Last,
    /// Not compared.
    Never,
}

/// How running time is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByRuntime {
    /// The last admitted first.
    #[default]
    Lowest,
    /// The first admitted first.
    Longest,
    /// Not compared.
    Never,
}

/// `queueingStrategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueingStrategy {
    /// A workload waits for all before it.
    StrictFifo,
    /// If the first workload cannot be admitted, the next is tried.
    BestEffortFifo,
}

/// `withinClusterQueue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinClusterQueue {
    /// No workload.
    Never,
    /// Workloads of lower priority.
    LowerPriority,
    /// Also newer workloads of equal priority.
    LowerOrNewerEqualPriority,
}

/// `reclaimWithinCohort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimWithinCohort {
    /// No workload.
    Never,
    /// Workloads of lower priority.
    LowerPriority,
    /// Any workload.
    Any,
}

/// `borrowWithinCohort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BorrowWithinCohort {
    /// No workload.
    Never,
    /// Workloads of lower priority that do not exceed the threshold, if one is set.
    LowerPriority {
        /// `maxPriorityThreshold`.
        threshold: Option<Priority>,
    },
}

/// How the search goes on after a flavor that could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fungibility {
    /// The flavor is chosen.
    MayStopSearch,
    /// The next flavor is tried too.
    TryNextFlavor,
}
