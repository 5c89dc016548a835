//! Queues as Kueue's: those without others below are ClusterQueues, the others cohorts. What the nodes offer beyond all guarantees is
//! the root cohort's, for everybody to borrow; a resource that no queue speaks of is as good as unlimited.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_objects::kueue::{ClusterQueue, Cohort, LocalQueue, LocalQueueSpec, ResourceFlavor};
use reprieve_objects::object::Object;
use reprieve_objects::quantity::written;
use reprieve_objects::request::{self, Amounts};
use serde_json::{Value, json};

use super::Queue;

const ROOT: &str = "cluster";
const FLAVOR: &str = "default";
/// The namespace of all that is submitted.
const NAMESPACE: &str = "default";

pub(super) fn objects(queues: &[Queue], nodes: &[Object]) -> Vec<Object> {
    let offered = offered(nodes);
    let accounts: Vec<Account> = queues.iter().map(Account::new).collect();
    let spoken_of: BTreeSet<&String> =
        accounts.iter().flat_map(|account| account.guarantee.keys().chain(account.ceiling.keys())).collect();
    let groups = |quota: &dyn Fn(&String) -> (i64, Option<i64>)| {
        let resources: BTreeSet<&String> = offered.keys().chain(spoken_of.iter().copied()).collect();
        let quotas = resources.iter().map(|resource| {
            let (nominal, limit) = quota(resource);
            let mut quota = json!({ "name": resource, "nominalQuota": written(resource, nominal) });
            if let Some(limit) = limit {
                quota["borrowingLimit"] = json!(written(resource, limit));
            }
            quota
        });
        let quotas: Vec<Value> = quotas.collect();
        json!([{ "coveredResources": resources, "flavors": [{ "name": FLAVOR, "resources": quotas }] }])
    };
    let below = |parent: Option<&str>, resource: &String| -> i64 {
        let children = accounts.iter().filter(|account| account.queue.parent.as_deref() == parent);
        children.map(|account| account.guaranteed(resource)).sum()
    };
    let has_children = |name: &str| queues.iter().any(|queue| queue.parent.as_deref() == Some(name));
    let rest = |resource: &String| match spoken_of.contains(resource) {
        true => ((offered.get(resource).copied().unwrap_or(0) - below(None, resource)).max(0), None),
        false => (0, None),
    };
    let mut objects = vec![
        Object::from(ResourceFlavor { metadata: named(FLAVOR, None), ..ResourceFlavor::default() }),
        cohort(ROOT, json!({ "resourceGroups": groups(&rest) })),
    ];
    for account in &accounts {
        let name = account.queue.name.as_str();
        let own = |resource: &String| {
            if !spoken_of.contains(resource) {
                return (if has_children(name) { 0 } else { offered[resource] }, None);
            }
            let guaranteed = account.guaranteed(resource);
            let limit = account.ceiling.get(resource).map(|ceiling| (ceiling - guaranteed).max(0));
            ((guaranteed - below(Some(name), resource)).max(0), limit)
        };
        let above = account.queue.parent.as_deref().unwrap_or(ROOT);
        if has_children(name) {
            objects.push(cohort(name, json!({ "parentName": above, "resourceGroups": groups(&own) })));
            continue;
        }
        let spec = json!({
            "cohortName": above,
            "resourceGroups": groups(&own),
            "preemption": { "withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any" },
        });
        let spec = serde_json::from_value(spec).expect("it is written as it is read");
        objects.push(Object::from(ClusterQueue { metadata: named(name, None), spec, ..ClusterQueue::default() }));
        let spec = LocalQueueSpec { cluster_queue: name.to_owned() };
        let metadata = named(name, Some(NAMESPACE));
        objects.push(Object::from(LocalQueue { metadata, spec, ..LocalQueue::default() }));
    }
    objects
}

/// A queue with its amounts as numbers.
struct Account<'q> {
    queue: &'q Queue,
    guarantee: Amounts,
    ceiling: Amounts,
}

impl<'q> Account<'q> {
    fn new(queue: &'q Queue) -> Self {
        let amounts = |amounts: &BTreeMap<String, String>| {
            let list = amounts.iter().map(|(resource, amount)| (resource.clone(), Quantity(amount.clone()))).collect();
            request::amounts(&list, "queues").expect("a scenario's amounts were checked when it was read")
        };
        Self { queue, guarantee: amounts(&queue.guarantee), ceiling: amounts(&queue.ceiling) }
    }

    fn guaranteed(&self, resource: &String) -> i64 {
        self.guarantee.get(resource).copied().unwrap_or(0)
    }
}

fn offered(nodes: &[Object]) -> Amounts {
    let mut offered = Amounts::new();
    for object in nodes {
        let Object::Node(node) = object else { continue };
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let amounts = request::amounts(&allocatable, "status.allocatable").unwrap_or_default();
        for (resource, amount) in amounts.into_iter().filter(|(resource, _)| resource != "pods") {
            *offered.entry(resource).or_default() += amount;
        }
    }
    offered
}

fn cohort(name: &str, spec: Value) -> Object {
    let spec = serde_json::from_value(spec).expect("it is written as it is read");
    Object::from(Cohort { metadata: named(name, None), spec, ..Cohort::default() })
}

fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: namespace.map(str::to_owned), ..ObjectMeta::default() }
}
