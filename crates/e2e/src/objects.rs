//! Creates objects in the API server.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::fs;
use std::process::Command;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{ControlPlane, User, eventually, program, root};

const MAX_IN_FLIGHT: usize = 32;

/// The roles of `reprieve run` as Helm renders them for these policies and further values.
pub fn roles_for(policies: &[&str], more: &str) -> String {
    let profile = |(index, policy): (usize, &&str)| {
        format!("config.profiles[{index}].name=p{index},config.profiles[{index}].policy={policy},")
    };
    let values: String = policies.iter().enumerate().map(profile).collect();
    let chart = root().join("deploy/chart/reprieve");
    let mut helm = Command::new(program("helm"));
    helm.args(["template", "reprieve"]).arg(chart).args(["--namespace", "reprieve-system"]);
    helm.args(["--show-only", "templates/role-run.yaml", "--set", &format!("{values}{more}")]);
    let output = helm.output().expect("Helm runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("manifests are UTF-8")
}

impl ControlPlane {
    /// Applies all objects of a YAML text. Objects without a namespace are in `default`.
    pub async fn apply(&self, yaml: &str) {
        let mut known: HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)> = HashMap::new();
        for object in objects(yaml) {
            let types = object.types.as_ref().expect("an object has apiVersion and kind");
            let kind = GroupVersionKind::try_from(types).expect("a group and a version");
            if !known.contains_key(&kind) {
                let found = pinned_kind(self.client(), &kind).await;
                let found = found.unwrap_or_else(|error| panic!("{kind:?} is not served: {error}"));
                known.insert(kind.clone(), found);
            }
            let (resource, capabilities) = &known[&kind];
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Cluster => Api::all_with(self.client().clone(), resource),
                Scope::Namespaced => {
                    let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
                    Api::namespaced_with(self.client().clone(), namespace, resource)
                }
            };
            let name = object.metadata.name.as_deref().expect("an object has a name");
            let parameters = PatchParams::apply("e2e").force();
            let applied = api.patch(name, &parameters, &Patch::Apply(&object)).await;
            applied.unwrap_or_else(|error| panic!("{} {name}: {error}", kind.kind));
        }
    }

    /// Applies the shipped manifests, and binds the planner to the role for planning.
    pub async fn apply_manifests(&self) {
        let manifests = fs::read_to_string(root().join("deploy/manifests/reprieve.yaml"));
        self.apply(&manifests.expect("the manifests exist")).await;
        self.apply(
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: planner}, \
              roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reprieve-plan}, \
              subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: planner}]}",
        )
        .await;
        let nodes: Api<Node> = Api::all(self.client_of(User::Planner).await);
        eventually("the planner may read", async || nodes.list(&ListParams::default()).await.ok()).await;
        let nodes: Api<Node> = Api::all(self.client_of(User::Run).await);
        eventually("the scheduler may read", async || nodes.list(&ListParams::default()).await.ok()).await;
    }

    /// Applies the roles of the chart for these policies, with the namespaces `yunikorn` and `reprieve-system`.
    pub async fn apply_roles_for(&self, policies: &[&str]) {
        for namespace in ["yunikorn", "reprieve-system"] {
            self.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await;
        }
        self.apply(&roles_for(policies, "")).await;
    }

    /// Creates equal nodes `PREFIX-0`, `PREFIX-1`, …, and waits until they are ready.
    pub async fn create_nodes(&self, prefix: &str, count: usize, allocatable: &[(&str, &str)]) {
        let amounts: BTreeMap<&str, &str> = [("pods", "110")].into_iter().chain(allocatable.iter().copied()).collect();
        let node = |index: usize| {
            let name = format!("{prefix}-{index}");
            let node = json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"allocatable": amounts, "capacity": amounts},
            });
            serde_json::from_value(node).expect("a node")
        };
        let api: Api<Node> = Api::all(self.client().clone());
        create_all(&api, (0..count).map(node).collect()).await;
        let of_these = |node: &Node| node.metadata.name.as_deref().is_some_and(|name| name.starts_with(prefix));
        eventually("all nodes are ready", async || {
            let nodes = api.list(&ListParams::default()).await.ok()?;
            (nodes.iter().filter(|node| of_these(node) && is_ready(node)).count() >= count).then_some(())
        })
        .await;
    }

    /// Creates pods with several requests in flight.
    pub async fn create_pods(&self, namespace: &str, pods: Vec<Pod>) {
        create_all(&Api::namespaced(self.client().clone(), namespace), pods).await;
    }
}

async fn create_all<K>(api: &Api<K>, objects: Vec<K>)
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let parameters = PostParams::default();
    let created = stream::iter(&objects).map(|object| api.create(&parameters, object)).buffer_unordered(MAX_IN_FLIGHT);
    created.try_for_each(async |_| Ok(())).await.unwrap_or_else(|error| panic!("cannot create an object: {error}"));
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_tainted = node.spec.iter().any(|spec| spec.taints.iter().flatten().next().is_some());
    !is_tainted && conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The objects of a YAML text.
pub fn objects(yaml: &str) -> Vec<DynamicObject> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    let object = |document| serde_json::from_value(document).expect("an object");
    documents.into_iter().filter(|document| !document.is_null()).map(object).collect()
}
