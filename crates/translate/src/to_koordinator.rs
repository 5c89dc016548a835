//! Accounts as Koordinator's quotas, PodGroups as its jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::queue_tree::Accounts;
use crate::synthetic::{made, named};
use reprieve_api::koordinator::{ElasticQuota, JOB, JobGroup, JobSpec, PARENT, QUOTA, QuotaSpec};
use reprieve_api::membership::group_of;
use reprieve_api::meta::FullName;
use reprieve_api::object_set::Objects;
use reprieve_api::quantity::written;
use reprieve_loader::request::Amounts;

impl Accounts {
    pub(crate) fn as_koordinator(&self, plain: &Objects) -> Objects {
        let mut mapped = plain.clone();
        for (at, account) in self.accounts.iter().enumerate() {
            let mut metadata = named(&self.names[at], Some("default"));
            metadata.labels =
                account.parent.map(|parent| BTreeMap::from([(PARENT.to_owned(), self.names[parent].clone())]));
            let spec = QuotaSpec { min: amounts(&account.guarantee), max: amounts(&account.ceiling) };
            mapped.elastic_quotas.push(made(ElasticQuota { metadata, spec, ..ElasticQuota::default() }));
        }
        for pod in &mut mapped.pods {
            let name = FullName::of(&pod.object.metadata);
            let job = group_of(&pod.object);
            let labels = Arc::make_mut(&mut pod.object).metadata.labels.get_or_insert_default();
            labels.retain(|key, _| key != QUOTA && key != JOB);
            labels.extend(self.of_pod.get(&name).map(|&at| (QUOTA.to_owned(), self.names[at].clone())));
            labels.extend(job.map(|job| (JOB.to_owned(), job.name)));
        }
        for group in &plain.pod_groups {
            let name = FullName::of(&group.object.metadata);
            let min_member =
                group.object.spec.scheduling_policy.gang.as_ref().map_or(0, |gang| i64::from(gang.min_count));
            mapped.job_groups.push(made(JobGroup {
                metadata: named(&name.name, Some(&name.namespace)),
                spec: JobSpec { min_member },
                ..JobGroup::default()
            }));
        }
        mapped
    }
}

fn amounts(amounts: &Amounts) -> BTreeMap<String, Value> {
    amounts.iter().map(|(resource, amount)| (resource.clone(), json!(written(resource, *amount)))).collect()
}
