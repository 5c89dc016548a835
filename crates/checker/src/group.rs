//! Checks an answer that the engine claims to be right, for a preemptor that is a group. The claimed placement is checked for fit but not
//! searched again, since the rules allow a member any node that fits; the victims of that placement are computed again. Not checked:
//! whether another placement or another domain would cost less.

use jiff::Timestamp;
use reprieve_api::{NamespacedName, OutcomeName};

use crate::Settings;
use crate::claimed::ClaimedAnswer;
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Preemptor, fits};
use crate::groups::Group;
use crate::lawful::{candidates_of_gang, in_progress, pods_of, preempted_for, unknown_class_on};
use crate::members::{domains, enough_fit, is_monotonic};
use crate::obstacle::{is_unsupported, is_unsupported_group};
use crate::occupancy::Occupancy;
use crate::reprieve::{ReprieveResult, by_importance, reprieve, violating};

/// Returns what is wrong with an answer about a group; `None` if the group is not defined or none of its pods is pending.
pub fn check(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer<'_>,
    name: &NamespacedName,
    settings: Settings,
    now: Timestamp,
) -> Option<Vec<Finding>> {
    let group = cluster.groups.get(name)?;
    // docs/rules/kubernetes-groups.md#g26: a bound member that terminates neither counts nor blocks.
    let named = (0..cluster.pods.len()).filter(|&pod| {
        let pod = &cluster.pods[pod];
        pod.group.as_ref() == Some(name) && (pod.node.is_none() || !pod.terminating)
    });
    let (running, pending): (Vec<usize>, Vec<usize>) = named.partition(|&pod| cluster.pods[pod].node.is_some());
    // A refusal names the first pending pod, even if that pod takes no part in the placement.
    let first = *pending.first()?;
    let takes_part = |&pod: &usize| {
        let pod = &cluster.pods[pod];
        !pod.gated && !pod.of_other_scheduler && !pod.terminating
    };
    let pending: Vec<usize> = pending.into_iter().filter(takes_part).collect();
    let unsupported = pending.iter().any(|&pod| is_unsupported(&cluster.pods[pod]));
    if pending.is_empty() || unsupported || is_unsupported_group(cluster, name) {
        return Some(claimed.must_be_refused(first));
    }
    let preemptor = Preemptor { priority: group.priority, pods: pending, resize: false, now };
    let occupancy = Occupancy::of(cluster);
    let domains = domains(cluster, group, &running);
    let group_check = GroupCheck { cluster, claimed, preemptor, group, running, domains, occupancy, settings };
    for &(pod, _) in &claimed.placement {
        if !group_check.preemptor.pods.contains(&pod) {
            return Some(vec![Finding::NotOfThePreemptor { pod: cluster.pod_name(pod) }]);
        }
    }
    Some(match claimed.outcome {
        OutcomeName::Schedule => group_check.schedule(),
        OutcomeName::Preempt => group_check.preempt(),
        OutcomeName::Wait => group_check.wait(),
        OutcomeName::Unschedulable => group_check.unschedulable(),
    })
}

/// A claimed answer about one group, and the facts to check it. Pods, nodes and units are indices into `cluster`; a domain is a list of
/// nodes.
struct GroupCheck<'a> {
    cluster: &'a Cluster<'a>,
    claimed: &'a ClaimedAnswer<'a>,
    preemptor: Preemptor,
    group: &'a Group,
    /// The bound members that do not terminate, which count for the minimum (docs/rules/kubernetes-groups.md#g5).
    running: Vec<usize>,
    domains: Vec<Vec<usize>>,
    occupancy: Occupancy<'a>,
    settings: Settings,
}

