//! The kinds that a policy reads from the cluster.

use reprieve_api::{Kind, Reader};
use reprieve_engine::Policy;
use reprieve_loader::policy::reader;

/// The ConfigMap with YuniKorn's queues, the only ConfigMap that is read.
pub const QUEUES: &str = "yunikorn-configs";

/// The kinds that a scheduler with this policy reads.
pub fn kinds(policy: &Policy) -> impl Iterator<Item = Kind> {
    let own = reader(policy);
    Kind::ALL.iter().copied().filter(move |kind| [Reader::All, own].contains(&kind.resource().reader))
}
