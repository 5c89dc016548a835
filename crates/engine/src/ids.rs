//! Dense numbers that replace names. `loader` assigns them once and turns them back into names for output.

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The id of the item at `index`.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("a cluster has fewer than 2^32 of anything"))
            }
            /// The index of the item in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

id! {
    /// A node. The order of ids is the order of names.
    NodeId,
    /// A pod, bound or pending.
    PodId,
    /// A unit of preemption: a pod, all running pods of a group, or an admitted workload.
    UnitId,
    /// A group of pods that are scheduled together.
    GroupId,
    /// A shape: the part of a pod that filters read.
    ShapeId,
    /// A disruption budget.
    BudgetId,
    /// A resource; [`ResourceId::PODS`] is the number of pods.
    ResourceId,
    /// A namespace.
    NamespaceId,
    /// A label's key.
    KeyId,
    /// The value of a label or taint, or the name of a node in `matchFields`.
    ValueId,
    /// A node label that divides the cluster into domains.
    TopologyId,
    /// A queue of the quota tree.
    QueueId,
    /// A workload, admitted or pending. The order of ids is the order of namespaces, then names.
    WorkloadId,
    /// A resource flavor.
    FlavorId,
    /// A resource that has quota.
    QuotaResourceId,
    /// A pair of a flavor and a resource, for which quota is counted.
    FlavorResourceId,
    /// A job: its pods are placed together or not at all.
    JobId,
    /// An application: pods that belong together in one queue.
    ApplicationId,
    /// A text that only explanations contain.
    TextId,
}

impl ResourceId {
    /// The number of pods, which Kubernetes counts as a resource of a node.
    pub const PODS: Self = Self(0);
}

/// A priority of Kubernetes; higher is more important.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub i32);

/// A share under fair sharing in thousandths, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareMilli {
    /// The share of a queue that has a weight or does not borrow.
    Finite(i128),
    /// The queue borrows and has no weight.
    Infinite,
}

/// Microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The start time of a pod that has not started; it counts as the youngest.
    pub const NOT_STARTED: Self = Self(i64::MAX);

    /// This many microseconds later; the sum saturates.
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// This many seconds later; the sum saturates.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }
}
