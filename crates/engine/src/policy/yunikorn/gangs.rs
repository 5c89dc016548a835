//! docs/rules/yunikorn.md#y22: a running gang that would fall below its minimum is taken as a whole or not at all.

use std::collections::BTreeMap;

use super::Search;
use crate::explanation::Recorder;
use crate::ids::{GroupId, PodId};
use crate::laws::Law;
use crate::snapshot::DisruptionMode;

/// A pod that may be taken, or a gang that may be taken as a whole.
pub(super) struct Take {
    /// A pod on the node of the search.
    pub pod: PodId,
    /// The other running pods of its gang, on any node, if they go with it.
    pub rest: Vec<PodId>,
    pub gang: Option<GroupId>,
    /// The first part of [`Search::order`]; that of a gang is the highest of its pods.
    pub kind: u8,
}

impl Take {
    pub fn pods(&self) -> impl Iterator<Item = PodId> + '_ {
        std::iter::once(self.pod).chain(self.rest.iter().copied())
    }
}

/// How the pods of a gang may be taken.
enum GangState {
    /// So many more pods one by one.
    Spare(usize),
    /// The remaining pods together, as a take that is in the list already.
    Whole,
    /// No more pods.
    Spared(Law),
}

impl Search<'_, '_, '_> {
    /// Groups eligible pods, which are in order, to what is taken together.
    pub(super) fn takes<R: Recorder>(&self, pods: Vec<PodId>, recorder: &mut R) -> Vec<Take> {
        let single = |pod, gang| Take { pod, rest: Vec::new(), gang, kind: self.kind(pod) };
        if pods.iter().all(|&pod| self.gang(pod).is_none()) {
            return pods.into_iter().map(|pod| single(pod, None)).collect();
        }
        let mut gangs: BTreeMap<GroupId, GangState> = BTreeMap::new();
        let mut takes = Vec::new();
        for pod in pods {
            let Some(gang) = self.gang(pod) else {
                takes.push(single(pod, None));
                continue;
            };
            let state = gangs.entry(gang).or_insert_with(|| GangState::Spare(self.spare(gang)));
            match state {
                GangState::Spare(0) => match self.whole_gang(gang, pod) {
                    Ok(take) => {
                        takes.push(take);
                        *state = GangState::Whole;
                    }
                    Err(law) => {
                        self.report(pod, Err::<(), _>(law.clone()), recorder);
                        *state = GangState::Spared(law);
                    }
                },
                GangState::Spare(spare) => {
                    *spare -= 1;
                    takes.push(single(pod, Some(gang)));
                }
                GangState::Whole => {}
                GangState::Spared(law) => _ = self.report(pod, Err::<(), _>(law.clone()), recorder),
            }
        }
        takes.sort_by_key(|take| take.kind);
        takes
    }

    /// The gang of a pod, if gangs are taken as a whole.
    fn gang(&self, pod: PodId) -> Option<GroupId> {
        self.snapshot().pod(pod).group.filter(|_| self.settings.whole_gangs)
    }

    /// The running pods of a gang.
    fn running(&self, gang: GroupId) -> impl Iterator<Item = PodId> + '_ {
        let snapshot = self.snapshot();
        let runs = |&id: &PodId| snapshot.pod(id).node.is_some() && snapshot.pod(id).terminating.is_none();
        snapshot.group(gang).members.iter().copied().filter(runs)
    }

    /// The number of pods that a gang can lose before it falls below its minimum. A gang below it already has nothing to lose.
    fn spare(&self, gang: GroupId) -> usize {
        let group = self.snapshot().group(gang);
        match group.mode {
            DisruptionMode::All => 0,
            DisruptionMode::Single => self.running(gang).count().checked_sub(group.min_count).unwrap_or(usize::MAX),
        }
    }

    /// All running pods of a gang, if every pod may be taken.
    fn whole_gang(&self, gang: GroupId, pod: PodId) -> Result<Take, Law> {
        let rest: Vec<PodId> = self.running(gang).filter(|&other| other != pod).collect();
        let refused = rest.iter().find(|&&member| self.eligibility(member).is_err());
        if let Some(&member) = refused {
            return Err(Law::WholeGang { member });
        }
        let kind = rest.iter().map(|&member| self.kind(member)).max().unwrap_or_default().max(self.kind(pod));
        Ok(Take { pod, rest, gang: Some(gang), kind })
    }
}
