//! Decodes a tree of values into an object of a type. An error names the path of the field and describes the problem without Rust types.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::lenient::Lenient;

/// A value that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The path, for example `spec.containers[0].name`; `.` for the whole object.
    pub field: String,
    /// The problem and what is expected.
    pub problem: String,
}

/// An error of serde with the path of the field.
type PathError = serde_path_to_error::Error<serde_json::Error>;

/// Decodes a tree.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(value).map_err(|error| decode_error(&error))
}

/// Decodes a tree with scalars as kubectl and the API server accept them: `yes`, `off` and the like as booleans, `1e3` as an integer,
/// null as empty text.
pub fn decode_as_kubectl<T: DeserializeOwned>(value: &Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(Lenient(value)).map_err(|error| decode_error(&error))
}

fn decode_error(error: &PathError) -> DecodeError {
    DecodeError { field: error.path().to_string(), problem: plain_problem(&error.inner().to_string()) }
}

/// Rewrites a message of serde without the names of Rust types, for example `"7" is text; expected a whole number`. serde describes what it
/// expected only as text. The result is text for people: no code depends on it, and a message in another form stays as it is.
pub fn plain_problem(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let Some((kind, value)) = found.strip_prefix("invalid ").and_then(|found| found.split_once(": ")) else {
        return message.to_owned();
    };
    let (type_name, value) = value.split_once(' ').unwrap_or((value, ""));
    let value = value.trim_start_matches("point ").trim_matches('`');
    let found = match type_name {
        "integer" | "floating" if kind == "value" => format!("{value} is out of range"),
        "integer" | "floating" => format!("{value} is a number"),
        "boolean" => format!("{value} is a boolean"),
        "string" => format!("{value} is text"),
        "map" => "this is a mapping of fields".to_owned(),
        "sequence" => "this is a list".to_owned(),
        "null" | "unit" | "Option" => "this is null".to_owned(),
        _ => return message.to_owned(),
    };
    let is_type = expected.starts_with(char::is_uppercase) && expected.chars().all(char::is_alphanumeric);
    let expected = match expected {
        "a string" if matches!(type_name, "integer" | "floating" | "boolean") => {
            return format!("{found}; quote it, because it must be text");
        }
        "a string" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a mapping of fields",
        "string or map" => "one of the allowed names as text",
        "u16" => "a whole number from 0 to 65535",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "u32" => "a whole number from 0 to 4294967295",
        "i64" => "a whole number",
        "u64" | "usize" => "a whole number, 0 or more",
        "f32" | "f64" => "a number",
        _ if is_type || expected.contains("struct ") => "a mapping of fields",
        other => other,
    };
    format!("{found}; expected {expected}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::batch::v1::Job;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(default)]
        inner: Vec<Inner>,
        number: i32,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        name: String,
    }

    #[test]
    fn error_names_the_field_and_what_is_expected() {
        for (value, field, problem) in [
            (json!({"number": "7"}), "number", "\"7\" is text; expected a whole number from -2147483648 to 2147483647"),
            (
                json!({"number": {"a": 7}}),
                "number",
                "this is a mapping of fields; expected a whole number from -2147483648 to 2147483647",
            ),
            (json!({"number": []}), "number", "this is a list; expected a whole number from -2147483648 to 2147483647"),
            (
                json!({"number": 1_099_511_627_776_i64}),
                "number",
                "1099511627776 is out of range; expected a whole number from -2147483648 to 2147483647",
            ),
            (json!({"inner": []}), ".", "missing field `number`"),
            (json!(["a"]), "[0]", "\"a\" is text; expected a list"),
            (json!(7), ".", "7 is a number; expected a mapping of fields"),
            (
                json!({"inner": [{"name": "a"}, {"name": 7}], "number": 1}),
                "inner[1].name",
                "7 is a number; quote it, because it must be text",
            ),
            (json!({"inner": [{"name": "a\"\n"}, {}], "number": 1}), "inner[1]", "missing field `name`"),
            (json!({"inner": [{"nam\"e": "a"}]}), "inner[0].nam\"e", "unknown field `nam\"e`, expected `name`"),
            (
                json!({"inner": [{"name": "a", "other": {"b": 1}}]}),
                "inner[0].other",
                "unknown field `other`, expected `name`",
            ),
        ] {
            let expected = DecodeError { field: field.to_owned(), problem: problem.to_owned() };
            assert_eq!(decode::<Outer>(&value), Err(expected), "{value}");
        }
        assert_eq!(decode(&json!({"number": 3})), Ok(Outer { inner: Vec::new(), number: 3 }));
    }

    #[test]
    fn scalars_are_coerced_as_by_kubectl() {
        #[derive(Debug, Default, Deserialize, PartialEq)]
        #[serde(default)]
        struct Object {
            on: Option<bool>,
            all: Vec<bool>,
            priority: i32,
            labels: BTreeMap<String, String>,
        }
        let value = json!({
            "on": "yes",
            "all": ["off", true, "N", "on"],
            "priority": 1e3,
            "labels": {"a.b/c": null, "on": "on"},
        });
        let labels = [("a.b/c", ""), ("on", "on")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let object =
            Object { on: Some(true), all: vec![false, true, false, true], priority: 1000, labels: labels.into() };
        assert_eq!(decode_as_kubectl(&value), Ok(object));
        for (value, field, problem) in [
            (json!({"on": "maybe"}), "on", "\"maybe\" is text; expected true or false"),
            (json!({"on": 1}), "on", "1 is a number; expected true or false"),
            (
                json!({"priority": 1.5}),
                "priority",
                "1.5 is a number; expected a whole number from -2147483648 to 2147483647",
            ),
            (
                json!({"priority": 1e12}),
                "priority",
                "1000000000000 is out of range; expected a whole number from -2147483648 to 2147483647",
            ),
            (json!({"labels": {"a": true}}), "labels.a", "true is a boolean; quote it, because it must be text"),
            (json!({"labels": {"a": 1.5}}), "labels.a", "1.5 is a number; quote it, because it must be text"),
        ] {
            let expected = DecodeError { field: field.to_owned(), problem: problem.to_owned() };
            assert_eq!(decode_as_kubectl::<Object>(&value), Err(expected), "{value}");
        }
    }

    #[test]
    fn error_about_an_enum_value_names_the_allowed_values() {
        #[derive(Debug, Deserialize, PartialEq)]
        enum Word {
            Yes,
        }
        let problem = |value: Value| decode::<Word>(&value).expect_err("not an allowed name").problem;
        assert_eq!(decode(&json!("Yes")), Ok(Word::Yes));
        assert_eq!(problem(json!(7)), "7 is a number; expected one of the allowed names as text");
        assert_eq!(problem(json!("No")), "unknown variant `No`, expected `Yes`");
    }

    #[test]
    fn error_names_a_nested_field_of_an_api_object() {
        let container = json!({"name": "main", "ports": [{"containerPort": 80}, {"containerPort": "http"}]});
        let job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [container]}}}});
        let error = decode::<Job>(&job).expect_err("a port is a number");
        assert_eq!(error.field, "spec.template.spec.containers[0].ports[1].containerPort");
    }
}
