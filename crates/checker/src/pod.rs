//! A pod as the preemptor: every node is tried, and the claim must be equal to the result.

use jiff::Timestamp;
use reprieve_api::OutcomeName;

use crate::Settings;
use crate::cascades::{LowestTotal, lowest_total};
use crate::claimed::ClaimedAnswer;
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Preemptor, fits};
use crate::lawful::{in_progress, in_progress_for_pod, pods_of, preempted_for, unknown_class_on};
use crate::members::is_monotonic;
use crate::obstacle::{is_gang_refused, is_unsupported};
use crate::occupancy::Occupancy;
use crate::pod_search::PodSearch;
use crate::reprieve::ReprieveResult;

/// What is wrong with an answer about one pod.
pub fn check(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer<'_>,
    pod: usize,
    settings: Settings,
    now: Timestamp,
) -> Vec<Finding> {
    let facts = &cluster.pods[pod];
    let preemptor = Preemptor { priority: facts.priority, pods: vec![pod], resize: facts.resizing, now };
    // A resized pod is counted once, with its desired requests.
    let occupancy = Occupancy::of(cluster).without(&[pod]);
    let search = PodSearch { cluster, preemptor: &preemptor, occupancy: &occupancy, pod };
    let check = PodCheck { cluster, claimed, preemptor: &preemptor, occupancy: &occupancy, search, pod, settings };
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
    search: PodSearch<'a>,
    pod: usize,
    settings: Settings,
}

impl PodCheck<'_> {
    fn schedule(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        let Some(node) = self.claimed_node(&mut findings) else { return findings };
        findings.extend(self.does_not_fit(self.occupancy, node));
        let nominated = self.cluster.pods[self.pod].nominated;
        if let Some(nominated) = nominated.filter(|&nominated| nominated != node && !self.preemptor.resize)
            && self.search.fits(self.occupancy, nominated)
        {
            findings.push(Finding::NominatedNodeSkipped { node: self.cluster.node_name(nominated) });
        }
        findings
    }

    fn preempt(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.fits_now().into_iter().collect();
        findings.extend(self.may_not_preempt());
        findings.extend(self.in_progress());
        if self.claimed.is_freed_by(&preempted_for(self.cluster, self.preemptor), self.settings) {
            findings.push(Finding::OnlyPreemptedPods);
        }
        findings.extend(self.claimed.unlawful_victims(self.preemptor));
        let Some(node) = self.claimed_node(&mut findings) else { return findings };
        let removed = self.occupancy.without(&self.claimed.victims);
        findings.extend(self.does_not_fit(&removed, node));
        if self.preemptor.resize || is_monotonic(&self.cluster.pods[self.pod]) {
            let is_valid = |occupancy: &Occupancy<'_>| self.search.fits(occupancy, node);
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
        if self.in_progress().is_none() && !self.fits_once_victims_are_gone() {
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
        findings.extend(self.in_progress());
        if let Some((node, result)) = self.search.best() {
            let victims = self.cluster.pod_names(&pods_of(self.cluster, &result.victims));
            findings.push(Finding::LawfulPlan { node: self.cluster.node_name(node), victims });
        }
        findings
    }

    /// docs/rules/kubernetes-pods.md#p3, docs/rules/kubernetes-groups.md#g25: the preemption that is in progress for the pod, and for which
    /// it must wait: its node has room for it once the preempted pods are gone. Only nominees of a higher priority compete.
    fn in_progress(&self) -> Option<Finding> {
        if self.settings.waits_for_stale_nominations {
            return in_progress_for_pod(self.occupancy, self.preemptor, self.pod);
        }
        let facts = &self.cluster.pods[self.pod];
        let node = facts.node.filter(|_| self.preemptor.resize).or(facts.nominated)?;
        let preemptor = Preemptor { priority: self.preemptor.priority + 1, ..self.preemptor.clone() };
        let removed = self.occupancy.without(&preempted_for(self.cluster, self.preemptor));
        in_progress(self.cluster, self.preemptor).filter(|_| fits(&removed, &preemptor, self.pod, node).is_ok())
    }

    /// Whether the pod fits on a node once the pods that were preempted for it are gone.
    fn fits_once_victims_are_gone(&self) -> bool {
        let preempted = preempted_for(self.cluster, self.preemptor);
        let removed = self.occupancy.without(&preempted);
        let fits = |&node: &usize| self.search.fits(&removed, node);
        !self.settings.waits_for_stale_nominations && !preempted.is_empty() && self.search.nodes().iter().any(fits)
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

    fn does_not_fit(&self, occupancy: &Occupancy<'_>, node: usize) -> Option<Finding> {
        let failure = fits(occupancy, self.preemptor, self.pod, node).err()?;
        let (pod, node) = (self.cluster.pod_name(self.pod), self.cluster.node_name(node));
        Some(Finding::DoesNotFit { pod, node, failure })
    }

    fn fits_now(&self) -> Option<Finding> {
        let node = self.search.nodes().into_iter().find(|&node| self.search.fits(self.occupancy, node))?;
        Some(Finding::FitsNow { pod: self.cluster.pod_name(self.pod), node: self.cluster.node_name(node) })
    }

    fn may_not_preempt(&self) -> Option<Finding> {
        let facts = &self.cluster.pods[self.pod];
        (!facts.preempts).then(|| Finding::MayNotPreempt { pod: facts.name.to_string() })
    }

    fn not_the_best(&self, node: usize) -> Vec<Finding> {
        let mut findings = Vec::new();
        let on_node = self.search.victims_on(node);
        let expected = on_node.map(|result| pods_of(self.cluster, &result.victims)).unwrap_or_default();
        let expected = self.cluster.pod_names(&expected);
        if expected != self.cluster.pod_names(&self.claimed.victims) {
            findings.push(Finding::WrongVictims { node: self.cluster.node_name(node), expected });
        }
        if let Some((best, result)) = self.best_but(node) {
            let victims = self.cluster.pod_names(&pods_of(self.cluster, &result.victims));
            findings.push(Finding::WrongNode { best: self.cluster.node_name(best), victims });
        }
        findings
    }

    /// The best node, unless it is this one or may be.
    fn best_but(&self, node: usize) -> Option<(usize, ReprieveResult)> {
        if !self.settings.cascades {
            return self.search.best().filter(|(best, _)| *best != node);
        }
        match lowest_total(&self.search) {
            LowestTotal::Is(best, result) => (best != node).then_some((best, result)),
            LowestTotal::IsOneOf(plans) => {
                let is_possible = plans.iter().any(|(possible, _)| *possible == node);
                plans.into_iter().next().filter(|_| !is_possible)
            }
        }
    }
}
