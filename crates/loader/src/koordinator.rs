//! Reads Koordinator's elastic quotas and jobs, and the labels of its pods. The rules are in `docs/rules/koordinator.md`.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::koordinator::{ElasticQuota, PARENT, QUOTA, label};
use reprieve_api::{InputError, NamespacedName, ObjectSet, Pod, job_of, quantity};
use reprieve_engine::queues::QueueTree;
use reprieve_engine::{JobId, QueueId};
use serde_json::Value;

use crate::requests::amount;
use crate::{Amounts, QueueSpec, by_name, path_from_root};

const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
/// The label of a pod that may preempt; its value is `true`.
pub const CAN_PREEMPT: &str = "quota.scheduling.koordinator.sh/can-preempt";
/// The label of a pod that cannot be preempted; its value is `true`.
pub const DISABLE_PREEMPTIBLE: &str = "scheduling.koordinator.sh/disable-preemptible";

/// The quotas, parents first.
#[derive(Debug, Default)]
pub struct ElasticQuotaTree {
    /// Min is the guarantee, max the limit.
    pub specs: Vec<QueueSpec>,
    /// The index of each quota in `specs`.
    index_by_name: BTreeMap<String, usize>,
}

/// Reads the quota tree; `None` if there is no ElasticQuota.
pub fn quota_tree(objects: &ObjectSet) -> Result<Option<ElasticQuotaTree>, InputError> {
    if objects.elastic_quotas.is_empty() {
        return Ok(None);
    }
    let named = by_name::<String, _>(&objects.elastic_quotas)?;
    let parent_of = |name: &String| -> Option<String> {
        let labels = named.get(name)?.object.metadata.labels.as_ref()?;
        labels.get(PARENT).filter(|parent| !parent.is_empty() && *parent != "koordinator-root-quota").cloned()
    };
    let mut tree = ElasticQuotaTree::default();
    for (name, quota) in &named {
        let error = |parent: &str, problem: &str| {
            let problem = format!("quota {parent:?} {problem}");
            quota.locate(InputError::new(problem).field(format!("metadata.labels[{PARENT}]")))
        };
        let path = path_from_root(name, parent_of)
            .map_err(|parent| error(&parent, "is an ancestor of itself; break the cycle"))?;
        let mut parent = None;
        for name in path {
            let quota = named.get(&name).ok_or_else(|| error(&name, "is not in the input; add it, or name another"))?;
            if !tree.index_by_name.contains_key(&name) {
                let spec = queue_spec(name.clone(), parent, &quota.object).map_err(|error| quota.locate(error))?;
                tree.index_by_name.insert(name.clone(), tree.specs.len());
                tree.specs.push(spec);
            }
            parent = Some(tree.index_by_name[&name]);
        }
    }
    Ok(Some(tree))
}

fn queue_spec(name: String, parent: Option<usize>, quota: &ElasticQuota) -> Result<QueueSpec, InputError> {
    let guarantee = amounts(&quota.spec.min, "spec.min")?;
    let limit = amounts(&quota.spec.max, "spec.max")?;
    for (resource, min) in &guarantee {
        if let Some(max) = limit.get(resource).filter(|max| *max < min) {
            let (min, max) = (quantity::format(resource, *min), quantity::format(resource, *max));
            let problem = format!("{min} is above spec.max, which is {max}; lower the one or raise the other");
            return Err(InputError::new(problem).field(format!("spec.min.{resource}")));
        }
    }
    Ok(QueueSpec { name, parent, guarantee, limit })
}

impl ElasticQuotaTree {
    /// Returns the quota that a pod names. A pod that names none is limited only by the nodes.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, InputError> {
        let Some(name) = label(pod, QUOTA) else { return Ok(None) };
        let index = self.index_by_name.get(name).ok_or_else(|| {
            let problem = format!("quota {name:?} is not in the input; add it, or name another");
            InputError::new(problem).field(format!("metadata.labels[{QUOTA}]"))
        })?;
        Ok(Some(QueueId::new(*index)))
    }

    /// Returns the tree for the engine.
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

/// Whether a pod may be preempted, by its label; `None` without the label.
pub fn preemptible(pod: &Pod) -> Option<bool> {
    label(pod, PREEMPTIBLE).map(|value| value != "false")
}

/// Returns the id and the minimum size of every job that a pod names or a PodGroup defines. All pods of a job must have the same value of
/// the label `preemptible`.
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
            let (first, other) = declared.entry(job.clone()).or_insert_with(|| (value, pod.name()));
            if *first != value {
                let problem = format!("differs from that of pod {other}; give all pods of job {job} the same value");
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
