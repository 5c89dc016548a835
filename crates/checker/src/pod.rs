//! A pod as the preemptor: every node is tried, the long way, and the claim must be what comes of it.

use std::cmp::Reverse;

use jiff::Timestamp;
use reprieve_api::test_file::OutcomeName;

use crate::claimed::{
    ClaimedAnswer, must_be_refused, names, needless_victims, spare_victims, unlawful_victims, wrong_nominations,
};
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Asker, fits, is_hopeless};
use crate::lawful::{pods_of, potential_victims, under_way_for_pod, unknown_class_on};
use crate::members::putting_back_never_helps;
use crate::obstacle::{is_gang_refused, is_unsupported};
use crate::occupancy::Occupancy;
use crate::reprieve::{UsedAmounts, reprieve, start};

/// What is wrong with an answer about one pod.
pub fn judge(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer,
    outcome: OutcomeName,
    pod: usize,
    now: Timestamp,
) -> Vec<Finding> {
    let facts = &cluster.pods[pod];
    let asker = Asker { priority: facts.priority, pods: vec![pod], resize: facts.resizing, now };
    // A pod that grows is counted once, at what it wants.
    let standing = Occupancy::of(cluster).without(&[pod]);
    let ask = Ask { cluster, claimed, asker: &asker, standing: &standing, pod };
    if facts.node.is_none() && (facts.gated || is_unsupported(facts) || is_gang_refused(cluster, facts)) {
        return must_be_refused(cluster, claimed, outcome, pod);
    }
    match outcome {
        OutcomeName::Schedule => ask.schedule(),
        OutcomeName::Preempt => ask.preempt(),
        OutcomeName::Wait => ask.wait(),
        OutcomeName::Unschedulable => ask.unschedulable(),
    }
}

/// One pod's question, and the answer that was given.
struct Ask<'a> {
    cluster: &'a Cluster<'a>,
    claimed: &'a ClaimedAnswer,
    asker: &'a Asker,
    standing: &'a Occupancy,
    pod: usize,
}

