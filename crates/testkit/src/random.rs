//! Small random clusters for policy Kubernetes, each with one question: two to six nodes, about twenty pods, few priorities and little free
//! capacity, so that ties, budgets and reprieves matter. Most questions end in a preemption; all outcomes occur. The same seed gives the same
//! bytes.

mod constraints;
mod groups;
mod nodes;
mod pending;
mod pods;
pub(crate) mod yaml;

use serde_json::{Value, json};

pub use crate::rng::Rng;

use crate::limits::write_some_as_limits;
use nodes::Node;

/// The features that may appear in a cluster, besides nodes, pods with resources, and one preemptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Running groups, some of which are evicted whole.
    pub gangs: bool,
    /// Disruption budgets.
    pub budgets: bool,
    /// Inter-pod affinity and anti-affinity.
    pub affinity: bool,
    /// Topology spread constraints.
    pub spread: bool,
    /// Host ports.
    pub ports: bool,
    /// Taints, cordons, node selectors and node affinity.
    pub taints: bool,
    /// Pending pods that are nominated to a node, and an earlier nomination of the preemptor.
    pub nominations: bool,
    /// Terminating pods.
    pub terminating: bool,
    /// Preemption tolerations of priority classes, and pods whose class is not defined.
    pub tolerations: bool,
    /// Classes and pods that opted out of being preempted.
    pub opt_out: bool,
    /// Pods with a resize in progress; the preemptor may be a running pod that grows in place.
    pub resize: bool,
    /// A group as the preemptor.
    pub gang_preemptor: bool,
    /// Groups with a preemption priority above their priority.
    pub preemption_priority: bool,
    /// Running groups whose pods have another priority than the group.
    pub mixed_priorities: bool,
    /// The priority cut of the search; without this feature every question disables it.
    pub priority_cut: bool,
    /// Pending pods under scheduling gates, of another scheduler, or with volumes and claims that no decision evaluates.
    pub obstacles: bool,
    /// Running pods with a controller, which return after an eviction.
    pub returns: bool,
}

impl Options {
    /// One pod against single pods: what kube-scheduler decides.
    pub const fn pods() -> Self {
        Self {
            budgets: true,
            affinity: true,
            spread: true,
            ports: true,
            taints: true,
            nominations: true,
            terminating: true,
            resize: true,
            ..Self::resources()
        }
    }

    /// Only resources and priorities.
    pub const fn resources() -> Self {
        Self {
            gangs: false,
            budgets: false,
            affinity: false,
            spread: false,
            ports: false,
            taints: false,
            nominations: false,
            terminating: false,
            tolerations: false,
            opt_out: false,
            resize: false,
            gang_preemptor: false,
            preemption_priority: false,
            mixed_priorities: false,
            priority_cut: false,
            obstacles: false,
            returns: false,
        }
    }

    /// One pod against pods and groups that return.
    pub const fn cascades() -> Self {
        Self { gangs: true, budgets: true, taints: true, priority_cut: true, returns: true, ..Self::resources() }
    }

    /// Pods and groups against pods and groups: what kube-scheduler decides.
    pub const fn groups() -> Self {
        Self { gangs: true, gang_preemptor: true, resize: false, ..Self::pods() }
    }

    /// One pod against single pods, some of which tolerate preemption.
    pub const fn tolerations() -> Self {
        Self { tolerations: true, resize: false, ..Self::pods() }
    }

    /// All features.
    pub const fn everything() -> Self {
        Self {
            tolerations: true,
            opt_out: true,
            resize: true,
            preemption_priority: true,
            mixed_priorities: true,
            priority_cut: true,
            obstacles: true,
            returns: true,
            ..Self::groups()
        }
    }

    /// Selects some of the features: in a cluster with all of them each would have little effect.
    fn thinned(self, rng: &mut Rng) -> Self {
        Self {
            gangs: self.gangs && rng.chance(85),
            budgets: self.budgets && rng.chance(50),
            affinity: self.affinity && rng.chance(35),
            spread: self.spread && rng.chance(30),
            ports: self.ports && rng.chance(25),
            taints: self.taints && rng.chance(30),
            nominations: self.nominations && rng.chance(50),
            terminating: self.terminating && rng.chance(40),
            tolerations: self.tolerations && rng.chance(85),
            opt_out: self.opt_out && rng.chance(30),
            resize: self.resize && rng.chance(15),
            gang_preemptor: self.gang_preemptor && rng.chance(60),
            preemption_priority: self.preemption_priority && rng.chance(40),
            mixed_priorities: self.mixed_priorities && rng.chance(30),
            priority_cut: self.priority_cut && rng.chance(70),
            obstacles: self.obstacles && rng.chance(25),
            returns: self.returns && rng.chance(80),
        }
    }
}

/// A cluster and a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The PreemptionTest, without an expectation.
    test: Value,
    /// The Kubernetes objects.
    objects: Vec<Value>,
}

impl Case {
    /// The PreemptionTest file.
    pub fn to_yaml(&self) -> String {
        let documents: Vec<String> = std::iter::once(&self.test).chain(&self.objects).map(yaml::document).collect();
        documents.join("---\n")
    }

    /// The file as JSON, which is faster to parse.
    pub fn to_json(&self) -> String {
        let documents: Vec<String> =
            std::iter::once(&self.test).chain(&self.objects).map(|document| format!("{document}\n")).collect();
        documents.join("---\n")
    }

    /// The case with its objects in another order.
    pub fn shuffled(&self, seed: u64) -> Self {
        let mut shuffled = self.clone();
        Rng::new(seed).shuffle(&mut shuffled.objects);
        shuffled
    }
}

