//! Small random clusters for policy Koordinator, each with one question: a forest of one to five elastic quotas with min and max, one to four
//! nodes that are nearly full of single pods and jobs, and one job or single pod as the preemptor. Some pods are terminating, some pending
//! pods are nominated, and some members of the preempting job are already bound. The same seed gives the same bytes.

mod pods;

use std::fmt::Write as _;

use crate::random::Rng;

use pods::Pods;

/// The time of every question.
pub const NOW: &str = "2026-01-01T01:00:00Z";
/// The name of the preemptor.
pub const PREEMPTOR: &str = "asking-0";

/// An amount of cpu and of memory.
type Amounts = [i64; 2];

/// The features that may appear in a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Arguments of the policy.
    pub arguments: bool,
    /// Elastic quotas.
    pub quotas: bool,
    /// More than one preempting pod.
    pub members: bool,
    /// Members under scheduling gates, and members of another scheduler.
    pub obstacles: bool,
    /// Running gangs that are evicted whole; without it the argument `wholeGangs` is false, as in Koordinator.
    pub gangs: bool,
}

impl Options {
    /// All features.
    pub const EVERYTHING: Self = Self { arguments: true, quotas: true, members: true, obstacles: true, gangs: true };
}

/// The cluster of this seed, as a PreemptionTest file without an expectation.
pub fn cluster(seed: u64, options: &Options) -> String {
    let mut rng = Rng::new(seed);
    let rng = &mut rng;
    let has_memory = rng.chance(60);
    let nodes: Vec<Node> = (1..=rng.within(1, 4)).map(|index| Node::new(rng, index, has_memory)).collect();
    let total = [0, 1].map(|index| nodes.iter().map(|node| node.offers[index]).sum());
    let quotas = if options.quotas { quotas(rng, total, has_memory) } else { Vec::new() };
    let mut pods = Pods::new(&quotas, &nodes, has_memory);
    pods.run_all(rng, options.gangs);
    pods.add_preemptor(rng, options.members, options.obstacles);
    pods.add_other_pending(rng);
    let mut documents = vec![test(rng, seed, options)];
    documents.extend(nodes.iter().map(Node::document));
    documents.extend(quotas.iter().map(Quota::document));
    documents.extend(pods.documents);
    documents.join("---\n")
}

fn test(rng: &mut Rng, seed: u64, options: &Options) -> String {
    let mut args = Vec::new();
    for (argument, percent) in [
        ("disableDefaultPreemptible", 15),
        ("disableDefaultTriggerPreemption", 15),
        ("podShouldBeDeletedWhenPreempted", 30),
    ] {
        if options.arguments && rng.chance(percent) {
            args.push(format!("{argument}: true"));
        }
    }
    if !options.gangs {
        args.push("wholeGangs: false".to_owned());
    }
    format!(
        "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionTest\nmetadata: {{name: random-jobs-{seed}}}\nspec:\n  now: \
         \"{NOW}\"\n  profile: {{policy: Koordinator, args: {{{}}}}}\n  preemptor: {{kind: Pod, namespace: default, name: \
         {PREEMPTOR}}}\n",
        args.join(", ")
    )
}

struct Node {
    name: String,
    zone: &'static str,
    offers: Amounts,
    n_pods: usize,
    /// The part of `spec` that keeps pods off the node.
    closed: Option<&'static str>,
}

impl Node {
    fn new(rng: &mut Rng, index: usize, has_memory: bool) -> Self {
        Self {
            name: format!("node-{index}"),
            zone: if rng.chance(50) { "a" } else { "b" },
            offers: [rng.within(3, 9) as i64, if has_memory { rng.within(4, 16) as i64 } else { 0 }],
            n_pods: if rng.chance(8) { rng.within(2, 5) } else { 110 },
            closed: match rng.up_to(25) {
                0 => Some("unschedulable: true"),
                1 => Some("taints: [{key: own, value: us, effect: NoSchedule}]"),
                _ => None,
            },
        }
    }

    fn document(&self) -> String {
        let Self { name, zone, offers, n_pods, closed } = self;
        let spec = closed.map(|closed| format!("spec: {{{closed}}}\n")).unwrap_or_default();
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, zone: \
             {zone}}}}}\n{spec}status: {{allocatable: {{{}, pods: \"{n_pods}\"}}}}\n",
            quantities(&offers.map(Some))
        )
    }
}

/// A quota with its limits; a missing resource is not limited.
struct Quota {
    name: String,
    parent: Option<usize>,
    is_parent: bool,
    min: [Option<i64>; 2],
    max: [Option<i64>; 2],
}

/// The quotas, parents first. No quota has more than its parent.
fn quotas(rng: &mut Rng, total: Amounts, has_memory: bool) -> Vec<Quota> {
    let mut quotas: Vec<Quota> = Vec::new();
    for index in 0..rng.within(1, 5) {
        let parent = (index > 0 && rng.chance(65)).then(|| rng.up_to(index));
        let above = parent.map_or([None; 2], |parent| quotas[parent].max);
        let (mut min, mut max) = ([None; 2], [None; 2]);
        for resource in 0..2 {
            let is_limited = resource == 0 || has_memory && rng.chance(50);
            if is_limited || above[resource].is_some() {
                let most = above[resource].unwrap_or(total[resource]).max(1);
                let share = rng.within(55, 140) as i64;
                let limit = (most * share / 100).clamp(1, above[resource].unwrap_or(i64::MAX));
                max[resource] = Some(limit);
                min[resource] = rng.chance(85).then(|| rng.within(limit as usize / 3, limit as usize) as i64);
            }
        }
        if let Some(parent) = parent {
            quotas[parent].is_parent = true;
        }
        quotas.push(Quota { name: format!("quota-{index}"), parent, is_parent: false, min, max });
    }
    quotas
}

impl Quota {
    fn document(&self) -> String {
        let Self { name, parent, is_parent, min, max } = self;
        let mut labels = format!("quota.scheduling.koordinator.sh/is-parent: \"{is_parent}\"");
        if let Some(parent) = parent {
            let _ = write!(labels, ", quota.scheduling.koordinator.sh/parent: quota-{parent}");
        }
        format!(
            "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {{namespace: default, name: {name}, \
             labels: {{{labels}}}}}\nspec: {{min: {{{}}}, max: {{{}}}}}\n",
            quantities(min),
            quantities(max)
        )
    }
}

/// The amounts in YAML flow style.
fn quantities(amounts: &[Option<i64>; 2]) -> String {
    let cpu = amounts[0].map(|cpu| format!("cpu: \"{cpu}\""));
    let memory = amounts[1].map(|memory| format!("memory: {memory}Gi"));
    cpu.into_iter().chain(memory).collect::<Vec<_>>().join(", ")
}
