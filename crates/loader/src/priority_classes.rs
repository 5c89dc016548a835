//! Reads PriorityClasses: the priority of a pod, whether it may preempt, its toleration as a candidate, and whether it opted out.

use std::collections::BTreeMap;

use k8s_openapi::api::scheduling::v1::PriorityClass;
use reprieve_engine::Priority;
use reprieve_engine::laws::toleration::Toleration;

use crate::quarantine::key_of;
use crate::{Warning, by_name};
use reprieve_api::{InputError, ProblemCode, Sourced};

const MINIMUM: &str = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority";
const SECONDS: &str = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds";
/// The annotation of a PriorityClass that says whether its pods may be preempted. Under policy YuniKorn a pod may have it too
/// (`Pod::own_opt_out`).
pub const ALLOW_PREEMPTION: &str = "yunikorn.apache.org/allow-preemption";

/// The priority classes of a cluster.
#[derive(Clone, Debug)]
pub struct Classes {
    classes: BTreeMap<String, Class>,
    /// The value and the `preemptionPolicy` of the global default class.
    global_default: Option<(i32, Option<String>)>,
    /// The largest excess of a group's preemption priority over its scheduling priority: a setting that `preemption_priority` checks with
    /// these classes.
    pub max_preemption_excess: u32,
}

#[derive(Clone, Debug)]
struct Class {
    value: i32,
    preemption_policy: Option<String>,
    toleration: Option<Toleration>,
    opted_out: bool,
}

impl Classes {
    pub fn new(objects: &[Sourced<PriorityClass>], max_preemption_excess: u32, warnings: &mut Vec<Warning>) -> Self {
        let mut classes = BTreeMap::new();
        for (name, value) in [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)] {
            let class = Class { value, preemption_policy: None, toleration: None, opted_out: false };
            classes.insert(name.to_owned(), class);
        }
        let mut global_default = None;
        for (name, sourced) in by_name::<String, _>(objects) {
            let object = &sourced.object;
            let value = object.value.unwrap_or_default();
            let preemption_policy = object.preemption_policy.clone();
            let toleration = toleration_of(object).unwrap_or_else(|problem| {
                let text = format!("PriorityClass {name}: {problem}; its toleration is ignored");
                warnings.push(Warning::about(key_of(sourced), text));
                None
            });
            let opted_out = annotation(object, ALLOW_PREEMPTION) == Some("false");
            // If a race created several default classes, the API server uses the one with the lowest value.
            let is_lower = |(lowest, _): &(i32, Option<String>)| value < *lowest;
            if object.global_default == Some(true) && global_default.as_ref().is_none_or(is_lower) {
                global_default = Some((value, preemption_policy.clone()));
            }
            classes.insert(name, Class { value, preemption_policy, toleration, opted_out });
        }
        Self { classes, global_default, max_preemption_excess }
    }

    /// Returns the value of a class.
    pub fn value(&self, name: &str) -> Option<Priority> {
        self.classes.get(name).map(|class| Priority(class.value))
    }

    /// Whether a pod names a class that does not exist.
    pub fn is_undefined(&self, name: Option<&str>) -> bool {
        non_empty(name).is_some_and(|name| !self.classes.contains_key(name))
    }

    /// Returns the priority that is set, else the value of the class, else that of the default class, else 0.
    pub fn priority(&self, set: Option<i32>, class: Option<&str>) -> Result<Priority, InputError> {
        let from_class = || match non_empty(class) {
            Some(name) => self.value(name).map(|priority| priority.0).ok_or_else(|| {
                let problem = format!("PriorityClass {name:?} is not in the input; add it, or set spec.priority");
                InputError::new(problem).field("spec.priorityClassName").code(ProblemCode::MissingReference)
            }),
            None => Ok(self.global_default.as_ref().map_or(0, |(value, _)| *value)),
        };
        set.map_or_else(from_class, Ok).map(Priority)
    }

    /// Whether a pod may preempt, by its own `preemptionPolicy`, else by that of its class.
    pub fn preempts(&self, own: Option<&str>, class: Option<&str>) -> bool {
        let from_class = || match non_empty(class) {
            Some(name) => self.classes.get(name).and_then(|class| class.preemption_policy.as_deref()),
            None => self.global_default.as_ref().and_then(|(_, policy)| policy.as_deref()),
        };
        own.or_else(from_class) != Some("Never")
    }

    /// Returns the toleration of a class. A pod that names no class has none, even if there is a default class.
    pub fn toleration(&self, class: Option<&str>) -> Option<Toleration> {
        self.classes.get(non_empty(class)?)?.toleration
    }

    /// Whether pods of the class opted out of preemption. A pod that names no class did not, even if there is a default class.
    pub fn opted_out(&self, class: Option<&str>) -> bool {
        non_empty(class).and_then(|name| self.classes.get(name)).is_some_and(|class| class.opted_out)
    }
}

fn non_empty(class: Option<&str>) -> Option<&str> {
    class.filter(|name| !name.is_empty())
}

fn annotation<'o>(class: &'o PriorityClass, key: &str) -> Option<&'o str> {
    class.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Reads the toleration annotations; if one is invalid, the class has no toleration: `docs/rules/toleration.md#t4` and `#t5`.
fn toleration_of(class: &PriorityClass) -> Result<Option<Toleration>, String> {
    let (minimum, seconds) = (annotation(class, MINIMUM), annotation(class, SECONDS));
    if minimum.is_none() && seconds.is_none() {
        return Ok(None);
    }
    let invalid =
        |key: &str, text: &str, range: &str| format!("{key}: {text:?} is not valid; write a whole number {range}");
    let minimum = match minimum {
        Some(text) => text.parse().map_err(|_| invalid(MINIMUM, text, "from -2^31 to 2^31-1"))?,
        None => class.value.unwrap_or_default().saturating_add(1),
    };
    let seconds = match seconds {
        Some(text) => text.parse().map_err(|_| invalid(SECONDS, text, "from -2^63 to 2^63-1"))?,
        None => 0,
    };
    Ok(Some(Toleration { minimum: Priority(minimum), seconds }))
}
