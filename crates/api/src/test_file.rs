//! The types of a PreemptionTest file: one preemptor, the policy, and the expected decision. Unknown fields are errors. The reference for
//! users is `docs/reference/preemption-test.md`.

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
    /// The name and the origin of the test.
    pub metadata: TestMetadata,
    /// The question and the expected answer.
    pub spec: TestSpec,
}

/// The metadata of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestMetadata {
    /// The file name without `.yaml`.
    pub name: String,
    /// Notes; `reprieve.dev/origin` names the origin of the test.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The runner ignores labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The question and the expected answer.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSpec {
    /// The time of the decision in RFC 3339.
    pub now: Option<String>,
    /// The policy and its settings.
    #[serde(default)]
    pub profile: Profile,
    /// The pending unit that needs room.
    pub preemptor: PreemptorRef,
    /// The expected answer; a recorded question has none.
    pub expect: Option<Expectation>,
}

/// The policy and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name of the policy.
    pub policy: String,
    /// The arguments of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// The scheduler that decides; it does not place members of gangs that name another scheduler. By default each gang belongs to the
    /// scheduler that its members name.
    #[serde(default, rename = "schedulerName", skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
}

impl Profile {
    /// Returns a policy with its default settings.
    pub fn of_policy(policy: &str) -> Self {
        Self { policy: policy.to_owned(), args: Map::new(), scheduler_name: None }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::of_policy("Kubernetes")
    }
}

/// The name of a preemptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreemptorRef {
    /// `Pod`, `PodGroup` or `Workload`.
    pub kind: String,
    /// The namespace; the default is `default`.
    #[serde(default)]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl PreemptorRef {
    /// Returns the namespace and name.
    pub fn full_name(&self) -> NamespacedName {
        NamespacedName::new(&self.namespace, &self.name)
    }
}

/// The expected answer.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// `Schedule`, `Preempt`, `Wait` or `Unschedulable`.
    pub outcome: OutcomeName,
    /// The victims, in any order.
    pub victims: Option<Vec<VictimRef>>,
    /// Alternative sets of victims, each of which is accepted.
    pub any_of: Option<Vec<Vec<VictimRef>>>,
    /// The node of each pod; other pods are not checked.
    pub nominated: Option<BTreeMap<String, String>>,
    /// For a pod as the preemptor: the victims of the plan of each node; a node that is not listed must have no plan.
    pub candidates: Option<BTreeMap<String, Vec<String>>>,
}

/// The four outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OutcomeName {
    /// The preemptor fits without victims.
    Schedule,
    /// The preemptor fits after evicting exactly the victims.
    Preempt,
    /// The preemptor must wait: no further unit may be preempted for it now.
    Wait,
    /// No lawful set of victims makes the preemptor fit, or it may not preempt.
    Unschedulable,
}

/// The name of a victim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VictimRef {
    /// `namespace/name` of a pod.
    pub pod: Option<String>,
    /// `namespace/name` of a workload.
    pub workload: Option<String>,
    /// Under policy Kueue, the reason of the preemption, for example `InClusterQueue`; not checked if an expectation has none.
    pub reason: Option<String>,
}
