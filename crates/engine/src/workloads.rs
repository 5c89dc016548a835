//! Workloads: what holds quota, or asks for it, without a word about nodes.

use std::cmp::Reverse;

use crate::ids::{
    FlavorId, FlavorResourceId, PodId, Priority, QueueId, QuotaResourceId, TextId, Timestamp, WorkloadId,
};
use crate::queues::QueueTree;
use crate::shape::TaintToleration;

/// What asks for quota or holds it: a row of the table of workloads, flat as [`crate::snapshot::Pod`] is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The queue that admitted it, or that it waits in; `None` where there is no such queue.
    pub queue: Option<QueueId>,
    /// What it holds, if it was admitted.
    pub admission: Option<Admission>,
    /// Its priority.
    pub priority: Priority,
    /// Whether its queue takes workloads of its namespace.
    pub namespace_fits: bool,
    /// Whether Kueue admits it under no circumstances: a request exceeds its limit, or a LimitRange forbids it.
    pub invalid: bool,
    /// Whether nobody is taken in its namespace.
    pub protected: bool,
    /// When it was created.
    pub created: Timestamp,
    /// Whether it asks for quota at all; one that was deactivated does not.
    pub active: bool,
    /// When it first asked for quota and got none; `None` where it never did.
    pub waiting_since: Option<Timestamp>,
    /// From when on it may preempt again, where it was preempted.
    pub preempts_from: Option<Timestamp>,
    /// Its place in the order of uids, which decides the last ties.
    pub rank: u64,
    /// Its pod sets.
    pub pod_sets: Vec<PodSet>,
    /// What it costs to disturb it, by how long it ran; in the order of time.
    pub milestones: Vec<Milestone>,
    /// What becomes of it when it is preempted.
    pub on_preemption: OnPreemption,
    /// A field of the workload, or of an object that its admission depends on, that no decision evaluates.
    pub unsupported: Option<TextId>,
    /// The name of the Job whose pods it stands for. No decision reads it.
    pub job: Option<TextId>,
}

impl Workload {
    /// The order in which the pending workloads of a queue are decided: higher priority, then the older, then by uid.
    pub fn queue_order(&self) -> (Reverse<Priority>, Timestamp, u64) {
        (Reverse(self.priority), self.created, self.rank)
    }

    /// The order in which a queue's workloads are taken: already evicted, lower priority, later admitted, then by uid. (Rule 15 of the
    /// flat cohorts.)
    fn order(&self) -> impl Ord + use<> {
        let admission = self.admission.as_ref();
        let evicted = admission.is_some_and(|admission| admission.evicted);
        (!evicted, self.priority, Reverse(admission.map(|admission| admission.since)), self.rank)
    }
}

/// What it costs to disturb a workload that ran for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// How long.
    pub seconds: u32,
    /// The cost.
    pub cost: u32,
}

/// What becomes of a workload that is preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPreemption {
    /// It waits for quota again.
    #[default]
    Requeue,
    /// It is over.
    Terminate,
}

/// What a workload holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// How much of each cell of quota.
    pub usage: Vec<(FlavorResourceId, i64)>,
    /// Since when.
    pub since: Timestamp,
    /// Whether it was evicted and has yet to leave.
    pub evicted: bool,
}

/// Pods of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSet {
    /// How many.
    pub count: i64,
    /// How few will do.
    pub min_count: Option<i64>,
    /// What each asks for.
    pub requests: Vec<(QuotaResourceId, i64)>,
    /// By flavor: whether they may use it.
    pub may_use: Vec<bool>,
    /// Its pods: those that there are, of a workload that was admitted; those that need a node, of one that asks. Empty where nodes
    /// play no part.
    pub pods: Vec<PodId>,
}

