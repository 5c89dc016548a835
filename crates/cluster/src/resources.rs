//! Which kinds a scheduler of a policy reads.

use reprieve_api::kinds::{Kind, Reader};
use reprieve_engine::policy::Policy;
use reprieve_loader::policy::reader;

/// The ConfigMap with YuniKorn's queues: the only one that is read.
pub const QUEUES: &str = "yunikorn-configs";

/// The kinds that a scheduler of this policy reads.
pub fn kinds(policy: &Policy) -> impl Iterator<Item = Kind> {
    let own = reader(policy);
    Kind::ALL.iter().copied().filter(move |kind| {
        let by = kind.resource().reader;
        by == Reader::All || by == own
    })
}