/// The cluster of this seed.
pub fn cluster(seed: u64, options: &Options) -> Case {
    let mut rng = Rng::new(seed);
    let features = options.thinned(&mut rng);
    let mut builder = Builder::new(rng, features);
    builder.namespaces();
    builder.nodes();
    if features.nominations && builder.rng.chance(45) {
        builder.nominated = Some(builder.rng.up_to(builder.nodes.len()));
    }
    builder.classes();
    if features.gangs {
        builder.gangs();
    }
    builder.running();
    let preemptor = builder.preemptor();
    if features.nominations {
        builder.nominees();
    }
    if features.budgets {
        builder.budgets();
    }
    if features.obstacles {
        builder.obstacles();
    }
    if features.returns {
        builder.controllers();
    }
    let mut profile = json!({ "policy": "Kubernetes" });
    if !features.priority_cut {
        profile["args"]["priorityCut"] = json!(false);
    }
    if features.preemption_priority && seed.is_multiple_of(3) {
        profile["args"]["maxPreemptionPriorityExcess"] = json!(50);
    }
    let test = json!({
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "PreemptionTest",
        "metadata": { "name": format!("random-{seed}") },
        "spec": { "now": "2026-01-01T01:00:00Z", "profile": profile, "preemptor": preemptor },
    });
    let mut objects = builder.objects;
    for (number, pod) in (seed << 16..).zip(objects.iter_mut().filter(|object| object["kind"] == "Pod")) {
        write_some_as_limits(&mut pod["spec"], number);
    }
    Case { test, objects }
}

/// Builds a cluster.
struct Builder {
    rng: Rng,
    /// The features of this cluster.
    features: Options,
    objects: Vec<Value>,
    nodes: Vec<Node>,
    /// The priorities of the running pods.
    levels: Vec<i32>,
    /// The priority of the preemptor.
    priority: i32,
    /// The value of the default class, if there is one.
    global_default: Option<i32>,
    /// The node to which the preemptor is nominated.
    nominated: Option<usize>,
    n_pods: usize,
}

impl Builder {
    fn new(mut rng: Rng, features: Options) -> Self {
        let mut ladder = vec![-10, 0, 1, 5, 10, 50, 100];
        rng.shuffle(&mut ladder);
        let mut levels = ladder[..rng.within(1, 4)].to_vec();
        levels.sort_unstable();
        let highest = levels[levels.len() - 1];
        let priority =
            if rng.chance(70) { highest + 10 } else { levels[rng.within(levels.len() / 2, levels.len() - 1)] };
        Self {
            rng,
            features,
            objects: Vec::new(),
            nodes: Vec::new(),
            levels,
            priority,
            global_default: None,
            nominated: None,
            n_pods: 0,
        }
    }

    fn namespaces(&mut self) {
        for (name, team) in [("default", "red"), ("other", "blue")] {
            let labels = json!({ "kubernetes.io/metadata.name": name, "team": team });
            self.objects.push(json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": name, "labels": labels },
            }));
        }
    }

    /// Adds budgets, most of which allow no further disruption.
    fn budgets(&mut self) {
        for name in ["first", "second", "third"].into_iter().take(self.rng.within(1, 3)) {
            let namespace = self.namespace();
            let mut status = json!({ "disruptionsAllowed": *self.rng.pick(&[0, 0, 0, 1, 1, 2]) });
            if self.rng.chance(15) {
                let disrupted = format!("pod-{:02}", self.rng.within(1, 9));
                status["disruptedPods"] = json!({ disrupted: "2026-01-01T00:59:00Z" });
            }
            let mut budget = json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": { "namespace": namespace, "name": name },
                "spec": {},
                "status": status,
            });
            if let Some(selector) = self.selector() {
                budget["spec"]["selector"] = selector;
            }
            self.objects.push(budget);
        }
    }

    /// Makes some pending pods unschedulable, often one of a gang. Some running pods get the same fields, which do not affect them.
    fn obstacles(&mut self) {
        for index in 0..self.objects.len() {
            let is_pod = self.objects[index]["kind"] == "Pod";
            let is_bound = self.objects[index]["spec"]["nodeName"].is_string();
            if !is_pod || !self.rng.chance(if is_bound { 10 } else { 25 }) {
                continue;
            }
            let what = self.rng.up_to(7);
            let spec = &mut self.objects[index]["spec"];
            match what {
                0 | 1 if !is_bound => spec["schedulingGates"] = json!([{ "name": "example.com/quota" }]),
                0..=3 => spec["schedulerName"] = json!(["other", "reprieve"][what % 2]),
                4 => spec["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]),
                5 => spec["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": "gpu" }]),
                _ => spec["volumes"] = json!([{ "name": "tmp", "emptyDir": {} }]),
            }
        }
    }

    /// Gives most running pods an owner, and some a denial of their return.
    fn controllers(&mut self) {
        for index in 0..self.objects.len() {
            let is_bound = self.objects[index]["spec"]["nodeName"].is_string();
            if self.objects[index]["kind"] != "Pod" || !is_bound || self.rng.chance(15) {
                continue;
            }
            let kind = *self.rng.pick(&["ReplicaSet", "ReplicaSet", "Job", "StatefulSet", "JobSet", "DaemonSet"]);
            let (controller, denies) = (self.rng.chance(92), self.rng.chance(6));
            let metadata = &mut self.objects[index]["metadata"];
            metadata["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": kind, "name": "owner", "uid": "owner", "controller": controller }]);
            if denies {
                metadata["annotations"]["reprieve.dev/returns"] = json!("false");
            }
        }
    }

    fn namespace(&mut self) -> &'static str {
        if self.rng.chance(85) { "default" } else { "other" }
    }
}
