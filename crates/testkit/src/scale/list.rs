//! Writes all objects as one `kind: List`, as `kubectl get` does.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use reprieve_api::koordinator::{ElasticQuota, KoordinatorPodGroup};
use reprieve_api::kueue::{ClusterQueue, Cohort, KueueWorkload, LocalQueue, ResourceFlavor};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::Pod;
use serde::Serialize;

/// A `kind: List`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct List<'o> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Item<'o>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'o> {
    Node(&'o Node),
    PriorityClass(&'o PriorityClass),
    Budget(&'o PodDisruptionBudget),
    PodGroup(&'o PodGroup),
    Pod(&'o Pod),
    ConfigMap(&'o ConfigMap),
    Quota(&'o ElasticQuota),
    Job(&'o KoordinatorPodGroup),
    Flavor(&'o ResourceFlavor),
    ClusterQueue(&'o ClusterQueue),
    Cohort(&'o Cohort),
    LocalQueue(&'o LocalQueue),
    KueueWorkload(&'o KueueWorkload),
}

impl<'o> List<'o> {
    pub fn new(objects: &'o ObjectSet) -> Self {
        let nodes = objects.nodes.iter().map(|node| Item::Node(&node.object));
        let classes = objects.priority_classes.iter().map(|class| Item::PriorityClass(&class.object));
        let budgets = objects.budgets.iter().map(|budget| Item::Budget(&budget.object));
        let groups = objects.pod_groups.iter().map(|group| Item::PodGroup(&group.object));
        let pods = objects.pods.iter().map(|pod| Item::Pod(&pod.object));
        let maps = objects.config_maps.iter().map(|map| Item::ConfigMap(&map.object));
        let quotas = objects.elastic_quotas.iter().map(|quota| Item::Quota(&quota.object));
        let jobs = objects.koordinator_pod_groups.iter().map(|job| Item::Job(&job.object));
        let items = nodes.chain(classes).chain(budgets).chain(groups).chain(pods).chain(maps).chain(quotas).chain(jobs);
        let flavors = objects.resource_flavors.iter().map(|flavor| Item::Flavor(&flavor.object));
        let cohorts = objects.cohorts.iter().map(|cohort| Item::Cohort(&cohort.object));
        let queues = objects.cluster_queues.iter().map(|queue| Item::ClusterQueue(&queue.object));
        let ways = objects.local_queues.iter().map(|queue| Item::LocalQueue(&queue.object));
        let workloads = objects.kueue_workloads.iter().map(|workload| Item::KueueWorkload(&workload.object));
        let items = items.chain(flavors).chain(cohorts).chain(queues).chain(ways).chain(workloads).collect();
        Self { api_version: "v1", kind: "List", items }
    }
}
