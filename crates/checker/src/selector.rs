//! Matching of labels with selectors, of nodes with the node selection of a pod, and of taints with tolerations, as the Kubernetes API
//! defines it. An unknown operator matches nothing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use reprieve_api::PodSpec;

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

/// Whether a selector matches the labels. A missing selector matches nothing; an empty one matches everything.
pub fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(selector) = selector else { return false };
    let mut wanted = selector.match_labels.iter().flatten();
    let mut requirements = selector.match_expressions.iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && requirements.all(|required| meets(&required.operator, labels.get(&required.key), &required.values))
}

/// Whether a selector has no requirements.
pub fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.iter().flatten().next().is_none()
        && selector.match_expressions.iter().flatten().next().is_none()
}

/// A selector that also requires the pod's own value of each key in `same`, and another value for each key in `other`. A key that the pod
/// lacks requires nothing.
pub fn with_keys(
    selector: Option<&LabelSelector>,
    own: &Labels,
    same: Option<&Vec<String>>,
    other: Option<&Vec<String>>,
) -> Option<LabelSelector> {
    let mut selector = selector?.clone();
    let requirements = selector.match_expressions.get_or_insert_default();
    for (keys, operator) in [(same, "In"), (other, "NotIn")] {
        for key in keys.into_iter().flatten() {
            if let Some(value) = own.get(key) {
                requirements.push(LabelSelectorRequirement {
                    key: key.clone(),
                    operator: operator.to_owned(),
                    values: Some(vec![value.clone()]),
                });
            }
        }
    }
    Some(selector)
}

fn meets(operator: &str, value: Option<&String>, values: &Option<Vec<String>>) -> bool {
    let listed = value.is_some_and(|value| values.iter().flatten().any(|listed| listed == value));
    match operator {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// Whether the pod's nodeSelector and required node affinity allow a node of this name with these labels.
pub fn selects_node(spec: &PodSpec, name: &str, labels: &Labels) -> bool {
    let selected = spec.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required: Option<&NodeSelector> =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| term_allows(term, name, labels)))
}

/// All requirements of a term must hold, and a term without requirements allows no node.
fn term_allows(term: &NodeSelectorTerm, name: &str, labels: &Labels) -> bool {
    let expressions: Vec<&NodeSelectorRequirement> = term.match_expressions.iter().flatten().collect();
    let fields: Vec<&NodeSelectorRequirement> = term.match_fields.iter().flatten().collect();
    let fields_of_node = Labels::from([("metadata.name".to_owned(), name.to_owned())]);
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|required| node_meets(required, labels))
        && fields.iter().all(|required| node_meets(required, &fields_of_node))
}

fn node_meets(required: &NodeSelectorRequirement, labels: &Labels) -> bool {
    let value = labels.get(&required.key);
    let compare = |compares: fn(i64, i64) -> bool| {
        let bound = required.values.iter().flatten().next().and_then(|bound| bound.parse().ok());
        let value = value.and_then(|value| value.parse().ok());
        matches!((value, bound), (Some(value), Some(bound)) if compares(value, bound))
    };
    match required.operator.as_str() {
        "Gt" => compare(|value, bound| value > bound),
        "Lt" => compare(|value, bound| value < bound),
        operator => meets(operator, value, &required.values),
    }
}

/// Whether the pod does not tolerate a taint with effect NoSchedule or NoExecute.
pub fn is_untolerated(taint: &Taint, spec: &PodSpec) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
        && !spec.tolerations.iter().flatten().any(|toleration| tolerates(toleration, taint))
}

/// The taint that a pod must tolerate on a cordoned node.
pub fn cordon() -> Taint {
    let (key, effect) = ("node.kubernetes.io/unschedulable".to_owned(), "NoSchedule".to_owned());
    Taint { key, effect, ..Taint::default() }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let same_or_any = |own: Option<&String>, of_taint: &str| own.is_none_or(|own| own.is_empty() || own == of_taint);
    let own_value = toleration.value.as_deref().unwrap_or_default();
    let value = taint.value.as_deref().unwrap_or_default();
    let compare = |compares: fn(i64, i64) -> bool| matches!((value.parse(), own_value.parse()), (Ok(value), Ok(bound)) if compares(value, bound));
    same_or_any(toleration.effect.as_ref(), &taint.effect)
        && same_or_any(toleration.key.as_ref(), &taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => own_value == value,
            "Exists" => true,
            "Gt" => compare(|value, bound| value > bound),
            "Lt" => compare(|value, bound| value < bound),
            _ => false,
        }
}
