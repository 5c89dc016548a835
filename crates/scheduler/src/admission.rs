//! Policy Kueue: the workloads that ask for quota, and the Jobs that they stand for.
//!
//! All state is in the API: a Job's workload says whether it has quota, has to yield or waits; the Job says whether it may have pods.
//! What is to be done next follows from these two and from the pods that there are, so it does not matter who began.

mod cycle;
mod job_sync;
mod job_workload;
mod lines;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::kueue::{FlavorSpec, KueueWorkload, KueueWorkloadStatus};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::{Priority, Timestamp};
use reprieve_loader::time::timestamp;
use reprieve_report::planned_actions::{STARTED, STOPPED};
use reprieve_report::unit_ref::UnitRef;

use crate::action::Action;
use crate::action_log::Request;
use crate::effects::is_true;
use crate::queue::{PendingQueue, PendingSummary};
use crate::step::Step;
use crate::view::{ClusterView, ObjectUpdate};
pub(crate) use cycle::{HeadResult, decide};
use job_sync::{JobState, JobStep, next_job_step};
use lines::QuotaLines;

/// The Jobs and workloads of policy Kueue, and which workloads wait for quota.
#[derive(Default)]
pub(crate) struct Admission {
    /// By the uid of a Job: its workload.
    workload_of: BTreeMap<String, NamespacedName>,
    /// By the uid of a Job: its pods that are not over.
    pods_of: BTreeMap<String, BTreeSet<NamespacedName>>,
    lines: QuotaLines,
    /// Steps of a cycle that were decided and not handed out yet.
    pub steps: VecDeque<Step>,
}

impl Admission {
    /// A workload or a Job was seen.
    pub fn seen(&mut self, object: &Object) {
        if let (Kind::KueueWorkload, Some((_, uid))) = (object.kind(), owner(object.metadata())) {
            self.workload_of.insert(uid.to_owned(), object.key().name);
        }
    }

    /// A workload or a Job is gone.
    pub fn gone(&mut self, key: &ObjectKey, gone: Option<&Object>) {
        if let Some((_, uid)) = gone.and_then(|object| owner(object.metadata()))
            && self.workload_of.get(uid) == Some(&key.name)
        {
            self.workload_of.remove(uid);
        }
    }

    /// A workload or a Job, or what is assumed of it, changed.
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