impl GroupCheck<'_> {
    fn schedule(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.does_not_fit(&self.occupancy));
        findings.extend(self.too_few());
        match self.domain() {
            Some(domain) => findings.extend(self.left_out(&self.occupancy, domain)),
            None => findings.push(Finding::OutsideDomain { keys: self.group.topology_keys.clone() }),
        }
        findings
    }

    fn preempt(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.fits_now().into_iter().collect();
        // The claimed placement may fit without victims even if `fits_now` cannot tell.
        if self.does_not_fit(&self.occupancy).is_none() && self.too_few().is_none() {
            findings.push(Finding::GroupFitsNow { members: self.claimed.placement.len() });
        }
        findings.extend(self.may_not_preempt());
        findings.extend(self.members_differ());
        findings.extend(self.in_progress());
        if self.claimed.is_freed_by(&preempted_for(self.cluster, &self.preemptor), self.settings) {
            findings.push(Finding::OnlyPreemptedPods);
        }
        findings.extend(self.claimed.unlawful_victims(&self.preemptor));
        let removed = self.occupancy.without(&self.claimed.victims);
        findings.extend(self.does_not_fit(&removed));
        findings.extend(self.too_few());
        for node in self.claimed.victims.iter().filter_map(|&pod| self.cluster.pods[pod].node) {
            findings.extend(unknown_class_on(self.cluster, &self.preemptor, node));
        }
        if self.is_monotonic() {
            let is_valid = |occupancy: &Occupancy<'_>| self.does_not_fit(occupancy).is_none();
            findings.extend(self.claimed.spare_victims(&removed, &is_valid));
        }
        match self.domain() {
            Some(domain) => findings.extend(self.wrong_victims(domain)),
            None => findings.push(Finding::OutsideDomain { keys: self.group.topology_keys.clone() }),
        }
        findings
    }

    /// `Wait` is right only while an earlier preemption for the group is in progress.
    fn wait(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.fits_now());
        findings.extend(self.may_not_preempt());
        findings.extend(self.members_differ());
        if self.in_progress().is_none() && !self.may_fit_once_victims_are_gone() {
            findings.push(Finding::NothingInProgress);
        }
        let nominations = self.preemptor.pods.iter().filter_map(|&pod| Some((pod, self.cluster.pods[pod].nominated?)));
        findings.extend(self.claimed.wrong_nominations(&nominations.collect::<Vec<_>>()));
        findings
    }

    fn unschedulable(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.claimed.wrong_nominations(&[]));
        // Members that differ from the group are enough to refuse it (docs/rules/kubernetes-groups.md#g20).
        if self.members_differ().is_some() {
            return findings;
        }
        findings.extend(self.fits_now());
        if self.may_not_preempt().is_some() {
            return findings;
        }
        findings.extend(self.in_progress());
        for domain in &self.domains {
            let candidates = candidates_of_gang(self.cluster, &self.preemptor, domain);
            let removed = self.occupancy.without(&pods_of(self.cluster, &candidates));
            if self.enough_fit(&removed, domain) == Some(true) && !candidates.is_empty() {
                findings.push(Finding::LawfulPlanForGroup { members: self.needed() });
                break;
            }
        }
        findings
    }

    /// docs/rules/kubernetes-groups.md#g9: the first member that does not fit where it is placed, each checked with the earlier members
    /// already placed.
    fn does_not_fit(&self, occupancy: &Occupancy<'_>) -> Option<Finding> {
        let mut occupancy = occupancy.clone();
        for (pod, node) in self.order() {
            if let Err(failure) = fits(&occupancy, &self.preemptor, pod, node) {
                let (pod, node) = (self.cluster.pod_name(pod), self.cluster.node_name(node));
                return Some(Finding::DoesNotFit { pod, node, failure });
            }
            occupancy.put(pod, node);
        }
        None
    }

    /// docs/rules/kubernetes-groups.md#g24: the claimed placement in the order in which it is checked: that of the names if all fit in it
    /// without the victims; else a member that needs the company of a later one comes after that one.
    fn order(&self) -> Vec<(usize, usize)> {
        let mut occupancy = self.occupancy.without(&self.claimed.victims);
        let (mut left, mut order) = (self.claimed.placement.clone(), Vec::new());
        let fits = |occupancy: &Occupancy<'_>, (pod, node): (usize, usize)| {
            fits(occupancy, &self.preemptor, pod, node).is_ok()
        };
        while let Some(fitting) = left.iter().position(|&seat| fits(&occupancy, seat)) {
            let (pod, node) = left.remove(fitting);
            occupancy.put(pod, node);
            order.push((pod, node));
        }
        if self.settings.greedy || !left.is_empty() { self.claimed.placement.clone() } else { order }
    }

    /// The number of members to place at least.
    fn needed(&self) -> usize {
        self.group.min_count.saturating_sub(self.running.len()).max(1)
    }

    /// Whether enough members fit on the nodes; `None` if that is not known.
    fn enough_fit(&self, occupancy: &Occupancy<'_>, nodes: &[usize]) -> Option<bool> {
        enough_fit(occupancy, &self.preemptor, nodes, self.needed(), self.settings.greedy)
    }

    fn is_enough(&self, placed: usize) -> bool {
        placed > 0 && self.running.len() + placed >= self.group.min_count
    }

    fn too_few(&self) -> Option<Finding> {
        let (running, placed) = (self.running.len(), self.claimed.placement.len());
        let min_count = self.group.min_count;
        (!self.is_enough(placed)).then_some(Finding::TooFewPlaced { running, placed, min_count })
    }

    /// The domain that contains every node of the placement, the first if the placement is empty; `None` if there is no such domain.
    fn domain(&self) -> Option<&Vec<usize>> {
        let holds_all = |domain: &&Vec<usize>| self.claimed.placement.iter().all(|(_, node)| domain.contains(node));
        self.domains.iter().find(holds_all)
    }

    /// docs/rules/kubernetes-groups.md#g5, docs/rules/kubernetes-groups.md#g8: a member that is not placed although it fits on a node
    /// together with all placed members.
    fn left_out(&self, occupancy: &Occupancy<'_>, nodes: &[usize]) -> Option<Finding> {
        let mut occupancy = occupancy.clone();
        for &(member, node) in &self.claimed.placement {
            occupancy.put(member, node);
        }
        let is_placed = |member: usize| self.claimed.placement.iter().any(|(pod, _)| *pod == member);
        self.preemptor.pods.iter().copied().filter(|&member| !is_placed(member)).find_map(|member| {
            let fitting = |&&node: &&usize| fits(&occupancy, &self.preemptor, member, node).is_ok();
            let &node = nodes.iter().find(fitting)?;
            Some(Finding::MemberLeftOut { pod: self.cluster.pod_name(member), node: self.cluster.node_name(node) })
        })
    }

    /// The finding that the group fits without victims. `None` also if that is not known.
    fn fits_now(&self) -> Option<Finding> {
        let fits = self.domains.iter().any(|domain| self.enough_fit(&self.occupancy, domain) == Some(true));
        fits.then(|| Finding::GroupFitsNow { members: self.needed() })
    }

    /// docs/rules/kubernetes-groups.md#g7, docs/rules/kubernetes-groups.md#g12, docs/rules/kubernetes-groups.md#g25: the preemption that is
    /// in progress for the group, and for which it must wait. `None` if the group has no domain or too few members, so that room would not
    /// help, or if its nominated placement does not stand.
    fn in_progress(&self) -> Option<Finding> {
        if self.domains.is_empty() || !self.is_enough(self.preemptor.pods.len()) {
            return None;
        }
        let stands = || self.settings.waits_for_stale_nominations || self.placement_stands();
        in_progress(self.cluster, &self.preemptor).filter(|_| stands())
    }

    /// docs/rules/kubernetes-groups.md#g25: whether enough members are known to fit once the pods that were preempted for the group are
    /// gone, with the nominated members on their nodes where they fit. Only nominees of a higher priority compete.
    fn placement_stands(&self) -> bool {
        let removed = self.occupancy.without(&preempted_for(self.cluster, &self.preemptor));
        let Preemptor { priority, ref pods, now, .. } = self.preemptor;
        let preemptor = Preemptor { priority: priority + 1, pods: pods.clone(), resize: false, now };
        self.domains.iter().any(|domain| {
            let (mut occupancy, mut others) = (removed.clone(), Vec::new());
            for &pod in &preemptor.pods {
                let nominated = self.cluster.pods[pod].nominated.filter(|node| domain.contains(node));
                match nominated.filter(|&node| fits(&occupancy, &preemptor, pod, node).is_ok()) {
                    Some(node) => occupancy.put(pod, node),
                    None => others.push(pod),
                }
            }
            let kept = preemptor.pods.len() - others.len();
            let needed = self.needed().saturating_sub(kept);
            let others = Preemptor { pods: others, ..preemptor.clone() };
            let fit =
                needed == 0 || enough_fit(&occupancy, &others, domain, needed, self.settings.greedy) == Some(true);
            kept > 0 && fit
        })
    }

    /// Whether the group may fit once the pods that were preempted for it are gone.
    fn may_fit_once_victims_are_gone(&self) -> bool {
        let preempted = preempted_for(self.cluster, &self.preemptor);
        let removed = self.occupancy.without(&preempted);
        let may_fit = |domain: &Vec<usize>| self.enough_fit(&removed, domain) != Some(false);
        !self.settings.waits_for_stale_nominations && !preempted.is_empty() && self.domains.iter().any(may_fit)
    }

    /// docs/rules/kubernetes-groups.md#g6: a member that may not preempt; the first member if the whole group may not.
    fn may_not_preempt(&self) -> Option<Finding> {
        let never = |&&pod: &&usize| !self.group.preempts || !self.cluster.pods[pod].preempts;
        let pod = self.preemptor.pods.iter().find(never)?;
        Some(Finding::MayNotPreempt { pod: self.cluster.pod_name(*pod) })
    }

    /// docs/rules/kubernetes-groups.md#g20: a member whose priority or preemption policy differs from that of the group.
    fn members_differ(&self) -> Option<Finding> {
        let differs = |&&pod: &&usize| self.settings.refuses_mismatch && self.cluster.pods[pod].differs_from_group;
        let pod = self.running.iter().chain(&self.preemptor.pods).find(differs)?;
        Some(Finding::MembersDiffer { pod: self.cluster.pod_name(*pod) })
    }

    /// Whether putting a pod back can only take room away from the placed members.
    fn is_monotonic(&self) -> bool {
        self.claimed.placement.iter().all(|&(pod, _)| is_monotonic(&self.cluster.pods[pod]))
    }

    /// docs/rules/kubernetes-groups.md#g9, docs/rules/kubernetes-groups.md#g10, docs/rules/kubernetes-groups.md#g17: computes the victims
    /// of the claimed placement again. Also reports a victim above the priority cut or, without the cut, a member that is left out.
    fn wrong_victims(&self, domain: &[usize]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let candidates = candidates_of_gang(self.cluster, &self.preemptor, domain);
        let removed = self.occupancy.without(&pods_of(self.cluster, &candidates));
        let is_valid = |occupancy: &Occupancy<'_>| self.does_not_fit(occupancy).is_none();
        let ReprieveResult { victims, budgets_matter, .. } = reprieve(&removed, &candidates, &is_valid);
        // With the priority cut, the units that violate a budget are reprieved first, then the cut is found, the members are placed a
        // second time, and the rest is reprieved; so the victims of the final placement may differ from those computed here. They are the
        // same if no unit violates a budget and the placed members are monotonic: then the units above the cut are reprieved first anyway.
        if !self.settings.priority_cut || (!budgets_matter && self.is_monotonic()) {
            let expected = self.cluster.pod_names(&pods_of(self.cluster, &victims));
            if expected != self.cluster.pod_names(&self.claimed.victims) {
                findings.push(Finding::WrongVictimsOfPlacement { expected });
            }
        }
        if self.settings.priority_cut {
            findings.extend(self.above_the_cut(domain, &candidates));
        } else {
            findings.extend(self.left_out(&removed, domain));
        }
        findings
    }

    /// The claimed victim of the highest priority, if evicting only units of a lower priority already makes room for enough members. Units
    /// that violate a budget may have been reprieved before the cut, so they are left running. A unit has at least one pod.
    fn above_the_cut(&self, usable: &[usize], candidates: &[usize]) -> Option<Finding> {
        let claimed = self.claimed.units();
        let highest = claimed.into_iter().max_by_key(|&unit| self.cluster.units[unit].priority)?;
        let priority = self.cluster.units[highest].priority;
        let violating = violating(self.cluster, &by_importance(self.cluster, candidates));
        let lower = |unit: &usize| self.cluster.units[*unit].priority < priority && !violating.contains_key(unit);
        let lower: Vec<usize> = candidates.iter().copied().filter(lower).collect();
        let removed = self.occupancy.without(&pods_of(self.cluster, &lower));
        let enough = self.enough_fit(&removed, usable) == Some(true);
        let pod = self.cluster.pods[self.cluster.units[highest].pods[0]].name.to_string();
        enough.then_some(Finding::AboveTheCut { pod, priority })
    }
}
