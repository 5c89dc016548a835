//! The pods: running, terminating, preempting and otherwise pending.

use std::fmt::Write as _;

use super::{Amounts, Node, PREEMPTOR, Quota, quantities};
use crate::limits::{digest, resources};
use crate::random::Rng;

const NAME: &str = "quota.scheduling.koordinator.sh/name";
const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

pub(super) struct Pods<'a> {
    quotas: &'a [Quota],
    nodes: &'a [Node],
    has_memory: bool,
    /// The quotas that pods may name: those without children.
    leaves: Vec<usize>,
    /// The quota of the preemptor.
    preemptor_quota: Option<usize>,
    /// The used amounts by quota.
    used: Vec<Amounts>,
    /// By node: the free amounts, and for how many pods.
    room: Vec<(Amounts, usize)>,
    pub documents: Vec<String>,
}

/// The common part of the pods of a job.
#[derive(Clone)]
struct Kind {
    job: Option<String>,
    quota: Option<usize>,
    preemptible: Option<bool>,
    priority: i64,
}

/// Further fields of a pod in YAML flow style, each followed by a comma.
#[derive(Default)]
struct Details {
    labels: String,
    metadata: String,
    spec: String,
    status: String,
}

impl<'a> Pods<'a> {
    pub fn new(quotas: &'a [Quota], nodes: &'a [Node], has_memory: bool) -> Self {
        let leaves = (0..quotas.len()).filter(|&index| !quotas[index].is_parent).collect();
        Self {
            quotas,
            nodes,
            has_memory,
            leaves,
            preemptor_quota: None,
            used: vec![[0; 2]; quotas.len()],
            room: nodes.iter().map(|node| (node.offers, node.n_pods)).collect(),
            documents: Vec::new(),
        }
    }

    /// Adds pods to every node until little is free; if `gangs`, the second and the third job need as many pods.
    pub fn run_all(&mut self, rng: &mut Rng, gangs: bool) {
        self.preemptor_quota = self.quota(rng, 92);
        let mut kinds = Vec::new();
        for index in 1..=rng.within(1, 3) {
            let kind = Kind { job: Some(format!("job-{index}")), ..self.kind(rng) };
            self.documents.push(group(&format!("job-{index}"), if gangs { index } else { 1 }));
            kinds.push(kind);
        }
        let mut places: Vec<usize> = (0..self.nodes.len()).flat_map(|node| std::iter::repeat_n(node, 9)).collect();
        rng.shuffle(&mut places);
        let spare = *rng.pick(&[2, 5, 25]);
        for node in places {
            let kind = if rng.chance(45) { rng.pick(&kinds).clone() } else { self.kind(rng) };
            let size = self.size(rng);
            let lawful = self.allowed(kind.quota, size) || rng.chance(4);
            if !rng.chance(spare) && lawful && self.has_room(node, size) {
                self.run(rng, node, &kind, size);
            }
        }
    }

    fn quota(&self, rng: &mut Rng, percent: u64) -> Option<usize> {
        (!self.leaves.is_empty() && rng.chance(percent)).then(|| *rng.pick(&self.leaves))
    }

    fn kind(&self, rng: &mut Rng) -> Kind {
        let quota = self.quota(rng, 85);
        let quota = if rng.chance(10) { self.preemptor_quota } else { quota };
        let preemptible = *rng.pick(&[None, None, None, Some(true), Some(true), Some(true), Some(true), Some(false)]);
        Kind { job: None, quota, preemptible, priority: 10 * rng.up_to(6) as i64 }
    }

    fn size(&self, rng: &mut Rng) -> Amounts {
        let cpu = *rng.pick(&[1, 1, 1, 2, 2, 3]);
        let memory = *rng.pick(&[0, 1, 1, 2, 4]);
        [cpu, if self.has_memory { memory } else { 0 }]
    }

    fn has_room(&self, node: usize, size: Amounts) -> bool {
        let (free, n_pods) = &self.room[node];
        (0..2).all(|index| size[index] == 0 || size[index] <= free[index]) && *n_pods > 0
    }

