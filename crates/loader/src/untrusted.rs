//! What a tenant writes and what would decide about other tenants' units, or raise the tenant's own priority or protection beyond what an
//! administrator has given to it. `docs/security.md` lists these fields.

/// A value of such a field, for example the preemption priority class that a PodGroup names. The snapshot has no such values, so no law can
/// read one: only the result of a check against something that the tenant cannot write gets into the snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks a value that was just read.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns what the check concludes from the value.
    pub fn check<U>(self, check: impl FnOnce(T) -> U) -> U {
        check(self.0)
    }
}
