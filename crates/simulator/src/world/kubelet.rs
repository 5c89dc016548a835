//! Arrivals, kubelets and controllers: what becomes of pods once they are made, bound or deleted.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_objects::load::time;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;
use reprieve_scheduler::UnitName;
use reprieve_scheduler::action::{PREEMPTED_FOR, SOFT_EVICTION};
use reprieve_scheduler::event::Event;

use super::{Happening, RESTART_MICROS, SCHEDULER, World};
use crate::chance::Chance;
use crate::faults::Fault;
use crate::job::Job;
use crate::run::Eviction;
use crate::submission::Form;

impl World {
    pub(super) fn arrive(&mut self, at: usize) {
        let submission = self.setup.submissions[at].clone();
        if let Some(group) = submission.group(&self.setup.policy) {
            self.api.create(group, self.timeline.now());
        }
        let object = submission.job(&self.setup.policy, SCHEDULER);
        let job = Job::new(submission);
        let parts = job.parts.len();
        self.job_names.entry(job.submission.name.clone()).or_insert(self.jobs.len());
        self.jobs.push(job);
        if let Some(object) = object {
            self.api.create(object, self.timeline.now());
            return;
        }
        for part in 0..parts {
            self.make_pods(self.jobs.len() - 1, part);
        }
    }

    /// Makes the pods of a part, for the first time or anew.
    pub(super) fn make_pods(&mut self, job: usize, part: usize) {
        let now = self.timeline.now();
        let members = self.jobs[job].members(part);
        let Some(controller) = self.may_make_pods(job, part) else { return };
        let Job { submission, parts, .. } = &mut self.jobs[job];
        let state = &mut parts[part];
        state.broken = false;
        for member in members {
            let mut pod = submission.pod(&self.setup.policy, SCHEDULER, member, state.turn);
            controller.shape(&mut pod);
            let name = FullName::of(&pod.metadata);
            state.pods.insert(name.clone(), false);
            self.owners.insert(name, (job, part));
            self.api.create(Object::from(pod), now);
        }
        state.turn += 1;
    }

    /// The kubelet and the controllers hear of a change.
    pub(super) fn react(&mut self, event: &Event) {
        match event {
            Event::Changed(Object::Job(job)) => self.sync_later(&FullName::of(&job.metadata)),
            Event::Changed(Object::Pod(pod)) => {
                self.sync_owner(&FullName::of(&pod.metadata));
                let before = self.usage.put(pod);
                let name = FullName::of(&pod.metadata);
                self.count_budgets(&name.namespace);
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                let node = pod.node_name.clone();
                let node = node.map(|node| Key::new(Kind::Node, FullName::new("", &node)));
                if !before.bound && node.as_ref().is_some_and(|node| self.api.get(node).is_none()) {
                    // Bound to a node that is gone: the collector of such pods takes it away.
                    self.timeline.after(RESTART_MICROS, Happening::Stop { pod: name.clone(), uid: uid.clone() });
                } else if !before.bound && node.is_some() {
                    let micros = self.owner(&name).map_or(0, |(job, _)| job.submission.startup_micros);
                    self.timeline.after(micros, Happening::Start { pod: name.clone(), uid: uid.clone() });
                }
                if pod.metadata.deletion_timestamp.is_some() && !before.leaving {
                    self.stop_later(name, uid);
                } else if is_soft_evicted(pod) && !before.soft {
                    let micros = self.setup.soft_eviction_micros;
                    self.timeline.after(micros, Happening::EvictSoftly { pod: name, uid });
                }
            }
            Event::Gone { key, .. } if key.kind == Kind::Pod => {
                self.usage.remove(&key.name);
                self.sync_owner(&key.name);
                self.pod_gone(&key.name);
                self.count_budgets(&key.name.namespace);
            }
            _ => {}
        }
    }

    fn owner(&mut self, pod: &FullName) -> Option<(&mut Job, usize)> {
        let (job, part) = *self.owners.get(pod)?;
        Some((&mut self.jobs[job], part))
    }

    fn stop_later(&mut self, pod: FullName, uid: String) {
        let now = self.timeline.now();
        let slow = self.fault(Fault::SlowVictim, &pod.to_string());
        let mut micros = slow.map_or(0, |mut chance| chance.within(60_000_000, 600_000_000));
        if let Some((job, part)) = self.owner(&pod) {
            micros += job.submission.stop_micros;
            job.interrupt(part, now);
        }
        self.timeline.after(micros, Happening::Stop { pod, uid });
    }

    pub(super) fn start(&mut self, name: &FullName, uid: &str) {
        let now = self.timeline.now();
        let same =
            |pod: &&Arc<Pod>| pod.metadata.uid.as_deref() == Some(uid) && pod.metadata.deletion_timestamp.is_none();
        if self.api.pod(name).filter(same).is_none() {
            return;
        }
        self.api.change(name, |pod| {
            let status = pod.status.get_or_insert_default();
            status.phase = Some("Running".to_owned());
            status.start_time = time(now).map(Time);
        });
        let Some(&(at, part)) = self.owners.get(name) else { return };
        if let Some(micros) = self.jobs[at].started(part, name, now) {
            let turn = self.jobs[at].parts[part].turn;
            self.timeline.after(micros.max(0), Happening::Finish { job: at, part, turn });
        }
    }

