//! The next action for a Job, computed only from the Job, its workload and its pods in the API.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodSpec;
use reprieve_api::kueue::{FlavorSpec, KueueWorkload, KueueWorkloadStatus, PodSetSpec};

use super::job_workload::QUEUE;
use crate::action::JobPodSettings;
use crate::effects::is_true;

/// A Job, its workload, and whether an unfinished pod of the Job exists.
pub(super) struct JobState<'a> {
    pub job: &'a Job,
    pub workload: Option<&'a KueueWorkload>,
    pub has_pods: bool,
}

/// The reason of the condition `Finished` of a workload whose Job requests other resources than the workload has quota for.
const JOB_CHANGED: &str = "JobChanged";

/// The next action for a Job or its workload.
#[derive(Debug, PartialEq)]
pub(super) enum JobStep {
    /// Create the workload of the Job.
    CreateWorkload,
    /// Start the Job with these settings.
    StartJob(JobPodSettings),
    /// Suspend the Job.
    SuspendJob,
    /// Give the suspended Job the settings that it was submitted with.
    RestoreJob(JobPodSettings),
    /// Take the quota of the evicted workload, so that it waits for quota again.
    RequeueWorkload,
    /// Set the condition `Finished` of the workload, with this reason.
    FinishWorkload(&'static str),
}

/// The next action; `None` if there is none, or if another event must come first.
pub(super) fn next_job_step<'f>(
    state: &JobState<'_>,
    flavor: impl Fn(&str) -> Option<&'f FlavorSpec>,
) -> Option<JobStep> {
    let job = state.job;
    let Some(workload) = state.workload else {
        let labels = job.metadata.labels.as_ref();
        let is_managed = labels.is_some_and(|labels| labels.contains_key(QUEUE)) && finish_reason(job).is_none();
        // Another controller of the Job would not report that it has stopped, and so its quota would never be free again.
        let is_managed = is_managed && has_standard_controller(job);
        return is_managed.then(|| if is_suspended(job) { JobStep::CreateWorkload } else { JobStep::SuspendJob });
    };
    let empty = KueueWorkloadStatus::default();
    let status = workload.status.as_ref().unwrap_or(&empty);
    if is_true(&status.conditions, "Finished") {
        return None;
    }
    if let Some(reason) = finish_reason(job) {
        return Some(JobStep::FinishWorkload(reason));
    }
    // A deactivated workload stops as an evicted one does.
    let must_stop = is_true(&status.conditions, "Evicted") || workload.spec.active == Some(false);
    let set = workload.spec.pod_sets.first()?; // the workload of a Job has one pod set
    if let Some(admission) = status.admission.as_ref().filter(|_| !must_stop) {
        let assigned = admission.pod_set_assignments.first()?;
        if !is_suspended(job) {
            // The owner of the Job may raise its parallelism at any time.
            return (pods_of(job) > assigned.count.unwrap_or(set.count)).then_some(JobStep::SuspendJob);
        }
        if requests_of(job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()))
            != requests_of(set.template.spec.as_ref())
        {
            return Some(JobStep::FinishWorkload(JOB_CHANGED));
        }
        let flavors = assigned.flavors.values().filter_map(|name| flavor(name));
        return Some(JobStep::StartJob(settings(job, set, assigned.count, flavors)));
    }
    if !is_suspended(job) {
        return Some(JobStep::SuspendJob);
    }
    if state.has_pods || !is_stopped(job) {
        return None;
    }
    let original = settings(job, set, None, std::iter::empty());
    if original != current(job) {
        return Some(JobStep::RestoreJob(original));
    }
    let terminates = workload.spec.on_preemption.as_deref() == Some("Terminate");
    status.admission.is_some().then_some(if terminates {
        JobStep::FinishWorkload("Preempted")
    } else {
        JobStep::RequeueWorkload
    })
}

/// The pod settings that a Job was submitted with, restricted to the nodes of its flavors.
fn settings<'f>(
    job: &Job,
    set: &PodSetSpec,
    count: Option<i64>,
    flavors: impl Iterator<Item = &'f FlavorSpec>,
) -> JobPodSettings {
    // After a start with fewer pods, the Job's own value is below the submitted one; it is above the count if completions are fewer. A value
    // that was raised later has no quota.
    let (own, counted) = (current(job).parallelism, i32::try_from(set.count).unwrap_or(i32::MAX));
    let submitted = if pods_of(job) > set.count { counted } else { own.max(counted) };
    let fewer = count.filter(|count| *count < set.count).and_then(|count| i32::try_from(count).ok());
    let mut settings = settings_of(fewer.unwrap_or(submitted), set.template.spec.as_ref());
    for flavor in flavors {
        settings.node_selector.extend(flavor.node_labels.clone());
        for toleration in &flavor.tolerations {
            if !settings.tolerations.contains(toleration) {
                settings.tolerations.push(toleration.clone());
            }
        }
    }
    settings
}

