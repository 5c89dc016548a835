//! Writes an object in the style of the conformance cases: one line per top-level field, and nested values in flow style.

use std::fmt::Write as _;

use serde_json::Value;

/// The YAML document of an object.
pub(crate) fn document(object: &Value) -> String {
    let fields = object.as_object().expect("an object has fields");
    let mut text = String::new();
    for key in ["apiVersion", "kind", "metadata"] {
        line(&mut text, key, &fields[key]);
    }
    for (key, value) in fields.iter().filter(|(key, _)| !["apiVersion", "kind", "metadata"].contains(&key.as_str())) {
        line(&mut text, key, value);
    }
    text
}

fn line(text: &mut String, key: &str, value: &Value) {
    let _ = write!(text, "{key}: ");
    flow(text, value);
    text.push('\n');
}

fn flow(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                scalar(text, key);
                text.push_str(": ");
                flow(text, value);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                flow(text, item);
            }
            text.push(']');
        }
        Value::String(string) => scalar(text, string),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

/// Writes a string, in quotes unless every YAML parser reads it as a string.
fn scalar(text: &mut String, string: &str) {
    const RESERVED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = string.starts_with(|first: char| first.is_ascii_alphabetic())
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-./_".contains(&byte))
        && !RESERVED.contains(&string.to_ascii_lowercase().as_str());
    if is_plain {
        text.push_str(string);
    } else {
        let _ = write!(text, "{}", Value::from(string));
    }
}
