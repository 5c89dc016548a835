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
    attempt(value).map_err(|wrong| wrong.misfit())
}

/// Decodes a tree with scalars as kubectl and the API take them: where a boolean is expected, the other words that YAML has for one, such
/// as `yes` and `off`, are booleans; where an integer is expected, `1e3` is one; where text is expected, null is empty text.
pub fn decode_as_kubectl<T: DeserializeOwned>(mut value: Value) -> Result<T, Misfit> {
    let mut replaced = 0;
    loop {
        let wrong = match attempt(&value) {
            Ok(object) => return Ok(object),
            Err(wrong) => wrong,
        };
        let place = wrong.place(&mut value).filter(|_| replaced < MOST_REPLACED);
        let Some((place, meant)) = place.and_then(|place| wrong.meant(place).map(|meant| (place, meant))) else {
            return Err(wrong.misfit());
        };
        *place = meant;
        replaced += 1;
    }
}

/// Each scalar that is replaced costs a pass over the object; an object with more of them than this is refused.
const MOST_REPLACED: usize = 1000;

fn attempt<T: DeserializeOwned>(value: &Value) -> Result<T, Wrong> {
    let text = value.to_string();
    serde_json::from_str(&text).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.rsplit_once(" at line ").map_or(problem.as_str(), |(problem, _)| problem);
        let mut path = Vec::new();
        find(value, error.column(), &mut path);
        Wrong { path, problem: problem.to_owned() }
    })
}

/// Below 2^53 a float without a fraction is exactly one integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What does not fit, in the words of the decoder.
struct Wrong {
    path: Vec<Step>,
    problem: String,
}

enum Step {
    Field(String),
    Item(usize),
}

impl Wrong {
    fn place<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.path.iter().try_fold(value, |value, step| match step {
            Step::Field(key) => value.get_mut(key),
            Step::Item(at) => value.get_mut(at),
        })
    }

    /// What kubectl and the API take the value for.
    fn meant(&self, value: &Value) -> Option<Value> {
        match (value, self.problem.rsplit_once(", expected ")?.1) {
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

    fn misfit(&self) -> Misfit {
        let mut field = String::new();
        for step in &self.path {
            match step {
                Step::Field(key) if field.is_empty() => field.push_str(key),
                Step::Field(key) => field.extend([".", key]),
                Step::Item(at) => field.push_str(&format!("[{at}]")),
            }
        }
        let field = if field.is_empty() { ".".to_owned() } else { field };
        Misfit { field, problem: self.problem() }
    }

    fn problem(&self) -> String {
        if self.problem == "expected value" {
            return "invalid type, expected one of the names as text".to_owned();
        }
        if let Some((found, expected)) = self.problem.rsplit_once(", expected ")
            && expected.contains("struct ")
        {
            return format!("{found}, expected a mapping of fields");
        }
        let found =
            self.problem.strip_prefix("invalid type: ").and_then(|rest| rest.strip_suffix(", expected a string"));
        match found.and_then(|found| found.strip_suffix('`')?.split_once(" `")) {
            Some(("boolean", value)) => format!("is read as the boolean {value}, but must be text; quote it"),
            Some(("integer" | "floating point", value)) => {
                format!("is read as the number {value}, but must be text; quote it")
            }
            _ => self.problem.clone(),
        }
    }
}

/// Adds the path of what was being read when so many bytes of the value's text had been.
fn find(value: &Value, read: usize, path: &mut Vec<Step>) {
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
                    path.push(Step::Field(key.clone()));
                    return find(value, read.saturating_sub(start), path);
                }
                start = end + 1;
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                let end = start + value.to_string().len();
                if read <= end {
                    path.push(Step::Item(at));
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
            let expected = Misfit { field: field.to_owned(), problem: problem.to_owned() };
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
            let expected = Misfit { field: field.to_owned(), problem: problem.to_owned() };
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