    /// The kubelet has stopped it.
    pub(super) fn stop(&mut self, pod: &FullName, uid: &str) {
        if self.api.pod(pod).is_some_and(|pod| pod.metadata.uid.as_deref() == Some(uid)) {
            self.api.remove(&Key::new(Kind::Pod, pod.clone()));
        }
    }

    /// A part is done, unless it was interrupted in the meantime.
    pub(super) fn finish_part(&mut self, job: usize, part: usize, turn: u32) {
        let now = self.timeline.now();
        let state = &mut self.jobs[job].parts[part];
        if state.turn != turn || state.broken || state.running_since.is_none() {
            return;
        }
        let pods: Vec<FullName> = state.pods.keys().cloned().collect();
        self.jobs[job].finish(part, now);
        if self.has_batch_jobs() && self.jobs[job].is_done() {
            self.arrange_collection(job);
        }
        for pod in &pods {
            self.api.change(pod, |pod| pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned()));
        }
        self.timeline.after(RESTART_MICROS, Happening::Sweep(pods));
    }

    /// What is done is cleared away.
    pub(super) fn sweep(&mut self, pods: &[FullName]) {
        for pod in pods {
            let owner = self.owners.remove(pod);
            self.api.remove(&Key::new(Kind::Pod, pod.clone()));
            if let Some((job, _)) = owner.filter(|(job, _)| self.jobs[*job].is_done()) {
                let group = self.jobs[job].submission.group(&self.setup.policy);
                if let Some(group) = group {
                    self.api.remove(&group.key());
                }
            }
        }
    }

    /// A pod is gone before its part is done: the rest of its part goes too, and then all are made anew.
    fn pod_gone(&mut self, pod: &FullName) {
        let now = self.timeline.now();
        let Some((at, part)) = self.owners.remove(pod) else { return };
        let job = &mut self.jobs[at];
        job.interrupt(part, now);
        let state = &mut job.parts[part];
        state.pods.remove(pod);
        if state.done {
            return;
        }
        if state.pods.is_empty() {
            self.timeline.after(RESTART_MICROS, Happening::Renew { job: at, part });
            return;
        }
        let others: Vec<FullName> = state.pods.keys().cloned().collect();
        for other in others {
            self.api.delete(&other, now);
        }
    }

    pub(super) fn evict_softly(&mut self, pod: &FullName, uid: &str) {
        if self.api.pod(pod).is_some_and(|pod| pod.metadata.uid.as_deref() == Some(uid)) {
            self.api.delete(pod, self.timeline.now());
        }
    }

    /// A pod was evicted: who did it, and was that one evicted itself before?
    pub(super) fn evicted(&mut self, name: &FullName, uid: &str) {
        if !self.evicted.insert(uid.to_owned()) {
            return;
        }
        let annotations = self.api.pod(name).and_then(|pod| pod.metadata.annotations.as_ref());
        let preemptor = annotations.and_then(|annotations| annotations.get(PREEMPTED_FOR)).cloned();
        let preemptor = preemptor.unwrap_or_default();
        let of = UnitName::parse(&preemptor).and_then(|unit| self.part_of(&unit));
        let comes_back = of.is_some_and(|(job, part)| self.jobs[job].parts[part].was_preempted);
        let preemptor_job = of.map(|(job, _)| self.jobs[job].submission.name.to_string());
        if let Some((job, part)) = self.owner(name) {
            job.evictions += 1;
            job.parts[part].was_preempted = true;
            let eviction = Eviction {
                at: 0,
                pod: name.to_string(),
                job: job.submission.name.to_string(),
                preemptor,
                preemptor_job,
                second_order: comes_back,
            };
            let at = self.timeline.now().0;
            self.run.evictions.push(Eviction { at, ..eviction });
        }
    }

    /// The job of a unit, and the part of it.
    pub(super) fn part_of(&self, unit: &UnitName) -> Option<(usize, usize)> {
        match unit {
            UnitName::Pod(pod) => self.owners.get(pod).copied(),
            UnitName::Group(name) | UnitName::Job(name) | UnitName::BatchJob(name) => {
                self.job_names.get(name).map(|job| (*job, 0))
            }
            UnitName::Workload(name) => self.job_of(name).map(|job| (job, 0)),
        }
    }

    /// A node vanishes with all that is on it, and comes back empty.
    pub(super) fn lose_node(&mut self, mut chance: Chance) {
        let nodes: Vec<Object> = self.api.all().filter(|object| object.kind() == Kind::Node).cloned().collect();
        if nodes.len() < 2 {
            return;
        }
        let at = usize::try_from(chance.below(nodes.len() as u64)).expect("it is an index");
        let node = nodes[at].clone();
        self.usage.node_lost(&node);
        self.api.remove(&node.key());
        let on_it: Vec<FullName> = self.usage.pods_on(&node.key().name.name);
        for pod in on_it {
            self.api.remove(&Key::new(Kind::Pod, pod));
        }
        self.spread_news();
        let back = chance.within(60_000_000, 600_000_000);
        self.timeline.after(back, Happening::NodeBack(Box::new(node)));
    }

    /// The gangs of which part runs and part is nowhere, by name.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = (&Job, usize)> {
        self.jobs.iter().filter(|job| !job.is_done()).filter_map(|job| match job.submission.form {
            Form::Gang { min, .. } => Some((job, min)),
            Form::Single => None,
        })
    }
}

fn is_soft_evicted(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SOFT_EVICTION))
}
