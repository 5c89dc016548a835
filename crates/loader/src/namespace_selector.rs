//! Evaluates the namespace selectors of ClusterQueues.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use reprieve_api::{InputError, ObjectSet};

type Labels = BTreeMap<String, String>;

/// The labels of each namespace.
pub struct Namespaces(BTreeMap<String, Labels>);

impl Namespaces {
    pub fn new(objects: &ObjectSet) -> Self {
        let metadata = objects.namespaces.iter().map(|namespace| &namespace.object.metadata);
        let labels =
            metadata.map(|meta| (meta.name.clone().unwrap_or_default(), meta.labels.clone().unwrap_or_default()));
        Self(labels.collect())
    }

    /// Whether the selector of a queue matches a namespace. A namespace that is not in the input has only its name as a label.
    pub fn fits(&self, selector: &Option<Option<LabelSelector>>, namespace: &str) -> bool {
        let selector = match selector {
            None => return true,
            Some(None) => return false,
            Some(Some(selector)) => selector,
        };
        let mut labels = self.0.get(namespace).cloned().unwrap_or_default();
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        selects(selector, &labels)
    }
}

/// Whether a selector matches labels. An unknown operator matches nothing.
pub fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let mut pairs = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    pairs.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|expression| matches(expression, labels))
}

/// Returns an error if an operator of the selector is unknown.
pub fn check(selector: &Option<Option<LabelSelector>>) -> Result<(), InputError> {
    let expressions = selector.iter().flatten().flat_map(|selector| selector.match_expressions.iter().flatten());
    let known = ["In", "NotIn", "Exists", "DoesNotExist"];
    match expressions.into_iter().find(|expression| !known.contains(&expression.operator.as_str())) {
        None => Ok(()),
        Some(LabelSelectorRequirement { operator, .. }) => {
            let problem = format!("{operator:?} is not an operator; write one of {}", known.join(", "));
            Err(InputError::new(problem).field("spec.namespaceSelector"))
        }
    }
}

fn matches(expression: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let value = labels.get(&expression.key);
    let is_listed = || value.is_some_and(|value| expression.values.iter().flatten().any(|listed| listed == value));
    match expression.operator.as_str() {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}
