//! Reads single arguments of a profile: booleans, one of several values, and `gangsFromOwners`, which several policies have.

use reprieve_api::InputError;
use reprieve_engine::policy::owner_kinds::{OwnerKind, OwnerKinds};
use serde_json::Value;

pub(crate) fn boolean(value: &Value, field: String) -> Result<bool, InputError> {
    value.as_bool().ok_or_else(|| InputError::new(format!("{value} is not valid; write true or false")).field(field))
}

pub(crate) fn unknown_argument(policy: &str, known: &str, field: String) -> InputError {
    InputError::new(format!("policy {policy} has no such argument; its arguments are {known}")).field(field)
}

/// Reads the argument `gangsFromOwners`: a list of kinds, which may be empty.
pub(crate) fn owner_kinds(value: &Value, field: &str) -> Result<OwnerKinds, InputError> {
    let error = |problem: String| InputError::new(problem).field(field.to_owned());
    let known = OwnerKind::ALL.map(OwnerKind::name).join(", ");
    let items = value
        .as_array()
        .ok_or_else(|| error(format!("{value} is not a list; write a list of any of these kinds: {known}")))?;
    let kind = |item: &Value| {
        let kind = OwnerKind::ALL.into_iter().find(|kind| item == kind.name());
        kind.ok_or_else(|| error(format!("{item} is not valid; the kinds are {known}")))
    };
    items.iter().map(kind).collect()
}

/// Reads an argument that has one of these values. A value such as 1.37 is a number if it is written without quotes.
pub(crate) fn one_of<T: Copy>(value: &Value, field: &str, values: &[(&str, T)]) -> Result<T, InputError> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let found = values.iter().find(|(name, _)| text == *name).map(|&(_, meaning)| meaning);
    found.ok_or_else(|| {
        let names: Vec<String> = values.iter().map(|(name, _)| format!("{name:?}")).collect();
        InputError::new(format!("{value} is not valid; write {}", names.join(" or "))).field(field.to_owned())
    })
}
