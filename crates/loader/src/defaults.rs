//! Completes pods that do not exist yet, as the API server or Kueue does. [`crate::submit`] completes submitted pods, `quota` the pod sets
//! of Workloads.
//!
//! | default | API server, when a pod is created | Kueue, for the pod sets of a Workload |
//! | --- | --- | --- |
//! | a limit without a request | is copied to the requests first | is copied to the requests last |
//! | LimitRange | defaults of type `Container`, if the container still has none | the same, but before the limits are copied |
//! | RuntimeClass | overhead, node selector and tolerations | overhead |
//! | global default PriorityClass | if the pod names no class | – |
//!
//! The order matters: with a limit of 4 and a default request of 1, the pod requests 4, but Kueue counts 1.

mod limit_range;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::requests::{self, pod_level_requests};
use crate::{by_name, plain_name};
use limit_range::LimitRanges;
use reprieve_api::pod::fill_container_requests;
use reprieve_api::requests::fill_requests;
use reprieve_api::{Container, InputError, NamespacedName, ObjectSet, Pod, PodSpec};

type Quantities = BTreeMap<String, Quantity>;

/// The objects from which pods are completed.
pub struct Defaults {
    /// Keyed by namespace.
    limit_ranges: BTreeMap<String, LimitRanges>,
    runtime_classes: BTreeMap<String, Arc<RuntimeClass>>,
    /// Value and name of the global default PriorityClass.
    default_class: Option<(i32, String)>,
    /// The error of an invalid LimitRange, by namespace. Only pods of that namespace are affected.
    broken_ranges: BTreeMap<String, InputError>,
    /// The error of an invalid RuntimeClass, by name. Only pods that name it are affected.
    broken_classes: BTreeMap<String, InputError>,
}

impl Defaults {
    /// Reads the defaults of a cluster.
    pub fn new(objects: &ObjectSet) -> Self {
        let mut limit_ranges: BTreeMap<String, LimitRanges> = BTreeMap::new();
        let (mut broken_ranges, mut broken_classes) = (BTreeMap::new(), BTreeMap::new());
        for (NamespacedName { namespace, .. }, range) in by_name::<NamespacedName, _>(&objects.limit_ranges) {
            if let Err(error) = limit_ranges.entry(namespace.clone()).or_default().add(&range.object) {
                broken_ranges.entry(namespace).or_insert_with(|| range.locate(error));
            }
        }
        let mut runtime_classes = BTreeMap::new();
        for (name, class) in by_name::<String, _>(&objects.runtime_classes) {
            let fixed = class.object.overhead.as_ref().and_then(|overhead| overhead.pod_fixed.as_ref());
            match fixed.map(|fixed| requests::amounts(fixed, "overhead.podFixed")) {
                Some(Err(error)) => _ = broken_classes.insert(name, class.locate(error)),
                Some(Ok(_)) | None => _ = runtime_classes.insert(name, Arc::clone(&class.object)),
            }
        }
        let classes = objects.priority_classes.iter().map(|class| &class.object);
        let classes = classes.filter(|class| class.global_default == Some(true));
        // If a race created several, the API server uses the one with the lowest value.
        let default_class = classes.map(|class| (class.value.unwrap_or_default(), plain_name(&**class))).min();
        Self { limit_ranges, runtime_classes, default_class, broken_ranges, broken_classes }
    }

    /// Returns the errors of all LimitRanges and RuntimeClasses that are not valid.
    pub fn errors(&self) -> impl Iterator<Item = &InputError> {
        self.broken_ranges.values().chain(self.broken_classes.values())
    }

