//! Controllers to which pods refer as their owners: the fields that confirm such a reference.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use crate::meta::object;

object!(
    /// `apps/v1` DaemonSet.
    DaemonSet, DaemonSetSpec);

/// The pods of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonSetSpec {
    /// Selects its pods.
    pub selector: LabelSelector,
}
