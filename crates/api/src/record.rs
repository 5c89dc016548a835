//! Writes a decision (its input and its answer) as a PreemptionTest file, for `plan -o test`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::object_set::Unreadable;
use crate::test_file::{Expectation, PreemptionTest, TestMetadata, TestSpec};
use crate::{InputError, NamespacedName, Object, ObjectSet};

/// Returns the text of the file, with those pods that `is_read` by the decision. An annotation names the requirements that `--assume` removed.
pub fn record(
    objects: &ObjectSet,
    is_read: impl Fn(&NamespacedName) -> bool,
    spec: &TestSpec,
    answer: &Answer,
    assumed: &[&str],
) -> Result<String, InputError> {
    let mut origin = BTreeMap::from([("reprieve.dev/origin".to_owned(), "reprieve plan -o test".to_owned())]);
    if !assumed.is_empty() {
        origin.insert("reprieve.dev/assumed".to_owned(), assumed.join(","));
    }
    let test = PreemptionTest {
        api_version: "reprieve.dev/v1alpha1".to_owned(),
        kind: "PreemptionTest".to_owned(),
        metadata: TestMetadata {
            name: format!("plan-for-{}", spec.preemptor.name),
            annotations: origin,
            ..TestMetadata::default()
        },
        spec: TestSpec {
            expect: Some(Expectation {
                outcome: answer.outcome,
                victims: Some(answer.victims.clone()),
                any_of: None,
                nominated: (!answer.nominated.is_empty()).then(|| answer.nominated.clone()),
                candidates: None,
            }),
            ..spec.clone()
        },
    };
    let mut text = yaml(&test)?;
    // Pods in the input are complete; only the templates of workloads are completed when they are loaded.
    let completes = !objects.kueue_workloads.is_empty();
    let is_needed = |object: &Object| match object {
        Object::LimitRange(_) | Object::RuntimeClass(_) => completes,
        Object::Pod(pod) => is_read(&NamespacedName::from_meta(&pod.metadata)),
        _ => true,
    };
    for object in objects.iter().filter(is_needed) {
        text.push_str("---\n");
        text.push_str(&without_managed_fields(&object)?);
    }
    for unreadable in &objects.unreadable {
        if let Some(object) = stand_in(unreadable)? {
            text.push_str("---\n");
            text.push_str(&yaml(&object)?);
        }
    }
    Ok(text)
}

/// An object that cannot be read either and uses the same node or quota; `None` if the object uses neither.
fn stand_in(unreadable: &Unreadable) -> Result<Option<Value>, InputError> {
    const UNREADABLE: &str = "cannot be read";
    let NamespacedName { namespace, name } = &unreadable.object.name;
    if let Some(node) = &unreadable.node {
        let metadata = json!({"namespace": namespace, "name": name});
        let spec = json!({"nodeName": node, "containers": UNREADABLE});
        return Ok(Some(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})));
    }
    let Some(held) = &unreadable.held else { return Ok(None) };
    let mut value = serde_json::to_value(Object::KueueWorkload(held.clone())).map_err(unwritable)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("spec".to_owned(), json!(UNREADABLE));
    }
    Ok(Some(value))
}

/// Removes the managed fields, which no decision reads and which are most of the text.
fn without_managed_fields<T: Serialize>(object: &T) -> Result<String, InputError> {
    let mut value = serde_json::to_value(object).map_err(unwritable)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(|metadata| metadata.as_object_mut()) {
        metadata.remove("managedFields");
    }
    yaml(&value)
}

fn yaml<T: Serialize>(object: &T) -> Result<String, InputError> {
    let text = serde_saphyr::to_string(object).map_err(unwritable)?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

fn unwritable(error: impl std::fmt::Display) -> InputError {
    InputError::new(format!("an object cannot be encoded as YAML: {error}"))
}
