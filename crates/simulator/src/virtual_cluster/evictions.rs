//! Records the evictions, each with its preemptor, and the admissions among the actions that the API server has carried out.

use reprieve_api::NamespacedName;
use reprieve_scheduler::action::PREEMPTED_FOR;
use reprieve_scheduler::{Action, ForeseenEviction, UnitRef};

use super::VirtualCluster;
use crate::run::Eviction;

impl VirtualCluster {
    /// Records the pods that a successful action evicted, or counts the admission of a workload. The Job controller deletes the pods of an
    /// evicted workload later.
    pub(super) fn record_action(&mut self, action: &Action) {
        match action {
            Action::Evict { pod } | Action::SoftEvict { pod, .. } => self.record_pod(&pod.name, &pod.uid),
            Action::Admit { workload, .. } => *self.process.admissions.entry(workload.uid.clone()).or_default() += 1,
            Action::EvictWorkload { workload, preemptor, .. } => self.record_workload(&workload.name, preemptor),
            _ => {}
        }
    }

    /// Records the eviction of a pod, and whether the eviction is second-order: whether its preemptor had itself been preempted before. The
    /// preemptor is read from the annotation of the evicted pod, which still exists while it terminates; without the annotation it is
    /// empty.
    fn record_pod(&mut self, name: &NamespacedName, uid: &str) {
        // A soft eviction that the scheduler repeats after a lost response succeeds again, and counts once.
        if !self.statistics.evicted.insert(uid.to_owned()) {
            return;
        }
        let annotations = self.api.pod(name).and_then(|pod| pod.metadata.annotations.as_ref());
        let preemptor = annotations.and_then(|annotations| annotations.get(PREEMPTED_FOR)).cloned();
        let preemptor = preemptor.unwrap_or_default();
        let preemptor_part = UnitRef::parse(&preemptor).and_then(|unit| self.jobs.part_of(&self.api, &unit));
        let second_order = preemptor_part.is_some_and(|(job, part)| self.jobs.jobs[job].parts[part].was_preempted);
        let preemptor_job = preemptor_part.map(|(job, _)| self.jobs.jobs[job].submission.name.to_string());
        // Jobs create all pods, so that a pod of the API server has an owner.
        let evicted_part = self.jobs.part_of(&self.api, &UnitRef::Pod(name.clone()));
        let expected = preemptor_part.and_then(|part| self.statistics.foreseen.get(&part));
        let foreseen = second_order && expected.zip(evicted_part).is_some_and(|(parts, part)| parts.contains(&part));
        let Some((job, part)) = self.jobs.owner(name) else { return };
        job.evictions += 1;
        job.parts[part].was_preempted = true;
        let (at, pod, job) = (self.timeline.now().0, name.to_string(), job.submission.name.to_string());
        let eviction = Eviction { at, pod, job, preemptor, preemptor_job, second_order, foreseen };
        self.statistics.run.evictions.push(eviction);
    }

    /// Records what the victims of a preemption are expected to evict when they return, in place of what was expected of them before. Of
    /// victims that terminate already nothing new is expected: an earlier step evicted them.
    pub(super) fn record_foreseen(&mut self, victims: &[NamespacedName], foreseen: &[ForeseenEviction]) {
        let part_of = |pod: &NamespacedName| self.jobs.part_of(&self.api, &UnitRef::Pod(pod.clone()));
        let is_running =
            |pod: &&NamespacedName| self.api.pod(pod).is_some_and(|pod| pod.metadata.deletion_timestamp.is_none());
        for part in victims.iter().filter(is_running).filter_map(part_of) {
            self.statistics.foreseen.remove(&part);
        }
        for ForeseenEviction { returning, evicted } in foreseen {
            if let Some((returning, evicted)) = part_of(returning).zip(part_of(evicted)) {
                self.statistics.foreseen.entry(returning).or_default().insert(evicted);
            }
        }
    }

    /// Records the eviction of a workload, as an eviction of each of its pods, whether bound, pending or finished. The eviction is
    /// second-order if any part of the preemptor's job was preempted before: a workload comprises all parts of its job. The API server
    /// rejects a repeated request because the version of the workload has changed, so that each eviction is recorded once.
    fn record_workload(&mut self, workload: &NamespacedName, preemptor: &NamespacedName) {
        let preemptor_as_job = self.jobs.of_workload(&self.api, preemptor).map(|job| &self.jobs.jobs[job]);
        let second_order = preemptor_as_job.is_some_and(|job| job.parts.iter().any(|part| part.was_preempted));
        let preemptor_job = preemptor_as_job.map(|job| job.submission.name.to_string());
        let Some(job) = self.jobs.of_workload(&self.api, workload) else { return };
        let job = &mut self.jobs.jobs[job];
        for part in &mut job.parts {
            part.was_preempted = true;
            job.evictions += u32::try_from(part.pods.len()).expect("a part has fewer than 2^32 pods");
            self.statistics.run.evictions.extend(part.pods.keys().map(|pod| Eviction {
                at: self.timeline.now().0,
                pod: pod.to_string(),
                job: job.submission.name.to_string(),
                preemptor: format!("Workload {preemptor}"),
                preemptor_job: preemptor_job.clone(),
                second_order,
                foreseen: false,
            }));
        }
    }
}
