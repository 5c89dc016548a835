//! Checks the final state of a cluster of gangs whose pods take a whole node each, from the objects in the API.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;

use crate::fixtures::{is_bound, is_terminating};

/// A gang as created.
#[derive(Clone, Copy, Debug)]
pub struct Gang {
    /// The priority of all its pods.
    pub priority: i32,
    /// The number of pods, all of which the gang needs.
    pub size: usize,
}

/// All gangs that were created, by name. Their pods have the name as label `app`.
pub type GangSet = BTreeMap<String, Gang>;

/// The violated conditions.
pub fn problems(pods: &[Pod], events: &[Event], gangs: &GangSet) -> Vec<String> {
    let mut problems = capacity(pods);
    problems.extend(whole_gangs(pods, gangs));
    problems.extend(pods.iter().flat_map(settled));
    problems.extend(lawful(events, gangs));
    problems
}

/// The names of the gangs with pods that are not bound.
pub fn pending(pods: &[Pod]) -> BTreeSet<&str> {
    pods.iter().filter(|pod| !is_bound(pod)).map(gang_of).collect()
}

/// Every pod takes a whole node.
fn capacity(pods: &[Pod]) -> Vec<String> {
    let mut by_node: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in pods {
        if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            by_node.entry(node).or_default().push(name_of(pod));
        }
    }
    let overfull = by_node.into_iter().filter(|(_, pods)| pods.len() > 1);
    overfull.map(|(node, pods)| format!("capacity: {node} has {}", pods.join(" and "))).collect()
}

/// A gang runs whole or not at all.
fn whole_gangs(pods: &[Pod], gangs: &GangSet) -> Vec<String> {
    let mut bound: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        *bound.entry(gang_of(pod)).or_default() += usize::from(is_bound(pod));
    }
    let size = |gang: &str| gangs.get(gang).map_or(0, |gang| gang.size);
    let partly = bound.into_iter().filter(|(gang, bound)| *bound != 0 && *bound != size(gang));
    partly.map(|(gang, bound)| format!("whole gangs: {bound} of {} pods of {gang} run", size(gang))).collect()
}

