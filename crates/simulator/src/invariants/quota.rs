//! The use of quota under policy Kueue, computed from the objects without the engine.

use std::collections::BTreeMap;

use reprieve_api::kueue::{ClusterQueue, KueueWorkload};
use reprieve_api::{ObjectSet, quantity};
use serde_json::Value;

/// The names of a flavor and of a resource.
type FlavorResource = (String, String);

/// The quota and the use of a ClusterQueue for one flavor and resource, in billionths.
#[derive(Clone, Copy, Default)]
struct QuotaUse {
    nominal: i128,
    limit: Option<i128>,
    used: i128,
}

/// The quota and use of all ClusterQueues, each with its cohort.
pub(super) struct Quota {
    queues: BTreeMap<String, (Option<String>, BTreeMap<FlavorResource, QuotaUse>)>,
}

impl Quota {
    /// The use of quota by the workloads. An evicted workload keeps its quota until it is requeued.
    pub fn of(objects: &ObjectSet) -> Result<Self, String> {
        let mut quota = Self { queues: BTreeMap::new() };
        for queue in &objects.cluster_queues {
            let ClusterQueue { metadata, spec, .. } = &*queue.object;
            let mut uses = BTreeMap::new();
            for flavor in spec.resource_groups.iter().flat_map(|group| &group.flavors) {
                for resource in &flavor.resources {
                    let quota_use = QuotaUse {
                        nominal: amount(&resource.nominal_quota)?,
                        limit: resource.borrowing_limit.as_ref().map(amount).transpose()?,
                        used: 0,
                    };
                    uses.insert((flavor.name.clone(), resource.name.clone()), quota_use);
                }
            }
            quota.queues.insert(metadata.name.clone().unwrap_or_default(), (spec.cohort_name.clone(), uses));
        }
        for workload in &objects.kueue_workloads {
            for (queue, flavor_resource, amount) in held(&workload.object)? {
                quota.charge(&queue, flavor_resource, amount);
            }
        }
        Ok(quota)
    }

    fn charge(&mut self, queue: &str, flavor_resource: FlavorResource, amount: i128) {
        if let Some((_, uses)) = self.queues.get_mut(queue) {
            uses.entry(flavor_resource).or_default().used += amount;
        }
    }

    /// Subtracts the quota of a workload.
    pub fn release(&mut self, workload: &KueueWorkload) -> Result<(), String> {
        for (queue, flavor_resource, amount) in held(workload)? {
            self.charge(&queue, flavor_resource, -amount);
        }
        Ok(())
    }

    /// Whether a queue uses more than its nominal quota of any resource.
    pub fn is_borrowing(&self, queue: &str) -> bool {
        let uses = self.queues.get(queue).into_iter().flat_map(|(_, uses)| uses.values());
        uses.into_iter().any(|quota_use| quota_use.used > quota_use.nominal)
    }

    /// Checks the borrowing limit of each queue and the total quota of each cohort.
    pub fn check(&self) -> Result<(), String> {
        let mut cohorts: BTreeMap<(&String, &FlavorResource), (i128, i128)> = BTreeMap::new();
        for (name, (cohort, uses)) in &self.queues {
            for (flavor_resource, quota_use) in uses {
                let limit = if cohort.is_some() { quota_use.limit } else { Some(0) };
                if limit.is_some_and(|limit| quota_use.used > quota_use.nominal + limit) {
                    return Err(format!("ClusterQueue {name} uses more than its limit of {flavor_resource:?}"));
                }
                if let Some(cohort) = cohort {
                    let (used, nominal) = cohorts.entry((cohort, flavor_resource)).or_default();
                    *used += quota_use.used;
                    *nominal += quota_use.nominal;
                }
            }
        }
        match cohorts.into_iter().find(|(_, (used, nominal))| used > nominal) {
            Some(((cohort, flavor_resource), _)) => {
                Err(format!("cohort {cohort} uses more than its quota of {flavor_resource:?}"))
            }
            None => Ok(()),
        }
    }
}

/// The ClusterQueue that a workload has quota in.
pub(super) fn queue_of(workload: &KueueWorkload) -> Option<&str> {
    Some(workload.status.as_ref()?.admission.as_ref()?.cluster_queue.as_str())
}

/// The quota of a workload: ClusterQueue, flavor and resource, amount. A finished workload has none.
fn held(workload: &KueueWorkload) -> Result<Vec<(String, FlavorResource, i128)>, String> {
    let Some(status) = &workload.status else { return Ok(Vec::new()) };
    let is_finished =
        status.conditions.iter().any(|condition| condition.type_ == "Finished" && condition.status == "True");
    let mut all = Vec::new();
    for admission in status.admission.iter().filter(|_| !is_finished) {
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
