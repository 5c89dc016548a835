//! Conditions and events of pending units and victims, and violated budgets.

use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object};
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::Kueue;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_scheduler::action::{Action, ActionId, EventReason};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, StepOutcome};

use crate::harness::*;

/// Each evicted victim has an event that names the preemptor, and the preemptor has one event that names all victims. Nothing is reported
/// before it has happened.
#[test]
fn preemptor_and_victims_have_events() {
    let lows = (0..4).map(|index| pod(&format!("low-{index}"), 0, 1, Some("node")));
    let mut life = Life::new(with(lows.chain([pod("high", 10, 3, None)]).collect()));
    let marked = life.step();
    life.succeed(&marked);
    let step = life.step();
    let evictions: Vec<(ActionId, String)> = step
        .actions
        .iter()
        .filter_map(|(id, action)| match action {
            Action::Evict { pod } => Some((*id, pod.name.name.clone())),
            _ => None,
        })
        .collect();
    let [first, second, third] = evictions.as_slice() else { panic!("three evictions: {evictions:?}") };
    assert_eq!(event_texts(&step), [], "nothing has happened yet");
    life.complete(first.0, ActionResult::Ok { version: 90 });
    life.complete(second.0, ActionResult::Conflict);
    life.complete(third.0, ActionResult::Ok { version: 91 });
    let mut events = event_texts(&life.step());
    let (about, preempting) = events.remove(1);
    assert_eq!(about, format!("high {}", first.1));
    assert_eq!(preempting.matches(": priority 0 is below 10").count(), 3, "{preempting}");
    let why = "preempted for Pod default/high: priority 0 is below 10";
    let preempted = [first, third].map(|(_, name)| (format!("{name} high"), why.to_owned()));
    assert_eq!(events, preempted, "a failed eviction has no event");
}

/// Autoscalers read the message of the condition in the form of kube-scheduler.
#[test]
fn a_pod_without_a_node_says_how_many_nodes_were_considered_under_every_policy() {
    for policy in [
        Policy::Kubernetes(Kubernetes::default()),
        Policy::YuniKorn(YuniKorn::default()),
        Policy::Koordinator(Koordinator::default()),
        Policy::Kueue(Kueue::default()),
    ] {
        let mut life = Life::of(Scheduler::new("reprieve", policy), with(vec![pod("large", 0, 8, None)]));
        let step = life.step();
        let written = step.actions.iter().find_map(|(_, action)| match action {
            Action::SetCondition { condition, .. } => Some((condition.type_, condition.reason, &condition.message)),
            _ => None,
        });
        let Some(("PodScheduled", "Unschedulable", message)) = written else { panic!("{policy:?}: {step:?}") };
        let why = message.strip_prefix("0/1 nodes are available: ");
        assert!(why.is_some_and(|why| why.contains(": ")), "{policy:?}: {message}");
    }
}

/// A bound pod has an event only once it is bound.
#[test]
fn a_failed_binding_has_no_event() {
    for (result, events) in [(ActionResult::Ok { version: 90 }, 1), (ActionResult::Conflict, 0)] {
        let mut life = Life::new(with(vec![pod("a", 0, 4, None)]));
        let step = life.step();
        assert!(!step.actions.iter().any(|(_, action)| is_scheduled(action)));
        let bind = step.actions.iter().find(|(_, action)| matches!(action, Action::Bind { .. })).expect("a binding");
        life.complete(bind.0, result);
        assert_eq!(life.step().actions.iter().filter(|(_, action)| is_scheduled(action)).count(), events);
    }
}

fn is_scheduled(action: &Action) -> bool {
    matches!(action, Action::EmitEvent { reason: EventReason::Scheduled, .. })
}