    /// A workload waits for quota, or does not.
    fn update_pending(&mut self, name: &NamespacedName, workload: Option<&Object>, queue: &mut PendingQueue) {
        let unit = UnitRef::Workload(name.clone());
        let claims = |workload: &KueueWorkload| {
            let (status, off) = (workload.status.as_ref(), workload.spec.active == Some(false));
            let waits =
                |status: &KueueWorkloadStatus| status.admission.is_none() && !is_true(&status.conditions, "Finished");
            !off && status.is_none_or(waits)
        };
        match workload {
            Some(Object::KueueWorkload(workload)) if claims(workload) => {
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

    /// Keeps track of the pods that Jobs have.
    pub fn pod_changed(
        &mut self,
        name: &NamespacedName,
        before: Option<&Pod>,
        after: Option<&Pod>,
        queue: &mut PendingQueue,
    ) {
        if before.is_some() == after.is_some() {
            return;
        }
        let Some((job, uid)) = before.or(after).and_then(|pod| owner(&pod.metadata)) else { return };
        let pods = self.pods_of.entry(uid.to_owned()).or_default();
        if after.is_some() {
            pods.insert(name.clone());
        } else {
            pods.remove(name);
            if pods.is_empty() {
                self.pods_of.remove(uid);
            }
            queue_job(&NamespacedName::new(&name.namespace, job), queue);
        }
    }

    /// The next action for a Job or its workload, with the event that belongs to it. `None` where nothing is to be done, or an earlier
    /// action was not seen yet.
    pub fn next_for(&self, unit: &UnitRef, view: &ClusterView) -> Option<Vec<Request>> {
        let key = &unit.key();
        let Some(Object::Job(job)) = view.observed(key) else { return None };
        let uid = job.metadata.uid.clone().unwrap_or_default();
        let name = self.workload_of.get(&uid).cloned();
        let workload = name.as_ref().map(|name| ObjectKey::new(Kind::KueueWorkload, name.clone()));
        let is_seen = |key: &ObjectKey| view.is_seen(key);
        if !is_seen(key) || !workload.as_ref().is_none_or(is_seen) {
            return None;
        }
        let seen = match workload.as_ref().and_then(|key| view.observed(key)) {
            Some(Object::KueueWorkload(workload)) => Some(workload),
            _ => None,
        };
        let state = JobState { job, workload: seen.map(AsRef::as_ref), has_pods: self.pods_of.contains_key(&uid) };
        let of_workload = || view.target(workload.as_ref()?);
        let of_job = || view.target(key);
        let about = || workload.clone().unwrap_or_else(|| key.clone());
        let (action, event) = match next_job_step(&state, |name| flavor(name, view))? {
            JobStep::Create => {
                let made = job_workload::workload(job, priority_of(job, view));
                let about = ObjectKey::new(Kind::KueueWorkload, NamespacedName::from_meta(&made.metadata));
                if view.unconfirmed.contains(&about) || view.observed(&about).is_some() {
                    return None;
                }
                let event = (key.clone(), "CreatedWorkload", format!("created Workload {}", about.name));
                (Action::CreateWorkload { workload: Box::new(made) }, Some(event))
            }
            JobStep::Start(settings) => {
                let event = (key.clone(), STARTED.0, STARTED.1.to_owned());
                (Action::StartJob { job: of_job()?, settings }, Some(event))
            }
            JobStep::Suspend => {
                let event = (key.clone(), STOPPED.0, STOPPED.1.to_owned());
                (Action::SuspendJob { job: of_job()? }, Some(event))
            }
            JobStep::Restore(settings) => (Action::RestoreJob { job: of_job()?, settings }, None),
            JobStep::Requeue => {
                let event = (about(), "Requeued", "its pods are gone, and it waits for quota again".to_owned());
                (Action::RequeueWorkload { workload: of_workload()? }, Some(event))
            }
            JobStep::Finish(reason) => {
                let event = (about(), "Finished", "the workload is over".to_owned());
                (Action::FinishWorkload { workload: of_workload()?, reason }, Some(event))
            }
        };
        let event = event.map(|(about, reason, message)| Request::record(about, Some(key.clone()), reason, message));
        Some([Request::of(unit, action)].into_iter().chain(event).collect())
    }
}

/// Something about a Job changed: it is looked at in the next step.
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

/// A Job's priority: of the class that its label names, else of its pods, else of the global default PriorityClass.
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
    by_label.or_else(by_class).or_else(|| pod?.priority).or_else(by_default).unwrap_or(0)
}

/// The value of the global default PriorityClass; the lowest, as in Kueue, where there are several.
fn default_priority(view: &ClusterView) -> Option<i32> {
    let classes = view.live.of_kind(Kind::PriorityClass).filter_map(|object| match object {
        Object::PriorityClass(class) if class.global_default == Some(true) => Some(class.value.unwrap_or_default()),
        _ => None,
    });
    classes.min()
}

/// Whether two states of a workload are the same to others. Since when it knows that it has no quota is its own business.
fn is_same_for_others(before: &Option<Object>, after: &Option<Object>) -> bool {
    let (Some(Object::KueueWorkload(before)), Some(Object::KueueWorkload(after))) = (before, after) else {
        return before.is_none() && after.is_none();
    };
    let [was, is] = [before, after].map(|workload| workload.status.as_ref());
    let [was_admitted, is_admitted] = [was, is].map(|status| status.and_then(|status| status.admission.as_ref()));
    let [said, says] = [was, is].map(|status| {
        let conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.filter(|one| one.type_ != "QuotaReserved")
    });
    before.spec == after.spec && was_admitted == is_admitted && said.eq(says)
}

/// The name and the uid of the Job that an object belongs to.
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
            admission.seen(&object);
            let update = view.update_object(&object.key(), Bugs::default());
            admission.object_changed(&object.key(), &update, &mut queue);
            queue.active().cloned().collect::<Vec<_>>()
        };
        let job = json!({
            "metadata": {"name": "j", "namespace": "default", "uid": "j", "resourceVersion": "1", "labels": {job_workload::QUEUE: "q"}},
            "spec": {"suspend": true, "template": {}},
        });
        let job: Job = serde_json::from_value(job).expect("a Job");
        let unit = UnitRef::BatchJob(NamespacedName::from_meta(&job.metadata));
        assert_eq!(see(Object::from(job), &mut admission, &mut view), std::slice::from_ref(&unit));

        let requests = admission.next_for(&unit, &view).expect("there is something to do");
        let [Request { action: Action::CreateWorkload { workload }, .. }, _] = requests.as_slice() else {
            panic!("{requests:?}")
        };
        let waits = UnitRef::Workload(NamespacedName::from_meta(&workload.metadata));
        let created = Object::from((**workload).clone());
        assert!(see(created, &mut admission, &mut view).contains(&waits));
        assert_eq!(admission.next_for(&unit, &view), None, "it waits for quota");
    }
}
