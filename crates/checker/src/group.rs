//! A group as the preemptor. The placement is taken as it is claimed, since the rules let a member go to any node that fits;
//! what follows from the placement is worked out again. It does not ask whether another placement, or another domain, would
//! have cost less.

use jiff::Timestamp;
use reprieve_api::meta::NamespacedName;
use reprieve_api::test_file::OutcomeName;

use crate::claimed::{
    ClaimedAnswer, must_be_refused, names, needless_victims, spare_victims, unlawful_victims, wrong_nominations,
};
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Asker, fits};
use crate::groups::Group;
use crate::lawful::{pods_of, potential_victims, under_way_for_group, unknown_class_on};
use crate::members::{domains, first_fit, first_fit_is_best, putting_back_never_helps};
use crate::obstacle::{is_unsupported, is_unsupported_group};
use crate::occupancy::Occupancy;
use crate::reprieve::{UsedAmounts, by_importance, reprieve, violating};

/// What is wrong with an answer about a group; nothing can be said of one that nobody defined.
pub fn judge(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer,
    outcome: OutcomeName,
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
        return Some(must_be_refused(cluster, claimed, outcome, first));
    }
    let asker = Asker { priority: group.priority, pods: pending, resize: false, now };
    let standing = Occupancy::of(cluster);
    let domains = domains(cluster, group, &running);
    let ask = Ask { cluster, claimed, asker, group, running, domains, standing, priority_cut };
    for &(pod, _) in &claimed.placement {
        if !ask.asker.pods.contains(&pod) {
            return Some(vec![Finding::NotOfThePreemptor { pod: cluster.pod_name(pod) }]);
        }
    }
    Some(match outcome {
        OutcomeName::Schedule => ask.schedule(),
        OutcomeName::Preempt => ask.preempt(),
        OutcomeName::Wait => ask.wait(),
        OutcomeName::Unschedulable => ask.unschedulable(),
    })
}

/// One group's question, and the answer that was given.
struct Ask<'a> {
    cluster: &'a Cluster<'a>,
    claimed: &'a ClaimedAnswer,
    asker: Asker,
    group: &'a Group,
    running: Vec<usize>,
    domains: Vec<Vec<usize>>,
    standing: Occupancy,
    priority_cut: bool,
}

