//! No pod or workload of the hostile tenant is scheduled or a victim: the scheduler only reports why its objects wait, or what is wrong with them.

use reprieve_scheduler::{Action, Step};

use super::CheckResult;
use crate::hostile::TENANT;

pub(super) fn check(step: &Step) -> CheckResult {
    let is_change = |action: &&Action| {
        matches!(
            action,
            Action::Bind { .. }
                | Action::Nominate { .. }
                | Action::Mark { .. }
                | Action::Unmark { .. }
                | Action::Evict { .. }
                | Action::SoftEvict { .. }
                | Action::Admit { .. }
                | Action::EvictWorkload { .. }
                | Action::StartJob { .. }
        )
    };
    let mut changes = step.actions.iter().map(|(_, action)| action).filter(is_change);
    let of_tenant = |action: &&Action| action.changes().is_some_and(|(_, target)| target.name.namespace == TENANT);
    match changes.find(of_tenant) {
        Some(action) => Err(format!("{action:?}")),
        None => Ok(()),
    }
}
