//! Dense numbers that stand for names. They are given out once, by whoever builds the snapshot; names come back only for output.

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
            /// Where the item stands in its table.
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
    /// What is preempted whole: a pod, or all running pods of a group.
    UnitId,
    /// A group of pods that are scheduled together.
    GroupId,
    /// What filters read of a pod; pods made from one template share it.
    ShapeId,
    /// A disruption budget.
    BudgetId,
    /// A resource; [`ResourceId::PODS`] is the number of pods.
    ResourceId,
    /// A namespace.
    NamespaceId,
    /// A label's key.
    KeyId,
    /// A label's value, a taint's value, or a node's name where a selector asks for it.
    ValueId,
    /// A node label that divides the cluster into domains.
    TopologyId,
    /// An account in the quota tree.
    QueueId,
    /// A workload, admitted or pending. The order of ids is the order of namespaces, then names.
    WorkloadId,
    /// A resource flavor.
    FlavorId,
    /// A resource that quota is about.
    QuotaResourceId,
    /// A flavor and a resource: what quota is counted in.
    FlavorResourceId,
    /// A job: pods that are placed all or not at all.
    JobId,
    /// An application: pods that belong together in one queue.
    ApplicationId,
    /// A text that no decision reads: it is handed through to the explanation.
    TextId,
}

impl ResourceId {
    /// The number of pods, which Kubernetes counts as a resource of the node.
    pub const PODS: Self = Self(0);
}

/// A priority as Kubernetes has it: higher matters more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub i32);

/// A share under fair sharing, in thousandths, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareMilli {
    /// A share of a queue that has a weight, or that borrows nothing.
    Finite(i128),
    /// The queue borrows and has no weight.
    Infinite,
}

/// Microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The start of what has not started: it counts as the youngest.
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
