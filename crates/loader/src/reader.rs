//! The policy that reads a kind of object.

use reprieve_api::Reader;
use reprieve_engine::Policy;

/// Returns the policy as a reader in the table of kinds.
pub fn reader(policy: &Policy) -> Reader {
    match policy {
        Policy::Kubernetes(_) => Reader::Kubernetes,
        Policy::YuniKorn(_) => Reader::YuniKorn,
        Policy::Kueue(_) => Reader::Kueue,
        Policy::Koordinator(_) => Reader::Koordinator,
    }
}
