//! Whether a bound pod is created again after its eviction.

/// What follows the eviction of a pod. docs/rules/kubernetes-groups.md#g28
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recreation {
    /// Nothing creates the pod again.
    #[default]
    Never,
    /// Its controller creates an equal pod, which this policy decides.
    Decided,
    /// Its controller creates an equal pod, for which nothing is decided: another scheduler places it, or it has a requirement that no
    /// decision evaluates.
    NotDecided,
}
