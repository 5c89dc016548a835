//! What must hold of gangs that each take whole nodes, when everything has come to rest: told from the objects of the API alone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;

use crate::fixtures::{is_bound, is_leaving};

/// A gang, as it was created.
#[derive(Clone, Copy, Debug)]
pub struct Gang {
    /// Its class of priority: a higher one may preempt a lower one.
    pub priority: i32,
    /// How many pods it has, all of which it needs.
    pub size: usize,
}

/// All gangs that ever were, by name. Their pods have the name as their label `app`.
pub type GangSet = BTreeMap<String, Gang>;

/// What does not hold.
pub fn problems(pods: &[Pod], events: &[Event], gangs: &GangSet) -> Vec<String> {
    let mut problems = capacity(pods);
    problems.extend(whole_gangs(pods, gangs));
    problems.extend(pods.iter().flat_map(at_rest));
    problems.extend(lawful(events, gangs));
    problems
}

/// The gangs that have pods and no node, by name.
pub fn waiting(pods: &[Pod]) -> BTreeSet<&str> {
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
    let crowded = by_node.into_iter().filter(|(_, pods)| pods.len() > 1);
    crowded.map(|(node, pods)| format!("capacity: {node} has {}", pods.join(" and "))).collect()
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

/// Nobody is on the way out, was told to yield and stays, is meant for a node that is not made free, or waits without a word.
fn at_rest(pod: &Pod) -> Vec<String> {
    let name = name_of(pod);
    let annotations = pod.metadata.annotations.as_ref();
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let says_why = conditions
        .iter()
        .any(|condition| condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable"));
    let nominated = status.and_then(|status| status.nominated_node_name.as_deref()).filter(|node| !node.is_empty());
    [
        is_leaving(pod).then(|| format!("rest: {name} is still leaving")),
        annotations
            .is_some_and(|notes| notes.contains_key("reprieve.dev/preempted-for"))
            .then(|| format!("standing: {name} was told to yield, and stays")),
        nominated.filter(|_| !is_bound(pod)).map(|node| format!("standing: {name} is meant for {node}, and waits")),
        (!is_bound(pod) && !says_why).then(|| format!("accounted: {name} waits, and nobody says why")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whoever yielded did so for somebody above, and for nobody else.
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
            preemptors.iter().filter(|one| !lower(one)).map(|one| format!("lawful: {victim} yielded for {one}")),
        );
        if preemptors.len() > 1 {
            let all = preemptors.into_iter().collect::<Vec<_>>().join(" and ");
            problems.push(format!("evicted once: {victim} yielded for {all}"));
        }
    }
    problems
}

/// The events that say of a pod that it yielded.
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

    fn waits() -> Value {
        let says = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        json!({"status": {"conditions": [says]}})
    }

    fn yielded(victim: &str, preemptor: &str) -> Event {
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
    fn what_holds_is_no_problem() {
        let pods =
            [pod("low-0", json!({"nodeName": "a"})), pod("low-1", json!({"nodeName": "b"})), pod("one-0", waits())];
        assert_eq!(found(&pods, &[yielded("one-0", "high")]), Vec::<String>::new());
        assert_eq!(waiting(&pods), BTreeSet::from(["one"]));
    }

    #[test]
    fn what_does_not_hold_is_found() {
        let bound = |name, node: &str| pod(name, json!({"nodeName": node}));
        let (mut leaves, mut meant, mut told) = (waits(), waits(), waits());
        leaves["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        meant["status"]["nominatedNodeName"] = json!("a");
        told["metadata"] = json!({"annotations": {"reprieve.dev/preempted-for": "x"}});
        for (pods, problem) in [
            (vec![bound("one-0", "a"), bound("high-0", "a")], "capacity: a has one-0 and high-0"),
            (vec![bound("low-0", "a"), pod("low-1", waits())], "whole gangs: 1 of 2 pods of low run"),
            (vec![bound("low-0", "a")], "whole gangs: 1 of 2 pods of low run"),
            (vec![pod("one-0", leaves)], "rest: one-0 is still leaving"),
            (vec![pod("one-0", told)], "standing: one-0 was told to yield, and stays"),
            (vec![pod("one-0", meant)], "standing: one-0 is meant for a, and waits"),
            (vec![pod("one-0", json!({}))], "accounted: one-0 waits, and nobody says why"),
        ] {
            assert_eq!(found(&pods, &[]), [problem]);
        }
        assert_eq!(found(&[], &[yielded("high-0", "low")]), ["lawful: high-0 yielded for low"]);
        assert_eq!(found(&[], &[yielded("high-0", "high")]), ["lawful: high-0 yielded for high"]);
        let twice = [yielded("one-0", "high"), yielded("one-0", "high"), yielded("one-0", "higher")];
        assert_eq!(found(&[], &twice), ["evicted once: one-0 yielded for high and higher"]);
    }
}
