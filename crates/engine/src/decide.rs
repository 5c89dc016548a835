//! The entry points: one function that decides by policy, with a recorder or without.

use crate::decision::{Decision, Outcome, Plan};
use crate::decisive;
use crate::explanation::{Explanation, ExplanationRecorder, NoRecorder, Recorder};
use crate::fit::{Preemptor, PreemptorId};
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::obstacle;
use crate::policy::{Policy, koordinator, kubernetes, kueue, yunikorn};
use crate::snapshot::Snapshot;

/// Decides for one preemptor. Reads its arguments and nothing else, and leaves `snapshot` as it found it.
pub fn decide(snapshot: &mut Snapshot, policy: &Policy, preemptor: PreemptorId, now: Timestamp) -> Decision {
    let ask = policy.preemptor(snapshot, preemptor);
    decide_recording(snapshot, policy, &ask, now, &mut NoRecorder)
}

/// Decides as [`decide`] does, and returns the reasons that the search found on its way.
pub fn decide_and_explain(
    snapshot: &mut Snapshot,
    policy: &Policy,
    preemptor: PreemptorId,
    now: Timestamp,
) -> (Decision, Explanation) {
    let ask = policy.preemptor(snapshot, preemptor);
    let mut recorder = ExplanationRecorder::new(snapshot);
    let decision = decide_recording(snapshot, policy, &ask, now, &mut recorder);
    let explanation = recorder.finish(snapshot, &ask, &decision.outcome);
    (decision, explanation)
}

fn decide_recording<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Policy,
    ask: &Preemptor,
    now: Timestamp,
    recorder: &mut R,
) -> Decision {
    let preemptor = ask.id;
    let of_gang = || match (policy, preemptor) {
        (Policy::Kubernetes(_), PreemptorId::Pod(pod)) => obstacle::refuses_gang_of(snapshot, pod),
        _ => None,
    };
    if let Some(law) = obstacle::refuses(snapshot, ask).or_else(of_gang) {
        if R::RECORDS {
            decisive::report_gang(snapshot, ask, recorder);
        }
        return Outcome::Unschedulable(Some(law)).into();
    }
    match (policy, preemptor) {
        (Policy::Kubernetes(policy), PreemptorId::Pod(_) | PreemptorId::Group(_)) => {
            kubernetes::decide(snapshot, policy, ask, now, recorder).into()
        }
        (Policy::YuniKorn, PreemptorId::Pod(pod)) => yunikorn::decide(snapshot, ask, pod, now, recorder).into(),
        (Policy::Koordinator(policy), PreemptorId::Pod(pod)) => {
            koordinator::decide(snapshot, policy, ask, pod, now, recorder).into()
        }
        (Policy::Kueue(policy), PreemptorId::Workload(workload)) => {
            kueue::decide_recording(snapshot, policy, workload, now, recorder)
        }
        (Policy::Kueue(_), PreemptorId::Pod(_)) => kubernetes::place_only(snapshot, ask, recorder).into(),
        (Policy::Kubernetes(_), PreemptorId::Workload(_))
        | (Policy::YuniKorn | Policy::Koordinator(_), PreemptorId::Group(_) | PreemptorId::Workload(_))
        | (Policy::Kueue(_), PreemptorId::Group(_)) => {
            unreachable!("a question is about a preemptor that its policy knows")
        }
    }
}

/// The victims that landing on each node would take, for every node where that is possible.
pub fn node_plans(snapshot: &mut Snapshot, policy: &Policy, pod: PodId, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let ask = Preemptor::new(snapshot, PreemptorId::Pod(pod));
    match policy {
        Policy::YuniKorn => yunikorn::node_plans(snapshot, &ask, pod, now),
        Policy::Kubernetes(_) | Policy::Kueue(_) | Policy::Koordinator(_) => {
            kubernetes::pod::node_plans(snapshot, &ask, now)
        }
    }
}
