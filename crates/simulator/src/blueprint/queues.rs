//! Queues in the words of no policy, written in the words of each.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::{Kind, Object, Reader};
use reprieve_api::koordinator::{ElasticQuota, QuotaSpec};
use reprieve_engine::policy::Policy;
use reprieve_loader::question::reader;
use serde_json::{Map, Value, json};

use super::kueue;

/// An account in the words of no policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// The queue above it.
    pub parent: Option<String>,
    /// What it can count on.
    pub guarantee: BTreeMap<String, String>,
    /// What it may not exceed.
    pub ceiling: BTreeMap<String, String>,
}

/// Whether an object means something to a policy.
pub(super) fn is_for(object: &Object, policy: &Policy) -> bool {
    let by = object.kind().resource().reader;
    object.kind() == Kind::Job || by == Reader::All || by == reader(policy)
}

/// Whether an object is an account of some policy.
pub(super) fn is_account(object: &Object) -> bool {
    matches!(object.kind(), Kind::ConfigMap | Kind::ElasticQuota | Kind::ClusterQueue)
}

/// The label by which a pod names its queue under a policy.
pub(super) fn label(queues: &[Queue], name: &str, policy: &Policy) -> Option<(String, String)> {
    let (key, value) = match policy {
        Policy::Kubernetes(_) => return None,
        Policy::YuniKorn => ("queue", path(queues, name)),
        Policy::Koordinator(_) => ("quota.scheduling.koordinator.sh/name", name.to_owned()),
        Policy::Kueue(_) => ("kueue.x-k8s.io/queue-name", name.to_owned()),
    };
    Some((key.to_owned(), value))
}

/// The queues as objects of a policy.
pub(super) fn objects(queues: &[Queue], policy: &Policy, others: &[Object]) -> Vec<Object> {
    if queues.is_empty() {
        return Vec::new();
    }
    match policy {
        Policy::YuniKorn => vec![yunikorn(queues)],
        Policy::Koordinator(_) => queues.iter().map(quota).collect(),
        Policy::Kueue(_) => kueue::objects(queues, others),
        Policy::Kubernetes(_) => Vec::new(),
    }
}

fn path(queues: &[Queue], name: &str) -> String {
    if name.starts_with("root.") {
        return name.to_owned();
    }
    let above = queues.iter().find(|queue| queue.name == name).and_then(|queue| queue.parent.as_deref());
    format!("{}.{name}", above.map_or_else(|| "root".to_owned(), |above| path(queues, above)))
}

fn yunikorn(queues: &[Queue]) -> Object {
    let top = below(queues, None);
    let config = json!({ "partitions": [{ "name": "default", "queues": [{ "name": "root", "submitacl": "*", "queues": top }] }] });
    Object::from(ConfigMap {
        metadata: ObjectMeta { name: Some("yunikorn-configs".to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("queues.yaml".to_owned(), config.to_string())])),
        ..ConfigMap::default()
    })
}

fn below(queues: &[Queue], parent: Option<&str>) -> Vec<Value> {
    let children = queues.iter().filter(|queue| queue.parent.as_deref() == parent);
    let written = children.map(|queue| {
        let children = below(queues, Some(&queue.name));
        let resources = json!({ "guaranteed": amounts(&queue.guarantee), "max": amounts(&queue.ceiling) });
        json!({ "name": queue.name, "parent": !children.is_empty(), "resources": resources, "queues": children })
    });
    written.collect()
}

/// YuniKorn calls cpu `vcore`.
fn amounts(amounts: &BTreeMap<String, String>) -> Map<String, Value> {
    let name = |resource: &String| if resource == "cpu" { "vcore".to_owned() } else { resource.clone() };
    amounts.iter().map(|(resource, amount)| (name(resource), json!(amount))).collect()
}

fn quota(queue: &Queue) -> Object {
    let amounts = |amounts: &BTreeMap<String, String>| {
        amounts.iter().map(|(resource, amount)| (resource.clone(), json!(amount))).collect()
    };
    let parent =
        queue.parent.iter().map(|parent| ("quota.scheduling.koordinator.sh/parent".to_owned(), parent.clone()));
    Object::from(ElasticQuota {
        metadata: ObjectMeta {
            name: Some(queue.name.clone()),
            labels: Some(parent.collect()),
            ..ObjectMeta::default()
        },
        spec: QuotaSpec { min: amounts(&queue.guarantee), max: amounts(&queue.ceiling) },
        ..ElasticQuota::default()
    })
}