/// No pod is terminating, is a marked victim that stays, has a nomination without being bound, or is pending without a reason.
fn settled(pod: &Pod) -> Vec<String> {
    let name = name_of(pod);
    let annotations = pod.metadata.annotations.as_ref();
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let has_reason = conditions
        .iter()
        .any(|condition| condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable"));
    let nominated = status.and_then(|status| status.nominated_node_name.as_deref()).filter(|node| !node.is_empty());
    [
        is_terminating(pod).then(|| format!("settled: {name} is terminating")),
        annotations
            .is_some_and(|annotations| annotations.contains_key("reprieve.dev/preempted-for"))
            .then(|| format!("settled: {name} is marked as a victim and not evicted")),
        nominated
            .filter(|_| !is_bound(pod))
            .map(|node| format!("settled: {name} is nominated to {node} and not bound")),
        (!is_bound(pod) && !has_reason).then(|| format!("reasons: {name} is pending without a reason")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every victim has a lower priority than its preemptor, and was preempted once.
fn lawful(events: &[Event], gangs: &GangSet) -> Vec<String> {
    let mut preemptors: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in preemptions(events) {
        let name = |object: &Option<_>| {
            let object: Option<&k8s_openapi::api::core::v1::ObjectReference> = object.as_ref();
            object.and_then(|object| object.name.clone()).unwrap_or_default()
        };
        preemptors.entry(name(&event.regarding)).or_default().insert(name(&event.related));
    }
    let mut problems = Vec::new();
    for (victim, preemptors) in preemptors {
        let gang = victim.rsplit_once('-').map_or(victim.as_str(), |(gang, _)| gang);
        let lower = |preemptor: &String| match (gangs.get(gang), gangs.get(preemptor)) {
            (Some(victim), Some(preemptor)) => victim.priority < preemptor.priority,
            _ => false,
        };
        problems.extend(
            preemptors
                .iter()
                .filter(|name| !lower(name))
                .map(|name| format!("lawful: {victim} was preempted by {name}")),
        );
        if preemptors.len() > 1 {
            let all = preemptors.into_iter().collect::<Vec<_>>().join(" and ");
            problems.push(format!("evicted once: {victim} was preempted by {all}"));
        }
    }
    problems
}

/// The events about preempted pods.
pub fn preemptions(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| event.reason.as_deref() == Some("Preempted"))
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

fn gang_of(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, more: Value) -> Pod {
        let gang = name.rsplit_once('-').map_or(name, |(gang, _)| gang);
        let mut pod = json!({"metadata": {"name": name, "labels": {"app": gang}}, "spec": {"containers": []}});
        for (key, value) in more.as_object().expect("fields") {
            let part = if key == "nodeName" { &mut pod["spec"][key] } else { &mut pod[key] };
            match (part, value) {
                (Value::Object(part), Value::Object(value)) => part.extend(value.clone()),
                (part, value) => *part = value.clone(),
            }
        }
        serde_json::from_value(pod).expect("a pod")
    }

    fn pending_with_reason() -> Value {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        json!({"status": {"conditions": [condition]}})
    }

    fn preempted(victim: &str, preemptor: &str) -> Event {
        let event = json!({
            "metadata": {}, "eventTime": null, "reason": "Preempted",
            "regarding": {"name": victim}, "related": {"name": preemptor},
        });
        serde_json::from_value(event).expect("an event")
    }

    fn found(pods: &[Pod], events: &[Event]) -> Vec<String> {
        let gang = |priority, size| Gang { priority, size };
        let gangs = [("low", gang(1, 2)), ("one", gang(1, 1)), ("high", gang(2, 1)), ("higher", gang(3, 1))];
        problems(pods, events, &gangs.map(|(name, gang)| (name.to_owned(), gang)).into())
    }

    #[test]
    fn valid_state_has_no_problems() {
        let pods = [
            pod("low-0", json!({"nodeName": "a"})),
            pod("low-1", json!({"nodeName": "b"})),
            pod("one-0", pending_with_reason()),
        ];
        assert_eq!(found(&pods, &[preempted("one-0", "high")]), Vec::<String>::new());
        assert_eq!(pending(&pods), BTreeSet::from(["one"]));
    }

    #[test]
    fn violations_are_found() {
        let bound = |name, node: &str| pod(name, json!({"nodeName": node}));
        let (mut terminating, mut nominated, mut marked) =
            (pending_with_reason(), pending_with_reason(), pending_with_reason());
        terminating["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        nominated["status"]["nominatedNodeName"] = json!("a");
        marked["metadata"] = json!({"annotations": {"reprieve.dev/preempted-for": "x"}});
        for (pods, problem) in [
            (vec![bound("one-0", "a"), bound("high-0", "a")], "capacity: a has one-0 and high-0"),
            (vec![bound("low-0", "a"), pod("low-1", pending_with_reason())], "whole gangs: 1 of 2 pods of low run"),
            (vec![bound("low-0", "a")], "whole gangs: 1 of 2 pods of low run"),
            (vec![pod("one-0", terminating)], "settled: one-0 is terminating"),
            (vec![pod("one-0", marked)], "settled: one-0 is marked as a victim and not evicted"),
            (vec![pod("one-0", nominated)], "settled: one-0 is nominated to a and not bound"),
            (vec![pod("one-0", json!({}))], "reasons: one-0 is pending without a reason"),
        ] {
            assert_eq!(found(&pods, &[]), [problem]);
        }
        assert_eq!(found(&[], &[preempted("high-0", "low")]), ["lawful: high-0 was preempted by low"]);
        assert_eq!(found(&[], &[preempted("high-0", "high")]), ["lawful: high-0 was preempted by high"]);
        let twice = [preempted("one-0", "high"), preempted("one-0", "high"), preempted("one-0", "higher")];
        assert_eq!(found(&[], &twice), ["evicted once: one-0 was preempted by high and higher"]);
    }
}
