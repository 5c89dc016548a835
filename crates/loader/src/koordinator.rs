//! The quota tree and the jobs of Koordinator, and what its pods say of themselves.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::koordinator::{ElasticQuota, PARENT, QUOTA, label};
use reprieve_api::{InputError, NamespacedName, ObjectSet, Pod, job_of, quantity};
use reprieve_engine::queues::QueueTree;
use reprieve_engine::{JobId, QueueId};
use serde_json::Value;

use crate::requests::amount;
use crate::{Amounts, QueueSpec, by_name};

const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
/// The label of a pod that may preempt; its value is `true`.
pub const CAN_PREEMPT: &str = "quota.scheduling.koordinator.sh/can-preempt";
/// The label of a pod that cannot be preempted; its value is `true`.
pub const DISABLE_PREEMPTIBLE: &str = "scheduling.koordinator.sh/disable-preemptible";

/// The quotas, parents first.
#[derive(Debug, Default)]
pub struct ElasticQuotaTree {
    /// The quotas as plain accounts: min is the guarantee, max the ceiling.
    pub specs: Vec<QueueSpec>,
    /// Where each stands in `accounts`.
    index_by_name: BTreeMap<String, usize>,
}

/// `None` where there is no ElasticQuota.
pub fn quota_tree(objects: &ObjectSet) -> Result<Option<ElasticQuotaTree>, InputError> {
    if objects.elastic_quotas.is_empty() {
        return Ok(None);
    }
    let named = by_name::<String, _>(&objects.elastic_quotas)?;
    let parent_of = |name: &str| -> Option<&String> {
        let labels = named.get(name)?.object.metadata.labels.as_ref()?;
        labels.get(PARENT).filter(|parent| !parent.is_empty() && *parent != "koordinator-root-quota")
    };
    let mut tree = ElasticQuotaTree::default();
    for (name, quota) in &named {
        let mut path = vec![name.clone()];
        while let Some(parent) = parent_of(&path[path.len() - 1]) {
            let wrong = |problem: &str| {
                let problem = format!("quota {parent:?} {problem}");
                Err(quota.locate(InputError::new(problem).field(format!("metadata.labels[{PARENT}]"))))
            };
            if path.contains(parent) {
                return wrong("is above itself; break the cycle");
            }
            if !named.contains_key(parent) {
                return wrong("is not in the input; add it, or name another");
            }
            path.push(parent.clone());
        }
        for name in path.into_iter().rev() {
            if tree.find(&name).is_none() {
                let parent = parent_of(&name).and_then(|parent| tree.find(parent));
                let quota = named[&name];
                let spec = queue_spec(name.clone(), parent, &quota.object).map_err(|error| quota.locate(error))?;
                tree.index_by_name.insert(name, tree.specs.len());
                tree.specs.push(spec);
            }
        }
    }
    Ok(Some(tree))
}

fn queue_spec(name: String, parent: Option<usize>, quota: &ElasticQuota) -> Result<QueueSpec, InputError> {
    let guarantee = amounts(&quota.spec.min, "spec.min")?;
    let limit = amounts(&quota.spec.max, "spec.max")?;
    refuse_min_above_max(&guarantee, &limit)?;
    Ok(QueueSpec { name, parent, guarantee, limit })
}

fn refuse_min_above_max(min: &Amounts, max: &Amounts) -> Result<(), InputError> {
    for (resource, min) in min {
        if let Some(max) = max.get(resource).filter(|max| *max < min) {
            let (min, max) = (quantity::format(resource, *min), quantity::format(resource, *max));
            let problem = format!("{min} is above spec.max, which is {max}; lower the one or raise the other");
            return Err(InputError::new(problem).field(format!("spec.min.{resource}")));
        }
    }
    Ok(())
}

impl ElasticQuotaTree {
    fn find(&self, name: &str) -> Option<usize> {
        self.index_by_name.get(name).copied()
    }

    /// The quota that a pod names; one that names none is held by the nodes alone.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, InputError> {
        let Some(name) = label(pod, QUOTA) else { return Ok(None) };
        match self.find(name) {
            Some(index) => Ok(Some(QueueId::new(index))),
            None => {
                let problem = format!("quota {name:?} is not in the input; add it, or name another");
                Err(InputError::new(problem).field(format!("metadata.labels[{QUOTA}]")))
            }
        }
    }

    /// The tree as the engine has it.
    pub fn to_queue_tree(&self, resources: &[String]) -> QueueTree {
        QueueTree::new(true, resources.len(), self.specs.iter().map(|spec| spec.queue(resources)).collect())
    }
}

fn amounts(written: &BTreeMap<String, Value>, path: &str) -> Result<Amounts, InputError> {
    let read = |(resource, value): (&String, &Value)| {
        let amount = amount(resource, value).map_err(|error| error.field(format!("{path}.{resource}")))?;
        Ok((resource.clone(), amount))
    };
    written.iter().map(read).collect()
}

/// What a pod says of being preempted; `None` where it says nothing.
pub fn preemptible(pod: &Pod) -> Option<bool> {
    label(pod, PREEMPTIBLE).map(|value| value != "false")
}

/// The jobs that pods name or that are defined, by name, with how many pods each needs. One whose pods disagree on whether they can
/// be preempted is an error.
pub fn jobs(objects: &ObjectSet) -> Result<BTreeMap<NamespacedName, (JobId, usize)>, InputError> {
    let defined = by_name::<NamespacedName, _>(&objects.koordinator_pod_groups)?;
    for group in defined.values() {
        let needed = group.object.spec.min_member;
        if needed < 0 {
            let error = InputError::new(format!("{needed} is negative; write 0 or more")).field("spec.minMember");
            return Err(group.locate(error));
        }
    }
    let mut declared: BTreeMap<NamespacedName, (Option<bool>, NamespacedName)> = BTreeMap::new();
    for pod in &objects.pods {
        if let Some(job) = job_of(&pod.object) {
            let value = preemptible(&pod.object);
            let (first, of) =
                declared.entry(job.clone()).or_insert_with(|| (value, NamespacedName::from_meta(&pod.object.metadata)));
            if *first != value {
                let problem = format!("pod {of} of job {job} says otherwise; all pods of a job say the same");
                return Err(pod.locate(InputError::new(problem).field(format!("metadata.labels[{PREEMPTIBLE}]"))));
            }
        }
    }
    let names: BTreeSet<NamespacedName> = declared.into_keys().chain(defined.keys().cloned()).collect();
    let numbered = names.into_iter().enumerate().map(|(index, name)| {
        let min_member = defined.get(&name).map_or(0, |group| group.object.spec.min_member);
        (name, (JobId::new(index), usize::try_from(min_member).unwrap_or(0)))
    });
    Ok(numbered.collect())
}
