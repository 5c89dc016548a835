//! Builds the objects of the scenarios.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, ContainerPort, Node, NodeStatus, PodAffinity, PodAffinityTerm, PodCondition, PodSchedulingGroup,
    ResourceRequirements,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::{
    AllDisruptionMode, DisruptionMode, GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::{Container, Pod, PodSpec, PodStatus};
use reprieve_api::source::{Source, Sourced};
use reprieve_api::test_file::{PreemptorRef, Profile};

use super::{Scenario, quotas};

/// The start time of the first pod; each further pod starts one second later.
const FIRST_START: Timestamp = Timestamp::constant(1_767_225_600, 0);

const HOSTNAME: &str = "kubernetes.io/hostname";
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The number of nodes per zone.
const ZONE_NODES: usize = 50;

/// Builds a cluster.
pub struct Cluster {
    pub objects: ObjectSet,
    n_nodes: usize,
}

impl Cluster {
    pub fn new(n_nodes: usize) -> Self {
        let nodes = (0..n_nodes).map(|index| from_scenario(node(index))).collect();
        Self { objects: ObjectSet { nodes, ..ObjectSet::default() }, n_nodes }
    }

    /// Adds running pods round-robin over the nodes.
    pub fn spread(self, pods: usize, template: impl Fn(usize) -> Template) -> Self {
        let n_nodes = self.n_nodes;
        self.run(pods, template, |index| index % n_nodes)
    }

    /// Adds running pods node by node.
    pub fn fill(self, pods_per_node: usize, template: impl Fn(usize) -> Template) -> Self {
        let pods = pods_per_node * self.n_nodes;
        self.run(pods, template, |index| index / pods_per_node)
    }

    fn run(mut self, pods: usize, template: impl Fn(usize) -> Template, node_of: impl Fn(usize) -> usize) -> Self {
        for index in 0..pods {
            let pod = template(index).running(index, node_of(index));
            self.objects.pods.push(from_scenario(pod));
        }
        self
    }

    /// Adds groups that are evicted whole.
    pub fn gangs(mut self, groups: usize, members: usize) -> Self {
        for group in 0..groups {
            let all =
                DisruptionMode { all: Some(AllDisruptionMode(serde_json::json!({}))), ..DisruptionMode::default() };
            let mut group = pod_group(VICTIMS, group_name(group), members, 1000);
            group.spec.disruption_mode = Some(all);
            self.objects.pod_groups.push(from_scenario(group));
        }
        self
    }

    /// Adds a pod as the preemptor.
    pub fn preemptor_pod(mut self, milli_cpu: usize) -> ClusterWithPreemptor {
        let template = Template::new(milli_cpu, 9_999_999).memory(500);
        self.objects.pods.push(from_scenario(template.pending("preemptor".to_owned())));
        self.with_preemptor("Pod")
    }

    /// Adds a pod of a queue as the preemptor, which has been pending for longer than any delay.
    pub fn preemptor_pod_in_queue(mut self, milli_cpu: usize, queue: &str) -> ClusterWithPreemptor {
        let template = Template::new(milli_cpu, 1000).queue(queue, "preemptor");
        let mut pod = template.pending("preemptor".to_owned());
        pod.metadata.creation_timestamp = Some(Time(FIRST_START));
        self.objects.pods.push(from_scenario(pod));
        self.with_preemptor("Pod")
    }

    /// Adds a gang of pods like this template as the preemptor.
    pub fn preemptor_gang(mut self, members: usize, template: Template) -> ClusterWithPreemptor {
        let group = pod_group(PREEMPTORS, "preemptor".to_owned(), members, template.priority);
        self.objects.pod_groups.push(from_scenario(group));
        for member in 0..members {
            let template = Template { group: Some("preemptor".to_owned()), ..template.clone() };
            self.objects.pods.push(from_scenario(template.pending(format!("preemptor-{member:04}"))));
        }
        self.with_preemptor("PodGroup")
    }

    /// Adds a Koordinator job; its first pod is the preemptor.
    pub fn preemptor_job(mut self, members: usize, template: Template) -> ClusterWithPreemptor {
        let template = template.label(quotas::JOB, "preemptor");
        self.objects.koordinator_pod_groups.push(from_scenario(quotas::job(PREEMPTORS, "preemptor", members)));
        self.objects.pods.push(from_scenario(template.pending("preemptor".to_owned())));
        for member in 1..members {
            self.objects.pods.push(from_scenario(template.pending(format!("preemptor-{member:04}"))));
        }
        self.with_preemptor("Pod")
    }

    fn with_preemptor(self, kind: &str) -> ClusterWithPreemptor {
        let preemptor =
            PreemptorRef { kind: kind.to_owned(), namespace: PREEMPTORS.to_owned(), name: "preemptor".to_owned() };
        ClusterWithPreemptor { objects: self.objects, preemptor }
    }
}

/// A cluster with its preemptor.
pub struct ClusterWithPreemptor {
    objects: ObjectSet,
    preemptor: PreemptorRef,
}

impl ClusterWithPreemptor {
    pub fn with_victims(self, victims: usize) -> Scenario {
        self.expecting(Some(victims))
    }

    /// Expects that a law refuses the preemptor.
    pub fn refused(self) -> Scenario {
        self.expecting(None)
    }

    fn expecting(self, victims: Option<usize>) -> Scenario {
        let ObjectSet { config_maps, elastic_quotas, .. } = &self.objects;
        let policy = match (config_maps.is_empty(), elastic_quotas.is_empty()) {
            (true, true) => "Kubernetes",
            (true, false) => "Koordinator",
            (false, _) => "YuniKorn",
        };
        let profile = Profile { policy: policy.to_owned(), ..Profile::default() };
        Scenario { objects: self.objects, preemptor: self.preemptor, profile, victims }
    }
}

const PREEMPTORS: &str = "gang-preempt-0";
const VICTIMS: &str = "gang-preempt-1";

/// The common part of equal pods.
#[derive(Clone)]
pub struct Template {
    kind: &'static str,
    milli_cpu: usize,
    memory_mib: usize,
    priority: i32,
    class: Option<&'static str>,
    port: Option<i32>,
    group: Option<String>,
    labels: BTreeMap<String, String>,
    beside_blue: bool,
}

impl Template {
    pub fn new(milli_cpu: usize, priority: i32) -> Self {
        let labels = BTreeMap::new();
        Self {
            kind: "pod",
            milli_cpu,
            memory_mib: 100,
            priority,
            class: None,
            port: None,
            group: None,
            labels,
            beside_blue: false,
        }
    }

    pub fn kind(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub fn class(self, class: &'static str) -> Self {
        Self { class: Some(class), ..self }
    }

    pub fn port(self, port: usize) -> Self {
        Self { port: i32::try_from(port).ok(), ..self }
    }

    pub fn group(self, group: usize) -> Self {
        Self { group: Some(group_name(group)), ..self }
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Puts the pod into a queue and an application of YuniKorn.
    pub fn queue(self, queue: &str, application: &str) -> Self {
        self.label("queue", queue).label("applicationId", application)
    }

    pub fn memory(self, memory_mib: usize) -> Self {
        Self { memory_mib, ..self }
    }

    /// Requires the node of a blue pod.
    pub fn beside_blue(self) -> Self {
        Self { beside_blue: true, ..self }
    }

    /// Adds the labels that members of the benchmark `GangPreemptionAffinity` require on their node.
    pub fn blue(self) -> Self {
        Self { labels: blue_labels(), ..self }
    }

    fn running(&self, index: usize, node: usize) -> Pod {
        let start = Time(FIRST_START + SignedDuration::from_secs(index as i64));
        let mut pod = self.pod(VICTIMS, format!("{}-{index:06}", self.kind));
        pod.metadata.creation_timestamp = Some(start.clone());
        pod.node_name = Some(node_name(node));
        let scheduled = PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(start.clone()),
            ..PodCondition::default()
        };
        pod.status = Some(PodStatus {
            phase: Some("Running".to_owned()),
            start_time: Some(start),
            conditions: Some(vec![scheduled]),
            ..PodStatus::default()
        });
        pod
    }

    fn pending(&self, name: String) -> Pod {
        let status = PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() };
        Pod { status: Some(status), ..self.pod(PREEMPTORS, name) }
    }

    fn pod(&self, namespace: &str, name: String) -> Pod {
        let amounts =
            quantities([("cpu", format!("{}m", self.milli_cpu)), ("memory", format!("{}Mi", self.memory_mib))]);
        let port = |port| ContainerPort { container_port: 80, host_port: Some(port), ..ContainerPort::default() };
        let container = Container {
            name: "pause".to_owned(),
            image: Some("registry.k8s.io/pause:3.10.1".to_owned()),
            ports: self.port.map(|host| vec![port(host)]),
            resources: Some(ResourceRequirements {
                limits: Some(amounts.clone()),
                requests: Some(amounts),
                ..ResourceRequirements::default()
            }),
            ..Container::default()
        };
        let spec = PodSpec {
            priority: Some(self.priority),
            priority_class_name: self.class.map(str::to_owned),
            scheduling_group: self.group.clone().map(|group| PodSchedulingGroup { pod_group_name: Some(group) }),
            affinity: self.beside_blue.then(beside_blue),
            termination_grace_period_seconds: Some(0),
            containers: vec![container],
            ..PodSpec::default()
        };
        let labels = Some(self.labels.clone()).filter(|labels| !labels.is_empty());
        let metadata = ObjectMeta { labels, ..metadata(Some(namespace), name) };
        Pod::new(metadata, spec)
    }
}

fn node(index: usize) -> Node {
    let name = node_name(index);
    let zone = format!("zone-{:03}", index / ZONE_NODES);
    let labels = BTreeMap::from([(HOSTNAME.to_owned(), name.clone()), (ZONE.to_owned(), zone)]);
    let amounts = quantities([("cpu", "4".to_owned()), ("memory", "32Gi".to_owned()), ("pods", "110".to_owned())]);
    let status = NodeStatus { allocatable: Some(amounts.clone()), capacity: Some(amounts), ..NodeStatus::default() };
    Node { metadata: ObjectMeta { labels: Some(labels), ..metadata(None, name) }, spec: None, status: Some(status) }
}

fn pod_group(namespace: &str, name: String, min_count: usize, priority: i32) -> PodGroup {
    let min_count = i32::try_from(min_count).expect("a gang is small");
    let gang = Some(GangSchedulingPolicy { min_count });
    let scheduling_policy = PodGroupSchedulingPolicy { gang, ..PodGroupSchedulingPolicy::default() };
    let spec = PodGroupSpec { priority: Some(priority), scheduling_policy, ..PodGroupSpec::default() };
    PodGroup { metadata: metadata(Some(namespace), name), spec, status: None }
}

pub fn budget(app: usize, allowed: i32) -> PodDisruptionBudget {
    let labels = BTreeMap::from([("app".to_owned(), format!("app-{app}"))]);
    let selector = LabelSelector { match_labels: Some(labels), ..LabelSelector::default() };
    PodDisruptionBudget {
        metadata: metadata(Some(VICTIMS), format!("app-{app}")),
        spec: Some(PodDisruptionBudgetSpec { selector: Some(selector), ..PodDisruptionBudgetSpec::default() }),
        status: Some(PodDisruptionBudgetStatus {
            disruptions_allowed: Some(allowed),
            ..PodDisruptionBudgetStatus::default()
        }),
    }
}

pub fn priority_class(name: &str, minimum: Option<i32>, seconds: Option<i64>) -> PriorityClass {
    const PREFIX: &str = "preemption-toleration.scheduling.x-k8s.io";
    let minimum = minimum.map(|minimum| (format!("{PREFIX}/minimum-preemptable-priority"), minimum.to_string()));
    let seconds = seconds.map(|seconds| (format!("{PREFIX}/toleration-seconds"), seconds.to_string()));
    let annotations = minimum.into_iter().chain(seconds).collect();
    let metadata = ObjectMeta { annotations: Some(annotations), ..metadata(None, name.to_owned()) };
    PriorityClass { metadata, value: Some(1000), ..PriorityClass::default() }
}

fn beside_blue() -> Affinity {
    let term = PodAffinityTerm {
        label_selector: Some(LabelSelector { match_labels: Some(blue_labels()), ..LabelSelector::default() }),
        namespace_selector: Some(LabelSelector::default()),
        topology_key: HOSTNAME.to_owned(),
        ..PodAffinityTerm::default()
    };
    let required =
        PodAffinity { required_during_scheduling_ignored_during_execution: Some(vec![term]), ..PodAffinity::default() };
    Affinity { pod_affinity: Some(required), ..Affinity::default() }
}

fn blue_labels() -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([("app".to_owned(), "blue".to_owned())]);
    labels.extend((1..=4).map(|number| (format!("label{number}"), format!("value{number}"))));
    labels
}

fn node_name(index: usize) -> String {
    format!("node-{index:05}")
}

fn group_name(index: usize) -> String {
    format!("gang-{index:05}")
}

fn metadata(namespace: Option<&str>, name: String) -> ObjectMeta {
    ObjectMeta { namespace: namespace.map(str::to_owned), name: Some(name), ..ObjectMeta::default() }
}

fn quantities<const N: usize>(amounts: [(&str, String); N]) -> BTreeMap<String, Quantity> {
    amounts.into_iter().map(|(resource, amount)| (resource.to_owned(), Quantity(amount))).collect()
}

/// An object of the scenario, as the loader reads it.
pub fn from_scenario<T>(object: T) -> Sourced<T> {
    Sourced { object: Arc::new(object), source: Source { file: "scenario".into(), document: 1, item: None } }
}
