//! Policy Kueue: the workloads that wait for quota, and the Jobs that own them.
//!
//! All state is in the API: the workload shows whether it has quota, is evicted or waits; the Job shows whether it is suspended. The next
//! action follows from these two and from the pods of the Job, so a restarted scheduler continues where the last one stopped.

mod cycle;
mod job_sync;
mod job_workload;
mod lines;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kueue::{FlavorSpec, KueueWorkload, KueueWorkloadStatus, workload_of_job};
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::{Priority, Timestamp};
use reprieve_loader::timestamp;
use reprieve_report::planned_actions::{STARTED, STOPPED};
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, EventReason};
use crate::action_log::Request;
use crate::effects::{FINISHED, REQUEUED, is_true};
use crate::queue::{PendingQueue, PendingSummary};
use crate::reported::ReportedReasons;
use crate::step::Step;
use crate::view::{ClusterView, ObjectUpdate};
pub(crate) use cycle::{HeadResult, decide};
use job_sync::{JobState, JobStep, next_job_step};
use lines::QuotaLines;

/// The workloads that wait for quota, and the pods of each Job.
#[derive(Default)]
pub(crate) struct Admission {
    /// The unfinished pods of each Job, by the namespace and the uid of the Job. An owner reference is only about the namespace of its object,
    /// so a pod of another namespace that names the uid is not among them.
    pods_of: BTreeMap<(String, String), BTreeSet<NamespacedName>>,
    lines: QuotaLines,
    /// The reasons that were reported on workloads without quota.
    reported: ReportedReasons,
    /// The steps of the last cycle that the caller has not received yet.
    pub steps: VecDeque<Step>,
}

