//! The pods: running, terminating, nominated and preempting.

use std::fmt::Write as _;

use super::tree::Tree;
use super::{Amounts, Node, RESOURCES, Rng, quantities};
use crate::limits::{digest, resources};

/// The age of the oldest pod, in seconds before the question.
const MAX_AGE: i64 = 3000;

pub(super) struct Pods<'a> {
    tree: &'a Tree,
    nodes: &'a [Node],
    leaves: Vec<usize>,
    /// The leaf queue of the preemptor; it gets few pods.
    preemptor_queue: usize,
    /// The used amounts by queue.
    used: Vec<Amounts>,
    n_pods: Vec<usize>,
    /// By node: the free amounts, and for how many pods.
    room: Vec<(Amounts, usize)>,
    /// Nodes with a terminating pod.
    terminating_on: Vec<usize>,
    /// The age of the next pod in seconds; each pod is younger than the one before it.
    age: i64,
    /// The minimum of each gang; a pod joins one of them or none.
    gangs: Vec<usize>,
    pub documents: Vec<String>,
}

/// Further fields of a pod in YAML flow style.
#[derive(Default)]
struct Pod {
    name: String,
    labels: String,
    metadata: String,
    spec: String,
    status: String,
    wants: Amounts,
}

impl<'a> Pods<'a> {
    pub fn new(tree: &'a Tree, nodes: &'a [Node]) -> Self {
        let leaves = tree.leaves();
        let n = tree.queues.len();
        let preemptor_queue = leaves[0];
        Self {
            tree,
            nodes,
            leaves,
            preemptor_queue,
            used: vec![[0; RESOURCES.len()]; n],
            n_pods: vec![0; n],
            room: nodes.iter().map(|node| (node.offers, node.n_pods)).collect(),
            terminating_on: Vec::new(),
            age: MAX_AGE,
            gangs: Vec::new(),
            documents: Vec::new(),
        }
    }

    /// Adds pods to every node until little is free.
    pub fn fill(&mut self, rng: &mut Rng) {
        let guaranteed =
            |&&leaf: &&usize| self.tree.path(leaf).any(|queue| queue.guarantee.iter().any(Option::is_some));
        let guaranteed_leaves: Vec<usize> = self.leaves.iter().filter(guaranteed).copied().collect();
        let richest = guaranteed_leaves.iter().copied().max_by_key(|&leaf| self.tree.queues[leaf].guarantee[0]);
        self.preemptor_queue = match (richest, rng.up_to(20)) {
            (Some(richest), 0..=11) => richest,
            (Some(_), 12..=18) => rng.pick(&guaranteed_leaves),
            _ => rng.pick(&self.leaves),
        };
        let n_gangs = if rng.chance(40) { rng.within(1, 3) } else { 0 };
        self.gangs = (0..n_gangs).map(|_| rng.within(1, 4)).collect();
        let is_nearly_empty = rng.chance(90);
        let spare = rng.pick(&[1, 2, 8]);
        let mut places: Vec<usize> = (0..self.nodes.len()).flat_map(|node| std::iter::repeat_n(node, 16)).collect();
        rng.shuffle(&mut places);
        for node in places {
            if rng.chance(spare) {
                continue;
            }
            let mut queue = rng.pick(&self.leaves);
            if queue == self.preemptor_queue && is_nearly_empty && rng.chance(85) {
                queue = rng.pick(&self.leaves);
            }
            let wants = self.size(rng);
            if self.fits(node, &wants) && self.allowed(queue, &wants) {
                self.take(node, &wants);
                self.run(rng, node, queue, wants);
            }
        }
        self.top_up(rng);
    }

    /// Adds small pods that use the rest of the CPU, so that hardly any pod fits.
    fn top_up(&mut self, rng: &mut Rng) {
        let others: Vec<usize> = self.leaves.iter().filter(|&&leaf| leaf != self.preemptor_queue).copied().collect();
        let small = [1, 0, 0];
        for node in 0..self.nodes.len() {
            for _ in 0..12 {
                let Some(&queue) = others.get(rng.up_to(self.leaves.len())) else { continue };
                if self.fits(node, &small) && self.allowed(queue, &small) && rng.chance(97) {
                    self.take(node, &small);
                    self.run(rng, node, queue, small);
                }
            }
        }
    }

    fn take(&mut self, node: usize, wants: &Amounts) {
        let (free, n) = &mut self.room[node];
        for (free, want) in free.iter_mut().zip(wants) {
            *free -= want;
        }
        *n -= 1;
    }

