//! A group as the preemptor. The placement is taken as claimed, since the rules allow a member any node that fits; what follows from it is
//! computed again. Not checked: whether another placement or another domain would cost less.

use jiff::Timestamp;
use reprieve_api::meta::NamespacedName;
use reprieve_api::test_file::OutcomeName;

use crate::claimed::ClaimedAnswer;
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Preemptor, fits};
use crate::groups::Group;
use crate::lawful::{in_progress_for_group, pods_of, potential_victims, unknown_class_on};
use crate::members::{domains, first_fit, first_fit_is_best, is_monotonic};
use crate::obstacle::{is_unsupported, is_unsupported_group};
use crate::occupancy::Occupancy;
use crate::reprieve::{ReprieveResult, by_importance, reprieve, violating};

/// What is wrong with an answer about a group; `None` if the group is not defined.
pub fn check(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer<'_>,
    name: &NamespacedName,
    priority_cut: bool,
    now: Timestamp,
) -> Option<Vec<Finding>> {
    let group = cluster.groups.get(name)?;
    let named = (0..cluster.pods.len()).filter(|&pod| cluster.pods[pod].group.as_ref() == Some(name));
    let (running, pending): (Vec<usize>, Vec<usize>) = named.partition(|&pod| cluster.pods[pod].node.is_some());
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
    let check = GroupCheck { cluster, claimed, preemptor, group, running, domains, occupancy, priority_cut };
    for &(pod, _) in &claimed.placement {
        if !check.preemptor.pods.contains(&pod) {
            return Some(vec![Finding::NotOfThePreemptor { pod: cluster.pod_name(pod) }]);
        }
    }
    Some(match claimed.outcome {
        OutcomeName::Schedule => check.schedule(),
        OutcomeName::Preempt => check.preempt(),
        OutcomeName::Wait => check.wait(),
        OutcomeName::Unschedulable => check.unschedulable(),
    })
}

/// The check of an answer about one group.
struct GroupCheck<'a> {
    cluster: &'a Cluster<'a>,
    claimed: &'a ClaimedAnswer<'a>,
    preemptor: Preemptor,
    group: &'a Group,
    running: Vec<usize>,
    domains: Vec<Vec<usize>>,
    occupancy: Occupancy<'a>,
    priority_cut: bool,
}

