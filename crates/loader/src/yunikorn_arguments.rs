//! The arguments of policy YuniKorn in a profile.

use reprieve_api::{InputError, Profile};
use reprieve_engine::policy::yunikorn::YuniKorn;

use crate::arguments::{boolean, one_of, owner_kinds};
use crate::queue_settings::{ARGUMENTS, QueueSettings};

/// Reads the settings of policy YuniKorn. Each argument has priority over `compatibility`.
pub(crate) fn read(profile: &Profile) -> Result<YuniKorn, InputError> {
    QueueSettings::of_profile(profile)?;
    let mut policy = YuniKorn::default();
    if let Some(value) = profile.args.get("compatibility") {
        policy = one_of(value, "args.compatibility", &[("1.8", YuniKorn::compatible())])?;
    }
    for (argument, value) in profile.args.iter().filter(|(argument, _)| !ARGUMENTS.contains(&argument.as_str())) {
        let field = format!("args.{argument}");
        match argument.as_str() {
            "compatibility" => {}
            "gangsFromOwners" => policy.gangs_from_owners = owner_kinds(value, &field)?,
            "podOptOut" => policy.pod_opt_out = boolean(value, field)?,
            "wholeGangs" => policy.whole_gangs = boolean(value, field)?,
            _ => {
                let problem = "policy YuniKorn has only the arguments compatibility, gangsFromOwners, podOptOut, wholeGangs, queues and queueAccess; set other \
                               options in the ConfigMap with the queues";
                return Err(InputError::new(problem).field(field));
            }
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(args: Value) -> Result<YuniKorn, InputError> {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        read(&Profile { args: args.into_iter().collect(), ..Profile::of_policy("YuniKorn") })
    }

    #[test]
    fn a_single_argument_has_priority_over_compatibility() {
        assert_eq!(settings(json!({})).expect("valid"), YuniKorn::default());
        for version in [json!("1.8"), json!(1.8)] {
            assert_eq!(settings(json!({"compatibility": version})).expect("valid"), YuniKorn::compatible());
        }
        let mixed = settings(json!({"compatibility": "1.8", "podOptOut": false})).expect("valid");
        assert_eq!(mixed, YuniKorn { pod_opt_out: false, ..YuniKorn::compatible() });
        let mixed = settings(json!({"compatibility": "1.8", "wholeGangs": true})).expect("valid");
        assert_eq!(mixed, YuniKorn { whole_gangs: true, ..YuniKorn::compatible() });
        assert!(!settings(json!({"wholeGangs": false})).expect("valid").whole_gangs);
    }

    #[test]
    fn errors_name_the_field() {
        for (args, field, problem) in [
            (json!({"compatibility": "1.37"}), "args.compatibility", "write \"1.8\""),
            (json!({"podOptOut": "yes"}), "args.podOptOut", "write true or false"),
            (json!({"wholeGangs": 1}), "args.wholeGangs", "write true or false"),
            (json!({"fence": true}), "args.fence", "policy YuniKorn has only the arguments"),
        ] {
            let error = settings(args).expect_err("the argument is wrong");
            assert_eq!(error.field.as_deref(), Some(field));
            assert!(error.problem.contains(problem), "{error}");
        }
    }
}