    fn size(&self, rng: &mut Rng) -> Amounts {
        let offered = |index: usize| self.nodes.iter().any(|node| node.offers[index] > 0);
        let wants = [
            rng.pick(&[1, 1, 1, 2, 2, 3, 4]),
            if rng.chance(80) { rng.pick(&[1, 1, 2, 2, 4, 6]) } else { 0 },
            if rng.chance(40) { rng.pick(&[1, 1, 2]) } else { 0 },
        ];
        let mut wants: Amounts = std::array::from_fn(|index| if offered(index) { wants[index] } else { 0 });
        if offered(2) && rng.chance(10) {
            wants[0] = 0;
        }
        wants
    }

    fn fits(&self, node: usize, wants: &Amounts) -> bool {
        let (free, n) = &self.room[node];
        (0..RESOURCES.len()).all(|index| wants[index] == 0 || wants[index] <= free[index]) && *n > 0
    }

    fn allowed(&self, queue: usize, wants: &Amounts) -> bool {
        std::iter::successors(Some(queue), |&index| self.tree.queues[index].parent).all(|index| {
            let limits = &self.tree.queues[index];
            let held =
                |of: usize| limits.max[of].is_none_or(|max| wants[of] == 0 || self.used[index][of] + wants[of] <= max);
            (0..RESOURCES.len()).all(held) && limits.max_pods.is_none_or(|max| self.n_pods[index] < max)
        })
    }

    fn charge(&mut self, queue: usize, wants: &Amounts) {
        let mut next = Some(queue);
        while let Some(index) = next {
            for (used, want) in self.used[index].iter_mut().zip(wants) {
                *used += want;
            }
            self.n_pods[index] += 1;
            next = self.tree.queues[index].parent;
        }
    }

    fn run(&mut self, rng: &mut Rng, node: usize, queue: usize, wants: Amounts) {
        self.charge(queue, &wants);
        let name = format!("pod-{}", self.documents.len() + 1);
        let mut pod = Pod { name, labels: self.labels(rng, queue), wants, ..Pod::default() };
        let _ = write!(pod.spec, "nodeName: {}, ", self.nodes[node].name);
        match rng.up_to(100) {
            0..=4 => pod.metadata.push_str(DAEMON),
            5..=10 => pod.metadata.push_str(", annotations: {yunikorn.apache.org/allow-preemption: \"false\"}"),
            11..=14 => pod.spec.push_str("priorityClassName: precious, "),
            15..=19 => {
                pod.metadata.push_str(", deletionTimestamp: \"2026-01-01T00:59:50Z\"");
                self.terminating_on.push(node);
            }
            20..=22 => {
                pod.spec.push_str("priorityClassName: precious, ");
                pod.metadata.push_str(", annotations: {yunikorn.apache.org/allow-preemption: \"true\"}");
            }
            _ => {}
        }
        if !self.gangs.is_empty() && rng.chance(40) {
            let _ = write!(pod.spec, "schedulingGroup: {{podGroupName: gang-{}}}, ", rng.up_to(self.gangs.len()));
        }
        let priority = rng.pick(&[0, 0, 0, 0, -5, 1, 5, 10]);
        let _ = write!(pod.spec, "priority: {priority}, ");
        pod.status = "phase: Running".to_owned();
        self.age -= rng.within(1, 20) as i64;
        let age = self.age;
        self.push(pod, age);
    }

    fn labels(&self, rng: &mut Rng, queue: usize) -> String {
        let path = &self.tree.queues[queue].path;
        match rng.up_to(20) {
            0 | 1 => format!("queue: {path}"),
            2 | 3 => format!("queue: {path}, applicationId: shared-app"),
            _ => format!("queue: {path}, applicationId: {}-app-{}", path.replace('.', "-"), rng.within(1, 3)),
        }
    }

