//! A tree becomes an object of some type, or the error names the field that does not fit.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Where, as in `spec.containers[0].name`; `.` for the whole.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The decoder's error, with its path.
type Wrong = serde_path_to_error::Error<serde_json::Error>;

/// Decodes a tree.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(value).map_err(|wrong| misfit(&wrong))
}

/// Decodes a tree with scalars as kubectl and the API take them: where a boolean is expected, the other words that YAML has for one, such
/// as `yes` and `off`, are booleans; where an integer is expected, `1e3` is one; where text is expected, null is empty text.
pub fn decode_as_kubectl<T: DeserializeOwned>(mut value: Value) -> Result<T, DecodeError> {
    let mut replaced = 0;
    loop {
        let wrong: Wrong = match serde_path_to_error::deserialize(&value) {
            Ok(object) => return Ok(object),
            Err(wrong) => wrong,
        };
        let place = place(&wrong, &mut value).filter(|_| replaced < MOST_REPLACED);
        let Some((place, meant)) = place.and_then(|place| meant(&wrong, place).map(|meant| (place, meant))) else {
            return Err(misfit(&wrong));
        };
        *place = meant;
        replaced += 1;
    }
}

/// Each scalar that is replaced costs a pass over the object; an object with more of them than this is refused.
const MOST_REPLACED: usize = 1000;

/// Below 2^53 a float without a fraction is exactly one integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn place<'v>(wrong: &Wrong, value: &'v mut Value) -> Option<&'v mut Value> {
    wrong.path().iter().try_fold(value, |value, segment| match segment {
        Segment::Map { key } => value.get_mut(key),
        Segment::Seq { index } => value.get_mut(index),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// What kubectl and the API take the value for.
fn meant(wrong: &Wrong, value: &Value) -> Option<Value> {
    match (value, wrong.inner().to_string().rsplit_once(", expected ")?.1) {
        (Value::Null, "a string") => Some(Value::String(String::new())),
        (Value::String(word), "a boolean") => match word.as_str() {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(Value::Bool(true)),
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(Value::Bool(false)),
            _ => None,
        },
        (Value::Number(number), "i32" | "i64" | "u32" | "u64") => {
            let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
            float.filter(|float| float.abs() < EXACT).map(|float| Value::from(float as i64))
        }
        _ => None,
    }
}

fn misfit(wrong: &Wrong) -> DecodeError {
    DecodeError { field: wrong.path().to_string(), problem: problem(wrong.inner().to_string()) }
}

/// The decoder's words, without the names of our types.
fn problem(words: String) -> String {
    let Some((found, expected)) = words.rsplit_once(", expected ") else { return words };
    let is_type = expected.starts_with(char::is_uppercase) && expected.chars().all(char::is_alphanumeric);
    if is_type || expected.contains("struct ") {
        return format!("{found}, expected a mapping of fields");
    }
    let scalar = found.strip_prefix("invalid type: ").and_then(|found| found.strip_suffix('`')?.split_once(" `"));
    match (expected, scalar) {
        ("string or map", _) => format!("{found}, expected one of the names as text"),
        ("a string", Some(("boolean", value))) => format!("is read as the boolean {value}, but must be text; quote it"),
        ("a string", Some(("integer" | "floating point", value))) => {
            format!("is read as the number {value}, but must be text; quote it")
        }
        _ => words,
    }
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
    fn the_field_that_does_not_fit_is_named() {
        for (value, field, problem) in [
            (json!({"number": "7"}), "number", "invalid type: string \"7\", expected i32"),
            (json!({"number": {"a": 7}}), "number", "invalid type: map, expected i32"),
            (json!({"number": []}), "number", "invalid type: sequence, expected i32"),
            (
                json!({"number": 1_099_511_627_776_i64}),
                "number",
                "invalid value: integer `1099511627776`, expected i32",
            ),
            (json!({"inner": []}), ".", "missing field `number`"),
            (json!(["a"]), "[0]", "invalid type: string \"a\", expected a sequence"),
            (json!(7), ".", "invalid type: integer `7`, expected a mapping of fields"),
            (
                json!({"inner": [{"name": "a"}, {"name": 7}], "number": 1}),
                "inner[1].name",
                "is read as the number 7, but must be text; quote it",
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
    fn scalars_are_taken_as_kubectl_takes_them() {
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
        assert_eq!(decode_as_kubectl(value), Ok(object));
        for (value, field, problem) in [
            (json!({"on": "maybe"}), "on", "invalid type: string \"maybe\", expected a boolean"),
            (json!({"on": 1}), "on", "invalid type: integer `1`, expected a boolean"),
            (json!({"priority": 1.5}), "priority", "invalid type: floating point `1.5`, expected i32"),
            (json!({"priority": 1e12}), "priority", "invalid value: integer `1000000000000`, expected i32"),
            (json!({"labels": {"a": true}}), "labels.a", "is read as the boolean true, but must be text; quote it"),
            (json!({"labels": {"a": 1.5}}), "labels.a", "is read as the number 1.5, but must be text; quote it"),
        ] {
            let expected = DecodeError { field: field.to_owned(), problem: problem.to_owned() };
            assert_eq!(decode_as_kubectl::<Object>(value.clone()), Err(expected), "{value}");
        }
    }

    #[test]
    fn what_is_no_name_is_said_to_be_none() {
        #[derive(Debug, Deserialize, PartialEq)]
        enum Word {
            Yes,
        }
        let problem = |value: Value| decode::<Word>(&value).expect_err("it is no such name").problem;
        assert_eq!(decode(&json!("Yes")), Ok(Word::Yes));
        assert_eq!(problem(json!(7)), "invalid type: integer `7`, expected one of the names as text");
        assert_eq!(problem(json!("No")), "unknown variant `No`, expected `Yes`");
    }

    #[test]
    fn it_is_named_deep_in_an_object_of_the_api() {
        let container = json!({"name": "main", "ports": [{"containerPort": 80}, {"containerPort": "http"}]});
        let job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [container]}}}});
        let misfit = decode::<Job>(&job).expect_err("a port is a number");
        assert_eq!(misfit.field, "spec.template.spec.containers[0].ports[1].containerPort");
    }
}
