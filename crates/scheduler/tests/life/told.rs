//! What is said and recorded of those who wait, and of those who yield.

use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object};
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, StepOutcome};

use reprieve_scheduler::WaitReason;

use crate::harness::*;

/// Each victim that goes says for whom it yields, and the preemptor once who is to.
#[test]
fn a_preemption_is_recorded_on_both_sides() {
    let lows = (0..4).map(|at| pod(&format!("low-{at}"), 0, 1, Some("node")));
    let mut life = Life::new(with(lows.chain([pod("high", 10, 3, None)]).collect()));
    let prepared = life.step();
    life.works(&prepared);
    let step = life.step();
    let evictions: Vec<(ActionId, String)> = step
        .actions
        .iter()
        .filter_map(|(id, action)| match action {
            Action::Evict { pod } => Some((*id, pod.name.name.clone())),
            _ => None,
        })
        .collect();
    let [first, second, third] = evictions.as_slice() else { panic!("three yield: {evictions:?}") };
    let own = recorded(&step);
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0].0, format!("high {}", first.1));
    assert_eq!(own[0].1.matches(" yields for it: its priority 0 is below 10").count(), 3, "{own:?}");
    life.answer(first.0, ActionResult::Ok { version: 90 });
    life.answer(second.0, ActionResult::Conflict);
    life.answer(third.0, ActionResult::Ok { version: 91 });
    let why = "preempted for Pod default/high: its priority 0 is below 10";
    let told = [first, third].map(|(_, name)| (format!("{name} high"), why.to_owned()));
    assert_eq!(recorded(&life.step()), told, "who was not evicted does not yield");
}

#[test]
fn it_is_said_on_a_pod_why_it_waits_once_for_each_law() {
    let pods = vec![pod("full", 10, 4, Some("node")), pod("one", 0, 2, None), pod("two", 0, 2, None)];
    let mut life = Life::new(with(pods));
    let step = life.step();
    assert_eq!(said(&step), ["one PodScheduled=false Unschedulable NoFeasiblePlan"]);
    life.works(&step);
    let step = life.step();
    assert_eq!(
        said(&step),
        ["two PodScheduled=false Unschedulable NoFeasiblePlan"],
        "one that is like it waits for the same"
    );
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none(), "what it said is no change that could help");
    assert_eq!(life.failed, ["one NoFeasiblePlan", "two NoFeasiblePlan"], "it is recorded, too");
    let reasons: Vec<_> = life.scheduler.waiting_by_queue().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["NoFeasiblePlan", "NoFeasiblePlan"]);
    life.change("full", |pod| pod.spec_mut().priority = Some(11));
    let node = read(&NODE.replace("pods: 10", "pods: 11")).remove(0);
    let node = life.store(node);
    life.scheduler.observe(Event::Upserted(node), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    assert_eq!(said(&step), [""; 0], "it says so already");
    life.restart();
    while let Some(step) = life.scheduler.step(life.now) {
        assert_eq!(said(&step), [""; 0], "so it does for one that was started anew");
    }
}

#[test]
fn what_may_not_be_said_is_not_tried_again() {
    let mut life = Life::new(with(vec![pod("huge", 0, 40, None)]));
    let step = life.step();
    let condition = step.actions.iter().find(|(_, action)| matches!(action, Action::SetCondition { .. }));
    let (id, _) = condition.expect("it says why");
    life.answer(*id, ActionResult::Forbidden("no".to_owned()));
    let node = life.store(read(&NODE.replace("pods: 10", "pods: 11")).remove(0));
    life.scheduler.observe(Event::Upserted(node), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    assert_eq!(said(&step), [""; 0]);
}

#[test]
fn it_is_said_on_a_group_whether_it_was_scheduled() {
    let mut life = Life::new(with(read(GANG).into_iter().chain([member("one")]).collect()));
    let step = life.step();
    let waits = "gang PodGroupInitiallyScheduled=false Unschedulable Incomplete";
    assert_eq!(said(&step), ["one PodScheduled=false Unschedulable Incomplete", waits]);
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none());
    let second = life.store(member("two"));
    life.scheduler.observe(Event::Upserted(second), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
    assert_eq!(said(&step), [""; 0], "nothing is taken to have worked");
    life.works(&step);
    let step = life.step();
    assert_eq!(said(&step), ["gang PodGroupInitiallyScheduled=true Scheduled Scheduled"]);
    life.works(&step);
    assert!(life.scheduler.step(life.now).is_none());
    assert_eq!(life.failed, ["one Incomplete", "gang Incomplete"]);
}

#[test]
fn a_group_that_was_scheduled_before_is_told_so_by_whoever_schedules_a_pod_of_it() {
    let bound = |name: &str, scheduler: Option<&str>| {
        let Object::Pod(mut pod) = member(name) else { panic!("it is a pod") };
        let pod_mut = Arc::make_mut(&mut pod);
        pod_mut.node_name = Some("node".to_owned());
        if let Some(scheduler) = scheduler {
            pod_mut.spec_mut().scheduler_name = Some(scheduler.to_owned());
        }
        Object::Pod(pod)
    };
    let life = |second| {
        let pods = [bound("one", Some("another")), bound("two", second)];
        Life::new(with(read(GANG).into_iter().chain(pods).collect()))
    };
    assert_eq!(said(&life(None).step()), ["gang PodGroupInitiallyScheduled=true Scheduled Scheduled"]);
    let mut others = life(Some("another"));
    assert!(others.scheduler.step(others.now).is_none(), "nobody of it is scheduled here");
}

#[test]
fn it_is_said_on_a_group_that_its_pods_have_another_priority() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {priority: 5, schedulingPolicy: {gang: {minCount: 1}}}
";
    let mut life = Life::new(with(read(group).into_iter().chain([member("one")]).collect()));
    let step = life.step();
    assert!(
        matches!(step.outcome, StepOutcome::Unschedulable { reason: WaitReason::Law("GroupMismatch"), .. }),
        "{:?}",
        step.outcome
    );
    let mismatch = "gang PodsNotMatchingPriority=true PodsNotMatchingPriority PodsNotMatchingPriority";
    assert!(said(&step).iter().any(|said| said == mismatch), "{:?}", said(&step));
}

