//! Tells people which objects are set aside, once for each problem. Pending pods of this scheduler and pending workloads get a condition
//! instead, as for any other reason why they wait.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{Kind, Object, ObjectKey, ProblemCode};
use reprieve_engine::Timestamp;
use reprieve_loader::{Quarantined, Warning};
use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::action::EventReason;
use crate::view::ClusterView;

/// The problems that were reported.
#[derive(Default)]
pub(super) struct ReportedProblems {
    /// The version of the list that was compared last.
    version: u64,
    texts: BTreeSet<(ObjectKey, String)>,
    /// The warnings about objects.
    warnings: BTreeSet<(ObjectKey, String)>,
}

impl Scheduler {
    /// Returns the number of objects that are set aside, by kind and class of their problem.
    pub fn quarantined(&self) -> BTreeMap<(Kind, ProblemCode), usize> {
        let mut counts = BTreeMap::new();
        for entry in self.view.live.quarantined() {
            *counts.entry((entry.object.kind, entry.code())).or_default() += 1;
        }
        counts
    }

    /// Emits an event for each new problem and each new warning, and makes all units ready if the problem of a pod has ended.
    pub(super) fn report_problems(&mut self, now: Timestamp) {
        let version = self.view.live.quarantine_version();
        if self.problems.version == version {
            return;
        }
        self.problems.version = version;
        let texts: BTreeSet<(ObjectKey, String)> = self.view.live.quarantined().iter().map(text).collect();
        let has_event = |entry: &&Quarantined| !self.view.has_condition(&entry.object) && is_own_problem(entry);
        let with_event = self.view.live.quarantined().iter().filter(has_event).map(text);
        // The end of a problem of a pod may free its node, which no change of the pod itself shows.
        let mut ended = self.problems.texts.difference(&texts);
        let room_may_be_free = ended.any(|(object, _)| object.kind == Kind::Pod);
        let new: Vec<_> = with_event.filter(|problem| !self.problems.texts.contains(problem)).collect();
        self.problems.texts = texts;
        if room_may_be_free {
            self.cluster_changed();
        }
        for (object, text) in new {
            self.emit_event(object, EventReason::Refused, format!("{text}; the object is set aside"), now);
        }
        let of_object = |warning: &Warning| Some((warning.object.clone()?, warning.text.clone()));
        let warnings: BTreeSet<(ObjectKey, String)> = self.view.live.warnings().iter().filter_map(of_object).collect();
        let new: Vec<_> = warnings.difference(&self.problems.warnings).cloned().collect();
        self.problems.warnings = warnings;
        for (object, text) in new {
            self.emit_event(object, EventReason::InvalidSetting, text, now);
        }
    }
}

fn text(entry: &Quarantined) -> (ObjectKey, String) {
    (entry.object.clone(), entry.error.to_string())
}

/// Whether the problem is that of the object itself. The event about another object or about the node is enough for what refers to it.
fn is_own_problem(entry: &Quarantined) -> bool {
    entry.cause.is_none() && entry.code() != ProblemCode::MissingNode
}

impl ClusterView {
    /// Whether the problem of an object is reported as a condition.
    fn has_condition(&self, object: &ObjectKey) -> bool {
        match object.kind {
            Kind::Pod => self.pod(&object.name).is_some_and(|pod| pod.node_name.is_none() && self.is_ours(pod)),
            Kind::KueueWorkload => self.live.get(object).is_some_and(|object| {
                matches!(object, Object::KueueWorkload(workload)
                    if workload.status.as_ref().is_none_or(|status| status.admission.is_none()))
            }),
            _ => false,
        }
    }

    /// The problem of a unit, of one of its pods, or of an object to which these refer.
    pub(super) fn problem_of(&self, unit: &UnitRef) -> Option<String> {
        let list = self.live.quarantined();
        if list.is_empty() {
            return None;
        }
        let members = self.members(unit).into_iter().map(|pod| ObjectKey::new(Kind::Pod, pod));
        let mut keys = std::iter::once(unit.key()).chain(members);
        keys.find_map(|key| self.live.quarantine_reason(&key)).map(ToString::to_string)
    }
}