impl Admission {
    /// Forgets what was reported on an object that is deleted.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.reported.forget(key);
    }

    /// Queues the Job and the workload that a change concerns.
    pub fn object_changed(&mut self, key: &ObjectKey, update: &ObjectUpdate, queue: &mut PendingQueue) {
        let ObjectUpdate { before, after, .. } = update;
        if key.kind == Kind::Job {
            return queue_job(&key.name, queue);
        }
        for workload in [before, after] {
            if let Some((job, _)) = workload.as_ref().and_then(|workload| owner(workload.metadata())) {
                queue_job(&NamespacedName::new(&key.name.namespace, job), queue);
            }
        }
        self.update_pending(&key.name, after.as_ref(), queue);
        if !is_same_for_others(before, after) {
            queue.wake_workloads();
        }
    }

    /// Queues a workload if it waits for quota, and removes it otherwise.
    fn update_pending(&mut self, name: &NamespacedName, workload: Option<&Object>, queue: &mut PendingQueue) {
        let unit = UnitRef::Workload(name.clone());
        let is_pending = |workload: &KueueWorkload| {
            let (status, is_inactive) = (workload.status.as_ref(), workload.spec.active == Some(false));
            let waits =
                |status: &KueueWorkloadStatus| status.admission.is_none() && !is_true(&status.conditions, "Finished");
            !is_inactive && status.is_none_or(waits)
        };
        match workload {
            Some(Object::KueueWorkload(workload)) if is_pending(workload) => {
                let created = workload.metadata.creation_timestamp.as_ref();
                let since = created.map_or(Timestamp(0), |created| timestamp(created.0));
                let priority = Priority(workload.spec.priority.unwrap_or(0));
                queue.upsert(&unit, PendingSummary { priority, since, count: 1 });
                self.lines.put(name);
            }
            _ => {
                queue.remove(&unit);
                self.lines.remove(name);
            }
        }
    }

    /// Updates the unfinished pods of a Job. `before` and `after` are the pod, unless it is missing or finished.
    pub fn pod_changed(
        &mut self,
        name: &NamespacedName,
        before: Option<&Pod>,
        after: Option<&Pod>,
        queue: &mut PendingQueue,
    ) {
        let owner_of = |pod: Option<&Pod>| {
            let (job, uid) = owner(&pod?.metadata)?;
            Some((job.to_owned(), (name.namespace.clone(), uid.to_owned())))
        };
        // The owner of a pod may change: a controller releases a pod that it does not select.
        let (was, is) = (owner_of(before), owner_of(after));
        if was == is {
            return;
        }
        if let Some((job, owner)) = was {
            if let Some(pods) = self.pods_of.get_mut(&owner) {
                pods.remove(name);
                if pods.is_empty() {
                    self.pods_of.remove(&owner);
                }
            }
            queue_job(&NamespacedName::new(&name.namespace, &job), queue);
        }
        if let Some((_, owner)) = is {
            self.pods_of.entry(owner).or_default().insert(name.clone());
        }
    }

    /// The next action for a Job or its workload, with its event; `None` if there is none, or if the result of an earlier action was not seen
    /// yet.
    pub fn next_for(&self, unit: &UnitRef, view: &ClusterView) -> Option<Request> {
        let key = &unit.key();
        let Some(Object::Job(job)) = view.observed(key) else { return None };
        let uid = job.metadata.uid.clone().unwrap_or_default();
        let name = workload_of_job(&key.name.name, &uid);
        let workload = &ObjectKey::new(Kind::KueueWorkload, NamespacedName::new(&key.name.namespace, &name));
        if !view.is_seen(key) || !view.is_seen(workload) {
            return None;
        }
        // Only the Workload under the name that follows from the Job, with a reference to it, is the Job's.
        let own = match view.observed(workload) {
            Some(Object::KueueWorkload(own)) if owner(&own.metadata) == Some((&key.name.name, &uid)) => {
                Some(own.as_ref())
            }
            _ => None,
        };
        let has_pods = self.pods_of.contains_key(&(key.name.namespace.clone(), uid.clone()));
        let state = JobState { job, workload: own, has_pods };
        let workload_target = || view.target(workload);
        let job_target = || view.target(key);
        let workload_key = || workload.clone();
        let (action, event) = match next_job_step(&state, |name| flavor(name, view))? {
            JobStep::CreateWorkload => {
                let created = job_workload::workload(job, priority_of(job, view));
                if view.unconfirmed.contains(workload) || view.observed(workload).is_some() {
                    return None;
                }
                let message = format!("created Workload {}", workload.name);
                let event = (key.clone(), EventReason::CreatedWorkload, message);
                (Action::CreateWorkload { workload: Box::new(created) }, Some(event))
            }
            JobStep::StartJob(settings) => {
                let event = (key.clone(), EventReason::Started, STARTED.1.to_owned());
                (Action::StartJob { job: job_target()?, settings }, Some(event))
            }
            JobStep::SuspendJob => {
                let event = (key.clone(), EventReason::Stopped, STOPPED.1.to_owned());
                (Action::SuspendJob { job: job_target()? }, Some(event))
            }
            JobStep::RestoreJob(settings) => (Action::RestoreJob { job: job_target()?, settings }, None),
            JobStep::RequeueWorkload => {
                let event = (workload_key(), EventReason::Requeued, REQUEUED.to_owned());
                (Action::RequeueWorkload { workload: workload_target()? }, Some(event))
            }
            JobStep::FinishWorkload(reason) => {
                let event = (workload_key(), EventReason::Finished, FINISHED.to_owned());
                (Action::FinishWorkload { workload: workload_target()?, reason }, Some(event))
            }
        };
        let request = Request::of(unit, action);
        Some(match event {
            Some((regarding, reason, message)) => request.then_event(regarding, Some(key.clone()), reason, message),
            None => request,
        })
    }
}

/// Queues a Job before all other units: the next step sends its next action, which needs no decision.
fn queue_job(job: &NamespacedName, queue: &mut PendingQueue) {
    let unit = UnitRef::BatchJob(job.clone());
    queue.upsert(&unit, PendingSummary { priority: Priority(i32::MAX), since: Timestamp(0), count: 1 });
    queue.wake(&unit);
}

fn flavor<'v>(name: &str, view: &'v ClusterView) -> Option<&'v FlavorSpec> {
    match view.live.get(&ObjectKey::new(Kind::ResourceFlavor, NamespacedName::new("", name)))? {
        Object::ResourceFlavor(flavor) => Some(&flavor.spec),
        _ => None,
    }
}

/// The priority of a Job: of the WorkloadPriorityClass in its label, else of the PriorityClass of its pods, else of the global default
/// PriorityClass. A `priority` in the pod template has no effect: the API server checks that field in pods only, so any user can write any
/// number into a template.
fn priority_of(job: &Job, view: &ClusterView) -> i32 {
    let class = |kind, name: &str| match view.live.get(&ObjectKey::new(kind, NamespacedName::new("", name)))? {
        Object::WorkloadPriorityClass(class) => Some(class.spec.value),
        Object::PriorityClass(class) => class.value,
        _ => None,
    };
    let labels = job.metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get("kueue.x-k8s.io/priority-class"));
    let by_label = label.and_then(|name| class(Kind::WorkloadPriorityClass, name));
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let named = pod.and_then(|pod| pod.priority_class_name.as_deref()).filter(|name| !name.is_empty());
    let by_class = || class(Kind::PriorityClass, named?);
    let by_default = || if named.is_none() { default_priority(view) } else { None };
    by_label.or_else(by_class).or_else(by_default).unwrap_or(0)
}

