//! Converts a PodGroup of any served version (1.36: `v1alpha2`, 1.37: `v1alpha3` and `v1beta1`) into the form of `v1beta1`.

use serde_json::{Map, Value, json};

/// Converts the fields that differ: `v1alpha2` has the disruption mode as text, and its reference to a template has another form.
pub(crate) fn convert(group: &mut Value) {
    let Value::Object(group) = group else { return };
    if group.contains_key("apiVersion") {
        group.insert("apiVersion".to_owned(), "scheduling.k8s.io/v1beta1".into());
    }
    let Some(Value::Object(spec)) = group.get_mut("spec") else { return };
    let mode = match spec.get("disruptionMode").and_then(Value::as_str) {
        Some("Pod") => Some("single"),
        Some("PodGroup") => Some("all"),
        _ => None, // another form, or a value whose error names the field
    };
    if let Some(mode) = mode {
        spec.insert("disruptionMode".to_owned(), json!({ mode: {} }));
    }
    if let Some(reference) = spec.remove("podGroupTemplateRef") {
        spec.entry("workloadRef").or_insert_with(|| template_reference(&reference));
    }
}

fn template_reference(reference: &Value) -> Value {
    let of = |field: &str| reference.pointer(&format!("/workload/{field}")).cloned();
    let fields = [("workloadName", "workloadName"), ("templateName", "podGroupTemplateName")];
    let fields = fields.map(|(to, from)| (to.to_owned(), of(from).unwrap_or_else(|| "".into())));
    Value::Object(Map::from_iter(fields))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::scheduling::v1beta1::PodGroup;

    use super::*;
    use crate::{Kind, Object};

    fn read(version: &str, spec: &Value) -> PodGroup {
        let group = json!({
            "apiVersion": format!("scheduling.k8s.io/{version}"), "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "team"}, "spec": spec,
        });
        let Ok(Object::PodGroup(group)) = Object::from_json(Kind::PodGroup, &group.to_string()) else {
            panic!("{group} is a PodGroup")
        };
        PodGroup::clone(&group)
    }

    #[test]
    fn every_version_has_the_same_meaning() {
        let policy = json!({"gang": {"minCount": 3}});
        let old = read(
            "v1alpha2",
            &json!({
                "schedulingPolicy": policy, "priority": 7, "disruptionMode": "PodGroup",
                "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            }),
        );
        for version in ["v1alpha3", "v1beta1"] {
            let new = json!({
                "schedulingPolicy": policy, "priority": 7, "disruptionMode": {"all": {}},
                "workloadRef": {"workloadName": "w", "templateName": "t"},
            });
            assert_eq!(read(version, &new), old, "{version}");
        }
        let single = read("v1alpha2", &json!({"schedulingPolicy": policy, "disruptionMode": "Pod"}));
        assert!(single.spec.disruption_mode.is_some_and(|mode| mode.single.is_some() && mode.all.is_none()));
    }

    #[test]
    fn an_unknown_disruption_mode_is_an_error() {
        let group = json!({"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {}, "disruptionMode": "Some"}});
        assert!(Object::from_json(Kind::PodGroup, &group.to_string()).is_err());
    }
}
