//! The priority of a Kueue workload: its own, else that of the class that it names, else 0.

use std::collections::BTreeMap;

use reprieve_engine::Priority;

use crate::by_name;
use reprieve_api::kueue::KueueWorkloadSpec;
use reprieve_api::{InputError, ObjectSet, ProblemCode};

/// The priority classes that a workload may name.
pub struct WorkloadClasses {
    own: BTreeMap<String, i32>,
    of_pods: BTreeMap<String, i32>,
}

impl WorkloadClasses {
    /// Reads the classes of a cluster.
    pub fn new(objects: &ObjectSet) -> Self {
        let own = by_name::<String, _>(&objects.workload_classes);
        let of_pods = by_name::<String, _>(&objects.priority_classes);
        Self {
            own: own.into_iter().map(|(name, class)| (name, class.object.spec.value)).collect(),
            of_pods: of_pods.into_iter().map(|(name, class)| (name, class.object.value.unwrap_or_default())).collect(),
        }
    }

    /// Returns the priority of a workload.
    pub fn priority(&self, spec: &KueueWorkloadSpec) -> Result<Priority, InputError> {
        if let Some(priority) = spec.priority {
            return Ok(Priority(priority));
        }
        let named = spec.priority_class_ref.as_ref().map(|class| (&class.name, class.kind == "PriorityClass"));
        let previous_api = spec.priority_class_name.as_ref();
        let of_pods = spec.priority_class_source.as_deref() == Some("scheduling.k8s.io/priorityclass");
        let Some((name, of_pods)) =
            named.or(previous_api.map(|name| (name, of_pods))).filter(|(name, _)| !name.is_empty())
        else {
            return Ok(Priority(0));
        };
        let (kind, classes) =
            if of_pods { ("PriorityClass", &self.of_pods) } else { ("WorkloadPriorityClass", &self.own) };
        let field = if named.is_some() { "spec.priorityClassRef" } else { "spec.priorityClassName" };
        classes.get(name).map(|value| Priority(*value)).ok_or_else(|| {
            let problem = format!("{kind} {name:?} is not in the input; add it, or set spec.priority");
            InputError::new(problem).field(field).code(ProblemCode::MissingReference)
        })
    }
}
