//! The quota tree of policy Kueue before and after a decision.

use reprieve_engine::policy::kueue::{Assignment, FlavorResourceUsage, Kueue, QueueUsage, queue_usage};
use reprieve_engine::{FlavorId, FlavorResourceId, Outcome, QueueId, QuotaResourceId, WorkloadId};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::queue_report::FormattedAmount;
use crate::reasons::share;
use reprieve_api::quantity::format;
use reprieve_loader::Loaded;

/// A ClusterQueue or a Cohort of the preemptor's tree.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CohortReport {
    /// The name of the ClusterQueue or Cohort.
    pub name: String,
    /// The number of cohorts above.
    #[serde(skip)]
    pub depth: usize,
    /// The parent cohort.
    pub cohort: Option<String>,
    /// The quota of the flavors and resources that the preemptor requests.
    pub quota: Vec<FlavorQuotaReport>,
    /// Under fair sharing: the share before, in thousandths rounded down, or `infinite`.
    pub share: Option<String>,
    /// The share after.
    pub share_after: Option<String>,
}

/// The quota of one resource of one flavor.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavorQuotaReport {
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The nominal quota of the queue or cohort and of everything below.
    pub nominal: FormattedAmount,
    /// Usage before, in and below the queue or cohort.
    pub used: FormattedAmount,
    /// Usage above the nominal quota, before.
    pub borrowed: FormattedAmount,
    /// Nominal quota that other queues use.
    pub lent: FormattedAmount,
    /// Usage after the victims are evicted and the preemptor runs.
    pub after: FormattedAmount,
    /// Usage above the nominal quota, after.
    pub borrowed_after: FormattedAmount,
    /// Nominal quota that other queues use after.
    pub lent_after: FormattedAmount,
}

/// The preemptor's tree, parents first.
pub fn quotas(
    loaded: &Loaded,
    policy: &Kueue,
    preemptor: WorkloadId,
    outcome: &Outcome,
    assignment: Option<&Assignment>,
) -> Vec<CohortReport> {
    let snapshot = &loaded.snapshot;
    let Some(queue) = snapshot.workload(preemptor).queue else { return Vec::new() };
    let flavor_resources = flavor_resources(loaded, preemptor, queue, assignment);
    let ids: Vec<FlavorResourceId> = flavor_resources.iter().map(|(id, _, _)| *id).collect();
    let evicted: Vec<WorkloadId> = match outcome {
        Outcome::Preempt(plan) => plan.victims.iter().filter_map(|&unit| snapshot.unit(unit).workload).collect(),
        Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => Vec::new(),
    };
    let before = queue_usage(snapshot, policy, queue, &ids, &[], None);
    let after = queue_usage(snapshot, policy, queue, &ids, &evicted, assignment);
    let report = |(before, after): (&QueueUsage, &QueueUsage)| {
        let cohort = snapshot.queues().get(before.queue).parent;
        let quota = flavor_resources.iter().zip(before.flavor_resources.iter().zip(&after.flavor_resources));
        CohortReport {
            name: loaded.names.queue(before.queue).to_owned(),
            depth: before.depth,
            cohort: cohort.map(|cohort| loaded.names.queue(cohort).to_owned()),
            quota: quota
                .map(|((_, flavor, resource), (before, after))| flavor_quota(loaded, *flavor, *resource, before, after))
                .collect(),
            share: before.share.map(share),
            share_after: after.share.map(share),
        }
    };
    before.iter().zip(&after).map(report).collect()
}

/// The flavors and resources of the assignment; without one, all that the preemptor's queue offers of the requested resources.
fn flavor_resources(
    loaded: &Loaded,
    preemptor: WorkloadId,
    queue: QueueId,
    assignment: Option<&Assignment>,
) -> Vec<(FlavorResourceId, FlavorId, QuotaResourceId)> {
    let rules = loaded.snapshot.quota_rules();
    let sets = &loaded.snapshot.workload(preemptor).pod_sets;
    let is_requested = |resource: QuotaResourceId| {
        let mut requests = sets.iter().flat_map(|set| &set.requests);
        requests.any(|(of, amount)| *of == resource && *amount > 0) || rules.pods == Some(resource)
    };
    let mut found = Vec::new();
    for group in &rules.queues[queue.index()].groups {
        for &flavor in &group.flavors {
            for &resource in group.resources.iter().filter(|resource| is_requested(**resource)) {
                let id = rules.flavor_resource(flavor, resource);
                let is_assigned = |id: &FlavorResourceId| {
                    assignment.is_none_or(|assignment| assignment.usage.iter().any(|(used, _)| used == id))
                };
                found.extend(id.filter(is_assigned).map(|id| (id, flavor, resource)));
            }
        }
    }
    found
}

fn flavor_quota(
    loaded: &Loaded,
    flavor: FlavorId,
    resource: QuotaResourceId,
    before: &FlavorResourceUsage,
    after: &FlavorResourceUsage,
) -> FlavorQuotaReport {
    let resource = loaded.names.quota_resource(resource);
    let amount = |number: i64| FormattedAmount { number, text: format(resource, number) };
    FlavorQuotaReport {
        flavor: loaded.names.flavor(flavor).to_owned(),
        resource: resource.to_owned(),
        nominal: amount(before.nominal),
        used: amount(before.used),
        borrowed: amount(before.borrowed),
        lent: amount(before.lent),
        after: amount(after.used),
        borrowed_after: amount(after.borrowed),
        lent_after: amount(after.lent),
    }
}