/// What Kueue's objects say beyond the tree itself; by queue, in the tree's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaRules {
    /// By queue.
    pub queues: Vec<QueueRules>,
    /// By flavor and resource: the cell of quota, if any queue has one.
    pub flavor_resources: Vec<Vec<Option<FlavorResourceId>>>,
    /// By cell: its resource.
    pub resource_of: Vec<QuotaResourceId>,
    /// The resource `pods`, where any queue lists it.
    pub pods: Option<QuotaResourceId>,
    /// By flavor: its nodes; empty where nodes play no part.
    pub flavors: Vec<FlavorNodes>,
    /// By queue: how many levels are below it.
    pub(crate) heights: Vec<usize>,
    /// By queue: those directly below it.
    pub(crate) children: Vec<Vec<QueueId>>,
    /// By queue: the workloads that hold its quota, in the order in which they are taken where no queue asks for another.
    pub(crate) admitted: Vec<Vec<WorkloadId>>,
    /// By queue: whether it costs something to disturb one of them, so that their order depends on the time.
    pub(crate) has_milestones: Vec<bool>,
    /// By queue and cell, one row after the other: what the queue, or everything below it, has of its own.
    pub(crate) nominal: Vec<i64>,
    /// In the same way: what could be available if nobody used anything.
    pub(crate) potential: Vec<i64>,
    /// By resource: its cells.
    pub(crate) flavor_resources_of: Vec<Vec<FlavorResourceId>>,
}

impl QuotaRules {
    /// From its tables; `cells` is by flavor and resource, `resource_of` by cell.
    pub fn new(
        queues: Vec<QueueRules>,
        cells: Vec<Vec<Option<FlavorResourceId>>>,
        resource_of: Vec<QuotaResourceId>,
        pods: Option<QuotaResourceId>,
    ) -> Self {
        Self { queues, flavor_resources: cells, resource_of, pods, ..Self::default() }
    }

    /// Works out what a search looks up all the time.
    pub(crate) fn index(&mut self, queues: &QueueTree, workloads: &[Workload]) {
        let n = queues.ids().len();
        (self.heights, self.children, self.admitted) = (vec![0; n], vec![Vec::new(); n], vec![Vec::new(); n]);
        for at in (0..n).rev() {
            if let Some(parent) = queues.get(QueueId::new(at)).parent {
                self.heights[parent.index()] = self.heights[parent.index()].max(self.heights[at] + 1);
            }
        }
        for id in queues.ids() {
            if let Some(parent) = queues.get(id).parent {
                self.children[parent.index()].push(id);
            }
        }
        self.has_milestones = vec![false; n];
        for (at, workload) in workloads.iter().enumerate() {
            if let (Some(queue), Some(_)) = (workload.queue, &workload.admission) {
                self.admitted[queue.index()].push(WorkloadId::new(at));
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
        for (at, resource) in self.resource_of.iter().enumerate() {
            self.flavor_resources_of[resource.index()].push(FlavorResourceId::new(at));
        }
        let n_cells = queues.n_resources();
        (self.nominal, self.potential) = (Vec::new(), Vec::new());
        for (at, rules) in self.queues.iter().enumerate() {
            let queue = queues.get(QueueId::new(at));
            for cell in 0..n_cells {
                let nominal = queue.guarantee[cell];
                let potential = queue.parent.map_or(nominal, |parent| {
                    let most = queue.local_quota[cell].saturating_add(self.potential[parent.index() * n_cells + cell]);
                    rules.borrowing_limit[cell].map_or(most, |limit| most.min(nominal.saturating_add(limit)))
                });
                self.nominal.push(nominal);
                self.potential.push(potential);
            }
        }
    }

    /// A workload holds quota from now on.
    pub(crate) fn admit(&mut self, id: WorkloadId, queue: QueueId, workloads: &[Workload]) {
        let order = |id: WorkloadId| workloads[id.index()].order();
        let admitted = &mut self.admitted[queue.index()];
        let at = admitted.partition_point(|&other| order(other) < order(id));
        admitted.insert(at, id);
        self.has_milestones[queue.index()] |= !workloads[id.index()].milestones.is_empty();
    }

    /// A workload no longer holds quota.
    pub(crate) fn dismiss(&mut self, id: WorkloadId, queue: QueueId, workloads: &[Workload]) {
        let admitted = &mut self.admitted[queue.index()];
        admitted.retain(|&other| other != id);
        let costs = |id: &WorkloadId| !workloads[id.index()].milestones.is_empty();
        self.has_milestones[queue.index()] = admitted.iter().any(costs);
    }

    /// The cell of a flavor and a resource; none where no quota is about that resource.
    pub fn flavor_resource(&self, flavor: FlavorId, resource: QuotaResourceId) -> Option<FlavorResourceId> {
        self.flavor_resources.get(flavor.index())?.get(resource.index()).copied().flatten()
    }
}

/// The nodes of a flavor.
#[derive(Clone, Debug, PartialEq)]
pub struct FlavorNodes {
    /// By node: whether it has the flavor's labels.
    pub nodes: Vec<bool>,
    /// The taints that whoever uses the flavor bears.
    pub tolerations: Vec<TaintToleration>,
}

/// The rules of one queue: a field for each setting of a ClusterQueue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueRules {
    /// Whether it holds no workloads of its own, only queues.
    pub is_cohort: bool,
    /// By cell: how much it may borrow; `None` is as much as there is.
    pub borrowing_limit: Vec<Option<i64>>,
    /// Whom of its own workloads it may preempt.
    pub within: WithinClusterQueue,
    /// Whom in its cohort it may preempt for what it has lent.
    pub reclaim: ReclaimWithinCohort,
    /// How long a workload of it waits before it may preempt.
    pub trigger_after_seconds: i64,
    /// In which order it takes candidates.
    pub sorting: Sorting,
    /// Whether, and whom, it may preempt in order to borrow.
    pub borrow: BorrowWithinCohort,
    /// What it does with a flavor in which it could borrow.
    pub when_can_borrow: Fungibility,
    /// What it does with a flavor in which it could preempt.
    pub when_can_preempt: Fungibility,
    /// Whether it would rather preempt than borrow.
    pub preempts_before_borrowing: bool,
    /// Its weight in billionths, for fair sharing.
    pub weight: i64,
    /// Whether its first pending workload holds up those behind it.
    pub queueing: QueueingStrategy,
    /// Its resources in groups, each with its flavors in order; a cohort has none.
    pub groups: Vec<ResourceGroup>,
}

/// Resources that take one flavor together.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceGroup {
    /// The resources.
    pub resources: Vec<QuotaResourceId>,
    /// The flavors, in the order in which they are tried.
    pub flavors: Vec<FlavorId>,
}

