//! Policy Kueue: the workloads that ask for quota, and the Jobs that they stand for.
//!
//! All state is in the API: a Job's workload says whether it has quota, has to yield or waits; the Job says whether it may have pods.
//! What is to be done next follows from these two and from the pods that there are, so it does not matter who began.

mod chore;
mod claims;
mod cycle;
mod make;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_engine::{Priority, Timestamp};
use reprieve_objects::kueue::{FlavorSpec, KueueWorkload, KueueWorkloadStatus};
use reprieve_objects::load::timestamp;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;

use super::Scheduler;
use crate::action::{Action, Target};
use crate::bug::Bug;
use crate::change::is_true;
use crate::roll::Needy;
use crate::unit::UnitName;
use chore::{Chore, Standing, chore};
use claims::Claims;

/// The workloads and Jobs that the scheduler knows.
#[derive(Default)]
pub(super) struct Work {
    /// As the API has them.
    pub seen: BTreeMap<Key, Object>,
    /// Those that are being read anew.
    pub unsettled: BTreeSet<Key>,
    /// By the uid of a Job: its workload.
    workload_of: BTreeMap<String, FullName>,
    /// By the uid of a Job: its pods that are not over.
    pods_of: BTreeMap<String, BTreeSet<FullName>>,
    claims: Claims,
}

impl Scheduler {
    /// A workload or a Job is there, or has changed.
    pub(super) fn work_seen(&mut self, key: Key, object: Object, now: Timestamp) {
        self.assumed.seen(key.kind, &key.name, object.uid(), object.version());
        if let (Kind::KueueWorkload, Some((_, uid))) = (key.kind, owner(object.metadata())) {
            self.work.workload_of.insert(uid.to_owned(), key.name.clone());
        }
        self.work.seen.insert(key.clone(), object);
        self.reconsider_work(&key, now);
    }

    pub(super) fn work_gone(&mut self, key: &Key, now: Timestamp) {
        self.assumed.gone(key.kind, &key.name);
        let gone = self.work.seen.remove(key);
        if let Some((_, uid)) = gone.as_ref().and_then(|object| owner(object.metadata()))
            && self.work.workload_of.get(uid) == Some(&key.name)
        {
            self.work.workload_of.remove(uid);
        }
        self.reconsider_work(key, now);
    }

    /// A workload or a Job was read anew.
    pub(super) fn work_settled(&mut self, key: &Key, now: Timestamp) {
        self.work.unsettled.remove(key);
        self.reconsider_work(key, now);
        self.pending.wake_workloads();
    }

    /// A workload or a Job, or what is assumed of it, changed.
    pub(super) fn reconsider_work(&mut self, key: &Key, now: Timestamp) {
        let before = self.live.get(key).cloned();
        let mut after = self.work.seen.get(key).map(|object| self.assumed.apply_to(&key.name, object));
        if let Some(Object::KueueWorkload(workload)) = &mut after
            && self.has(Bug::EarlyQuota)
            && let Some(status) = &mut Arc::make_mut(workload).status
            && is_true(&status.conditions, "Evicted")
        {
            status.admission = None;
        }
        match &after {
            Some(object) if before.as_ref() != Some(object) => self.put(object.clone(), now),
            Some(_) => {}
            None => self.live.remove(key),
        }
        if !self.is_kueue() {
            return;
        }
        match key.kind {
            Kind::Job => self.look_after(&key.name),
            _ => {
                for workload in [&before, &after] {
                    if let Some((job, _)) = workload.as_ref().and_then(|workload| owner(workload.metadata())) {
                        self.look_after(&FullName::new(&key.name.namespace, job));
                    }
                }
                self.reconsider_claim(&key.name, after.as_ref());
                if !matters_alike(&before, &after) {
                    self.pending.wake_workloads();
                }
            }
        }
    }

