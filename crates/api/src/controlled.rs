//! Objects whose controllers create pods: Jobs, Deployments, ReplicaSets and StatefulSets. `loader::submit` creates their pods.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::volumes::Volumes;

/// An object whose controller creates pods, and the volumes of its template.
#[derive(Clone, Debug, PartialEq)]
pub enum PodController {
    /// A Job, whose pods run to completion.
    Job(Box<Job>, Volumes),
    /// An object that keeps replicas running; a plan is for one new replica.
    Replicas(Box<ReplicaController>, Volumes),
}

/// The fields of a Deployment, ReplicaSet or StatefulSet from which its pods are created.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicaController {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The template.
    pub spec: ReplicaControllerSpec,
}

/// The template of a controller's pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaControllerSpec {
    /// The pod template.
    pub template: PodTemplateSpec,
    /// In a StatefulSet, each pod has a claim from each template.
    pub volume_claim_templates: Option<Vec<ClaimTemplate>>,
}

/// A template of PersistentVolumeClaims.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimTemplate {
    /// The metadata.
    pub metadata: ObjectMeta,
}
