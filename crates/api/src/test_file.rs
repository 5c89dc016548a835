//! The PreemptionTest file: a cluster, one preemptor, and what must come of it. Unknown fields are refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::NamespacedName;

/// The first document of a test file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreemptionTest {
    /// `reprieve.dev/v1alpha1`.
    pub api_version: String,
    /// `PreemptionTest`.
    pub kind: String,
    /// Its name, and where the case comes from.
    pub metadata: TestMetadata,
    /// The question and its answer.
    pub spec: TestSpec,
}

/// What a test is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestMetadata {
    /// The file's name without `.yaml`.
    pub name: String,
    /// Notes; `reprieve.dev/origin` says where the case comes from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels, which mean nothing to the runner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The question and its answer.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSpec {
    /// The decision's clock.
    pub now: Option<String>,
    /// The policy.
    #[serde(default)]
    pub profile: Profile,
    /// Who asks.
    pub preemptor: PreemptorRef,
    /// What must come of it; a recorded question has none.
    pub expect: Option<Expectation>,
}

/// The policy and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The policy's name.
    pub policy: String,
    /// The policy's own settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// The scheduler that decides: members of gangs that name another one are not placed. Without it each gang belongs to the scheduler
    /// that its members name.
    #[serde(default, rename = "schedulerName", skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
}

impl Profile {
    /// A policy with its default settings.
    pub fn of_policy(policy: &str) -> Self {
        Self { policy: policy.to_owned(), args: Map::new(), scheduler_name: None }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::of_policy("Kubernetes")
    }
}

/// Who asks, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreemptorRef {
    /// `Pod`, `PodGroup` or `Workload`.
    pub kind: String,
    /// Its namespace; `default` where it is missing.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl PreemptorRef {
    /// Its namespace and name.
    pub fn full_name(&self) -> NamespacedName {
        NamespacedName::new(&self.namespace, &self.name)
    }
}

/// What must come of the question.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// `Schedule`, `Preempt`, `Wait` or `Unschedulable`.
    pub outcome: OutcomeName,
    /// The victims, in any order.
    pub victims: Option<Vec<VictimRef>>,
    /// Several sets of victims that are equally right.
    pub any_of: Option<Vec<Vec<VictimRef>>>,
    /// Pod to node; only those that are given are checked.
    pub nominated: Option<BTreeMap<String, String>>,
    /// By node, the victims that landing there would take; a node that is not listed must be infeasible.
    pub candidates: Option<BTreeMap<String, Vec<String>>>,
}

/// The four outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OutcomeName {
    /// It fits now, with no victim.
    Schedule,
    /// It fits once exactly the victims are gone.
    Preempt,
    /// Nothing new may be preempted for it now.
    Wait,
    /// No lawful set of victims makes it fit, or it may not preempt.
    Unschedulable,
}

/// A victim by name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VictimRef {
    /// `namespace/name` of a pod.
    pub pod: Option<String>,
    /// `namespace/name` of a workload.
    pub workload: Option<String>,
    /// Why it is taken.
    pub reason: Option<String>,
}
