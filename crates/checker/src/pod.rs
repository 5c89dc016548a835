//! A pod as the preemptor: every node is tried, and the claim must be equal to the result.

use std::cmp::Reverse;

use jiff::Timestamp;
use reprieve_api::OutcomeName;

use crate::claimed::ClaimedAnswer;
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Preemptor, fits, is_unresolvable};
use crate::lawful::{candidates_on, in_progress_for_pod, pods_of, unknown_class_on};
use crate::members::is_monotonic;
use crate::obstacle::{is_gang_refused, is_unsupported};
use crate::occupancy::Occupancy;
use crate::reprieve::{ReprieveResult, reprieve, start};

/// What is wrong with an answer about one pod.
pub fn check(cluster: &Cluster<'_>, claimed: &ClaimedAnswer<'_>, pod: usize, now: Timestamp) -> Vec<Finding> {
    let facts = &cluster.pods[pod];
    let preemptor = Preemptor { priority: facts.priority, pods: vec![pod], resize: facts.resizing, now };
    // A resized pod is counted once, with its desired requests.
    let occupancy = Occupancy::of(cluster).without(&[pod]);
    let check = PodCheck { cluster, claimed, preemptor: &preemptor, occupancy: &occupancy, pod };
    if facts.node.is_none() && (facts.gated || is_unsupported(facts) || is_gang_refused(cluster, facts)) {
        return claimed.must_be_refused(pod);
    }
    match claimed.outcome {
        OutcomeName::Schedule => check.schedule(),
        OutcomeName::Preempt => check.preempt(),
        OutcomeName::Wait => check.wait(),
        OutcomeName::Unschedulable => check.unschedulable(),
    }
}

/// The check of an answer about one pod.
struct PodCheck<'a> {
    cluster: &'a Cluster<'a>,
    claimed: &'a ClaimedAnswer<'a>,
    preemptor: &'a Preemptor,
    occupancy: &'a Occupancy<'a>,
    pod: usize,
}

