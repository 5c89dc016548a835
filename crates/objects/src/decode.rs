//! A tree becomes an object of some type, or it is said which field does not fit.
//!
//! All is decoded from text, so that the code for a type, of which there are many large ones, is there once. Where a field is comes from how
//! far the text was read: a type that checks more than its form does so in its visitor, while it is being read.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Where, as in `spec.containers[0].name`; `.` for the whole.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Decodes a tree.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Misfit> {
    let text = value.to_string();
    serde_json::from_str(&text).map_err(|error| {
        let problem = error.to_string();
        let problem = match problem.rsplit_once(" at line ").map_or(problem.as_str(), |(problem, _)| problem) {
            "expected value" => "invalid type, expected one of the names as text",
            other => other,
        };
        let mut field = String::new();
        find(value, error.column(), &mut field);
        let field = if field.is_empty() { ".".to_owned() } else { field };
        Misfit { field, problem: problem.to_owned() }
    })
}

/// Adds the path of what was being read when so many bytes of the value's text had been.
fn find(value: &Value, read: usize, path: &mut String) {
    if read == 0 {
        return;
    }
    let mut start = 1;
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                start += Value::from(key.as_str()).to_string().len() + 1;
                let end = start + value.to_string().len();
                if read <= end {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                    return find(value, read.saturating_sub(start), path);
                }
                start = end + 1;
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                let end = start + value.to_string().len();
                if read <= end {
                    path.push_str(&format!("[{at}]"));
                    return find(value, read.saturating_sub(start), path);
                }
                start = end + 1;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
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
            (json!(7), ".", "invalid type: integer `7`, expected struct Outer"),
            (
                json!({"inner": [{"name": "a"}, {"name": 7}], "number": 1}),
                "inner[1].name",
                "invalid type: integer `7`, expected a string",
            ),
            (json!({"inner": [{"name": "a\"\n"}, {}], "number": 1}), "inner[1]", "missing field `name`"),
            (json!({"inner": [{"nam\"e": "a"}]}), "inner[0].nam\"e", "unknown field `nam\"e`, expected `name`"),
            (
                json!({"inner": [{"name": "a", "other": {"b": 1}}]}),
                "inner[0].other",
                "unknown field `other`, expected `name`",
            ),
        ] {
            let expected = Misfit { field: field.to_owned(), problem: problem.to_owned() };
            assert_eq!(decode::<Outer>(&value), Err(expected), "{value}");
        }
        assert_eq!(decode(&json!({"number": 3})), Ok(Outer { inner: Vec::new(), number: 3 }));
    }

    #[test]
    fn what_is_no_name_is_said_to_be_none() {
        #[derive(Debug, Deserialize, PartialEq)]
        enum Word {
            Yes,
        }
        let problem = |value: Value| decode::<Word>(&value).expect_err("it is no such name").problem;
        assert_eq!(decode(&json!("Yes")), Ok(Word::Yes));
        assert_eq!(problem(json!(7)), "invalid type, expected one of the names as text");
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
