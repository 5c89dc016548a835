//! The queue tree of YuniKorn or Koordinator before and after a decision, for output. `quota_report` does the same for Kueue.

use std::collections::BTreeMap;

use reprieve_engine::queues::UNDEFINED;
use reprieve_engine::{Outcome, PodId, QueueId, ResourceId};
use serde::Serialize;
use serde_with::skip_serializing_none;

use reprieve_api::quantity::format;
use reprieve_loader::Loaded;

/// A queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueReport {
    /// The name: under YuniKorn the path from the root, separated by dots; under Koordinator the name of the ElasticQuota.
    pub name: String,
    /// How many queues are above it.
    #[serde(skip)]
    pub depth: usize,
    /// The resources that the preemptor requests or for which the queue has a guarantee or a maximum.
    pub resources: BTreeMap<String, QueueAmounts>,
}

/// One resource of a queue: guarantee, maximum and usage.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueAmounts {
    /// The guarantee, if the queue has one for this resource.
    pub guarantee: Option<FormattedAmount>,
    /// The maximum, if the queue has one for this resource.
    pub maximum: Option<FormattedAmount>,
    /// Usage before the decision is carried out.
    pub used: FormattedAmount,
    /// Usage after the victims are evicted and the preemptor runs.
    pub after: FormattedAmount,
}

/// An amount as a number, for bars, and as a Kubernetes quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct FormattedAmount {
    /// Millicores of cpu, whole units of any other resource.
    #[serde(skip)]
    pub number: i64,
    /// A Kubernetes quantity.
    pub text: String,
}

/// The tree, parents first, children in the order of their names.
pub fn queues(loaded: &Loaded, members: &[PodId], outcome: &Outcome) -> Vec<QueueReport> {
    let snapshot = &loaded.snapshot;
    let tree = snapshot.queues();
    let resources: Vec<ResourceId> = snapshot.resource_ids().collect();
    let mut change: BTreeMap<(QueueId, usize), i64> = BTreeMap::new();
    let mut charge = |pod: PodId, sign: i64| {
        let requests = snapshot.requests(snapshot.pod(pod).shape);
        let path = snapshot.pod(pod).queue.into_iter().flat_map(|queue| tree.path(queue));
        for queue in path {
            for (index, request) in requests.iter().enumerate() {
                *change.entry((queue, index)).or_default() += sign * request;
            }
        }
    };
    let (victims, placed) = match outcome {
        Outcome::Preempt(plan) => (plan.victims.as_slice(), plan.placement.as_slice()),
        Outcome::Schedule(placement) => (&[] as &[_], placement.as_slice()),
        Outcome::Wait(_) | Outcome::Unschedulable(_) => (&[] as &[_], &[] as &[_]),
    };
    for &pod in victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods) {
        charge(pod, -1);
    }
    for &(pod, _) in placed {
        charge(pod, 1);
    }
    let requested = |index: usize| members.iter().any(|&pod| snapshot.requests(snapshot.pod(pod).shape)[index] > 0);
    let name = |id: QueueId| loaded.names.queue(id);
    let mut ids: Vec<QueueId> = tree.ids().collect();
    ids.sort_by_cached_key(|&id| {
        let mut names: Vec<&str> = tree.path(id).map(name).collect();
        names.reverse();
        names
    });
    ids.into_iter()
        .map(|id| {
            let queue = tree.get(id);
            let amounts = resources.iter().filter_map(|&resource| {
                let index = resource.index();
                let name = loaded.names.resource(resource);
                let amount = |number: i64| FormattedAmount { number, text: format(name, number) };
                let defined = |number: i64| (number != UNDEFINED).then(|| amount(number));
                let (guarantee, maximum) = (defined(queue.guarantee[index]), defined(queue.limit[index]));
                let matters = requested(index) && resource != ResourceId::PODS
                    || guarantee.is_some()
                    || maximum.is_some() && queue.parent.is_some();
                let used = tree.used(id)[index];
                let after = used + change.get(&(id, index)).copied().unwrap_or_default();
                matters.then(|| {
                    (name.to_owned(), QueueAmounts { guarantee, maximum, used: amount(used), after: amount(after) })
                })
            });
            QueueReport { name: name(id).to_owned(), depth: tree.path(id).count() - 1, resources: amounts.collect() }
        })
        .collect()
}
