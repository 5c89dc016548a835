//! The plans for one pod: the nodes where it fits, and for each node the victims that the rules give.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::fit::{Preemptor, fits, is_unresolvable};
use crate::lawful::{candidates_on, pods_of, unknown_class_on};
use crate::occupancy::Occupancy;
use crate::reprieve::{ReprieveResult, reprieve, start};

/// The search for one pod.
#[derive(Clone, Copy)]
pub struct PodSearch<'a> {
    pub cluster: &'a Cluster<'a>,
    pub preemptor: &'a Preemptor,
    pub occupancy: &'a Occupancy<'a>,
    pub pod: usize,
}

/// What plans are compared by: violations, highest priority, sum of (priority + 2^31), pods, earliest start, node.
pub type Key = (usize, Option<i64>, i128, usize, Reverse<Option<Timestamp>>, usize);

impl PodSearch<'_> {
    /// Whether the pod fits on the node.
    pub fn fits(&self, occupancy: &Occupancy<'_>, node: usize) -> bool {
        fits(occupancy, self.preemptor, self.pod, node).is_ok()
    }

    /// The nodes on which the pod may be placed: all, or its own for a resized pod.
    pub fn nodes(&self) -> Vec<usize> {
        let own = self.cluster.pods[self.pod].node.filter(|_| self.preemptor.resize);
        own.map_or_else(|| (0..self.cluster.nodes.len()).collect(), |own| vec![own])
    }

    /// docs/rules/kubernetes-pods.md#p8, docs/rules/kubernetes-pods.md#p11 to docs/rules/kubernetes-pods.md#p16: the victims on the node;
    /// `None` if preemption there is not possible.
    pub fn victims_on(&self, node: usize) -> Option<ReprieveResult> {
        let unresolvable = is_unresolvable(self.occupancy, self.preemptor, self.pod, node);
        if unresolvable || unknown_class_on(self.cluster, self.preemptor, node).is_some() {
            return None;
        }
        let candidates = candidates_on(self.cluster, self.preemptor, &[node]);
        let removed = self.occupancy.without(&pods_of(self.cluster, &candidates));
        let is_valid = |occupancy: &Occupancy<'_>| self.fits(occupancy, node);
        (!candidates.is_empty() && is_valid(&removed)).then(|| reprieve(&removed, &candidates, &is_valid))
    }

    /// docs/rules/kubernetes-pods.md#p17: all plans, the cheapest first.
    pub fn plans(&self) -> Vec<(Key, ReprieveResult)> {
        let plans = self.nodes().into_iter().filter_map(|node| Some((node, self.victims_on(node)?)));
        let mut plans: Vec<(Key, ReprieveResult)> =
            plans.map(|(node, result)| (self.key(node, &result), result)).collect();
        plans.sort_by_key(|(key, _)| *key);
        plans
    }

    /// docs/rules/kubernetes-pods.md#p17: the cheapest node and its victims.
    pub fn best(&self) -> Option<(usize, ReprieveResult)> {
        self.plans().into_iter().next().map(|((.., node), result)| (node, result))
    }

    fn key(&self, node: usize, result: &ReprieveResult) -> Key {
        let units = || result.victims.iter().map(|&unit| &self.cluster.units[unit]);
        let highest = units().map(|unit| unit.priority).max();
        let (sum, count) = self.cluster.weight(&result.victims);
        let top = units().filter(|unit| Some(unit.priority) == highest);
        let earliest = top.flat_map(|unit| &unit.pods).map(|&pod| start(&self.cluster.pods[pod])).min();
        (result.violations, highest, sum, count, Reverse(earliest), node)
    }
}
