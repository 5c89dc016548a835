//! docs/rules/yunikorn.md#y5 to docs/rules/yunikorn.md#y11: the pods that the laws allow to take, and their order.

use std::cmp::Reverse;

use super::Search;
use super::laws::{self, fence};
use crate::decision::EvictionReason;
use crate::explanation::Recorder;
use crate::ids::{PodId, Priority, QueueId};
use crate::laws::{Law, protected, set_aside, toleration, unknown_class};
use crate::snapshot::Pod;

/// The kind of the pods whose removal breaks YuniKorn's law 2 or 3, for the pod of a DaemonSet.
pub(super) const UNLAWFUL: u8 = 2;
/// The kind of the pods that opted out, for the pod of a DaemonSet.
pub(super) const OPTED_OUT: u8 = 3;

impl Search<'_, '_, '_> {
    /// Whether the pod may be taken before any other is, else the law that spares it; docs/rules/yunikorn.md#y17 for a DaemonSet pod as the
    /// preemptor.
    pub(super) fn eligibility(&self, pod: PodId) -> Result<(), Law> {
        let snapshot = self.snapshot();
        if self.is_daemon() {
            self.pod_allows(pod)?;
            let candidate = snapshot.pod(pod).priority;
            return if candidate > self.preemptor.priority { Err(Law::Priority { candidate }) } else { Ok(()) };
        }
        let queue = snapshot.pod(pod).queue.ok_or(Law::NoQueue)?;
        self.queue_allows(queue)?;
        if !self.settings.follows_code {
            spared_by(laws::same_application(snapshot, self.pod, pod))?;
        }
        spared_by(laws::priority(snapshot, pod, queue, &self.scope))?;
        self.pod_allows(pod)?;
        spared_by(laws::would_break_guarantee(self.what_if, pod, &self.scope))
    }

    /// The laws about the pod alone.
    fn pod_allows(&self, pod: PodId) -> Result<(), Law> {
        let snapshot = self.snapshot();
        let Some(unit) = snapshot.unit_of(pod).map(|unit| snapshot.unit(unit)) else { return Ok(()) };
        spared_by(laws::terminating(snapshot, pod))?;
        spared_by(protected::spares(snapshot, unit))?;
        spared_by(set_aside::spares(snapshot, unit))?;
        spared_by(unknown_class::spares(snapshot, unit))?;
        spared_by(toleration::spares(snapshot, unit, self.preemptor, self.now))
    }

    /// The laws about a queue alone. INVARIANT: called only before any pod is taken, so that the result can be cached.
    fn queue_allows(&self, queue: QueueId) -> Result<(), Law> {
        let check = || {
            let snapshot = self.snapshot();
            spared_by(fence::spares(snapshot, queue, &self.scope))?;
            spared_by(laws::same_queue(queue, &self.scope))?;
            if !snapshot.queues().get(queue).preemptible {
                return Err(Law::QueueDisabled { queue });
            }
            laws::over_guarantee(self.what_if, self.pod, queue).map(|_| ())
        };
        self.queue_laws[queue.index()].get_or_init(check).clone()
    }

    /// docs/rules/yunikorn.md#y9: why the laws about guarantees allow to take the pod, given the pods taken so far, or the law that does not.
    pub(super) fn guarantees_allow(&self, pod: PodId) -> Result<EvictionReason, Law> {
        if self.is_daemon() {
            return Ok(EvictionReason::DaemonNeedsNode);
        }
        let queue = self.snapshot().pod(pod).queue.ok_or(Law::NoQueue)?;
        let reason = laws::over_guarantee(self.what_if, self.pod, queue)?;
        spared_by(laws::would_break_guarantee(self.what_if, pod, &self.scope))?;
        Ok(reason)
    }

    /// docs/rules/yunikorn.md#y11: the pods that no law spares before any pod is taken, in the order in which they are taken.
    pub(super) fn eligible<R: Recorder>(&self, pods: impl Iterator<Item = PodId>, recorder: &mut R) -> Vec<PodId> {
        let is_eligible = |&pod: &PodId| pod != self.pod && self.report(pod, self.eligibility(pod), recorder).is_some();
        let mut pods: Vec<PodId> = pods.filter(is_eligible).collect();
        pods.sort_by_cached_key(|&pod| self.order(pod));
        pods
    }

    /// The eligible pods of the whole cluster.
    pub(super) fn all_eligible<R: Recorder>(&self, recorder: &mut R) -> Vec<PodId> {
        let snapshot = self.snapshot();
        let pods = (0..snapshot.n_pods()).map(PodId::new);
        self.eligible(pods.filter(|&pod| snapshot.pod(pod).node.is_some()), recorder)
    }

    /// Reports the law that spares a pod, if there is one, and returns the result otherwise.
    pub(super) fn report<R: Recorder, T>(&self, pod: PodId, allowed: Result<T, Law>, recorder: &mut R) -> Option<T> {
        let law = match allowed {
            Ok(allowed) => return Some(allowed),
            Err(law) => law,
        };
        if R::RECORDS {
            let unit = self.snapshot().unit_of(pod).expect("a pod that might be taken is bound");
            recorder.spared(unit, law);
        }
        None
    }

    /// The sort key of a candidate: its kind, then the newest. For a DaemonSet pod as the preemptor: lower priority, newer, smaller.
    fn order(&self, id: PodId) -> impl Ord + use<> {
        (self.kind(id), self.order_in_kind(id))
    }

    /// The sort key among candidates of one kind.
    pub(super) fn order_in_kind(&self, id: PodId) -> impl Ord + use<> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let newest = Reverse(pod.created);
        match self.is_daemon() {
            true => (pod.priority, newest, snapshot.requests(pod.shape).to_vec(), pod.rank),
            false => (Priority(0), newest, Vec::new(), pod.rank),
        }
    }

    /// The kind of a candidate; lower kinds are taken first: opted-in before opted-out, then non-originators before originators. For a
    /// DaemonSet pod as the preemptor: ordinary, originator, same application, opted out; as the code of YuniKorn: ordinary, opted out,
    /// originator.
    pub(super) fn kind(&self, id: PodId) -> u8 {
        let pod = self.snapshot().pod(id);
        let (opted_out, originator) = (opted_out(pod), pod.originator);
        if !self.is_daemon() {
            return 2 * u8::from(opted_out) + u8::from(originator);
        }
        if self.settings.follows_code {
            return if originator { 2 } else { u8::from(opted_out) };
        }
        let is_same = || laws::same_application(self.snapshot(), self.pod, id).is_some();
        match (opted_out, originator) {
            (true, _) => OPTED_OUT,
            (false, _) if is_same() => UNLAWFUL,
            (false, originator) => u8::from(originator),
        }
    }
}

/// docs/rules/yunikorn.md#y18: the annotation of the pod overrides that of its priority class.
pub(super) fn opted_out(pod: &Pod) -> bool {
    pod.own_opt_out.unwrap_or(pod.opted_out)
}

fn spared_by(law: Option<Law>) -> Result<(), Law> {
    law.map_or(Ok(()), Err)
}
