//! The policy that reads a kind of object.

use reprieve_api::{Kind, Reader};
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

/// Whether decisions of a policy read objects of this kind.
pub fn reads(policy: &Policy, kind: Kind) -> bool {
    kind.resource().reader.includes(reader(policy))
}
