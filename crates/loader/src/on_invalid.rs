//! What is done with objects that cannot be used.

/// What to do with a pod on a node that is missing, and with one that cannot be understood: an error, or a warning, and the pod is
/// left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalid {
    /// Both are errors: somebody wrote the objects for this.
    Test,
    /// A missing node is a warning, for real clusters have such moments; the rest is somebody's to correct.
    Files,
    /// Both are warnings: whoever watches a cluster goes on.
    Live,
}
