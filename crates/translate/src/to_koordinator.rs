//! Translates queues to Koordinator's ElasticQuotas, and PodGroups to its jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::koordinator::{
    ElasticQuota, ElasticQuotaSpec, JOB, KoordinatorPodGroup, KoordinatorPodGroupSpec, PARENT, QUOTA,
};
use reprieve_api::quantity::format;
use reprieve_api::{ObjectSet, group_of};
use reprieve_loader::{Amounts, QueueSpec};
use serde_json::{Value, json};

use crate::queue_tree::NeutralQueues;
use crate::synthetic::{named, synthetic};

/// Returns an ElasticQuota for each queue.
pub fn elastic_quotas(queues: &NeutralQueues) -> impl Iterator<Item = ElasticQuota> {
    queues.queues.iter().map(|QueueSpec { name, parent, guarantee, limit }| {
        let mut metadata = named(name, None);
        metadata.labels = parent.map(|index| BTreeMap::from([(PARENT.to_owned(), queues.queues[index].name.clone())]));
        let spec = ElasticQuotaSpec { min: amounts(guarantee), max: amounts(limit) };
        ElasticQuota { metadata, spec, ..ElasticQuota::default() }
    })
}

fn amounts(amounts: &Amounts) -> BTreeMap<String, Value> {
    amounts.iter().map(|(resource, amount)| (resource.clone(), json!(format(resource, *amount)))).collect()
}

impl NeutralQueues {
    /// Returns the cluster with these queues. A label of each pod names its quota, another one its job.
    pub(crate) fn to_koordinator(&self, plain: &ObjectSet) -> ObjectSet {
        let mut translated = plain.clone();
        translated.elastic_quotas.extend(elastic_quotas(self).map(synthetic));
        for pod in &mut translated.pods {
            let name = pod.name();
            let job = group_of(&pod.object);
            let labels = Arc::make_mut(&mut pod.object).metadata.labels.get_or_insert_default();
            labels.retain(|key, _| key != QUOTA && key != JOB);
            labels.extend(self.queue_of(&name).map(|queue| (QUOTA.to_owned(), queue.to_owned())));
            labels.extend(job.map(|job| (JOB.to_owned(), job.name)));
        }
        for group in &plain.pod_groups {
            let name = group.name();
            let min_member =
                group.object.spec.scheduling_policy.gang.as_ref().map_or(0, |gang| i64::from(gang.min_count));
            translated.koordinator_pod_groups.push(synthetic(KoordinatorPodGroup {
                metadata: named(&name.name, Some(&name.namespace)),
                spec: KoordinatorPodGroupSpec { min_member },
                ..KoordinatorPodGroup::default()
            }));
        }
        translated
    }
}
