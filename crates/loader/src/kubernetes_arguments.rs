//! The arguments of policy Kubernetes in a profile.

use reprieve_api::{InputError, Profile};
use reprieve_engine::policy::kubernetes::{Cascades, Kubernetes, PriorityMismatch, Search, StaleNominations};

use crate::arguments::{boolean, one_of, owner_kinds, unknown_argument};

const KNOWN: &str = "cascades, compatibility, gangsFromOwners, maxPreemptionPriorityExcess, priorityCut, priorityMismatch, search and \
                     staleNominations";

/// Reads the settings of policy Kubernetes. Each argument has priority over `compatibility`.
pub(crate) fn read(profile: &Profile) -> Result<Kubernetes, InputError> {
    let mut policy = Kubernetes::default();
    if let Some(value) = profile.args.get("compatibility") {
        policy = one_of(value, "args.compatibility", &[("1.37", Kubernetes::compatible())])?;
    }
    for (argument, value) in &profile.args {
        let field = format!("args.{argument}");
        match argument.as_str() {
            "compatibility" => {}
            "priorityCut" => policy.priority_cut = boolean(value, field)?,
            "priorityMismatch" => {
                let values = [("Report", PriorityMismatch::Report), ("Refuse", PriorityMismatch::Refuse)];
                policy.priority_mismatch = one_of(value, &field, &values)?;
            }
            "cascades" => {
                policy.cascades =
                    one_of(value, &field, &[("Include", Cascades::Include), ("Ignore", Cascades::Ignore)])?;
            }
            "gangsFromOwners" => policy.gangs_from_owners = owner_kinds(value, &field)?,
            "maxPreemptionPriorityExcess" => {
                let number = value.as_u64().and_then(|limit| u32::try_from(limit).ok());
                let problem = format!("{value} is not a whole number from 0 to {}; write one", u32::MAX);
                let number = number.ok_or_else(|| InputError::new(problem).field(field))?;
                policy.max_preemption_priority_excess = number;
            }
            "staleNominations" => {
                let values = [("Replan", StaleNominations::Replan), ("Wait", StaleNominations::Wait)];
                policy.stale_nominations = one_of(value, &field, &values)?;
            }
            "search" => {
                policy.search = one_of(value, &field, &[("Complete", Search::Complete), ("Greedy", Search::Greedy)])?;
            }
            _ => return Err(unknown_argument("Kubernetes", KNOWN, field)),
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use reprieve_engine::policy::owner_kinds::OwnerKind;
    use serde_json::Value;

    use super::*;

    fn settings(args: Value) -> Kubernetes {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        let profile = Profile { args: args.into_iter().collect(), ..Profile::of_policy("Kubernetes") };
        read(&profile).expect("the arguments are valid")
    }

    #[test]
    fn a_single_argument_has_priority_over_compatibility() {
        for version in [Value::from("1.37"), Value::from(1.37)] {
            assert_eq!(settings(serde_json::json!({"compatibility": version})), Kubernetes::compatible());
        }
        let mixed = settings(serde_json::json!({
            "cascades": "Include", "compatibility": "1.37", "gangsFromOwners": ["JobSet", "IndexedJob"], "search": "Complete",
        }));
        let owners = [OwnerKind::JobSet, OwnerKind::IndexedJob].into_iter().collect();
        let expected = Kubernetes {
            cascades: Cascades::Include,
            gangs_from_owners: owners,
            search: Search::Complete,
            ..Kubernetes::compatible()
        };
        assert_eq!(mixed, expected);
    }
}
