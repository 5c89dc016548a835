//! The priority of a Kueue Workload: `spec.priority`, else the value of the WorkloadPriorityClass or PriorityClass that it names, else 0.
//! As in Kueue, which sets `spec.priority` when it creates a Workload, the global default PriorityClass is not used here.

use std::collections::BTreeMap;

use reprieve_engine::Priority;

use crate::by_name;
use reprieve_api::kueue::KueueWorkloadSpec;
use reprieve_api::{InputError, ObjectSet, ProblemCode};

/// The priority classes that a workload may name.
pub struct WorkloadClasses {
    /// The values of the WorkloadPriorityClasses.
    workload_classes: BTreeMap<String, i32>,
    /// The values of the PriorityClasses.
    pod_classes: BTreeMap<String, i32>,
}

impl WorkloadClasses {
    /// Reads the classes of a cluster.
    pub fn new(objects: &ObjectSet) -> Self {
        let workload_classes = by_name::<String, _>(&objects.workload_classes);
        let pod_classes = by_name::<String, _>(&objects.priority_classes);
        Self {
            workload_classes: workload_classes
                .into_iter()
                .map(|(name, class)| (name, class.object.spec.value))
                .collect(),
            pod_classes: pod_classes
                .into_iter()
                .map(|(name, class)| (name, class.object.value.unwrap_or_default()))
                .collect(),
        }
    }

    /// Returns the priority of a workload.
    pub fn priority(&self, spec: &KueueWorkloadSpec) -> Result<Priority, InputError> {
        if let Some(priority) = spec.priority {
            return Ok(Priority(priority));
        }
        let named = spec.priority_class_ref.as_ref().map(|class| (&class.name, class.kind == "PriorityClass"));
        // The fields of v1beta1.
        let previous_api = spec.priority_class_name.as_ref();
        let is_pod_class = spec.priority_class_source.as_deref() == Some("scheduling.k8s.io/priorityclass");
        let Some((name, is_pod_class)) =
            named.or(previous_api.map(|name| (name, is_pod_class))).filter(|(name, _)| !name.is_empty())
        else {
            return Ok(Priority(0));
        };
        let (kind, classes) = if is_pod_class {
            ("PriorityClass", &self.pod_classes)
        } else {
            ("WorkloadPriorityClass", &self.workload_classes)
        };
        let field = if named.is_some() { "spec.priorityClassRef" } else { "spec.priorityClassName" };
        classes.get(name).map(|value| Priority(*value)).ok_or_else(|| {
            let problem = format!("{kind} {name:?} is not in the input; add it, or set spec.priority");
            InputError::new(problem).field(field).code(ProblemCode::MissingReference)
        })
    }
}