impl Ask<'_> {
    fn schedule(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = needless_victims(self.cluster, self.claimed).into_iter().collect();
        complaints.extend(self.misfit(&self.standing));
        complaints.extend(self.too_few());
        match self.domain() {
            Some(domain) => complaints.extend(self.left_out(&self.standing, domain)),
            None => complaints.push(Finding::SeveralDomains { keys: self.group.topology_keys.clone() }),
        }
        complaints
    }

    fn preempt(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = self.fits_now().into_iter().collect();
        if self.misfit(&self.standing).is_none() && self.too_few().is_none() {
            complaints.push(Finding::GroupFitsNow { members: self.claimed.placement.len() });
        }
        complaints.extend(self.may_not_preempt());
        complaints.extend(self.members_differ());
        complaints.extend(self.under_way());
        complaints.extend(unlawful_victims(self.cluster, &self.asker, self.claimed));
        let gone = self.standing.without(&self.claimed.victims);
        complaints.extend(self.misfit(&gone));
        complaints.extend(self.too_few());
        for &(_, node) in &self.claimed.placement {
            complaints.extend(unknown_class_on(self.cluster, &self.asker, node));
        }
        if self.putting_back_never_helps() {
            let stands = |standing: &Occupancy| self.misfit(standing).is_none();
            complaints.extend(spare_victims(self.cluster, self.claimed, &gone, &stands));
        }
        match self.domain() {
            Some(domain) => complaints.extend(self.wrong_victims(domain)),
            None => complaints.push(Finding::SeveralDomains { keys: self.group.topology_keys.clone() }),
        }
        complaints
    }

    fn wait(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = needless_victims(self.cluster, self.claimed).into_iter().collect();
        complaints.extend(self.fits_now());
        complaints.extend(self.may_not_preempt());
        complaints.extend(self.members_differ());
        if self.under_way().is_none() {
            complaints.push(Finding::NothingUnderWay);
        }
        let kept = self.asker.pods.iter().filter_map(|&pod| Some((pod, self.cluster.pods[pod].nominated?)));
        complaints.extend(wrong_nominations(self.cluster, self.claimed, &kept.collect::<Vec<_>>()));
        complaints
    }

    fn unschedulable(&self) -> Vec<Finding> {
        let mut complaints: Vec<Finding> = needless_victims(self.cluster, self.claimed).into_iter().collect();
        complaints.extend(wrong_nominations(self.cluster, self.claimed, &[]));
        if self.members_differ().is_some() {
            return complaints;
        }
        complaints.extend(self.fits_now());
        if self.may_not_preempt().is_some() {
            return complaints;
        }
        complaints.extend(self.under_way());
        if first_fit_is_best(self.cluster, &self.asker.pods) {
            for domain in &self.domains {
                let usable = self.usable(domain);
                let potential = potential_victims(self.cluster, &self.asker, &usable);
                let gone = self.standing.without(&pods_of(self.cluster, &potential));
                let members = first_fit(self.cluster, &gone, &self.asker, &usable);
                if self.is_enough(members) && !potential.is_empty() {
                    complaints.push(Finding::LawfulPlanForGroup { members });
                    break;
                }
            }
        }
        complaints
    }

    /// The first member that does not fit where it is claimed to go, each in order beside those before it. (Rule 9.)
    fn misfit(&self, standing: &Occupancy) -> Option<Finding> {
        let mut standing = standing.clone();
        for &(pod, node) in &self.claimed.placement {
            if let Err(misfit) = fits(self.cluster, &standing, &self.asker, pod, node) {
                let (pod, node) = (self.cluster.pod_name(pod), self.cluster.node_name(node));
                return Some(Finding::DoesNotFit { pod, node, misfit });
            }
            standing.put(pod, node);
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

    /// The domain that holds the whole placement.
    fn domain(&self) -> Option<&Vec<usize>> {
        let holds_all = |domain: &&Vec<usize>| self.claimed.placement.iter().all(|(_, node)| domain.contains(node));
        self.domains.iter().find(holds_all)
    }

    /// The nodes of a domain that may be used once somebody is taken.
    fn usable(&self, domain: &[usize]) -> Vec<usize> {
        let known = |&node: &usize| unknown_class_on(self.cluster, &self.asker, node).is_none();
        domain.iter().copied().filter(known).collect()
    }

    /// A member that was passed over though, with all the others placed, a node has room. (Rules 5 and 8: all that fit are placed.)
    fn left_out(&self, standing: &Occupancy, nodes: &[usize]) -> Option<Finding> {
        let mut standing = standing.clone();
        for &(member, node) in &self.claimed.placement {
            standing.put(member, node);
        }
        let is_placed = |member: usize| self.claimed.placement.iter().any(|(pod, _)| *pod == member);
        self.asker.pods.iter().copied().filter(|&member| !is_placed(member)).find_map(|member| {
            let fitting = |&&node: &&usize| fits(self.cluster, &standing, &self.asker, member, node).is_ok();
            let &node = nodes.iter().find(fitting)?;
            Some(Finding::MemberLeftOut { pod: self.cluster.pod_name(member), node: self.cluster.node_name(node) })
        })
    }

    fn fits_now(&self) -> Option<Finding> {
        if !first_fit_is_best(self.cluster, &self.asker.pods) {
            return None;
        }
        let counts = self.domains.iter().map(|domain| first_fit(self.cluster, &self.standing, &self.asker, domain));
        let members = counts.max().filter(|&placed| self.is_enough(placed))?;
        Some(Finding::GroupFitsNow { members })
    }

    /// Rules 7 and 12: nobody who leaves makes room for a group that has no domain, or too few members.
    fn under_way(&self) -> Option<Finding> {
        if self.domains.is_empty() || !self.is_enough(self.asker.pods.len()) {
            return None;
        }
        under_way_for_group(self.cluster, &self.asker)
    }

    /// Rule 6.
    fn may_not_preempt(&self) -> Option<Finding> {
        let never = |&&pod: &&usize| !self.group.preempts || !self.cluster.pods[pod].preempts;
        let pod = self.asker.pods.iter().find(never)?;
        Some(Finding::MayNotPreempt { pod: self.cluster.pod_name(*pod) })
    }

    /// Rule 20.
    fn members_differ(&self) -> Option<Finding> {
        let differs = |&&pod: &&usize| {
            let pod = &self.cluster.pods[pod];
            pod.priority != self.group.priority || pod.preempts != self.group.preempts
        };
        let pod = self.running.iter().chain(&self.asker.pods).find(differs)?;
        Some(Finding::MembersDiffer { pod: self.cluster.pod_name(*pod) })
    }

    fn putting_back_never_helps(&self) -> bool {
        self.claimed.placement.iter().all(|&(pod, _)| putting_back_never_helps(&self.cluster.pods[pod]))
    }

    /// Works out the victims of the claimed placement anew. (Rules 9, 10 and 17.)
    fn wrong_victims(&self, domain: &[usize]) -> Vec<Finding> {
        let mut complaints = Vec::new();
        let usable = self.usable(domain);
        let potential = potential_victims(self.cluster, &self.asker, &usable);
        let gone = self.standing.without(&pods_of(self.cluster, &potential));
        let stands = |standing: &Occupancy| self.misfit(standing).is_none();
        let UsedAmounts { victims, budgets_matter, .. } = reprieve(self.cluster, &gone, &potential, &stands);
        // The cut places the members a second time, after the reprieve by budgets. Without such a reprieve what is above
        // the cut is put back first anyway, so that the victims of the last placement are the same with and without it.
        if !self.priority_cut || (!budgets_matter && self.putting_back_never_helps()) {
            let expected = names(self.cluster, &pods_of(self.cluster, &victims));
            if expected != names(self.cluster, &self.claimed.victims) {
                complaints.push(Finding::WrongVictimsOfPlacement { expected });
            }
        }
        if self.priority_cut {
            complaints.extend(self.above_the_cut(&usable, &potential));
        } else {
            complaints.extend(self.left_out(&gone, &usable));
        }
        complaints
    }

    /// A victim of a priority that need not be touched, since taking only lower units leaves room for enough members. Units that
    /// violate a budget may have been reprieved before the cut, and are not reckoned with.
    fn above_the_cut(&self, usable: &[usize], potential: &[usize]) -> Option<Finding> {
        let claimed = self.claimed.units(self.cluster);
        let highest = claimed.into_iter().max_by_key(|&unit| self.cluster.units[unit].priority)?;
        let priority = self.cluster.units[highest].priority;
        let guarded = violating(self.cluster, &by_importance(self.cluster, potential));
        let lower = |unit: &usize| self.cluster.units[*unit].priority < priority && !guarded.contains_key(unit);
        let lower: Vec<usize> = potential.iter().copied().filter(lower).collect();
        let gone = self.standing.without(&pods_of(self.cluster, &lower));
        let enough = first_fit_is_best(self.cluster, &self.asker.pods)
            && self.is_enough(first_fit(self.cluster, &gone, &self.asker, usable));
        let pod = self.cluster.pods[self.cluster.units[highest].pods[0]].name.to_string();
        enough.then_some(Finding::AboveTheCut { pod, priority })
    }
}
