//! The answer under check with its names resolved, and the checks of victims that do not depend on the kind of preemptor.

use std::collections::BTreeSet;

use reprieve_api::OutcomeName;
use reprieve_api::answer::Answer;

use crate::Settings;
use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::Preemptor;
use crate::lawful::spared;
use crate::occupancy::Occupancy;

/// An answer with indexes instead of names.
pub struct ClaimedAnswer<'a> {
    cluster: &'a Cluster<'a>,
    pub outcome: OutcomeName,
    /// The victim pods, sorted.
    pub victims: Vec<usize>,
    /// Pod and node, sorted by pod.
    pub placement: Vec<(usize, usize)>,
}

impl<'a> ClaimedAnswer<'a> {
    /// Resolves the names.
    pub fn read(cluster: &'a Cluster<'a>, answer: &Answer) -> Result<Self, Finding> {
        let unknown = |name: &str| Finding::Unknown { name: name.to_owned() };
        let mut victims = BTreeSet::new();
        for victim in &answer.victims {
            let name = victim.pod.as_deref().or(victim.workload.as_deref()).unwrap_or_default();
            victims.insert(victim.pod.as_deref().and_then(|name| cluster.pod(name)).ok_or_else(|| unknown(name))?);
        }
        let mut placement = Vec::new();
        for (pod, node) in &answer.nominated {
            let index = cluster.pod(pod).ok_or_else(|| unknown(pod))?;
            placement.push((index, cluster.node(node).ok_or_else(|| unknown(node))?));
        }
        placement.sort_unstable();
        Ok(Self { cluster, outcome: answer.outcome, victims: victims.into_iter().collect(), placement })
    }

    /// The units that the victims belong to.
    pub fn units(&self) -> Vec<usize> {
        let units: BTreeSet<usize> = self.victims.iter().filter_map(|&pod| self.cluster.unit_of[pod]).collect();
        units.into_iter().collect()
    }

    /// Checks that a preemptor that cannot be placed is refused, without victims and nominations.
    pub fn must_be_refused(&self, pod: usize) -> Vec<Finding> {
        let mut findings = self.needless_victims();
        findings.extend(self.wrong_nominations(&[]));
        if self.outcome != OutcomeName::Unschedulable {
            findings.push(Finding::NotToBePlaced { pod: self.cluster.pod_name(pod) });
        }
        findings
    }

    /// Checks that every victim is bound, that no law spares it, and that its whole unit is taken.
    pub fn unlawful_victims(&self, preemptor: &Preemptor) -> Vec<Finding> {
        let cluster = self.cluster;
        let mut findings = Vec::new();
        if self.victims.is_empty() {
            findings.push(Finding::NoVictim);
        }
        for &pod in self.victims.iter().filter(|&&pod| cluster.unit_of[pod].is_none()) {
            findings.push(Finding::VictimNotBound { pod: cluster.pod_name(pod) });
        }
        for unit in self.units() {
            findings.extend(spared(cluster, preemptor, unit));
            let (taken, left): (Vec<usize>, Vec<usize>) =
                cluster.units[unit].pods.iter().partition(|pod| self.victims.contains(pod));
            if let (Some(&taken), Some(&left)) = (taken.first(), left.first()) {
                let (taken, left) = (cluster.pod_name(taken), cluster.pod_name(left));
                findings.push(Finding::TakenInPart { taken, left });
            }
        }
        findings
    }

    /// docs/rules/kubernetes-groups.md#g25: whether the preemptor needs only the room of these pods, for which it waits.
    pub fn is_freed_by(&self, preempted: &[usize], settings: Settings) -> bool {
        !settings.waits_for_stale_nominations
            && !self.victims.is_empty()
            && self.victims.iter().all(|victim| preempted.contains(victim))
    }

    /// The victims without which the placement is still valid. `removed` lacks all of them.
    pub fn spare_victims(&self, removed: &Occupancy<'_>, is_valid: &dyn Fn(&Occupancy<'_>) -> bool) -> Vec<Finding> {
        let pods_of = |unit: usize| &self.cluster.units[unit].pods;
        let spare = self.units().into_iter().filter(|&unit| is_valid(&removed.with(pods_of(unit))));
        spare.map(|unit| Finding::SpareVictim { pods: self.cluster.pod_names(pods_of(unit)) }).collect()
    }

    /// Checks that there are no victims if no preemption is claimed.
    pub fn needless_victims(&self) -> Vec<Finding> {
        let victims = self.cluster.pod_names(&self.victims);
        if victims.is_empty() { Vec::new() } else { vec![Finding::NeedlessVictims { victims }] }
    }

    /// Checks that the nominations are exactly these.
    pub fn wrong_nominations(&self, expected: &[(usize, usize)]) -> Option<Finding> {
        let named = |&(pod, node): &(usize, usize)| (self.cluster.pod_name(pod), self.cluster.node_name(node));
        (self.placement != expected).then(|| Finding::Nominations { expected: expected.iter().map(named).collect() })
    }
}
