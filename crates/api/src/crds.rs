//! The definitions of custom resources, generated from the types in [`crate::kueue`] and [`crate::koordinator`]. `cargo xtask fix` writes
//! them to `deploy/crds`. Types of Kubernetes itself (pod templates, taints, conditions) have no schema of their own there.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube::CustomResourceExt;

use crate::koordinator::{ElasticQuotaCrd, PodGroupCrd};
use crate::kueue::{
    ClusterQueueCrd, CohortCrd, LocalQueueCrd, ResourceFlavorCrd, WorkloadCrd, WorkloadPriorityClassCrd,
};

/// Returns all definitions with the names of their files.
pub fn crds() -> Vec<(String, CustomResourceDefinition)> {
    let all = [
        ResourceFlavorCrd::crd(),
        ClusterQueueCrd::crd(),
        CohortCrd::crd(),
        LocalQueueCrd::crd(),
        WorkloadCrd::crd(),
        without_spec(WorkloadPriorityClassCrd::crd()),
        ElasticQuotaCrd::crd(),
        PodGroupCrd::crd(),
    ];
    let named = |mut crd: CustomResourceDefinition| {
        schemas(&mut crd).for_each(describe_schema);
        annotate_approval(&mut crd);
        (format!("{}.yaml", crd.metadata.name.clone().unwrap_or_default()), crd)
    };
    all.map(named).into()
}

fn schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let versions = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    versions.filter_map(|schema| schema.open_api_v3_schema.as_mut())
}

/// Adds the description. The spec is not required, because a ResourceFlavor for all nodes has none.
fn describe_schema(schema: &mut JSONSchemaProps) {
    let spec = schema.properties.as_ref().and_then(|properties| properties.get("spec"));
    schema.description = spec.and_then(|spec| spec.description.clone());
    (schema.title, schema.required) = (None, None);
    // The API server keeps fields that only other programs read.
    for part in schema.properties.iter_mut().flatten().filter(|(name, _)| *name == "spec" || *name == "status") {
        part.1.x_kubernetes_preserve_unknown_fields = Some(true);
    }
}

/// Adds the annotation without which the API server rejects a resource of a group of Kubernetes itself.
fn annotate_approval(crd: &mut CustomResourceDefinition) {
    if crd.spec.group.ends_with(".k8s.io") {
        let approval = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50".to_owned();
        let annotations = crd.metadata.annotations.get_or_insert_default();
        annotations.insert("api-approved.kubernetes.io".to_owned(), approval);
    }
}

/// Moves the fields of the spec to the top level, where a WorkloadPriorityClass has them.
fn without_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for properties in schemas(&mut crd).filter_map(|schema| schema.properties.as_mut()) {
        if let Some(spec) = properties.remove("spec") {
            properties.extend(spec.properties.unwrap_or_default());
        }
    }
    crd
}