impl GroupCheck<'_> {
    fn schedule(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.does_not_fit(&self.occupancy));
        findings.extend(self.too_few());
        match self.domain() {
            Some(domain) => findings.extend(self.left_out(&self.occupancy, domain)),
            None => findings.push(Finding::SeveralDomains { keys: self.group.topology_keys.clone() }),
        }
        findings
    }

    fn preempt(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.fits_now().into_iter().collect();
        if self.does_not_fit(&self.occupancy).is_none() && self.too_few().is_none() {
            findings.push(Finding::GroupFitsNow { members: self.claimed.placement.len() });
        }
        findings.extend(self.may_not_preempt());
        findings.extend(self.members_differ());
        findings.extend(self.in_progress());
        findings.extend(self.claimed.unlawful_victims(&self.preemptor));
        let removed = self.occupancy.without(&self.claimed.victims);
        findings.extend(self.does_not_fit(&removed));
        findings.extend(self.too_few());
        for &(_, node) in &self.claimed.placement {
            findings.extend(unknown_class_on(self.cluster, &self.preemptor, node));
        }
        if self.is_monotonic() {
            let is_valid = |occupancy: &Occupancy<'_>| self.does_not_fit(occupancy).is_none();
            findings.extend(self.claimed.spare_victims(&removed, &is_valid));
        }
        match self.domain() {
            Some(domain) => findings.extend(self.wrong_victims(domain)),
            None => findings.push(Finding::SeveralDomains { keys: self.group.topology_keys.clone() }),
        }
        findings
    }

    fn wait(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.fits_now());
        findings.extend(self.may_not_preempt());
        findings.extend(self.members_differ());
        if self.in_progress().is_none() {
            findings.push(Finding::NothingUnderWay);
        }
        let kept = self.preemptor.pods.iter().filter_map(|&pod| Some((pod, self.cluster.pods[pod].nominated?)));
        findings.extend(self.claimed.wrong_nominations(&kept.collect::<Vec<_>>()));
        findings
    }

    fn unschedulable(&self) -> Vec<Finding> {
        let mut findings = self.claimed.needless_victims();
        findings.extend(self.claimed.wrong_nominations(&[]));
        if self.members_differ().is_some() {
            return findings;
        }
        findings.extend(self.fits_now());
        if self.may_not_preempt().is_some() {
            return findings;
        }
        findings.extend(self.in_progress());
        if first_fit_is_best(self.cluster, &self.preemptor.pods) {
            for domain in &self.domains {
                let usable = self.usable(domain);
                let potential = potential_victims(self.cluster, &self.preemptor, &usable);
                let removed = self.occupancy.without(&pods_of(self.cluster, &potential));
                let members = first_fit(&removed, &self.preemptor, &usable);
                if self.is_enough(members) && !potential.is_empty() {
                    findings.push(Finding::LawfulPlanForGroup { members });
                    break;
                }
            }
        }
        findings
    }

    /// docs/rules/kubernetes-groups.md#g9: the first member that does not fit where it is placed, each checked beside those before it.
    fn does_not_fit(&self, occupancy: &Occupancy<'_>) -> Option<Finding> {
        let mut occupancy = occupancy.clone();
        for &(pod, node) in &self.claimed.placement {
            if let Err(failure) = fits(&occupancy, &self.preemptor, pod, node) {
                let (pod, node) = (self.cluster.pod_name(pod), self.cluster.node_name(node));
                return Some(Finding::DoesNotFit { pod, node, failure });
            }
            occupancy.put(pod, node);
        }
        None
    }

    fn is_enough(&self, placed: usize) -> bool {
        placed > 0 && self.running.len() + placed >= self.group.min_count
    }

    fn too_few(&self) -> Option<Finding> {
        let (running, placed) = (self.running.len(), self.claimed.placement.len());
        let min_count = self.group.min_count;
        (!self.is_enough(placed)).then_some(Finding::TooFewPlaced { running, placed, min_count })
    }

    /// The domain of the whole placement.
    fn domain(&self) -> Option<&Vec<usize>> {
        let holds_all = |domain: &&Vec<usize>| self.claimed.placement.iter().all(|(_, node)| domain.contains(node));
        self.domains.iter().find(holds_all)
    }

    /// The nodes of a domain that may be used if there are victims.
    fn usable(&self, domain: &[usize]) -> Vec<usize> {
        let known = |&node: &usize| unknown_class_on(self.cluster, &self.preemptor, node).is_none();
        domain.iter().copied().filter(known).collect()
    }

    /// docs/rules/kubernetes-groups.md#g5, docs/rules/kubernetes-groups.md#g8: a member that is not placed although a node has room beside
    /// all placed members.
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

    fn fits_now(&self) -> Option<Finding> {
        if !first_fit_is_best(self.cluster, &self.preemptor.pods) {
            return None;
        }
        let counts = self.domains.iter().map(|domain| first_fit(&self.occupancy, &self.preemptor, domain));
        let members = counts.max().filter(|&placed| self.is_enough(placed))?;
        Some(Finding::GroupFitsNow { members })
    }

    /// docs/rules/kubernetes-groups.md#g7, docs/rules/kubernetes-groups.md#g12: terminating pods free no room for a group without a domain
    /// or with too few members.
    fn in_progress(&self) -> Option<Finding> {
        if self.domains.is_empty() || !self.is_enough(self.preemptor.pods.len()) {
            return None;
        }
        in_progress_for_group(self.cluster, &self.preemptor)
    }

    /// docs/rules/kubernetes-groups.md#g6
    fn may_not_preempt(&self) -> Option<Finding> {
        let never = |&&pod: &&usize| !self.group.preempts || !self.cluster.pods[pod].preempts;
        let pod = self.preemptor.pods.iter().find(never)?;
        Some(Finding::MayNotPreempt { pod: self.cluster.pod_name(*pod) })
    }

    /// docs/rules/kubernetes-groups.md#g20
    fn members_differ(&self) -> Option<Finding> {
        let differs = |&&pod: &&usize| {
            let pod = &self.cluster.pods[pod];
            pod.priority != self.group.priority || pod.preempts != self.group.preempts
        };
        let pod = self.running.iter().chain(&self.preemptor.pods).find(differs)?;
        Some(Finding::MembersDiffer { pod: self.cluster.pod_name(*pod) })
    }

    fn is_monotonic(&self) -> bool {
        self.claimed.placement.iter().all(|&(pod, _)| is_monotonic(&self.cluster.pods[pod]))
    }

    /// docs/rules/kubernetes-groups.md#g9, docs/rules/kubernetes-groups.md#g10, docs/rules/kubernetes-groups.md#g17: computes the victims
    /// of the claimed placement again.
    fn wrong_victims(&self, domain: &[usize]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let usable = self.usable(domain);
        let potential = potential_victims(self.cluster, &self.preemptor, &usable);
        let removed = self.occupancy.without(&pods_of(self.cluster, &potential));
        let is_valid = |occupancy: &Occupancy<'_>| self.does_not_fit(occupancy).is_none();
        let ReprieveResult { victims, budgets_matter, .. } = reprieve(&removed, &potential, &is_valid);
        // The cut places the members a second time, after the reprieve by budgets. Without such a reprieve the units above the cut are put
        // back first anyway, so that the victims of the last placement are the same with and without the cut.
        if !self.priority_cut || (!budgets_matter && self.is_monotonic()) {
            let expected = self.cluster.pod_names(&pods_of(self.cluster, &victims));
            if expected != self.cluster.pod_names(&self.claimed.victims) {
                findings.push(Finding::WrongVictimsOfPlacement { expected });
            }
        }
        if self.priority_cut {
            findings.extend(self.above_the_cut(&usable, &potential));
        } else {
            findings.extend(self.left_out(&removed, &usable));
        }
        findings
    }

    /// A victim above the priority that is enough: taking only lower units leaves room for enough members. Units that violate a budget may
    /// have been reprieved before the cut, and are ignored.
    fn above_the_cut(&self, usable: &[usize], potential: &[usize]) -> Option<Finding> {
        let claimed = self.claimed.units();
        let highest = claimed.into_iter().max_by_key(|&unit| self.cluster.units[unit].priority)?;
        let priority = self.cluster.units[highest].priority;
        let guarded = violating(self.cluster, &by_importance(self.cluster, potential));
        let lower = |unit: &usize| self.cluster.units[*unit].priority < priority && !guarded.contains_key(unit);
        let lower: Vec<usize> = potential.iter().copied().filter(lower).collect();
        let removed = self.occupancy.without(&pods_of(self.cluster, &lower));
        let enough = first_fit_is_best(self.cluster, &self.preemptor.pods)
            && self.is_enough(first_fit(&removed, &self.preemptor, usable));
        let pod = self.cluster.pods[self.cluster.units[highest].pods[0]].name.to_string();
        enough.then_some(Finding::AboveTheCut { pod, priority })
    }
}
