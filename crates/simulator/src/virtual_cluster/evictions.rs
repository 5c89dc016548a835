//! Who was evicted for whom, as an action of the scheduler made it so.

use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::UnitRef;
use reprieve_scheduler::action::{Action, PREEMPTED_FOR};

use super::VirtualCluster;
use crate::run::Eviction;

impl VirtualCluster {
    /// Counts the pods that an action evicted. Those of a workload are evicted by the controller of its Job.
    pub(super) fn count_evictions(&mut self, action: &Action) {
        match action {
            Action::Evict { pod } | Action::SoftEvict { pod, .. } => self.pod_evicted(&pod.name, &pod.uid),
            Action::Admit { workload, .. } => *self.process.admissions.entry(workload.uid.clone()).or_default() += 1,
            Action::EvictWorkload { workload, preemptor, .. } => self.workload_evicted(&workload.name, preemptor),
            _ => {}
        }
    }

    /// A pod was evicted: who did it, and was that one evicted itself before?
    fn pod_evicted(&mut self, name: &NamespacedName, uid: &str) {
        if !self.statistics.evicted.insert(uid.to_owned()) {
            return;
        }
        let annotations = self.api.pod(name).and_then(|pod| pod.metadata.annotations.as_ref());
        let preemptor = annotations.and_then(|annotations| annotations.get(PREEMPTED_FOR)).cloned();
        let preemptor = preemptor.unwrap_or_default();
        let of = UnitRef::parse(&preemptor).and_then(|unit| self.jobs.part_of(&self.api, &unit));
        let second_order = of.is_some_and(|(job, part)| self.jobs.jobs[job].parts[part].was_preempted);
        let preemptor_job = of.map(|(job, _)| self.jobs.jobs[job].submission.name.to_string());
        let Some((job, part)) = self.jobs.owner(name) else { return };
        job.evictions += 1;
        job.parts[part].was_preempted = true;
        self.statistics.run.evictions.push(Eviction {
            at: self.timeline.now().0,
            pod: name.to_string(),
            job: job.submission.name.to_string(),
            preemptor,
            preemptor_job,
            second_order,
        });
    }

    /// A workload was told to yield: its pods are evicted.
    fn workload_evicted(&mut self, workload: &NamespacedName, preemptor: &NamespacedName) {
        let by = self.jobs.of_workload(&self.api, preemptor).map(|job| &self.jobs.jobs[job]);
        let second_order = by.is_some_and(|job| job.parts.iter().any(|part| part.was_preempted));
        let preemptor_job = by.map(|job| job.submission.name.to_string());
        let Some(job) = self.jobs.of_workload(&self.api, workload) else { return };
        let at = self.timeline.now().0;
        let job = &mut self.jobs.jobs[job];
        for part in &mut job.parts {
            part.was_preempted = true;
            for pod in part.pods.keys() {
                job.evictions += 1;
                self.statistics.run.evictions.push(Eviction {
                    at,
                    pod: pod.to_string(),
                    job: job.submission.name.to_string(),
                    preemptor: format!("Workload {preemptor}"),
                    preemptor_job: preemptor_job.clone(),
                    second_order,
                });
            }
        }
    }
}
