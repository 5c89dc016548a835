//! The answer that is judged, with its names looked up, and what is asked of any victim whoever the preemptor is.

use std::collections::BTreeSet;

use reprieve_api::answer::Answer;
use reprieve_api::test_file::OutcomeName;

use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::Asker;
use crate::lawful::spared;
use crate::occupancy::Occupancy;

/// An answer in numbers.
pub struct ClaimedAnswer {
    /// Pods, by name.
    pub victims: Vec<usize>,
    /// Pod and node, by the pod's name.
    pub placement: Vec<(usize, usize)>,
}

impl ClaimedAnswer {
    /// Looks up the names.
    pub fn read(cluster: &Cluster<'_>, answer: &Answer) -> Result<Self, Finding> {
        let unknown = |name: &str| Finding::Unknown { name: name.to_owned() };
        let mut victims = BTreeSet::new();
        for victim in &answer.victims {
            let name = victim.pod.as_deref().or(victim.workload.as_deref()).unwrap_or_default();
            victims.insert(victim.pod.as_deref().and_then(|name| cluster.pod(name)).ok_or_else(|| unknown(name))?);
        }
        let mut placement = Vec::new();
        for (pod, node) in &answer.nominated {
            let at = cluster.pod(pod).ok_or_else(|| unknown(pod))?;
            placement.push((at, cluster.node(node).ok_or_else(|| unknown(node))?));
        }
        placement.sort_unstable();
        Ok(Self { victims: victims.into_iter().collect(), placement })
    }

    /// The units that the victims belong to.
    pub fn units(&self, cluster: &Cluster<'_>) -> Vec<usize> {
        let units: BTreeSet<usize> = self.victims.iter().filter_map(|&pod| cluster.unit_of[pod]).collect();
        units.into_iter().collect()
    }
}

/// Names for a complaint.
pub fn names(cluster: &Cluster<'_>, pods: &[usize]) -> Vec<String> {
    let mut pods = pods.to_vec();
    pods.sort_unstable();
    pods.iter().map(|&pod| cluster.pod_name(pod)).collect()
}

/// What is wrong with an answer about a preemptor that is not to be placed: it must be refused, with no victim and no nomination.
pub fn must_be_refused(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer,
    outcome: OutcomeName,
    pod: usize,
) -> Vec<Finding> {
    let mut complaints: Vec<Finding> = needless_victims(cluster, claimed).into_iter().collect();
    complaints.extend(wrong_nominations(cluster, claimed, &[]));
    if outcome != OutcomeName::Unschedulable {
        complaints.push(Finding::NotToBePlaced { pod: cluster.pod_name(pod) });
    }
    complaints
}

/// Every victim holds room, is lawful, and is taken with its whole unit.
pub fn unlawful_victims(cluster: &Cluster<'_>, asker: &Asker, claimed: &ClaimedAnswer) -> Vec<Finding> {
    let mut complaints = Vec::new();
    if claimed.victims.is_empty() {
        complaints.push(Finding::NoVictim);
    }
    for &pod in &claimed.victims {
        if cluster.unit_of[pod].is_none() {
            complaints.push(Finding::VictimNotBound { pod: cluster.pod_name(pod) });
        }
    }
    for unit in claimed.units(cluster) {
        complaints.extend(spared(cluster, asker, unit));
        let (taken, left): (Vec<usize>, Vec<usize>) =
            cluster.units[unit].pods.iter().partition(|pod| claimed.victims.contains(pod));
        if let (Some(&taken), Some(&left)) = (taken.first(), left.first()) {
            let (taken, left) = (cluster.pod_name(taken), cluster.pod_name(left));
            complaints.push(Finding::TakenInPart { taken, left });
        }
    }
    complaints
}

/// Victims with any one of whom back the placement still `stands`. `gone` lacks them all.
pub fn spare_victims(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer,
    gone: &Occupancy,
    stands: &dyn Fn(&Occupancy) -> bool,
) -> Vec<Finding> {
    let spare = |&unit: &usize| stands(&gone.with_back(cluster, &cluster.units[unit].pods));
    let units = claimed.units(cluster).into_iter().filter(spare);
    units.map(|unit| Finding::SpareVictim { pods: names(cluster, &cluster.units[unit].pods) }).collect()
}

/// Nobody is named as a victim where nothing is preempted.
pub fn needless_victims(cluster: &Cluster<'_>, claimed: &ClaimedAnswer) -> Option<Finding> {
    (!claimed.victims.is_empty()).then(|| Finding::NeedlessVictims { victims: names(cluster, &claimed.victims) })
}

/// The nominations are exactly these.
pub fn wrong_nominations(
    cluster: &Cluster<'_>,
    claimed: &ClaimedAnswer,
    expected: &[(usize, usize)],
) -> Option<Finding> {
    let named = |&(pod, node): &(usize, usize)| (cluster.pod_name(pod), cluster.node_name(node));
    (claimed.placement != expected).then(|| Finding::Nominations { expected: expected.iter().map(named).collect() })
}
