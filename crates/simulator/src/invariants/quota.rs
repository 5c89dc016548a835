//! Quota under policy Kueue, counted from the objects alone: who uses how much, and of what.

use std::collections::BTreeMap;

use reprieve_api::kueue::{ClusterQueue, KueueWorkload};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::quantity;
use serde_json::Value;

/// A flavor and a resource.
type Cell = (String, String);

/// What a queue has and uses of a cell, in billionths.
#[derive(Clone, Copy, Default)]
struct Account {
    nominal: i128,
    limit: Option<i128>,
    used: i128,
}

/// The accounts of all ClusterQueues.
pub(super) struct Quota {
    queues: BTreeMap<String, (Option<String>, BTreeMap<Cell, Account>)>,
}

impl Quota {
    /// As the objects have it. Whoever was evicted holds its quota until it is gone.
    pub fn of(objects: &ObjectSet) -> Result<Self, String> {
        let mut quota = Self { queues: BTreeMap::new() };
        for queue in &objects.cluster_queues {
            let ClusterQueue { metadata, spec, .. } = &*queue.object;
            let mut accounts = BTreeMap::new();
            for flavor in spec.resource_groups.iter().flat_map(|group| &group.flavors) {
                for resource in &flavor.resources {
                    let account = Account {
                        nominal: amount(&resource.nominal_quota)?,
                        limit: resource.borrowing_limit.as_ref().map(amount).transpose()?,
                        used: 0,
                    };
                    accounts.insert((flavor.name.clone(), resource.name.clone()), account);
                }
            }
            quota.queues.insert(metadata.name.clone().unwrap_or_default(), (spec.cohort_name.clone(), accounts));
        }
        for workload in &objects.kueue_workloads {
            for (queue, cell, amount) in held(&workload.object)? {
                quota.charge(&queue, cell, amount);
            }
        }
        Ok(quota)
    }

    fn charge(&mut self, queue: &str, cell: Cell, amount: i128) {
        if let Some((_, accounts)) = self.queues.get_mut(queue) {
            accounts.entry(cell).or_default().used += amount;
        }
    }

    /// A workload goes.
    pub fn take(&mut self, workload: &KueueWorkload) -> Result<(), String> {
        for (queue, cell, amount) in held(workload)? {
            self.charge(&queue, cell, -amount);
        }
        Ok(())
    }

    /// Whether a queue uses more than its own of anything.
    pub fn is_borrowing(&self, queue: &str) -> bool {
        let accounts = self.queues.get(queue).into_iter().flat_map(|(_, accounts)| accounts.values());
        accounts.into_iter().any(|account| account.used > account.nominal)
    }

    /// No queue is over what it may borrow, and no cohort over what its queues have together.
    pub fn check(&self) -> Result<(), String> {
        let mut cohorts: BTreeMap<(&String, &Cell), (i128, i128)> = BTreeMap::new();
        for (name, (cohort, accounts)) in &self.queues {
            for (cell, account) in accounts {
                let limit = if cohort.is_some() { account.limit } else { Some(0) };
                if limit.is_some_and(|limit| account.used > account.nominal + limit) {
                    return Err(format!("ClusterQueue {name} is over its limit of {cell:?}"));
                }
                if let Some(cohort) = cohort {
                    let (used, nominal) = cohorts.entry((cohort, cell)).or_default();
                    *used += account.used;
                    *nominal += account.nominal;
                }
            }
        }
        match cohorts.into_iter().find(|(_, (used, nominal))| used > nominal) {
            Some(((cohort, cell), _)) => Err(format!("cohort {cohort} is over its quota of {cell:?}")),
            None => Ok(()),
        }
    }
}

/// The queue that a workload holds quota of.
pub(super) fn queue_of(workload: &KueueWorkload) -> Option<&str> {
    Some(workload.status.as_ref()?.admission.as_ref()?.cluster_queue.as_str())
}

/// The queue, the cell and the amount of all that a workload holds; one that is over holds nothing.
fn held(workload: &KueueWorkload) -> Result<Vec<(String, Cell, i128)>, String> {
    let Some(status) = &workload.status else { return Ok(Vec::new()) };
    let over = status.conditions.iter().any(|condition| condition.type_ == "Finished" && condition.status == "True");
    let mut all = Vec::new();
    for admission in status.admission.iter().filter(|_| !over) {
        for set in &admission.pod_set_assignments {
            for (resource, used) in &set.resource_usage {
                let flavor = set.flavors.get(resource).cloned().unwrap_or_default();
                all.push((admission.cluster_queue.clone(), (flavor, resource.clone()), amount(used)?));
            }
        }
    }
    Ok(all)
}

fn amount(value: &Value) -> Result<i128, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    quantity::parse_nano(&text).map_err(|error| format!("{text:?} {error}"))
}