/// The value of the global default PriorityClass; if there are several, the lowest, as in Kueue.
fn default_priority(view: &ClusterView) -> Option<i32> {
    let classes = view.live.of_kind(Kind::PriorityClass).filter_map(|object| match object {
        Object::PriorityClass(class) if class.global_default == Some(true) => Some(class.value.unwrap_or_default()),
        _ => None,
    });
    classes.min()
}

/// Whether a change of a workload cannot affect other workloads: only the condition `QuotaReserved` differs.
fn is_same_for_others(before: &Option<Object>, after: &Option<Object>) -> bool {
    let (Some(Object::KueueWorkload(before)), Some(Object::KueueWorkload(after))) = (before, after) else {
        return before.is_none() && after.is_none();
    };
    let [was, is] = [before, after].map(|workload| workload.status.as_ref());
    let [was_admitted, is_admitted] = [was, is].map(|status| status.and_then(|status| status.admission.as_ref()));
    let [had, has] = [was, is].map(|status| {
        let conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.filter(|condition| condition.type_ != "QuotaReserved")
    });
    before.spec == after.spec && was_admitted == is_admitted && had.eq(has)
}

/// The name and uid of the Job that controls an object.
fn owner(metadata: &ObjectMeta) -> Option<(&str, &str)> {
    let owners = metadata.owner_references.iter().flatten();
    let job = owners.filter(|owner| owner.kind == "Job" && owner.controller == Some(true));
    job.map(|owner| (owner.name.as_str(), owner.uid.as_str())).next()
}

#[cfg(test)]
mod tests {
    use reprieve_engine::policy::Policy;
    use reprieve_engine::policy::kueue::Kueue;
    use serde_json::json;

    use super::*;
    use crate::test_bugs::Bugs;

    #[test]
    fn a_suspended_job_of_a_queue_gets_a_workload_which_then_waits_for_quota() {
        let mut view = ClusterView::new("reprieve", Policy::Kueue(Kueue::default()));
        let (mut admission, mut queue) = (Admission::default(), PendingQueue::default());
        let mut see = |object: Object, admission: &mut Admission, view: &mut ClusterView| {
            view.seen(&object);
            let update = view.update_object(&object.key(), Bugs::default());
            admission.object_changed(&object.key(), &update, &mut queue);
            queue.ready().cloned().collect::<Vec<_>>()
        };
        let job = json!({
            "metadata": {"name": "j", "namespace": "default", "uid": "j", "resourceVersion": "1", "labels": {job_workload::QUEUE: "q"}},
            "spec": {"suspend": true, "template": {}},
        });
        let job: Job = serde_json::from_value(job).expect("a Job");
        let unit = UnitRef::BatchJob(NamespacedName::from_meta(&job.metadata));
        assert_eq!(see(Object::from(job), &mut admission, &mut view), std::slice::from_ref(&unit));

        let request = admission.next_for(&unit, &view).expect("there is something to do");
        let Request { action: Action::CreateWorkload { workload }, .. } = &request else { panic!("{request:?}") };
        let waits = UnitRef::Workload(NamespacedName::from_meta(&workload.metadata));
        let created = Object::from((**workload).clone());
        assert!(see(created, &mut admission, &mut view).contains(&waits));
        assert_eq!(admission.next_for(&unit, &view), None, "it waits for quota");
    }

    #[test]
    fn a_pod_that_its_job_releases_no_longer_holds_its_quota() {
        let (mut admission, mut queue) = (Admission::default(), PendingQueue::default());
        let pod = |owner: Option<&str>| -> Pod {
            let owner = owner.map(
                |uid| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": true}]),
            );
            serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "default", "ownerReferences": owner}}))
                .expect("a pod")
        };
        let (name, owned, released) = (NamespacedName::new("default", "p"), pod(Some("j")), pod(None));
        admission.pod_changed(&name, None, Some(&owned), &mut queue);
        assert_eq!(admission.pods_of.len(), 1);
        admission.pod_changed(&name, Some(&owned), Some(&released), &mut queue);
        assert!(admission.pods_of.is_empty(), "the Job has no pod left");
        assert!(queue.ready().any(|unit| matches!(unit, UnitRef::BatchJob(_))), "its next action may follow now");
        admission.pod_changed(&name, Some(&released), None, &mut queue);
        assert!(admission.pods_of.is_empty());
    }
}
