//! Records decisions as PreemptionTest files, which `reprieve test` can replay.

use reprieve_api::record::record;
use reprieve_api::{NamespacedName, PreemptorRef, Profile, TestSpec};
use reprieve_engine::Outcome;
use reprieve_engine::fit::PreemptorId;
use reprieve_loader::Question;
use reprieve_loader::time::time;
use reprieve_report::answer::named;

use super::Scheduler;
use crate::step::RecordedDecision;

impl Scheduler {
    /// Adds a recording to each decision; `profile` is written into the files as the policy of the decision.
    pub fn recording(mut self, profile: Profile) -> Self {
        self.recorded_profile = Some(profile);
        self
    }

    /// The decision as a file; called before an action changes the snapshot.
    pub(super) fn record_decision(&self, question: &Question, outcome: &Outcome) -> Option<RecordedDecision> {
        let profile = self.recorded_profile.clone()?;
        let at = time(question.now)?;
        let names = &self.view.loaded().names;
        let (kind, name) = match question.preemptor {
            // A Koordinator job is named by one of its pods.
            PreemptorId::Pod(pod) => ("Pod", names.pod(pod)),
            PreemptorId::Group(group) => ("PodGroup", names.group(group)),
            PreemptorId::Workload(workload) => ("Workload", names.workload(workload)),
        };
        let NamespacedName { namespace, name } = name.clone();
        let preemptor = PreemptorRef { kind: kind.to_owned(), namespace, name };
        let spec = TestSpec { now: Some(at.to_string()), profile, preemptor, expect: None };
        let answer = named(self.view.loaded(), &question.preemptor(self.view.loaded()).members, outcome);
        let is_known = |pod: &_| names.pod_id(pod).is_some();
        let text = record(&self.view.live.all_objects(), is_known, &spec, &answer, &[]).ok()?;
        let name = format!("{}-{:016x}", at.strftime("%Y%m%dT%H%M%S.%6fZ"), fnv1a(&text));
        Some(RecordedDecision { name, text })
    }
}

/// The 64-bit FNV-1a hash of a text: the same text gives the same name on every machine.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
