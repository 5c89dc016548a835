//! JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// The merge patch that turns `before` into `after`; `None` if they are equal.
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        _ if before == after => None,
        (Value::Object(before), Value::Object(after)) => {
            let mut patch = Map::new();
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            for (key, value) in after {
                if let Some(value) = merge_patch(before.get(key).unwrap_or(&Value::Null), value) {
                    patch.insert(key.clone(), value);
                }
            }
            Some(Value::Object(patch))
        }
        _ => Some(after.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patch_has_only_what_differs() {
        for (before, after, patch) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (
                json!({"a": 1, "b": {"c": 1, "d": 2}}),
                json!({"a": 1, "b": {"c": 3, "d": 2}}),
                Some(json!({"b": {"c": 3}})),
            ),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (json!({}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}}))),
        ] {
            assert_eq!(merge_patch(&before, &after), patch);
        }
    }
}
