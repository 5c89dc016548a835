//! Records evictions, each with its preemptor, when an action of the scheduler evicts pods.

use reprieve_api::NamespacedName;
use reprieve_scheduler::UnitRef;
use reprieve_scheduler::action::{Action, PREEMPTED_FOR};

use super::VirtualCluster;
use crate::run::Eviction;

impl VirtualCluster {
    /// Records the pods that an action evicts. The pods of a workload are then deleted by the Job controller.
    pub(super) fn count_evictions(&mut self, action: &Action) {
        match action {
            Action::Evict { pod } | Action::SoftEvict { pod, .. } => self.pod_evicted(&pod.name, &pod.uid),
            Action::Admit { workload, .. } => *self.process.admissions.entry(workload.uid.clone()).or_default() += 1,
            Action::EvictWorkload { workload, preemptor, .. } => self.workload_evicted(&workload.name, preemptor),
            _ => {}
        }
    }

    /// Records the eviction of a pod, and whether its preemptor was preempted before.
    fn pod_evicted(&mut self, name: &NamespacedName, uid: &str) {
        if !self.statistics.evicted.insert(uid.to_owned()) {
            return;
        }
        let annotations = self.api.pod(name).and_then(|pod| pod.metadata.annotations.as_ref());
        let preemptor = annotations.and_then(|annotations| annotations.get(PREEMPTED_FOR)).cloned();
        let preemptor = preemptor.unwrap_or_default();
        let preempting = UnitRef::parse(&preemptor).and_then(|unit| self.jobs.part_of(&self.api, &unit));
        let second_order = preempting.is_some_and(|(job, part)| self.jobs.jobs[job].parts[part].was_preempted);
        let preemptor_job = preempting.map(|(job, _)| self.jobs.jobs[job].submission.name.to_string());
        let Some((job, part)) = self.jobs.owner(name) else { return };
        job.evictions += 1;
        job.parts[part].was_preempted = true;
        let (at, pod, job) = (self.timeline.now().0, name.to_string(), job.submission.name.to_string());
        self.statistics.run.evictions.push(Eviction { at, pod, job, preemptor, preemptor_job, second_order });
    }

    /// Records the eviction of all pods of a workload.
    fn workload_evicted(&mut self, workload: &NamespacedName, preemptor: &NamespacedName) {
        let preempting = self.jobs.of_workload(&self.api, preemptor).map(|job| &self.jobs.jobs[job]);
        let second_order = preempting.is_some_and(|job| job.parts.iter().any(|part| part.was_preempted));
        let preemptor_job = preempting.map(|job| job.submission.name.to_string());
        let Some(job) = self.jobs.of_workload(&self.api, workload) else { return };
        let job = &mut self.jobs.jobs[job];
        for part in &mut job.parts {
            part.was_preempted = true;
            job.evictions += u32::try_from(part.pods.len()).expect("a part has few pods");
            self.statistics.run.evictions.extend(part.pods.keys().map(|pod| Eviction {
                at: self.timeline.now().0,
                pod: pod.to_string(),
                job: job.submission.name.to_string(),
                preemptor: format!("Workload {preemptor}"),
                preemptor_job: preemptor_job.clone(),
                second_order,
            }));
        }
    }
}
