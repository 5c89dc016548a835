//! Objects with a controller that makes pods.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::volumes::Volumes;

/// An object with a controller that makes pods, and the volumes of its template as they are written.
#[derive(Clone, Debug, PartialEq)]
pub enum PodController {
    /// Runs its pods to the end.
    Job(Box<Job>, Volumes),
    /// Keeps pods running; one new pod of it asks.
    Replicas(Box<ReplicaController>, Volumes),
}

/// A Deployment, ReplicaSet or StatefulSet, as far as its pods are made of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicaController {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// How its pods are made.
    pub spec: ReplicaControllerSpec,
}

/// How a controller makes its pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaControllerSpec {
    /// Its pods.
    pub template: PodTemplateSpec,
    /// Of a StatefulSet: each of its pods has a claim made from each template.
    pub volume_claim_templates: Option<Vec<ClaimTemplate>>,
}

/// A template of PersistentVolumeClaims.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimTemplate {
    /// Its metadata.
    pub metadata: ObjectMeta,
}
