//! Queues as Koordinator's ElasticQuotas, PodGroups as its jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::koordinator::{
    ElasticQuota, ElasticQuotaSpec, JOB, KoordinatorPodGroup, KoordinatorPodGroupSpec, PARENT, QUOTA,
};
use reprieve_api::quantity::format;
use reprieve_api::{NamespacedName, ObjectSet, group_of};
use reprieve_loader::{Amounts, QueueSpec};
use serde_json::{Value, json};

use crate::queue_tree::NeutralQueues;
use crate::synthetic::{made, named};

/// An ElasticQuota for each queue.
pub fn elastic_quotas(queues: &NeutralQueues) -> impl Iterator<Item = ElasticQuota> {
    queues.queues.iter().map(|QueueSpec { name, parent, guarantee, ceiling }| {
        let mut metadata = named(name, None);
        metadata.labels = parent.map(|at| BTreeMap::from([(PARENT.to_owned(), queues.queues[at].name.clone())]));
        let spec = ElasticQuotaSpec { min: amounts(guarantee), max: amounts(ceiling) };
        ElasticQuota { metadata, spec, ..ElasticQuota::default() }
    })
}

fn amounts(amounts: &Amounts) -> BTreeMap<String, Value> {
    amounts.iter().map(|(resource, amount)| (resource.clone(), json!(format(resource, *amount)))).collect()
}

impl NeutralQueues {
    /// The cluster with these queues; each pod names its quota and its job.
    pub(crate) fn to_koordinator(&self, plain: &ObjectSet) -> ObjectSet {
        let mut mapped = plain.clone();
        mapped.elastic_quotas.extend(elastic_quotas(self).map(made));
        for pod in &mut mapped.pods {
            let name = NamespacedName::from_meta(&pod.object.metadata);
            let job = group_of(&pod.object);
            let labels = Arc::make_mut(&mut pod.object).metadata.labels.get_or_insert_default();
            labels.retain(|key, _| key != QUOTA && key != JOB);
            labels.extend(self.queue_of(&name).map(|queue| (QUOTA.to_owned(), queue.to_owned())));
            labels.extend(job.map(|job| (JOB.to_owned(), job.name)));
        }
        for group in &plain.pod_groups {
            let name = NamespacedName::from_meta(&group.object.metadata);
            let min_member =
                group.object.spec.scheduling_policy.gang.as_ref().map_or(0, |gang| i64::from(gang.min_count));
            mapped.koordinator_pod_groups.push(made(KoordinatorPodGroup {
                metadata: named(&name.name, Some(&name.namespace)),
                spec: KoordinatorPodGroupSpec { min_member },
                ..KoordinatorPodGroup::default()
            }));
        }
        mapped
    }
}