    /// A workload waits for quota, or does not.
    fn reconsider_claim(&mut self, name: &FullName, workload: Option<&Object>) {
        let unit = UnitName::Workload(name.clone());
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
                self.pending.put(&unit, Needy { priority, since, count: 1 });
                self.work.claims.put(name);
            }
            _ => {
                self.pending.remove(&unit);
                self.work.claims.remove(name);
            }
        }
    }

    /// Something about a Job changed: it is looked at in the next step.
    fn look_after(&mut self, job: &FullName) {
        let unit = UnitName::BatchJob(job.clone());
        self.pending.put(&unit, Needy { priority: Priority(i32::MAX), since: Timestamp(0), count: 1 });
        self.pending.wake(&unit);
    }

    /// Keeps track of the pods that Jobs have.
    pub(super) fn note_owner(&mut self, name: &FullName, before: Option<&Pod>, after: Option<&Pod>) {
        if !self.is_kueue() || before.is_some() == after.is_some() {
            return;
        }
        let Some((job, uid)) = before.or(after).and_then(|pod| owner(&pod.metadata)) else { return };
        let pods = self.work.pods_of.entry(uid.to_owned()).or_default();
        if after.is_some() {
            pods.insert(name.clone());
        } else {
            pods.remove(name);
            if pods.is_empty() {
                self.work.pods_of.remove(uid);
            }
            self.look_after(&FullName::new(&name.namespace, job));
        }
    }

    /// Does what is to be done for every Job about which something changed.
    pub(super) fn keep_up(&mut self, now: Timestamp) {
        let jobs = self.pending.active().filter(|unit| matches!(unit, UnitName::BatchJob(_)));
        for unit in jobs.cloned().collect::<Vec<_>>() {
            match self.next_for(&unit.key()) {
                Some((action, record)) => {
                    self.send(action, Some(&unit), now);
                    if let Some((about, reason, message)) = record {
                        self.record(about, Some(unit.key()), reason, message, now);
                    }
                }
                None => {
                    self.pending.remove(&unit);
                }
            }
        }
    }

    /// The next thing to be done for a Job, and what is said of it. Nothing while what was asked for before is not seen yet.
    #[allow(clippy::type_complexity)]
    fn next_for(&self, key: &Key) -> Option<(Action, Option<(Key, &'static str, String)>)> {
        let Some(Object::Job(job)) = self.work.seen.get(key) else { return None };
        let uid = job.metadata.uid.clone().unwrap_or_default();
        let name = self.work.workload_of.get(&uid).cloned();
        let workload = name.as_ref().map(|name| Key::new(Kind::KueueWorkload, name.clone()));
        let is_seen = |key: &Key| self.assumed.is_seen(key.kind, &key.name) && !self.work.unsettled.contains(key);
        if !is_seen(key) || !workload.as_ref().is_none_or(is_seen) {
            return None;
        }
        let seen = match workload.as_ref().and_then(|key| self.work.seen.get(key)) {
            Some(Object::KueueWorkload(workload)) => Some(workload),
            _ => None,
        };
        let standing =
            Standing { job, workload: seen.map(AsRef::as_ref), has_pods: self.work.pods_of.contains_key(&uid) };
        let of_workload = || self.work_target(workload.as_ref()?);
        let of_job = || self.work_target(key);
        let about = || workload.clone().unwrap_or_else(|| key.clone());
        match chore(&standing, |flavor| self.flavor(flavor))? {
            Chore::Create => {
                let made = make::workload(job, self.priority_of(job));
                let about = Key::new(Kind::KueueWorkload, FullName::of(&made.metadata));
                if self.work.unsettled.contains(&about) || self.work.seen.contains_key(&about) {
                    return None;
                }
                let said = (key.clone(), "CreatedWorkload", format!("created {about}"));
                Some((Action::CreateWorkload { workload: Box::new(made) }, Some(said)))
            }
            Chore::Start(launch) => {
                let said = (key.clone(), "Started", "its workload is admitted".to_owned());
                Some((Action::StartJob { job: of_job()?, launch }, Some(said)))
            }
            Chore::Suspend => {
                let said = (key.clone(), "Stopped", "its workload has no quota, or is to yield it".to_owned());
                Some((Action::SuspendJob { job: of_job()? }, Some(said)))
            }
            Chore::Restore(launch) => Some((Action::RestoreJob { job: of_job()?, launch }, None)),
            Chore::Requeue => {
                let said = (about(), "Requeued", "its pods are gone, and it waits for quota again".to_owned());
                Some((Action::Requeue { workload: of_workload()? }, Some(said)))
            }
            Chore::Finish(reason) => {
                let said = (about(), "Finished", "the workload is over".to_owned());
                Some((Action::Finish { workload: of_workload()?, reason }, Some(said)))
            }
        }
    }

    /// What an action on a workload or a Job says of it; `None` while it is being found out what it is.
    fn work_target(&self, key: &Key) -> Option<Target> {
        let object = self.work.seen.get(key).filter(|_| !self.work.unsettled.contains(key))?;
        let version = object.version().max(self.assumed.version(key.kind, &key.name));
        Some(Target { name: key.name.clone(), uid: object.uid().to_owned(), version })
    }

    fn flavor(&self, name: &str) -> Option<&FlavorSpec> {
        match self.live.get(&Key::new(Kind::ResourceFlavor, FullName::new("", name)))? {
            Object::ResourceFlavor(flavor) => Some(&flavor.spec),
            _ => None,
        }
    }

    /// A Job's priority: of the class that its label names, else of its pods, else of the global default PriorityClass.
    fn priority_of(&self, job: &Job) -> i32 {
        let class = |kind, name: &str| match self.live.get(&Key::new(kind, FullName::new("", name)))? {
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
        let by_default = || if named.is_none() { self.default_priority() } else { None };
        by_label.or_else(by_class).or_else(|| pod?.priority).or_else(by_default).unwrap_or(0)
    }

    /// The value of the global default PriorityClass; the lowest, as in Kueue, where there are several.
    fn default_priority(&self) -> Option<i32> {
        let classes = self.live.of_kind(Kind::PriorityClass).filter_map(|object| match object {
            Object::PriorityClass(class) if class.global_default == Some(true) => Some(class.value.unwrap_or_default()),
            _ => None,
        });
        classes.min()
    }
}

/// Whether two states of a workload are the same to others. Since when it knows that it has no quota is its own business.
fn matters_alike(before: &Option<Object>, after: &Option<Object>) -> bool {
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
