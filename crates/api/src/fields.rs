//! Finds unknown fields of a preemptor: typing errors such as `toleration`, which the API server rejects and decoding ignores.
//!
//! [`crate::read`] checks the objects that may be a preemptor and stores the results in [`ObjectSet::unknown_fields`]. The field names come
//! from a table (`fields.txt`) instead of the types, because the decoders of the complete types are large.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::Value;

use crate::source::UnknownField;
use crate::test_file::PreemptorRef;
use crate::{NamespacedName, ObjectSet, group_of, job_of};

/// The types of the Kubernetes API, written by the test `fields`. A line is a type and its fields, `TYPE FIELD FIELD:TYPE`; a field with a type
/// has fields itself.
const API: &str = include_str!("fields.txt");

/// Other types, and fields of other API versions, in the same form. The sources are Kubernetes 1.35 and 1.36, Kueue 0.19 (both API versions),
/// scheduler-plugins, and Reprieve's own fields of a Workload.
const OTHERS: &str = "
PodSpec workloadRef:PodWorkloadReference
PodWorkloadReference name podGroup podGroupReplicaKey
PodGroupSpec podGroupTemplateRef
KoordinatorPodGroup apiVersion kind metadata:ObjectMeta spec:JobGroupSpec status
JobGroupSpec minMember minResources scheduleTimeoutSeconds
KueueWorkload apiVersion kind metadata:ObjectMeta spec:KueueWorkloadSpec status
KueueWorkloadSpec active maximumExecutionTimeSeconds podSets:KueuePodSet preemptionGates:KueuePreemptionGate priority \
    priorityClassName priorityClassRef:KueueClassReference priorityClassSource queueName
KueueWorkloadSpec preemption:KueuePreemption onPreemption
KueuePodSet count minCount name template:PodTemplateSpec topologyRequest:KueueTopologyRequest
KueueTopologyRequest podIndexLabel podSetGroupName podSetSliceRequiredTopology podSetSliceSize \
    podsetSliceRequiredTopologyConstraints:KueueSliceConstraint preferred required subGroupCount subGroupIndexLabel unconstrained
KueueSliceConstraint size topology
KueuePreemptionGate name
KueueClassReference group kind name
KueuePreemption disruptionCostMilestones:KueueMilestone
KueueMilestone seconds cost
";

/// A name with a smaller similarity (from 0 to 1) is not suggested.
const MIN_SIMILARITY: f64 = 0.7;

/// Further unknown fields of the same object are only counted.
const MAX_FOUND: usize = 20;

/// Warnings cut longer keys.
const MAX_KEY_LENGTH: usize = 100;

fn shortened(key: &str) -> String {
    match key.char_indices().nth(MAX_KEY_LENGTH) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

/// The fields of each type, with the type of each field that has fields itself.
type Types = BTreeMap<&'static str, BTreeMap<&'static str, Option<&'static str>>>;

/// Finds the unknown fields of an object of a type in the table. Warnings call the object by `kind`.
pub(crate) fn unknown_fields(type_name: &str, kind: &str, value: &Value) -> Vec<UnknownField> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = NamespacedName::new(text("/metadata/namespace"), text("/metadata/name"));
    let mut walk = FieldWalk::default();
    walk.value(value, type_name);
    let FieldWalk { mut found, more, .. } = walk;
    if more > 0 {
        found.push((format!("and {more} more"), None));
    }
    let unknown = |(path, nearest)| UnknownField { kind: kind.to_owned(), name: name.clone(), path, nearest };
    found.into_iter().map(unknown).collect()
}

/// Returns the warnings about a preemptor's objects: itself, a pod's group or a group's pods and, if `whole_job`, all pods of its
/// Koordinator job.
pub fn warnings_about(preemptor: &PreemptorRef, objects: &ObjectSet, whole_job: bool) -> Vec<String> {
    if objects.unknown_fields.is_empty() {
        return Vec::new();
    }
    let name = preemptor.full_name();
    let mut parts = BTreeSet::from([(preemptor.kind.as_str(), name.clone())]);
    let pods = || objects.pods.iter().map(|pod| (pod.name(), &*pod.object));
    match preemptor.kind.as_str() {
        "Pod" => {
            for (_, pod) in pods().filter(|(pod, _)| *pod == name) {
                parts.extend(group_of(pod).map(|group| ("PodGroup", group)));
                let Some(job) = job_of(pod) else { continue };
                if whole_job {
                    let members = pods().filter(|(_, pod)| job_of(pod).as_ref() == Some(&job));
                    parts.extend(members.map(|(pod, _)| ("Pod", pod)));
                }
                parts.insert(("PodGroup", job));
            }
        }
        "PodGroup" => {
            let members = pods().filter(|(_, pod)| group_of(pod).as_ref() == Some(&name));
            parts.extend(members.map(|(pod, _)| ("Pod", pod)));
        }
        _ => {}
    }
    let of_parts = |unknown: &&UnknownField| parts.contains(&(unknown.kind.as_str(), unknown.name.clone()));
    warnings(objects.unknown_fields.iter().filter(of_parts))
}

/// Returns the warnings about unknown fields; objects of the same kind with the same field share a warning.
pub fn warnings<'u>(unknown: impl Iterator<Item = &'u UnknownField>) -> Vec<String> {
    let mut same: BTreeMap<(&str, &str), (&UnknownField, usize)> = BTreeMap::new();
    for unknown in unknown {
        let (first, count) = same.entry((&unknown.kind, &unknown.path)).or_insert((unknown, 0));
        if unknown.name < first.name {
            *first = unknown;
        }
        *count += 1;
    }
    let warning = |(UnknownField { kind, name, path, nearest }, count): (&UnknownField, usize)| {
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let suggestion = nearest.as_ref().map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
        format!("{kind} {name}{more}: {path}: unknown field, ignored{suggestion}")
    };
    same.into_values().map(warning).collect()
}