impl PodCheck<'_> {
    fn schedule(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        let Some(node) = self.claimed_node(&mut findings) else { return findings };
        findings.extend(self.does_not_fit(self.occupancy, node));
        let nominated = self.cluster.pods[self.pod].nominated;
        if let Some(nominated) = nominated.filter(|&nominated| nominated != node && !self.preemptor.resize)
            && self.fits(self.occupancy, nominated)
        {
            findings.push(Finding::NominatedNodeSkipped { node: self.cluster.node_name(nominated) });
        }
        findings
    }

    fn preempt(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.fits_now().into_iter().collect();
        findings.extend(self.may_not_preempt());
        findings.extend(in_progress_for_pod(self.occupancy, self.preemptor, self.pod));
        findings.extend(self.claimed.unlawful_victims(self.preemptor));
        let Some(node) = self.claimed_node(&mut findings) else { return findings };
        let removed = self.occupancy.without(&self.claimed.victims);
        findings.extend(self.does_not_fit(&removed, node));
        if self.preemptor.resize || is_monotonic(&self.cluster.pods[self.pod]) {
            let is_valid = |occupancy: &Occupancy<'_>| self.fits(occupancy, node);
            findings.extend(self.claimed.spare_victims(&removed, &is_valid));
        }
        for unit in self.claimed.units() {
            let pods = &self.cluster.units[unit].pods;
            if !pods.iter().any(|&pod| self.cluster.pods[pod].node == Some(node)) {
                let (pods, node) = (self.cluster.pod_names(pods), self.cluster.node_name(node));
                findings.push(Finding::VictimElsewhere { pods, node });
            }
        }
        findings.extend(unknown_class_on(self.cluster, self.preemptor, node));
        findings.extend(self.not_the_best(node));
        findings
    }

    fn wait(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.fits_now());
        findings.extend(self.may_not_preempt());
        if in_progress_for_pod(self.occupancy, self.preemptor, self.pod).is_none() {
            findings.push(Finding::NothingInProgress);
        }
        let kept = self.cluster.pods[self.pod].nominated.map(|node| (self.pod, node));
        findings.extend(self.claimed.wrong_nominations(kept.as_slice()));
        findings
    }

    fn unschedulable(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.fits_now());
        findings.extend(self.claimed.wrong_nominations(&[]));
        if self.may_not_preempt().is_some() {
            return findings;
        }
        findings.extend(in_progress_for_pod(self.occupancy, self.preemptor, self.pod));
        if let Some((node, result)) = self.best() {
            let victims = self.cluster.pod_names(&pods_of(self.cluster, &result.victims));
            findings.push(Finding::LawfulPlan { node: self.cluster.node_name(node), victims });
        }
        findings
    }

    /// The node of the claim. A resized pod stays on its node and is not nominated.
    fn claimed_node(&self, findings: &mut Vec<Finding>) -> Option<usize> {
        if self.preemptor.resize {
            findings.extend(self.claimed.wrong_nominations(&[]));
            return self.cluster.pods[self.pod].node;
        }
        for &(pod, _) in self.claimed.placement.iter().filter(|(pod, _)| *pod != self.pod) {
            findings.push(Finding::NotOfThePreemptor { pod: self.cluster.pod_name(pod) });
        }
        let node = self.claimed.placement.iter().find(|(pod, _)| *pod == self.pod).map(|&(_, node)| node);
        if node.is_none() {
            findings.push(Finding::TooFewPlaced { running: 0, placed: 0, min_count: 1 });
        }
        node
    }

    fn fits(&self, occupancy: &Occupancy<'_>, node: usize) -> bool {
        fits(occupancy, self.preemptor, self.pod, node).is_ok()
    }

    fn does_not_fit(&self, occupancy: &Occupancy<'_>, node: usize) -> Option<Finding> {
        let failure = fits(occupancy, self.preemptor, self.pod, node).err()?;
        let (pod, node) = (self.cluster.pod_name(self.pod), self.cluster.node_name(node));
        Some(Finding::DoesNotFit { pod, node, failure })
    }

    /// The nodes on which the pod may be placed: all, or its own for a resized pod.
    fn nodes(&self) -> Vec<usize> {
        let own = self.cluster.pods[self.pod].node.filter(|_| self.preemptor.resize);
        own.map_or_else(|| (0..self.cluster.nodes.len()).collect(), |own| vec![own])
    }

    fn fits_now(&self) -> Option<Finding> {
        let node = self.nodes().into_iter().find(|&node| self.fits(self.occupancy, node))?;
        Some(Finding::FitsNow { pod: self.cluster.pod_name(self.pod), node: self.cluster.node_name(node) })
    }

    fn may_not_preempt(&self) -> Option<Finding> {
        let facts = &self.cluster.pods[self.pod];
        (!facts.preempts).then(|| Finding::MayNotPreempt { pod: facts.name.to_string() })
    }

    /// docs/rules/kubernetes-pods.md#p8, docs/rules/kubernetes-pods.md#p11 to docs/rules/kubernetes-pods.md#p16: the victims on the node;
    /// `None` if preemption there is not possible.
    fn victims_on(&self, node: usize) -> Option<ReprieveResult> {
        let unresolvable = is_unresolvable(self.occupancy, self.preemptor, self.pod, node);
        if unresolvable || unknown_class_on(self.cluster, self.preemptor, node).is_some() {
            return None;
        }
        let candidates = candidates_on(self.cluster, self.preemptor, &[node]);
        let removed = self.occupancy.without(&pods_of(self.cluster, &candidates));
        let is_valid = |occupancy: &Occupancy<'_>| self.fits(occupancy, node);
        (!candidates.is_empty() && is_valid(&removed)).then(|| reprieve(&removed, &candidates, &is_valid))
    }

    /// docs/rules/kubernetes-pods.md#p17: the cheapest node and its victims.
    fn best(&self) -> Option<(usize, ReprieveResult)> {
        let plans = self.nodes().into_iter().filter_map(|node| Some((node, self.victims_on(node)?)));
        plans.min_by_key(|(node, result)| {
            let units = || result.victims.iter().map(|&unit| &self.cluster.units[unit]);
            let highest = units().map(|unit| unit.priority).max();
            let sum: i128 = units().map(|unit| i128::from(unit.priority + (1 << 31)) * unit.pods.len() as i128).sum();
            let count: usize = units().map(|unit| unit.pods.len()).sum();
            let top = units().filter(|unit| Some(unit.priority) == highest);
            let earliest = top.flat_map(|unit| &unit.pods).map(|&pod| start(&self.cluster.pods[pod])).min();
            (result.violations, highest, sum, count, Reverse(earliest), *node)
        })
    }

    fn not_the_best(&self, node: usize) -> Vec<Finding> {
        let mut findings = Vec::new();
        let expected = self.victims_on(node).map(|result| pods_of(self.cluster, &result.victims)).unwrap_or_default();
        let expected = self.cluster.pod_names(&expected);
        if expected != self.cluster.pod_names(&self.claimed.victims) {
            findings.push(Finding::WrongVictims { node: self.cluster.node_name(node), expected });
        }
        if let Some((best, result)) = self.best().filter(|(best, _)| *best != node) {
            let victims = self.cluster.pod_names(&pods_of(self.cluster, &result.victims));
            findings.push(Finding::WrongNode { best: self.cluster.node_name(best), victims });
        }
        findings
    }
}
