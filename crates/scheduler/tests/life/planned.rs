//! `plan` shows what `run` does.

use reprieve_api::meta::FullName;
use reprieve_engine::fit::Preemptor;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_loader::load::{Strictness, load_for};
use reprieve_loader::question::Question;
use reprieve_report::decision::ActionReport;
use reprieve_report::report::report;
use reprieve_scheduler::action::{Action, SOFT_EVICTION};
use reprieve_scheduler::{Scheduler, Verdict};

use crate::harness::*;

const JOB: &str = "
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: job, namespace: default, uid: job}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: high, namespace: default, uid: high, creationTimestamp: 2026-01-01T00:00:00Z, labels: {pod-group.scheduling.sigs.k8s.io: job}}
spec: {schedulerName: reprieve, priority: 10, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: default, uid: low, creationTimestamp: 2026-01-01T00:00:00Z, labels: {quota.scheduling.koordinator.sh/preemptible: 'true'}}
spec: {schedulerName: reprieve, nodeName: node, priority: 0, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
";

fn shown(row: &ActionReport) -> String {
    format!("{} {}{}{}: {}", row.action, row.pod, row.workload, row.group, row.text)
}

fn done(action: &Action) -> Option<String> {
    Some(match action {
        Action::Nominate { pod, node } => format!("Nominate {}: {}", pod.name, node.as_deref().unwrap_or_default()),
        Action::Mark { pod, message, .. } => format!("Mark {}: {message}", pod.name),
        Action::Evict { pod } => format!("Delete {}: ", pod.name),
        Action::SoftEvict { pod, label, .. } => format!("Label {}: {SOFT_EVICTION}: {label}", pod.name),
        Action::Record { about, reason, message, .. } => format!("Event {}: {reason}: {message}", about.name),
        _ => return None,
    })
}

#[test]
fn a_plan_shows_the_actions_that_carry_it_out() {
    let pods = || vec![pod("low", 0, 3, Some("node")), pod("high", 10, 3, None)];
    for (policy, objects) in [
        (Policy::Kubernetes(Kubernetes::default()), pods()),
        (Policy::Koordinator(Koordinator::default()), pods()),
        (Policy::Koordinator(Koordinator::default()), read(JOB)),
        (Policy::Koordinator(Koordinator { deletes_victims: true, ..Koordinator::default() }), read(JOB)),
    ] {
        let mut life = Life::of(Scheduler::new("reprieve", policy), with(objects));
        let mut loaded = load_for(&life.scheduler.live().everything(), Strictness::Live, &policy).expect("it loads");
        let high = loaded.names.pod_id(&FullName::new("default", "high")).expect("it is there");
        let question = Question { policy, now: life.now, preemptor: Preemptor::Pod(high) };
        let carry_out = report(&question, &mut loaded).explanation.carry_out;
        let mut planned: Vec<String> = carry_out.iter().map(shown).collect();
        let mut done_by_run: Vec<String> = Vec::new();
        while let Some(step) = life.scheduler.step(life.now) {
            done_by_run.extend(step.actions.iter().filter_map(|(_, action)| done(action)));
            life.works(&step);
            if let Verdict::Preempt { .. } = step.verdict {
                let events = life.scheduler.follow_up().map(|step| step.actions).unwrap_or_default();
                done_by_run.extend(events.iter().filter_map(|(_, action)| done(action)));
                break;
            }
        }
        planned.sort();
        done_by_run.sort();
        assert!(!planned.is_empty(), "{policy:?}");
        assert_eq!(planned, done_by_run, "{policy:?}");
    }
}
