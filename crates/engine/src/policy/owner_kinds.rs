//! Which owners make their pods a gang: the argument `gangsFromOwners`, which several policies have.

/// A kind of owner whose pods can form a gang without a PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerKind {
    /// A JobSet.
    JobSet,
    /// One replica of a LeaderWorkerSet.
    LeaderWorkerSet,
    /// An MPIJob.
    MpiJob,
    /// A RayCluster.
    RayCluster,
    /// A TrainJob.
    TrainJob,
    /// A Job with indexed completions whose pods need each other.
    IndexedJob,
}

impl OwnerKind {
    /// All kinds, in the order in which they are listed for users.
    pub const ALL: [Self; 6] =
        [Self::JobSet, Self::LeaderWorkerSet, Self::MpiJob, Self::RayCluster, Self::TrainJob, Self::IndexedJob];

    /// Returns the value of the argument `gangsFromOwners` that means this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::JobSet => "JobSet",
            Self::LeaderWorkerSet => "LeaderWorkerSet",
            Self::MpiJob => "MPIJob",
            Self::RayCluster => "RayCluster",
            Self::TrainJob => "TrainJob",
            Self::IndexedJob => "IndexedJob",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds of owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerKinds(u8);

impl OwnerKinds {
    /// No kind: only groups that their pods name are gangs.
    pub const NONE: Self = Self(0);

    /// Every kind, the default.
    pub fn all() -> Self {
        OwnerKind::ALL.into_iter().collect()
    }

    /// Returns the values of the argument `gangsFromOwners` that mean these kinds.
    pub fn names(self) -> Vec<&'static str> {
        OwnerKind::ALL.into_iter().filter(|kind| self.contains(*kind)).map(OwnerKind::name).collect()
    }

    /// Returns whether the set has this kind.
    pub fn contains(self, kind: OwnerKind) -> bool {
        self.0 & kind.bit() != 0
    }
}

impl Default for OwnerKinds {
    fn default() -> Self {
        Self::all()
    }
}

impl FromIterator<OwnerKind> for OwnerKinds {
    fn from_iter<I: IntoIterator<Item = OwnerKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | kind.bit()))
    }
}