fn types() -> &'static Types {
    static TYPES: OnceLock<Types> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut types = Types::new();
        for line in API.lines().chain(OTHERS.lines()).filter(|line| !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            let Some(name) = words.next() else { continue };
            let field = |word: &'static str| word.split_once(':').map_or((word, None), |(key, of)| (key, Some(of)));
            types.entry(name).or_default().extend(words.map(field));
        }
        types
    })
}

#[derive(Default)]
struct FieldWalk {
    /// The path of the current value.
    path: String,
    /// The path of each unknown field, and of the known field with the most similar name.
    found: Vec<(String, Option<String>)>,
    /// The number of unknown fields beyond [`MAX_FOUND`].
    more: usize,
}

impl FieldWalk {
    fn value(&mut self, value: &Value, type_name: &str) {
        match value {
            Value::Object(fields) => {
                let Some(known) = types().get(type_name) else { return };
                for (key, value) in fields {
                    match known.get(key.as_str()) {
                        Some(Some(below)) => self.below(self.field(key), value, below),
                        Some(None) => {}
                        // The loader refuses unknown volume sources.
                        None if type_name == "Volume" => {}
                        None if self.found.len() >= MAX_FOUND => self.more += 1,
                        None => {
                            let nearest = nearest(key, known.keys().copied()).map(|nearest| self.field(nearest));
                            self.found.push((self.field(&shortened(key)), nearest));
                        }
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(format!("{}[{index}]", self.path), item, type_name);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn below(&mut self, path: String, value: &Value, type_name: &str) {
        let above = std::mem::replace(&mut self.path, path);
        self.value(value, type_name);
        self.path = above;
    }

    fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Returns the most similar known name; of equally similar names the first.
fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let name = name.to_ascii_lowercase();
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&name, &known.to_ascii_lowercase());
    let mut best: Option<(f64, &str)> = None;
    // Skips names of very different length, because a key may have megabytes.
    let comparable = |known: &&str| known.len().abs_diff(name.len()) * 2 <= known.len().max(name.len());
    for known in known.filter(comparable) {
        let similarity = similarity(known);
        if similarity >= MIN_SIMILARITY && best.is_none_or(|(highest, _)| similarity > highest) {
            best = Some((similarity, known));
        }
    }
    best.map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(type_name: &str, value: &Value) -> Vec<(String, Option<String>)> {
        unknown_fields(type_name, "Pod", value).into_iter().map(|unknown| (unknown.path, unknown.nearest)).collect()
    }

    #[test]
    fn type_of_every_field_is_in_the_table() {
        for (name, fields) in types() {
            for (field, below) in fields {
                assert!(below.is_none_or(|below| types().contains_key(below)), "{name}.{field}");
            }
        }
    }

    #[test]
    fn typing_error_is_found_with_the_most_similar_name() {
        let container =
            json!({"name": "c", "resource": {}, "ports": [{"containerport": 1}], "resources": {"request": {}}});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "label": {"any": "x"}, "labels": {"any": "x"}},
            "spec": {"toleration": [], "priorityClass": "x", "gpus": 8, "containers": [{"name": "d"}, container]},
            "status": {"phse": "Pending"},
        });
        let expected = [
            ("metadata.label", Some("metadata.labels")),
            ("spec.containers[1].ports[0].containerport", Some("spec.containers[1].ports[0].containerPort")),
            ("spec.containers[1].resource", Some("spec.containers[1].resources")),
            ("spec.containers[1].resources.request", Some("spec.containers[1].resources.requests")),
            ("spec.gpus", None),
            ("spec.priorityClass", Some("spec.priorityClassName")),
            ("spec.toleration", Some("spec.tolerations")),
        ];
        let expected = expected.map(|(path, nearest)| (path.to_owned(), nearest.map(str::to_owned)));
        assert_eq!(found("Pod", &pod), expected);
    }

    #[test]
    fn fields_of_other_versions_are_known() {
        let reference = json!({"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"});
        assert_eq!(found("Pod", &json!({"spec": {"workloadRef": reference}})), []);
        let group = json!({"spec": {"podGroupTemplateRef": {"workload": {}}, "workloadRef": {"workloadName": "w"}}});
        assert_eq!(found("PodGroup", &group), []);
        let set =
            json!({"name": "main", "count": 1, "topologyRequest": {"required": "rack"}, "template": {"spec": {}}});
        let workload = json!({
            "spec": {"queueName": "q", "priorityClassSource": "", "maximumExecutionTimeSeconds": 5, "podSets": [set]},
            "status": {"anything": {}},
        });
        assert_eq!(found("KueueWorkload", &workload), []);
        let wrong =
            json!({"spec": {"queue": "q", "podSets": [{"template": {"spec": {"tolerations": [{"keys": ""}]}}}]}});
        let paths: Vec<String> = found("KueueWorkload", &wrong).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["spec.podSets[0].template.spec.tolerations[0].keys", "spec.queue"]);
    }

    #[test]
    fn objects_with_the_same_typing_error_share_a_warning() {
        let unknown = |name: &str| UnknownField {
            kind: "Pod".to_owned(),
            name: NamespacedName::new("", name),
            path: "spec.toleration".to_owned(),
            nearest: Some("spec.tolerations".to_owned()),
        };
        let three = ["b", "a", "c"].map(unknown);
        let rest = "spec.toleration: unknown field, ignored; did you mean spec.tolerations?";
        assert_eq!(warnings(three.iter()), [format!("Pod default/a and 2 more: {rest}")]);
        assert_eq!(warnings(three[..1].iter()), [format!("Pod default/b: {rest}")]);
    }
}