fn current(job: &Job) -> JobPodSettings {
    let spec = job.spec.as_ref();
    let parallelism = spec.and_then(|spec| spec.parallelism).unwrap_or(1);
    settings_of(parallelism, spec.and_then(|spec| spec.template.spec.as_ref()))
}

fn settings_of(parallelism: i32, pod: Option<&PodSpec>) -> JobPodSettings {
    JobPodSettings {
        parallelism,
        node_selector: pod.and_then(|pod| pod.node_selector.clone()).unwrap_or_default(),
        tolerations: pod.and_then(|pod| pod.tolerations.clone()).unwrap_or_default(),
    }
}

/// The largest number of pods that the Job runs at a time.
pub(super) fn pods_of(job: &Job) -> i64 {
    let (parallelism, completions) =
        job.spec.as_ref().map_or((None, None), |spec| (spec.parallelism, spec.completions));
    let parallelism = parallelism.unwrap_or(1);
    i64::from(completions.map_or(parallelism, |completions| completions.min(parallelism)))
}

/// What each pod requests: the resources of its containers and of the pod. They can be changed while a Job is suspended.
fn requests_of(pod: Option<&PodSpec>) -> Option<impl PartialEq + '_> {
    pod.map(|pod| {
        let all = pod.containers.iter().chain(pod.init_containers.iter().flatten());
        (all.map(|container| &container.resources).collect::<Vec<_>>(), &pod.resources, &pod.overhead)
    })
}

/// Whether Kubernetes' own controller runs the Job.
fn has_standard_controller(job: &Job) -> bool {
    let named = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    named.is_none_or(|named| named == "kubernetes.io/job-controller")
}

fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true))
}

/// Whether the Job controller reports that no pod is active or terminating.
fn is_stopped(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| {
        let reports_pods = status.active.unwrap_or(0) > 0 || status.terminating.unwrap_or(0) > 0;
        !reports_pods && has_condition(job, "Suspended")
    })
}

/// The reason of the workload's condition `Finished`, if the Job has ended.
fn finish_reason(job: &Job) -> Option<&'static str> {
    if has_condition(job, "Complete") { Some("Succeeded") } else { has_condition(job, "Failed").then_some("Failed") }
}

fn has_condition(job: &Job, condition: &str) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|found| found.type_ == condition && found.status == "True")
}

#[cfg(test)]
mod tests {
    use reprieve_api::kueue::{AdmissionSpec, PodSetAssignment};
    use reprieve_api::meta::NamespacedName;
    use reprieve_engine::Timestamp;
    use reprieve_engine::policy::kueue::PreemptionReason;
    use serde_json::{Value, json};

    use super::super::job_workload::workload;
    use super::*;
    use crate::action::{Action, Target};
    use crate::effects::{apply_to_job, apply_to_workload};

    fn target() -> Target {
        Target { name: NamespacedName::new("default", "job"), uid: "1".to_owned(), version: 1 }
    }