/// `workloadSorting`: what decides between two candidates. The cost of disturbing them comes right before their running time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sorting {
    /// Whether the lower priority yields, and when.
    pub priority: ByPriority,
    /// Who yields by running time.
    pub runtime: ByRuntime,
}

/// When priority is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByPriority {
    /// Before running time.
    #[default]
    First,
    /// After it.
    Last,
    /// It is not.
    Never,
}

/// Who yields by running time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByRuntime {
    /// Who was admitted last.
    #[default]
    Lowest,
    /// Who was admitted first.
    Longest,
    /// It is not compared.
    Never,
}

/// `queueingStrategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueingStrategy {
    /// Whoever is behind the first waits for it.
    StrictFifo,
    /// Where the first can have nothing, the next is looked at.
    BestEffortFifo,
}

/// `withinClusterQueue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinClusterQueue {
    /// Nobody.
    Never,
    /// Whoever is lower.
    LowerPriority,
    /// Also equals that are newer.
    LowerOrNewerEqualPriority,
}

/// `reclaimWithinCohort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimWithinCohort {
    /// Nobody.
    Never,
    /// Whoever is lower.
    LowerPriority,
    /// Anybody.
    Any,
}

/// `borrowWithinCohort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BorrowWithinCohort {
    /// It may not.
    Never,
    /// Whoever is lower, and not above the threshold where there is one.
    LowerPriority {
        /// `maxPriorityThreshold`.
        threshold: Option<Priority>,
    },
}

/// What happens at a flavor that would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fungibility {
    /// It is taken.
    MayStopSearch,
    /// The next is looked at too.
    TryNextFlavor,
}