/// What another namespace's tenant runs is not shown by its name, unless the operator wants that.
#[test]
fn a_victim_in_another_namespace_shows_the_uid_of_its_preemptor() {
    for (named, shown, related) in [(false, "Pod high", None), (true, "Pod default/high", Some(key("high")))] {
        let mut low = pod("low", 0, 3, Some("node"));
        low.metadata_mut().namespace = Some("other".to_owned());
        let mut life = Life::of(fresh().naming_preemptors(named), with(vec![low, pod("high", 10, 3, None)]));
        let step = life.step();
        let message = step.actions.iter().find_map(|(_, action)| match action {
            Action::Mark { message, .. } => Some(message.clone()),
            _ => None,
        });
        assert_eq!(message, Some(format!("preempted for {shown}")));
        life.succeed(&step);
        let step = life.step();
        life.succeed(&step);
        let event = life.events.iter().find_map(|action| match action {
            Action::EmitEvent { reason: EventReason::Preempted, related, message, .. } => {
                Some((related, message.as_str()))
            }
            _ => None,
        });
        let text = format!("preempted for {shown}: priority 0 is below 10");
        assert_eq!(event, Some((&related, text.as_str())));
    }
}

#[test]
fn the_condition_of_a_pending_pod_is_written_once_for_each_reason() {
    let pods = vec![pod("full", 10, 4, Some("node")), pod("one", 0, 2, None), pod("two", 0, 2, None)];
    let mut life = Life::new(with(pods));
    let step = life.step();
    assert_eq!(conditions(&step), ["one PodScheduled=false Unschedulable NoFeasiblePlan"]);
    life.succeed(&step);
    let step = life.step();
    assert_eq!(
        conditions(&step),
        ["two PodScheduled=false Unschedulable NoFeasiblePlan"],
        "a member of the same class waits for the same reason"
    );
    life.succeed(&step);
    assert!(life.scheduler.step(life.now).is_none(), "a condition makes no unit ready");
    assert_eq!(life.failed, ["one NoFeasiblePlan", "two NoFeasiblePlan"], "each condition has an event");
    let reasons: Vec<_> = life.scheduler.waiting_by_queue().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["NoFeasiblePlan", "NoFeasiblePlan"]);
    life.change("full", |pod| pod.spec_mut().priority = Some(11));
    let node = read(&NODE.replace("pods: 10", "pods: 11")).remove(0);
    let node = life.store(node);
    life.scheduler.observe(Event::Upserted(node), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    assert_eq!(conditions(&step), [""; 0], "the condition is up to date");
    life.restart();
    while let Some(step) = life.scheduler.step(life.now) {
        assert_eq!(conditions(&step), [""; 0], "also for a restarted scheduler");
    }
}

#[test]
fn a_forbidden_condition_is_not_written_again() {
    let mut life = Life::new(with(vec![pod("huge", 0, 40, None)]));
    let step = life.step();
    let condition = step.actions.iter().find(|(_, action)| matches!(action, Action::SetCondition { .. }));
    let (id, _) = condition.expect("a condition");
    life.complete(*id, ActionResult::Forbidden("no".to_owned()));
    let node = life.store(read(&NODE.replace("pods: 10", "pods: 11")).remove(0));
    life.scheduler.observe(Event::Upserted(node), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Unschedulable { .. }), "{:?}", step.outcome);
    assert_eq!(conditions(&step), [""; 0]);
}

#[test]
fn a_group_has_a_condition_that_shows_whether_it_is_scheduled() {
    let mut life = Life::new(with(read(GANG).into_iter().chain([member("one")]).collect()));
    let step = life.step();
    let waits = "gang PodGroupInitiallyScheduled=false Unschedulable GangIncomplete";
    assert_eq!(conditions(&step), ["one PodScheduled=false Unschedulable GangIncomplete", waits]);
    life.succeed(&step);
    assert!(life.scheduler.step(life.now).is_none());
    let second = life.store(member("two"));
    life.scheduler.observe(Event::Upserted(second), life.now);
    let step = life.step();
    assert!(matches!(step.outcome, StepOutcome::Bind { .. }), "{:?}", step.outcome);
    assert_eq!(conditions(&step), [""; 0], "no binding has succeeded yet");
    life.succeed(&step);
    let step = life.step();
    assert_eq!(conditions(&step), ["gang PodGroupInitiallyScheduled=true Scheduled Scheduled"]);
    life.succeed(&step);
    assert!(life.scheduler.step(life.now).is_none());
    assert_eq!(life.failed, ["one GangIncomplete", "gang GangIncomplete"]);
}

