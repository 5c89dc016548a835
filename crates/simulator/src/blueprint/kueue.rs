//! Queues as Kueue's: those without others below are ClusterQueues, the others cohorts. What the nodes offer beyond all guarantees is
//! the root cohort's, for everybody to borrow; a resource that no queue speaks of is as good as unlimited.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::Object;
use reprieve_api::kueue::{LocalQueue, LocalQueueSpec};
use reprieve_loader::request::{self, Amounts};
use reprieve_translate::kueue_objects::{ROOT, cluster_queue, cohort, flavor, quota};

use super::Queue;

/// The namespace of all that is submitted.
const NAMESPACE: &str = "default";

pub(super) fn objects(queues: &[Queue], nodes: &[Object]) -> Vec<Object> {
    let offered = offered(nodes);
    let accounts: Vec<Account> = queues.iter().map(Account::new).collect();
    let spoken_of: BTreeSet<&String> =
        accounts.iter().flat_map(|account| account.guarantee.keys().chain(account.ceiling.keys())).collect();
    let resources: BTreeSet<&String> = offered.keys().chain(spoken_of.iter().copied()).collect();
    let resources = || resources.iter().copied();
    let below = |parent: Option<&str>, resource: &String| -> i64 {
        let children = accounts.iter().filter(|account| account.queue.parent.as_deref() == parent);
        children.map(|account| account.guaranteed(resource)).sum()
    };
    let has_children = |name: &str| queues.iter().any(|queue| queue.parent.as_deref() == Some(name));
    let rest = |resource: &String| match spoken_of.contains(resource) {
        true => ((offered.get(resource).copied().unwrap_or(0) - below(None, resource)).max(0), None),
        false => (0, None),
    };
    let mut objects = vec![Object::from(flavor()), Object::from(cohort(ROOT, None, quota(resources(), rest)))];
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
            objects.push(Object::from(cohort(name, Some(above), quota(resources(), own))));
            continue;
        }
        objects.push(Object::from(cluster_queue(name, above, quota(resources(), own))));
        let spec = LocalQueueSpec { cluster_queue: name.to_owned(), ..LocalQueueSpec::default() };
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), namespace: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() };
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
