//! What the scenarios have in common: classes, gangs, pods, and what becomes of them.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{ControlPlane, Process, User, eventually};

/// What a test's scheduler is called.
pub const SCHEDULER: &str = "reprieve";

/// Two classes of priority.
pub const CLASSES: &str = "\
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 100}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
";

/// A pod with GPUs.
#[derive(Clone, Debug)]
pub struct Fixture {
    pod: Value,
}

impl Fixture {
    /// A pod of this name and class that asks for so many GPUs, and goes a second after it is told to.
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

    /// The same as a member of a PodGroup.
    pub fn of_group(mut self, group: &str) -> Self {
        self.pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        self.pod["metadata"]["labels"]["app"] = json!(group);
        self
    }

    /// The same with a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.pod["metadata"]["labels"][key] = json!(value);
        self
    }

    /// The same without labels.
    pub fn unlabelled(mut self) -> Self {
        self.pod["metadata"]["labels"] = Value::Null;
        self
    }

    /// The same, but it takes this long to go.
    pub fn leaves_after(mut self, time: &str) -> Self {
        self.pod["metadata"]["annotations"]["e2e.reprieve.dev/leaves-after"] = json!(time);
        self
    }

    /// The same, but it goes at once, without a kubelet.
    pub fn leaves_at_once(mut self) -> Self {
        self.pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
        self
    }

    /// The same in another namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.pod["metadata"]["namespace"] = json!(namespace);
        self
    }

    /// The same with so many thousandths of a core in place of GPUs.
    pub fn cpu(mut self, millis: u32) -> Self {
        self.pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": format!("{millis}m")}});
        self
    }

    /// The same, on a node already.
    pub fn on(mut self, node: &str) -> Self {
        self.pod["spec"]["nodeName"] = json!(node);
        self
    }

    /// The same for another scheduler.
    pub fn scheduler(mut self, name: &str) -> Self {
        self.pod["spec"]["schedulerName"] = json!(name);
        self
    }

    /// As the API takes it.
    pub fn build(&self) -> Pod {
        serde_json::from_value(self.pod.clone()).expect("a pod")
    }
}

/// A PodGroup that yields only whole.
pub fn group(name: &str, class: &str, min: usize) -> String {
    format!(
        "{{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {{name: {name}}}, spec: {{priorityClassName: {class}, \
         disruptionMode: {{all: {{}}}}, schedulingPolicy: {{gang: {{minCount: {min}}}}}}}}}\n"
    )
}

impl ControlPlane {
    /// Starts `reprieve run`: one profile `reprieve`, no election, text logs; `more` are further lines of its configuration.
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
        let pods = (0..size).map(|at| Fixture::pod(&format!("{name}-{at}"), class, gpus).of_group(name).build());
        self.create_pods("default", pods.collect()).await;
    }

    /// The pods whose label `app` is this.
    pub async fn pods_of(&self, app: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::all(self.client().clone());
        let found = pods.list(&ListParams::default().labels(&format!("app={app}"))).await;
        found.map(|list| list.items).unwrap_or_default()
    }

    /// Waits until so many pods of an application are bound and not on their way out.
    pub async fn runs(&self, app: &str, count: usize) {
        eventually(&format!("{count} pods of {app} run"), async || {
            let pods = self.pods_of(app).await;
            (pods.iter().filter(|pod| is_bound(pod) && !is_leaving(pod)).count() == count).then_some(())
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

/// Whether a pod is on its way out.
pub fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