/// What is refused is told once, told otherwise when it is another matter, and taken back when it is allowed.
#[test]
fn it_is_said_on_a_group_that_its_preemption_priority_is_refused() {
    let class = |value: i32| {
        let text = format!(
            "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: dear, uid: dear}}, value: {value}}}"
        );
        read(&text).remove(0)
    };
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang, annotations: {reprieve.dev/preemption-priority-class: dear}}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
";
    let mut objects = read(group);
    objects.extend([class(51), pod("one", 0, 1, Some("node"))]);
    let Some(Object::Pod(one)) = objects.last_mut() else { panic!("it is a pod") };
    let spec = Arc::make_mut(one).spec_mut();
    spec.scheduling_group.get_or_insert_default().pod_group_name = Some("gang".to_owned());
    let limit = Kubernetes { max_preemption_priority_excess: Some(50), ..Kubernetes::default() };
    let mut life = Life::of(Scheduler::new("reprieve", Policy::Kubernetes(limit)), with(objects));

    let mut step = life.step();
    let refused = |step: &Step| {
        let said = said(step).into_iter().find(|said| said.contains("PreemptionPriorityRefused"));
        let told = step.actions.iter().any(|(_, action)| {
            matches!(action, Action::EmitEvent { reason: "PreemptionPriorityRefused", about, .. } if about.kind == Kind::PodGroup)
        });
        (said.unwrap_or_default(), told)
    };
    let too_far = "its preemption priority 51 is more than 50 above its scheduling priority 0, which is not allowed; the latter is used";
    let said = format!("gang PreemptionPriorityRefused=true TooFarAboveSchedulingPriority {too_far}");
    assert_eq!(refused(&step), (said, true));
    life.works(&step);
    life.change("one", |pod| pod.metadata.labels.get_or_insert_default().extend([("a".to_owned(), "b".to_owned())]));
    while let Some(next) = life.scheduler.step(life.now) {
        assert_eq!(refused(&next), (String::new(), false), "it is said once");
        life.works(&next);
    }
    for (value, part, told) in [
        (-1, "=true BelowSchedulingPriority its preemption priority -1 is below its scheduling priority 0", true),
        (50, "=false Accepted", false),
        (51, "=true TooFarAboveSchedulingPriority", true),
    ] {
        let changed = life.store(class(value));
        life.scheduler.observe(Event::Upserted(changed), life.now);
        step = life.step();
        let (said, was_told) = refused(&step);
        assert!(said.contains(part), "{said}");
        assert_eq!(was_told, told, "{said}");
        life.works(&step);
    }
}

/// Both lower pods are charged before anybody is reprieved; only the one that is evicted counts, and only if the budget has nothing left.
#[test]
fn a_budget_is_violated_by_the_pods_that_are_evicted() {
    let web = |name: &str, priority: i32, cpu: i32| {
        let mut pod = pod(name, priority, cpu, Some("node"));
        pod.metadata_mut().labels = Some([("app".to_owned(), "web".to_owned())].into());
        pod
    };
    let budget = |allowed: i32| {
        let text = format!(
            "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web, namespace: default, uid: web}}
spec: {{selector: {{matchLabels: {{app: web}}}}}}
status: {{disruptionsAllowed: {allowed}}}
"
        );
        read(&text).remove(0)
    };
    for (allowed, violations) in [(1, 0), (0, 1)] {
        let pods = vec![web("small", 5, 1), web("large", 0, 3), budget(allowed), pod("high", 10, 3, None)];
        let mut life = Life::new(with(pods));
        let step = life.step();
        life.works(&step);
        let step = life.step();
        assert_eq!(evicted(&step), ["large"]);
        assert_eq!(step.violations, violations, "it allows {allowed}");
    }
}