    fn push(&mut self, pod: Pod, age: i64) {
        let Pod { name, labels, metadata, spec, status, wants } = pod;
        let created = clock(age);
        let wants = quantities(&wants, "cpu");
        let wants = wants.trim_end_matches(", ");
        let resources = resources(wants, digest(&format!("{name} {labels} {spec} {wants}")));
        self.documents.push(format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, creationTimestamp: \"{created}\", \
             labels: {{{labels}}}{metadata}}}\nspec: {{{spec}containers: [{{name: main, resources: \
             {resources}}}]}}\nstatus: {{{status}}}\n"
        ));
    }

    /// Adds the preemptor and returns its name.
    pub fn preemptor(&mut self, rng: &mut Rng) -> String {
        let queue = self.preemptor_queue;
        let mut pod = Pod { name: "asking".to_owned(), labels: self.labels(rng, queue), ..Pod::default() };
        pod.wants = self.size(rng);
        // Usually a resource of which the queue is below its guarantee.
        if rng.chance(75) {
            for index in 0..RESOURCES.len() {
                let owed =
                    self.tree.queues[queue].guarantee[index].map(|guarantee| guarantee - self.used[queue][index]);
                if let Some(owed) = owed {
                    pod.wants[index] = pod.wants[index].min(owed.max(0));
                }
            }
        }
        if pod.wants.iter().all(|&want| want == 0) {
            pod.wants[0] = 1;
        }
        let delay = self.tree.queues[queue].delay_seconds;
        let mut age = delay + rng.pick(&[10, 20, 60, 0]);
        if rng.chance(4) {
            age = delay - 1;
        }
        pod.status = "phase: Pending".to_owned();
        if rng.chance(10) {
            let open: Vec<&Node> = self.nodes.iter().filter(|node| node.closed.is_none()).collect();
            let node = if open.is_empty() { &self.nodes[0].name } else { &rng.pick(&open).name };
            pod.metadata.push_str(DAEMON);
            pod.spec.push_str(&pinned(node));
            age = rng.within(1, 60) as i64;
        } else if rng.chance(15) {
            pod.spec
                .push_str(rng.pick(&["nodeSelector: {zone: a}, ", "nodeSelector: {kubernetes.io/hostname: node-1}, "]));
        }
        if rng.chance(2) {
            pod.spec.push_str("priorityClassName: meek, ");
        }
        let priority = rng.pick(&[0, 0, 5, 10, 10, 20]);
        let _ = write!(pod.spec, "priority: {priority}, ");
        if !self.terminating_on.is_empty() && rng.chance(8) {
            let node = &self.nodes[rng.pick(&self.terminating_on)].name;
            let _ = write!(pod.status, ", nominatedNodeName: {node}");
        }
        let name = pod.name.clone();
        self.push(pod, age);
        name
    }

    /// Adds up to two pending pods with a nominated node, one of which may be of the preemptor's queue.
    pub fn nominees(&mut self, rng: &mut Rng) {
        if rng.chance(20) {
            let queue = if rng.chance(50) { self.preemptor_queue } else { rng.pick(&self.leaves) };
            self.nominee(rng, "reserving", queue);
        }
        if rng.chance(8) {
            let queue = rng.pick(&self.leaves);
            self.nominee(rng, "reserving-too", queue);
        }
    }

    fn nominee(&mut self, rng: &mut Rng, name: &str, queue: usize) {
        let mut pod = Pod { name: name.to_owned(), labels: self.labels(rng, queue), ..Pod::default() };
        pod.wants = self.size(rng);
        pod.wants[0] = pod.wants[0].max(1);
        let node = &self.nodes[rng.up_to(self.nodes.len())].name;
        pod.status = format!("phase: Pending, nominatedNodeName: {node}");
        pod.spec.push_str("priority: 0, ");
        let age = if name == "reserving" { 45 } else { 44 };
        self.push(pod, age);
    }

    /// Adds a pending pod of the DaemonSet.
    pub fn daemon(&mut self, rng: &mut Rng) {
        if !rng.chance(10) {
            return;
        }
        let queue = rng.pick(&self.leaves);
        let mut pod = Pod { name: "agent".to_owned(), labels: self.labels(rng, queue), ..Pod::default() };
        pod.wants = self.size(rng);
        pod.metadata.push_str(DAEMON);
        pod.spec.push_str(&pinned(&self.nodes[rng.up_to(self.nodes.len())].name));
        pod.status = "phase: Pending".to_owned();
        self.push(pod, 43);
    }

    /// The groups of the gangs.
    pub fn groups(&self) -> impl Iterator<Item = String> + '_ {
        self.gangs.iter().enumerate().map(|(index, min)| {
            let mode = if (index + min) % 4 == 0 { ", disruptionMode: {all: {}}" } else { "" };
            format!(
                "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: gang-{index}, namespace: default}}\nspec: \
                 {{schedulingPolicy: {{gang: {{minCount: {min}}}}}{mode}}}\n"
            )
        })
    }
}

const DAEMON: &str = ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: agent}]";

/// The affinity of a DaemonSet pod to its node.
fn pinned(node: &str) -> String {
    let field = format!("{{key: metadata.name, operator: In, values: [{node}]}}");
    format!(
        "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchFields: \
         [{field}]}}]}}}}}}, "
    )
}

/// The time this many seconds before the question.
fn clock(age: i64) -> String {
    let second = 3600 - age;
    format!("2026-01-01T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}