    /// Returns an error if a pod depends on an invalid LimitRange or RuntimeClass.
    pub fn check(&self, namespace: &str, runtime_class: Option<&str>) -> Result<(), InputError> {
        let broken = self.broken_ranges.get(namespace);
        let broken = broken.or_else(|| self.broken_classes.get(runtime_class?));
        broken.map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Completes a pod as the API server does when the pod is created. Returns the reasons for which the API server would reject it.
    pub fn admit(&self, pod: &mut Pod) -> Vec<String> {
        let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
        let spec = pod.spec_mut();
        self.fill_class(&mut spec.priority_class_name, spec.priority);
        self.admit_spec(&namespace, spec)
    }

    /// Sets the default priority class of a PodGroup.
    pub fn admit_group(&self, group: &mut PodGroup) {
        self.fill_class(&mut group.spec.priority_class_name, group.spec.priority);
    }

    /// Completes the pods of a template, except their priority.
    pub fn admit_spec(&self, namespace: &str, spec: &mut PodSpec) -> Vec<String> {
        fill_container_requests(spec);
        let mut problems = self.apply_runtime_class(spec);
        if let Some(limits) = self.limit_ranges.get(namespace) {
            limits.fill_containers(spec);
        }
        if let Cow::Owned(requests) = pod_level_requests(spec)
            && let Some(resources) = &mut spec.resources
        {
            resources.requests = Some(requests);
        }
        // Loading the pod reports amounts that are not valid.
        problems.extend(self.violations(namespace, spec).unwrap_or_default());
        problems
    }

    /// Completes the pods of a Kueue Workload as Kueue does before it counts what they request.
    pub fn complete_as_kueue(&self, namespace: &str, spec: &mut PodSpec) {
        if spec.overhead.as_ref().is_none_or(BTreeMap::is_empty)
            && let Some(class) = self.runtime_class(spec)
        {
            spec.overhead = class.overhead.as_ref().and_then(|overhead| overhead.pod_fixed.clone());
        }
        if let Some(limits) = self.limit_ranges.get(namespace) {
            limits.fill_containers(spec);
            limits.fill_pod(spec);
        }
        fill_container_requests(spec);
        if let Some(resources) = &mut spec.resources {
            fill_requests(resources);
        }
    }

    /// Returns the requests above their limits and the violations of LimitRanges. Each text begins with the field.
    pub fn violations(&self, namespace: &str, spec: &PodSpec) -> Result<Vec<String>, InputError> {
        let mut violations = Vec::new();
        for (path, resources) in resources_of(spec).filter(|(_, resources)| resources.limits.is_some()) {
            let (requests, limits) = limit_range::amounts_of(resources, &path)?;
            for (resource, request) in requests {
                if limits.get(&resource).is_some_and(|limit| request > *limit) {
                    violations.push(format!(
                        "{path}: the request of {resource} exceeds its limit; lower the request or raise the limit"
                    ));
                }
            }
        }
        if let Some(limits) = self.limit_ranges.get(namespace) {
            limits.violations(spec, &mut violations)?;
        }
        Ok(violations)
    }

    /// Returns the RuntimeClass that a pod names if the input does not have it.
    pub fn missing_runtime_class<'s>(&self, spec: &'s PodSpec) -> Option<&'s str> {
        let name = spec.runtime_class_name.as_deref()?;
        (!self.runtime_classes.contains_key(name) && !self.broken_classes.contains_key(name)).then_some(name)
    }

    fn runtime_class(&self, spec: &PodSpec) -> Option<&RuntimeClass> {
        self.runtime_classes.get(spec.runtime_class_name.as_deref()?).map(AsRef::as_ref)
    }

    /// Sets the default class. A pod with another priority than the class has stays as it is, because the API server rejects such a pod.
    fn fill_class(&self, class: &mut Option<String>, priority: Option<i32>) {
        if let Some((value, name)) = &self.default_class
            && class.as_ref().is_none_or(String::is_empty)
            && priority.is_none_or(|priority| priority == *value)
        {
            *class = Some(name.clone());
        }
    }

    /// Adds overhead, node selector and tolerations of the pod's RuntimeClass. Fields that the pod sets itself stay.
    fn apply_runtime_class(&self, spec: &mut PodSpec) -> Vec<String> {
        if let Some(name) = self.missing_runtime_class(spec) {
            let problem = format!(
                "spec.runtimeClassName: RuntimeClass {name:?} is not in the input, so its overhead, node selector and tolerations are \
                 unknown; add the output of kubectl get runtimeclasses -o yaml"
            );
            return vec![problem];
        }
        let Some(class) = self.runtime_class(spec).cloned() else { return Vec::new() };
        let name = plain_name(&class);
        let mut problems = Vec::new();
        if let Some(fixed) = class.overhead.and_then(|overhead| overhead.pod_fixed) {
            match spec.overhead.as_ref().filter(|own| !own.is_empty()) {
                None => spec.overhead = Some(fixed),
                Some(own) if requests::amounts(own, "").ok() != requests::amounts(&fixed, "").ok() => {
                    problems.push(format!(
                        "spec.overhead: differs from the overhead of RuntimeClass {name:?}; remove it, because the API server rejects such a pod"
                    ));
                }
                Some(_) => {}
            }
        }
        let scheduling = class.scheduling.unwrap_or_default();
        for (key, value) in scheduling.node_selector.into_iter().flatten() {
            let selector = spec.node_selector.get_or_insert_default();
            let own = selector.entry(key.clone()).or_insert_with(|| value.clone());
            if *own != value {
                problems.push(format!(
                    "spec.nodeSelector.{key}: {own:?} conflicts with {value:?} of RuntimeClass {name:?}; remove it, because the API server rejects such a pod"
                ));
            }
        }
        for toleration in scheduling.tolerations.into_iter().flatten() {
            let tolerations = spec.tolerations.get_or_insert_default();
            if !tolerations.contains(&toleration) {
                tolerations.push(toleration);
            }
        }
        problems
    }
}

/// Returns the resources of each container and of the pod, with their field paths.
fn resources_of(spec: &PodSpec) -> impl Iterator<Item = (String, &ResourceRequirements)> {
    let of_pod = spec.resources.iter().map(|resources| ("spec.resources".to_owned(), resources));
    let containers = containers_of(spec).filter_map(|(path, container)| {
        let resources = container.resources.as_ref()?;
        Some((format!("{path}.resources"), resources))
    });
    containers.chain(of_pod)
}

/// Returns each container with its field path, init containers first.
fn containers_of(spec: &PodSpec) -> impl Iterator<Item = (String, &Container)> {
    let named = |list: &str, container: &Container| format!("spec.{list}[{}]", container.name);
    let init =
        spec.init_containers.iter().flatten().map(move |container| (named("initContainers", container), container));
    init.chain(spec.containers.iter().map(move |container| (named("containers", container), container)))
}

#[cfg(test)]
mod tests;
