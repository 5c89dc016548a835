//! Common objects and waits of the tests: priority classes, gangs, pods, and `reprieve run`.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{ControlPlane, Process, User, eventually};

/// The schedulerName of the tests.
pub const SCHEDULER: &str = "reprieve";

/// Two priority classes.
pub const CLASSES: &str = "\
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 100}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
";

/// Builds a pod with GPUs.
#[derive(Clone, Debug)]
pub struct Fixture {
    pod: Value,
}

impl Fixture {
    /// A pod that requests GPUs and terminates one second after its deletion.
    pub fn pod(name: &str, class: &str, gpus: u32) -> Self {
        let amount = json!({"nvidia.com/gpu": gpus.to_string()});
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {
                "schedulerName": SCHEDULER,
                "priorityClassName": class,
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": amount, "limits": amount},
                }],
            },
        });
        Self { pod }
    }

    /// Makes the pod a member of a PodGroup.
    pub fn of_group(mut self, group: &str) -> Self {
        self.pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        self.pod["metadata"]["labels"]["app"] = json!(group);
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.pod["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Removes all labels.
    pub fn unlabelled(mut self) -> Self {
        self.pod["metadata"]["labels"] = Value::Null;
        self
    }

    /// Sets the time that the pod takes to terminate.
    pub fn terminates_after(mut self, time: &str) -> Self {
        self.pod["metadata"]["annotations"]["e2e.reprieve.dev/leaves-after"] = json!(time);
        self
    }

    /// Makes the API server remove the pod at once when it is deleted, without a kubelet.
    pub fn terminates_at_once(mut self) -> Self {
        self.pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
        self
    }

    /// Sets the namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.pod["metadata"]["namespace"] = json!(namespace);
        self
    }

    /// Requests thousandths of a CPU instead of GPUs.
    pub fn cpu(mut self, millis: u32) -> Self {
        self.pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": format!("{millis}m")}});
        self
    }

    /// Binds the pod to a node.
    pub fn on(mut self, node: &str) -> Self {
        self.pod["spec"]["nodeName"] = json!(node);
        self
    }

    /// Sets the schedulerName.
    pub fn scheduler(mut self, name: &str) -> Self {
        self.pod["spec"]["schedulerName"] = json!(name);
        self
    }

    /// The Pod object.
    pub fn build(&self) -> Pod {
        serde_json::from_value(self.pod.clone()).expect("a pod")
    }
}

/// A PodGroup that is evicted whole.
pub fn group(name: &str, class: &str, min: usize) -> String {
    format!(
        "{{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {{name: {name}}}, spec: {{priorityClassName: {class}, \
         disruptionMode: {{all: {{}}}}, schedulingPolicy: {{gang: {{minCount: {min}}}}}}}}}\n"
    )
}

impl ControlPlane {
    /// Starts `reprieve run` with one profile `reprieve`, without leader election, with text logs. `more` has further lines of the configuration.
    pub fn run(&self, name: &str, user: User, policy: &str, more: &str) -> Process {
        let election = if more.contains("leaderElection") { "" } else { "leaderElection: {enabled: false}\n" };
        let text = format!(
            "apiVersion: reprieve.dev/v1alpha1\nkind: Configuration\nprofiles: [{{name: {SCHEDULER}, policy: {policy}}}]\n\
             ports: {{metrics: 0}}\nlogFormat: text\n{election}{more}"
        );
        let file = self.folder().join(format!("{name}.yaml"));
        fs::write(&file, text).expect("the configuration can be written");
        self.reprieve(name, user, &["run", "--config", &file.display().to_string()])
    }

    /// Creates a gang: a PodGroup and its pods `NAME-0`, `NAME-1`, …
    pub async fn create_gang(&self, name: &str, class: &str, size: usize, gpus: u32) {
        self.apply(&group(name, class, size)).await;
        let pods = (0..size).map(|index| Fixture::pod(&format!("{name}-{index}"), class, gpus).of_group(name).build());
        self.create_pods("default", pods.collect()).await;
    }

    /// The pods with this label `app`.
    pub async fn pods_of(&self, app: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::all(self.client().clone());
        let found = pods.list(&ListParams::default().labels(&format!("app={app}"))).await;
        found.map(|list| list.items).unwrap_or_default()
    }

    /// Waits until exactly this many pods of an application are bound and not terminating.
    pub async fn runs(&self, app: &str, count: usize) {
        eventually(&format!("{count} pods of {app} run"), async || {
            let pods = self.pods_of(app).await;
            (pods.iter().filter(|pod| is_bound(pod) && !is_terminating(pod)).count() == count).then_some(())
        })
        .await;
    }

    /// Waits until an application has no pods.
    pub async fn is_gone(&self, app: &str) {
        eventually(&format!("{app} is gone"), async || self.pods_of(app).await.is_empty().then_some(())).await;
    }
}

/// Whether a pod has a node.
pub fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

/// Whether a pod is terminating.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