#[test]
fn a_scheduler_of_any_pod_of_a_group_reports_that_the_group_is_scheduled() {
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
    assert_eq!(conditions(&life(None).step()), ["gang PodGroupInitiallyScheduled=true Scheduled Scheduled"]);
    let mut others = life(Some("another"));
    assert!(others.scheduler.step(others.now).is_none(), "no pod of the group is ours");
}

#[test]
fn a_group_has_a_condition_if_its_pods_have_another_priority() {
    let group = "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default, uid: gang}
spec: {priority: 5, schedulingPolicy: {gang: {minCount: 1}}}
";
    let mut life = Life::new(with(read(group).into_iter().chain([member("one")]).collect()));
    let mismatch = "gang PodsNotMatchingPriority=true PodsNotMatchingPriority PodsNotMatchingPriority";
    let (mut written, mut is_bound) = (Vec::new(), false);
    while let Some(step) = life.scheduler.step(life.now) {
        written.extend(conditions(&step));
        is_bound |= matches!(step.outcome, StepOutcome::Bind { .. });
        life.succeed(&step);
    }
    assert!(is_bound, "the difference does not block the group");
    assert_eq!(written.iter().filter(|condition| *condition == mismatch).count(), 1, "{written:?}");

    // A running group has the condition too.
    life.restart();
    life.change("one", |pod| pod.spec_mut().priority = Some(5));
    let written: Vec<String> =
        std::iter::from_fn(|| life.scheduler.step(life.now)).flat_map(|step| conditions(&step)).collect();
    assert_eq!(written, ["gang PodsNotMatchingPriority=false Matching Matching"]);
}

/// The condition is written once, rewritten when the reason changes, and false when the priority is allowed.
#[test]
fn a_group_has_a_condition_if_its_preemption_priority_is_refused() {
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
    let limit = Kubernetes { max_preemption_priority_excess: 50, ..Kubernetes::default() };
    let mut life = Life::of(Scheduler::new("reprieve", Policy::Kubernetes(limit)), with(objects));

    // The condition of a step, and whether an event follows it.
    let refused = |life: &mut Life, step: &Step| {
        let condition = conditions(step).into_iter().find(|condition| condition.contains("PreemptionPriorityRefused"));
        life.succeed(step);
        let has_event = std::mem::take(&mut life.events).iter().any(|action| {
            matches!(action, Action::EmitEvent { reason: EventReason::PreemptionPriorityRefused, about, .. } if about.kind == Kind::PodGroup)
        });
        (condition.unwrap_or_default(), has_event)
    };
    let step = life.step();
    let too_far = "its preemption priority 51 is more than 50 above its scheduling priority 0, which is not allowed; the latter is used";
    let condition = format!("gang PreemptionPriorityRefused=true TooFarAboveSchedulingPriority {too_far}");
    assert_eq!(refused(&mut life, &step), (condition, true));
    life.change("one", |pod| pod.metadata.labels.get_or_insert_default().extend([("a".to_owned(), "b".to_owned())]));
    while let Some(next) = life.scheduler.step(life.now) {
        assert_eq!(refused(&mut life, &next), (String::new(), false), "the condition is written once");
    }
    for (value, part, has_event) in [
        (-1, "=true BelowSchedulingPriority its preemption priority -1 is below its scheduling priority 0", true),
        (50, "=false Accepted", false),
        (51, "=true TooFarAboveSchedulingPriority", true),
    ] {
        let changed = life.store(class(value));
        life.scheduler.observe(Event::Upserted(changed), life.now);
        let step = life.step();
        let (condition, event) = refused(&mut life, &step);
        assert!(condition.contains(part), "{condition}");
        assert_eq!(event, has_event, "{condition}");
    }
}

/// Both lower pods count against the budget before one is reprieved; only the evicted one violates it, and only if no disruption is left.
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
        life.succeed(&step);
        let step = life.step();
        assert_eq!(evicted(&step), ["large"]);
        assert_eq!(step.violations, violations, "allowed: {allowed}");
    }
}
