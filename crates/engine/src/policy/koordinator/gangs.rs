//! docs/rules/koordinator.md#qa1: a running gang that would fall below its minimum is evicted whole or not at all.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Search;
use super::removed::RemovedPod;
use crate::ids::{GroupId, JobId, PodId};
use crate::laws::Law;
use crate::snapshot::{DisruptionMode, Pod, Snapshot};

/// A gang of running pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GangId {
    Job(JobId),
    Group(GroupId),
}

/// The pods of a gang that run, and how many of them must.
pub(super) struct RunningGang {
    pub(super) pods: Vec<PodId>,
    minimum: usize,
}

impl RunningGang {
    /// Whether enough pods remain if these are evicted; a gang without pods needs none.
    pub(super) fn allows(&self, evicted: &[PodId]) -> bool {
        let lost = self.pods.iter().filter(|pod| evicted.contains(pod)).count();
        lost == 0 || lost == self.pods.len() || self.pods.len() - lost >= self.minimum
    }

    /// The number of pods beyond the minimum.
    fn surplus(&self) -> usize {
        self.pods.len() - self.minimum
    }
}

/// A pod that might be taken: `law` spares it.
pub(super) struct Reached {
    pub(super) pod: RemovedPod,
    pub(super) law: Option<Law>,
}

impl Search<'_, '_, '_> {
    /// The gang of a bound pod, if the gang runs. Groups that are evicted as a whole are gangs whatever the argument `wholeGangs` says.
    pub(super) fn gang(&self, id: PodId) -> Option<GangId> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let group = pod.group.map(|group| (group, snapshot.group(group)));
        if let Some((group, _)) = group.filter(|(_, group)| group.mode == DisruptionMode::All) {
            return Some(GangId::Group(group));
        }
        if !self.policy.whole_gangs {
            return None;
        }
        let job = pod.job.filter(|&job| snapshot.job(job).min_member > 1).map(GangId::Job);
        job.or_else(|| group.filter(|(_, group)| group.min_count > 1).map(|(group, _)| GangId::Group(group)))
    }

    /// The running pods of a gang; `None` if too few run, so that evicting more of them breaks nothing.
    pub(super) fn running(&self, gang: GangId) -> Option<RunningGang> {
        let snapshot = self.snapshot();
        let (members, minimum) = match gang {
            GangId::Job(job) => (&snapshot.job(job).members, Some(snapshot.job(job).min_member)),
            GangId::Group(group) => {
                let group = snapshot.group(group);
                let minimum = (group.mode == DisruptionMode::Single).then_some(group.min_count);
                (&group.members, minimum)
            }
        };
        let ends = |pod: &Pod| pod.terminating.is_some_and(|terminating| !terminating.by_preemption);
        let stays = |pod: &PodId| minimum.is_none() || !ends(snapshot.pod(*pod));
        let is_bound = |pod: &PodId| snapshot.bound_node(*pod).is_some();
        let pods: Vec<PodId> = members.iter().copied().filter(is_bound).filter(stays).collect();
        let minimum = minimum.unwrap_or(pods.len());
        (pods.len() >= minimum).then_some(RunningGang { pods, minimum })
    }

    /// Spares pods whose gang would fall below its minimum because not all of its pods may be taken; adds the pods of gangs that must be
    /// taken whole. The law that spares a pod is that of the member that may not be taken.
    pub(super) fn keep_gangs_whole(&self, reached: &mut Vec<Reached>) {
        let mut by_gang: BTreeMap<GangId, Vec<usize>> = BTreeMap::new();
        for (index, one) in reached.iter().enumerate().filter(|(_, one)| one.law.is_none()) {
            if let Some(gang) = self.gang(one.pod.pod) {
                by_gang.entry(gang).or_default().push(index);
            }
        }
        for (gang, mut indexes) in by_gang {
            let known: Vec<PodId> = indexes.iter().map(|&index| reached[index].pod.pod).collect();
            let Some(running) = self.running(gang).filter(|running| !running.allows(&known)) else { continue };
            let law = running.pods.iter().find_map(|&pod| self.spares(pod));
            let Some(law) = law else {
                let others = running.pods.iter().copied().filter(|pod| !known.contains(pod));
                reached.extend(others.filter_map(|pod| Some(Reached { pod: self.removed(pod)?, law: None })));
                continue;
            };
            // The pods that are given back last may be taken.
            indexes.retain(|&index| running.pods.contains(&reached[index].pod.pod));
            indexes.sort_by_key(|&index| Reverse(give_back_order(self.snapshot(), &reached[index].pod)));
            for index in indexes.into_iter().skip(running.surplus()) {
                reached[index].law = Some(law.clone());
            }
        }
    }

    /// A bound pod as a candidate whose removal does not matter beyond its node.
    pub(super) fn removed(&self, id: PodId) -> Option<RemovedPod> {
        let pod = self.snapshot().pod(id);
        let node = self.snapshot().bound_node(id)?;
        Some(RemovedPod { pod: id, node, priority: pod.priority, job: pod.job, matters: false })
    }
}

/// docs/rules/koordinator.md#q11: the order in which candidates are given back.
pub(super) fn give_back_order(snapshot: &Snapshot, victim: &RemovedPod) -> impl Ord + use<> {
    let job = victim.job.map(|job| snapshot.job(job).rank);
    (Reverse(victim.priority), job, snapshot.pod(victim.pod).rank)
}
