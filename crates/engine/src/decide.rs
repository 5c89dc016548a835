//! The entry points of the engine. They check the obstacles and call the policy, with a recorder or without.

use crate::decision::{Decision, Outcome, Plan};
use crate::decisive;
use crate::explanation::{Explanation, ExplanationRecorder, NoRecorder, Recorder};
use crate::fit::{Preemptor, PreemptorId};
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::obstacle;
use crate::policy::{Policy, koordinator, kubernetes, kueue, yunikorn};
use crate::snapshot::Snapshot;

/// Decides for one preemptor. The result depends only on the arguments; `snapshot` is unchanged afterwards.
pub fn decide(snapshot: &mut Snapshot, policy: &Policy, preemptor: PreemptorId, now: Timestamp) -> Decision {
    let preemptor = policy.preemptor(snapshot, preemptor);
    decide_recording(snapshot, policy, &preemptor, now, &mut NoRecorder)
}

/// Decides as [`decide`] does, and returns the reasons that the search found.
pub fn decide_and_explain(
    snapshot: &mut Snapshot,
    policy: &Policy,
    preemptor: PreemptorId,
    now: Timestamp,
) -> (Decision, Explanation) {
    let preemptor = policy.preemptor(snapshot, preemptor);
    let mut recorder = ExplanationRecorder::new(snapshot);
    let decision = decide_recording(snapshot, policy, &preemptor, now, &mut recorder);
    let explanation = recorder.finish(snapshot, &preemptor, &decision.outcome);
    (decision, explanation)
}

fn decide_recording<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Policy,
    preemptor: &Preemptor,
    now: Timestamp,
    recorder: &mut R,
) -> Decision {
    let of_gang = || match (policy, preemptor.id) {
        (Policy::Kubernetes(_), PreemptorId::Pod(pod)) => obstacle::refuses_gang_of(snapshot, pod),
        _ => None,
    };
    if let Some(law) = obstacle::refuses(snapshot, preemptor).or_else(of_gang) {
        if R::RECORDS {
            decisive::report_gang(snapshot, preemptor, recorder);
        }
        return Outcome::Unschedulable(Some(law)).into();
    }
    match (policy, preemptor.id) {
        (Policy::Kubernetes(policy), PreemptorId::Pod(_) | PreemptorId::Group(_)) => {
            kubernetes::decide(snapshot, policy, preemptor, now, recorder).into()
        }
        (Policy::YuniKorn(policy), PreemptorId::Pod(pod)) => {
            yunikorn::decide(snapshot, policy, preemptor, pod, now, recorder).into()
        }
        (Policy::Koordinator(policy), PreemptorId::Pod(pod)) => {
            koordinator::decide(snapshot, policy, preemptor, pod, now, recorder).into()
        }
        (Policy::Kueue(policy), PreemptorId::Workload(workload)) => {
            kueue::decide_recording(snapshot, policy, workload, now, recorder)
        }
        (Policy::Kueue(_), PreemptorId::Pod(_)) => kubernetes::place_only(snapshot, preemptor, recorder).into(),
        (Policy::Kubernetes(_), PreemptorId::Workload(_))
        | (Policy::YuniKorn(_) | Policy::Koordinator(_), PreemptorId::Group(_) | PreemptorId::Workload(_))
        | (Policy::Kueue(_), PreemptorId::Group(_)) => {
            unreachable!("the loader accepts only preemptors of the kinds that the policy decides")
        }
    }
}

/// The plan for each node on which the pod could be placed with preemption.
pub fn node_plans(snapshot: &mut Snapshot, policy: &Policy, pod: PodId, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let preemptor = Preemptor::new(snapshot, PreemptorId::Pod(pod));
    match policy {
        Policy::YuniKorn(policy) => yunikorn::node_plans(snapshot, policy, &preemptor, now),
        Policy::Kubernetes(_) | Policy::Kueue(_) | Policy::Koordinator(_) => {
            kubernetes::pod::node_plans(snapshot, &preemptor, now)
        }
    }
}