    fn path(&self, from: Option<usize>) -> impl Iterator<Item = usize> + use<'a> {
        let quotas = self.quotas;
        std::iter::successors(from, move |&index| quotas[index].parent)
    }

    fn allowed(&self, quota: Option<usize>, size: Amounts) -> bool {
        let holds = |index: usize| {
            (0..2).all(|of| self.quotas[index].max[of].is_none_or(|max| self.used[index][of] + size[of] <= max))
        };
        self.path(quota).all(holds)
    }

    fn take(&mut self, node: usize, quota: Option<usize>, size: Amounts) {
        let (free, n_pods) = &mut self.room[node];
        *n_pods -= 1;
        for (free, amount) in free.iter_mut().zip(size) {
            *free -= amount;
        }
        for quota in self.path(quota) {
            for (used, amount) in self.used[quota].iter_mut().zip(size) {
                *used += amount;
            }
        }
    }

    fn run(&mut self, rng: &mut Rng, node: usize, kind: &Kind, size: Amounts) {
        self.take(node, kind.quota, size);
        let mut details = Details::default();
        let _ = write!(details.spec, "nodeName: {}, ", self.nodes[node].name);
        details.status.push_str("phase: Running, ");
        match rng.up_to(100) {
            0..=4 => details.labels.push_str("scheduling.koordinator.sh/disable-preemptible: \"true\", "),
            5..=7 => details.metadata.push_str("deletionTimestamp: \"2026-01-01T00:59:50Z\", "),
            8..=11 => {
                details.metadata.push_str("deletionTimestamp: \"2026-01-01T00:59:50Z\", ");
                details.status.push_str(
                    "conditions: [{type: DisruptionTarget, status: \"True\", reason: PreemptionByScheduler}], ",
                );
            }
            _ => {}
        }
        let name = format!("pod-{:02}", self.documents.len());
        self.push(&name, kind, size, details);
    }

    /// Adds the preemptor: a job or a single pod.
    pub fn add_preemptor(&mut self, rng: &mut Rng, members: bool, obstacles: bool) {
        let n_members = if members { rng.within(1, 4) } else { 1 };
        let job = (n_members > 1 || rng.chance(40)).then(|| "asking".to_owned());
        let preemptible = *rng.pick(&[None, Some(true), Some(true), Some(false), Some(false)]);
        let kind =
            Kind { job: job.clone(), quota: self.preemptor_quota, preemptible, priority: 10 * rng.within(3, 7) as i64 };
        let mut shared = String::new();
        if rng.chance(4) {
            shared.push_str("preemptionPolicy: Never, ");
        }
        if rng.chance(10) {
            let _ = write!(shared, "nodeSelector: {{zone: {}}}, ", rng.pick(&["a", "b"]));
        }
        let own = [self.size(rng)[0].min(2), self.size(rng)[1].min(2)];
        let is_uniform = rng.chance(70);
        for index in 0..n_members {
            let size = if is_uniform { own } else { self.size(rng) };
            let mut details = Details { spec: shared.clone(), ..Details::default() };
            if rng.chance(50) {
                let _ = write!(details.labels, "quota.scheduling.koordinator.sh/can-preempt: \"{}\", ", rng.chance(80));
            }
            let free = (0..self.nodes.len()).find(|&node| self.has_room(node, size));
            match free.filter(|_| index > 0 && rng.chance(35)) {
                Some(node) => {
                    self.take(node, kind.quota, size);
                    let _ = write!(details.spec, "nodeName: {}, ", self.nodes[node].name);
                }
                None if rng.chance(18) => self.nominate(rng, &mut details),
                None => {}
            }
            if obstacles && index > 0 {
                match rng.up_to(25) {
                    0 => details.spec.push_str("schedulerName: other, "),
                    1 if !details.spec.contains("nodeName") => {
                        details.spec.push_str("schedulingGates: [{name: example.com/quota}], ");
                    }
                    _ => {}
                }
            }
            details.status.push_str("phase: Pending, ");
            let name = if index == 0 { PREEMPTOR.to_owned() } else { format!("asking-{index}") };
            self.push(&name, &kind, size, details);
        }
        if let Some(job) = job {
            let needed = if rng.chance(5) { n_members + 1 } else { n_members };
            self.documents.push(group(&job, needed));
        }
    }

    fn nominate(&self, rng: &mut Rng, details: &mut Details) {
        let _ = write!(details.status, "nominatedNodeName: {}, ", rng.pick(self.nodes).name);
    }

    /// Adds other pending pods: some reserve the min of their quota, some are nominated.
    pub fn add_other_pending(&mut self, rng: &mut Rng) {
        for index in 0..rng.up_to(3) {
            let mut details = Details { status: "phase: Pending, ".to_owned(), ..Details::default() };
            if rng.chance(40) {
                self.nominate(rng, &mut details);
            }
            let (kind, size) = (self.kind(rng), self.size(rng));
            self.push(&format!("waiting-{index}"), &kind, size, details);
        }
    }

    fn push(&mut self, name: &str, kind: &Kind, size: Amounts, details: Details) {
        let Details { mut labels, metadata, spec, status } = details;
        if let Some(quota) = kind.quota {
            let _ = write!(labels, "{NAME}: {}, ", self.quotas[quota].name);
        }
        if let Some(job) = &kind.job {
            let _ = write!(labels, "{JOB}: {job}, ");
        }
        if let Some(preemptible) = kind.preemptible {
            let _ = write!(labels, "{PREEMPTIBLE}: \"{preemptible}\", ");
        }
        let wants = quantities(&size.map(|amount| Some(amount).filter(|amount| *amount > 0)));
        let resources = resources(&wants, digest(&format!("{name} {labels} {spec} {wants}")));
        self.documents.push(format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{namespace: default, name: {name}, {metadata}labels: {{{}}}}}\nspec: \
             {{{spec}priority: {}, containers: [{{name: c, resources: {resources}}}]}}\nstatus: {{{}}}\n",
            labels.trim_end_matches(", "),
            kind.priority,
            status.trim_end_matches(", ")
        ));
    }
}

fn group(name: &str, min_member: usize) -> String {
    format!(
        "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {{namespace: default, name: {name}}}\nspec: \
         {{minMember: {min_member}}}\n"
    )
}