impl Ask<'_> {
    fn schedule(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = needless_victims(self.cluster, self.claimed).into_iter().collect();
        let Some(node) = self.place(&mut complaints) else { return complaints };
        complaints.extend(self.misfit(self.standing, node));
        let nominated = self.cluster.pods[self.pod].nominated;
        if let Some(nominated) = nominated.filter(|&nominated| nominated != node && !self.asker.resize)
            && self.fits(self.standing, nominated)
        {
            complaints.push(Finding::NominatedNodePassedOver { node: self.cluster.node_name(nominated) });
        }
        complaints
    }

    fn preempt(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = self.fits_now().into_iter().collect();
        complaints.extend(self.may_not_preempt());
        complaints.extend(under_way_for_pod(self.cluster, self.standing, self.asker, self.pod));
        complaints.extend(unlawful_victims(self.cluster, self.asker, self.claimed));
        let Some(node) = self.place(&mut complaints) else { return complaints };
        let gone = self.standing.without(&self.claimed.victims);
        complaints.extend(self.misfit(&gone, node));
        if self.asker.resize || putting_back_never_helps(&self.cluster.pods[self.pod]) {
            let stands = |standing: &Occupancy| self.fits(standing, node);
            complaints.extend(spare_victims(self.cluster, self.claimed, &gone, &stands));
        }
        for unit in self.claimed.units(self.cluster) {
            let pods = &self.cluster.units[unit].pods;
            if !pods.iter().any(|&pod| self.cluster.pods[pod].node == Some(node)) {
                let (pods, node) = (names(self.cluster, pods), self.cluster.node_name(node));
                complaints.push(Finding::VictimElsewhere { pods, node });
            }
        }
        complaints.extend(unknown_class_on(self.cluster, self.asker, node));
        complaints.extend(self.not_the_best(node));
        complaints
    }

    fn wait(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = needless_victims(self.cluster, self.claimed).into_iter().collect();
        complaints.extend(self.fits_now());
        complaints.extend(self.may_not_preempt());
        if under_way_for_pod(self.cluster, self.standing, self.asker, self.pod).is_none() {
            complaints.push(Finding::NothingUnderWay);
        }
        let kept: Vec<(usize, usize)> =
            self.cluster.pods[self.pod].nominated.map(|node| (self.pod, node)).into_iter().collect();
        complaints.extend(wrong_nominations(self.cluster, self.claimed, &kept));
        complaints
    }

    fn unschedulable(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = needless_victims(self.cluster, self.claimed).into_iter().collect();
        complaints.extend(self.fits_now());
        complaints.extend(wrong_nominations(self.cluster, self.claimed, &[]));
        if self.may_not_preempt().is_some() {
            return complaints;
        }
        complaints.extend(under_way_for_pod(self.cluster, self.standing, self.asker, self.pod));
        if let Some((node, taken)) = self.best() {
            let victims = names(self.cluster, &pods_of(self.cluster, &taken.victims));
            complaints.push(Finding::LawfulPlan { node: self.cluster.node_name(node), victims });
        }
        complaints
    }

    /// The one node of the claim. A pod that grows stays where it is and is not nominated.
    fn place(&self, complaints: &mut Vec<Finding>) -> Option<usize> {
        if self.asker.resize {
            complaints.extend(wrong_nominations(self.cluster, self.claimed, &[]));
            return self.cluster.pods[self.pod].node;
        }
        for &(pod, _) in self.claimed.placement.iter().filter(|(pod, _)| *pod != self.pod) {
            complaints.push(Finding::NotOfThePreemptor { pod: self.cluster.pod_name(pod) });
        }
        let node = self.claimed.placement.iter().find(|(pod, _)| *pod == self.pod).map(|&(_, node)| node);
        if node.is_none() {
            complaints.push(Finding::TooFewPlaced { running: 0, placed: 0, min_count: 1 });
        }
        node
    }

    fn fits(&self, standing: &Occupancy, node: usize) -> bool {
        fits(self.cluster, standing, self.asker, self.pod, node).is_ok()
    }

    fn misfit(&self, standing: &Occupancy, node: usize) -> Option<Finding> {
        let misfit = fits(self.cluster, standing, self.asker, self.pod, node).err()?;
        let (pod, node) = (self.cluster.pod_name(self.pod), self.cluster.node_name(node));
        Some(Finding::DoesNotFit { pod, node, misfit })
    }

    /// The nodes that it may land on: all, or its own if it grows.
    fn nodes(&self) -> Vec<usize> {
        let own = self.cluster.pods[self.pod].node.filter(|_| self.asker.resize);
        own.map_or_else(|| (0..self.cluster.nodes.len()).collect(), |own| vec![own])
    }

    fn fits_now(&self) -> Option<Finding> {
        let node = self.nodes().into_iter().find(|&node| self.fits(self.standing, node))?;
        Some(Finding::FitsNow { pod: self.cluster.pod_name(self.pod), node: self.cluster.node_name(node) })
    }

    fn may_not_preempt(&self) -> Option<Finding> {
        let facts = &self.cluster.pods[self.pod];
        (!facts.preempts).then(|| Finding::MayNotPreempt { pod: facts.name.to_string() })
    }

    /// What landing on the node would take; nothing if it is no candidate. (Rules 8 and 11 to 16.)
    fn taken_on(&self, node: usize) -> Option<UsedAmounts> {
        let hopeless = is_hopeless(self.cluster, self.standing, self.asker, self.pod, node);
        if hopeless || unknown_class_on(self.cluster, self.asker, node).is_some() {
            return None;
        }
        let potential = potential_victims(self.cluster, self.asker, &[node]);
        let gone = self.standing.without(&pods_of(self.cluster, &potential));
        let stands = |standing: &Occupancy| self.fits(standing, node);
        (!potential.is_empty() && stands(&gone)).then(|| reprieve(self.cluster, &gone, &potential, &stands))
    }

    /// The best node and what it takes. (Rule 13 of the groups.)
    fn best(&self) -> Option<(usize, UsedAmounts)> {
        let plans = self.nodes().into_iter().filter_map(|node| Some((node, self.taken_on(node)?)));
        plans.min_by_key(|(node, taken)| {
            let units = || taken.victims.iter().map(|&unit| &self.cluster.units[unit]);
            let highest = units().map(|unit| unit.priority).max();
            let sum: i128 = units().map(|unit| i128::from(unit.priority + (1 << 31)) * unit.pods.len() as i128).sum();
            let count: usize = units().map(|unit| unit.pods.len()).sum();
            let top = units().filter(|unit| Some(unit.priority) == highest);
            let earliest = top.flat_map(|unit| &unit.pods).map(|&pod| start(&self.cluster.pods[pod])).min();
            (taken.violations, highest, sum, count, Reverse(earliest), *node)
        })
    }

    fn not_the_best(&self, node: usize) -> Vec<Finding> {
        let mut complaints = Vec::new();
        let expected = self.taken_on(node).map(|taken| pods_of(self.cluster, &taken.victims)).unwrap_or_default();
        let expected = names(self.cluster, &expected);
        if expected != names(self.cluster, &self.claimed.victims) {
            complaints.push(Finding::WrongVictims { node: self.cluster.node_name(node), expected });
        }
        if let Some((best, taken)) = self.best().filter(|(best, _)| *best != node) {
            let victims = names(self.cluster, &pods_of(self.cluster, &taken.victims));
            complaints.push(Finding::WrongNode { best: self.cluster.node_name(best), victims });
        }
        complaints
    }
}