    fn job(status: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "job", "uid": "1", "labels": {QUEUE: "team"}},
            "spec": {
                "suspend": true, "parallelism": 2, "completions": 2,
                "template": {"spec": {"containers": [], "nodeSelector": {"zone": "a"}}},
            },
            "status": status,
        }))
        .unwrap()
    }

    fn stopped() -> Value {
        json!({"active": 0, "conditions": [{"type": "Suspended", "status": "True"}]})
    }

    fn next(job: &Job, workload: Option<&KueueWorkload>, has_pods: bool) -> Option<JobStep> {
        let flavor = FlavorSpec { node_labels: [("gpu".to_owned(), "new".to_owned())].into(), ..FlavorSpec::default() };
        next_job_step(&JobState { job, workload, has_pods }, |_| Some(&flavor))
    }

    #[test]
    fn a_preempted_job_is_suspended_then_restored_then_requeued() {
        let mut job = job(stopped());
        assert_eq!(next(&job, None, false), Some(JobStep::CreateWorkload));
        let mut workload = workload(&job, 7);
        assert_eq!(next(&job, Some(&workload), false), None, "it waits for quota");

        let assigned = PodSetAssignment {
            name: "main".to_owned(),
            flavors: [("cpu".to_owned(), "new".to_owned())].into(),
            count: Some(2),
            ..PodSetAssignment::default()
        };
        let admission = AdmissionSpec { cluster_queue: "team".to_owned(), pod_set_assignments: vec![assigned] };
        let admit = Action::Admit { workload: target(), admission: Box::new(admission) };
        assert!(apply_to_workload(&admit, &mut workload, Timestamp(0)));
        let Some(JobStep::StartJob(settings)) = next(&job, Some(&workload), false) else { panic!("it does not start") };
        assert_eq!(settings.node_selector["gpu"], "new");
        assert_eq!(settings.node_selector["zone"], "a");
        assert!(apply_to_job(&Action::StartJob { job: target(), settings }, &mut job));
        assert_eq!(next(&job, Some(&workload), true), None, "it runs");

        let preemptor = NamespacedName::new("default", "other");
        let (shown, reason) = (preemptor.to_string(), PreemptionReason::InClusterQueue);
        let evict = Action::EvictWorkload { workload: target(), preemptor, shown, reason };
        assert!(apply_to_workload(&evict, &mut workload, Timestamp(1)));
        let stats = workload.status.as_ref().and_then(|status| status.scheduling_stats.as_ref());
        assert_eq!(
            stats.map(|stats| (stats.evictions[0].reason.as_str(), stats.evictions[0].count)),
            Some(("Preempted", 1))
        );
        assert_eq!(next(&job, Some(&workload), true), Some(JobStep::SuspendJob));
        assert!(apply_to_job(&Action::SuspendJob { job: target() }, &mut job));
        assert_eq!(next(&job, Some(&workload), true), None, "its pods still exist");

        let Some(JobStep::RestoreJob(settings)) = next(&job, Some(&workload), false) else {
            panic!("it is not restored")
        };
        assert_eq!(settings.node_selector.keys().collect::<Vec<_>>(), ["zone"]);
        assert!(apply_to_job(&Action::RestoreJob { job: target(), settings }, &mut job));
        assert_eq!(next(&job, Some(&workload), false), Some(JobStep::RequeueWorkload));
        assert!(apply_to_workload(&Action::RequeueWorkload { workload: target() }, &mut workload, Timestamp(2)));
        assert_eq!(next(&job, Some(&workload), false), None, "it waits for quota again");
    }

    #[test]
    fn a_job_keeps_its_quota_until_its_controller_reports_that_it_stopped() {
        let job = job(json!({"terminating": 1, "conditions": [{"type": "Suspended", "status": "True"}]}));
        let mut workload = workload(&job, 0);
        let admit = Action::Admit { workload: target(), admission: Box::default() };
        assert!(apply_to_workload(&admit, &mut workload, Timestamp(0)));
        let preemptor = NamespacedName::new("default", "other");
        let (shown, reason) = (preemptor.to_string(), PreemptionReason::InCohortReclamation);
        let evict = Action::EvictWorkload { workload: target(), preemptor, shown, reason };
        assert!(apply_to_workload(&evict, &mut workload, Timestamp(1)));
        assert_eq!(next(&job, Some(&workload), false), None);
    }

    /// A suspended Job of two pods with an admitted workload.
    fn admitted() -> (Job, KueueWorkload) {
        let job = job(stopped());
        let mut workload = workload(&job, 0);
        let assigned = PodSetAssignment { name: "main".to_owned(), count: Some(2), ..PodSetAssignment::default() };
        let admission = AdmissionSpec { cluster_queue: "team".to_owned(), pod_set_assignments: vec![assigned] };
        let admit = Action::Admit { workload: target(), admission: Box::new(admission) };
        assert!(apply_to_workload(&admit, &mut workload, Timestamp(0)));
        (job, workload)
    }

    fn set_size(job: &mut Job, size: i32) {
        let spec = job.spec.get_or_insert_default();
        (spec.parallelism, spec.completions) = (Some(size), Some(size));
    }

    #[test]
    fn a_job_runs_no_more_pods_than_have_quota() {
        let (mut job, workload) = admitted();
        set_size(&mut job, 1_000);
        let Some(JobStep::StartJob(settings)) = next(&job, Some(&workload), false) else { panic!("it does not start") };
        assert_eq!(settings.parallelism, 2, "it was raised while the workload waited");
        assert!(apply_to_job(&Action::StartJob { job: target(), settings }, &mut job));
        assert_eq!(next(&job, Some(&workload), true), None, "it runs");
        set_size(&mut job, 3);
        assert_eq!(next(&job, Some(&workload), true), Some(JobStep::SuspendJob));
    }

    #[test]
    fn a_job_with_other_requests_than_its_workload_does_not_start() {
        let (mut job, workload) = admitted();
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "64"}}});
        let pod = job.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).expect("it has a pod");
        pod.containers = vec![serde_json::from_value(container).expect("a container")];
        assert_eq!(next(&job, Some(&workload), false), Some(JobStep::FinishWorkload(JOB_CHANGED)));
    }

    #[test]
    fn a_job_of_another_controller_is_left_alone() {
        let mut job = job(stopped());
        job.spec.get_or_insert_default().managed_by = Some("example.com/other".to_owned());
        assert_eq!(next(&job, None, false), None);
    }

    #[test]
    fn a_workload_finishes_with_its_job() {
        let job = job(json!({"conditions": [{"type": "Complete", "status": "True"}]}));
        assert_eq!(next(&job, Some(&workload(&job, 0)), false), Some(JobStep::FinishWorkload("Succeeded")));
        assert_eq!(next(&job, None, false), None);
    }
}
