//! The quota tree and the jobs of Koordinator, and what its pods say of themselves.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::koordinator::{PARENT, QUOTA, label};
use reprieve_api::{FullName, InputError, Kind, ObjectRef, Objects, Pod, Sourced, job_of, quantity};
use reprieve_engine::queues::{PriorityRule, Queue, Queues, UNDEFINED};
use reprieve_engine::{JobId, QueueId};
use serde_json::Value;

use crate::{Account, Interner, by_name};

const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
const CAN_PREEMPT: &str = "quota.scheduling.koordinator.sh/can-preempt";
const DISABLE_PREEMPTIBLE: &str = "scheduling.koordinator.sh/disable-preemptible";

/// The quotas, parents first.
#[derive(Debug, Default)]
pub struct QuotaTree {
    pub names: Vec<String>,
    /// Where each stands in `names`.
    places: BTreeMap<String, usize>,
    quotas: Vec<NamedQuota>,
}

#[derive(Debug)]
struct NamedQuota {
    parent: Option<usize>,
    min: BTreeMap<String, i64>,
    max: BTreeMap<String, i64>,
}

/// `None` where there is no ElasticQuota.
pub fn quota_tree(objects: &Objects) -> Result<Option<QuotaTree>, InputError> {
    if objects.elastic_quotas.is_empty() {
        return Ok(None);
    }
    let named =
        by_name(Kind::ElasticQuota, &objects.elastic_quotas, |quota| quota.metadata.name.clone().unwrap_or_default())?;
    let parent_of = |name: &str| -> Option<&String> {
        let labels = named.get(name)?.object.metadata.labels.as_ref()?;
        labels.get(PARENT).filter(|parent| !parent.is_empty() && *parent != "koordinator-root-quota")
    };
    let mut tree = QuotaTree::default();
    for (name, Sourced { source, .. }) in &named {
        let located = |error: InputError| error.at(source).object(ObjectRef::of(Kind::ElasticQuota, name));
        let mut path = vec![name.clone()];
        while let Some(parent) = parent_of(&path[path.len() - 1]) {
            let label = format!("metadata.labels[{PARENT}]");
            if path.contains(parent) {
                let problem = format!("quota {parent:?} is above itself; break the cycle");
                return Err(located(InputError::new(problem).field(label)));
            }
            if !named.contains_key(parent) {
                let problem = format!("quota {parent:?} is not in the input; add it, or name another");
                return Err(located(InputError::new(problem).field(label)));
            }
            path.push(parent.clone());
        }
        for name in path.iter().rev() {
            if tree.find(name).is_none() {
                let Sourced { object, source } = named[name];
                let located = |error: InputError| error.at(source).object(ObjectRef::of(Kind::ElasticQuota, name));
                let parent = parent_of(name).and_then(|parent| tree.find(parent));
                let min = amounts(&object.spec.min, "spec.min").map_err(located)?;
                let max = amounts(&object.spec.max, "spec.max").map_err(located)?;
                refuse_min_above_max(&min, &max).map_err(located)?;
                tree.places.insert(name.clone(), tree.names.len());
                tree.names.push(name.clone());
                tree.quotas.push(NamedQuota { parent, min, max });
            }
        }
    }
    Ok(Some(tree))
}

fn refuse_min_above_max(min: &BTreeMap<String, i64>, max: &BTreeMap<String, i64>) -> Result<(), InputError> {
    for (resource, min) in min {
        if let Some(max) = max.get(resource).filter(|max| *max < min) {
            let (min, max) = (quantity::written(resource, *min), quantity::written(resource, *max));
            let problem = format!("{min} is above spec.max, which is {max}; lower the one or raise the other");
            return Err(InputError::new(problem).field(format!("spec.min.{resource}")));
        }
    }
    Ok(())
}

impl QuotaTree {
    fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The quotas as plain accounts.
    pub fn accounts(&self) -> Vec<Account> {
        let account = |(name, quota): (&String, &NamedQuota)| Account {
            name: name.clone(),
            parent: quota.parent,
            guarantee: quota.min.clone(),
            ceiling: quota.max.clone(),
        };
        self.names.iter().zip(&self.quotas).map(account).collect()
    }

    /// The quota that a pod names; one that names none is held by the nodes alone.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, InputError> {
        let Some(name) = label(pod, QUOTA) else {
            return Ok(None);
        };
        match self.find(name) {
            Some(at) => Ok(Some(QueueId::new(at))),
            None => {
                let problem = format!("quota {name:?} is not in the input; add it, or name another");
                Err(InputError::new(problem).field(format!("metadata.labels[{QUOTA}]")))
            }
        }
    }

    /// The resources that quotas are about get numbers too.
    pub fn intern_resources(&self, resources: &mut Interner) {
        for quota in &self.quotas {
            for resource in quota.min.keys().chain(quota.max.keys()) {
                resources.id(resource);
            }
        }
    }

    /// The tree as the engine has it: min is the guarantee, max the ceiling.
    pub fn queues(&self, resources: &[String]) -> Queues {
        let by_resource = |amounts: &BTreeMap<String, i64>| -> Vec<i64> {
            resources.iter().map(|resource| amounts.get(resource).copied().unwrap_or(UNDEFINED)).collect()
        };
        let queue = |quota: &NamedQuota| Queue {
            parent: quota.parent.map(QueueId::new),
            guarantee: by_resource(&quota.min),
            ceiling: by_resource(&quota.max),
            keeps: vec![0; resources.len()],
            fence: false,
            yields: true,
            delay_micros: 0,
            priority: PriorityRule::Offset(0),
        };
        Queues::new(true, resources.len(), self.quotas.iter().map(queue).collect())
    }
}

fn amounts(written: &BTreeMap<String, Value>, path: &str) -> Result<BTreeMap<String, i64>, InputError> {
    let amount = |(resource, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let exact = quantity::billionths(&text);
        let amount = exact
            .and_then(|exact| if resource == "cpu" { quantity::thousandths(exact) } else { quantity::units(exact) });
        let wrong = |error| InputError::new(format!("{text:?} {error}")).field(format!("{path}.{resource}"));
        Ok((resource.clone(), amount.map_err(wrong)?))
    };
    written.iter().map(amount).collect()
}

/// What a pod says of being preempted and of preempting.
pub struct Words {
    pub preemptible: Option<bool>,
    pub disabled: bool,
    pub can_preempt: bool,
}

pub fn words_of(pod: &Pod) -> Words {
    Words {
        preemptible: label(pod, PREEMPTIBLE).map(|word| word != "false"),
        disabled: label(pod, DISABLE_PREEMPTIBLE) == Some("true"),
        can_preempt: label(pod, CAN_PREEMPT) == Some("true"),
    }
}

/// The jobs that pods name or that are defined, by name, with how many pods each needs. One whose pods disagree on whether they can
/// be preempted is an error.
pub fn jobs(objects: &Objects) -> Result<BTreeMap<FullName, (JobId, usize)>, InputError> {
    let defined = by_name(Kind::JobGroup, &objects.job_groups, |group| FullName::of(&group.metadata))?;
    for (name, Sourced { object, source }) in &defined {
        let needed = object.spec.min_member;
        if needed < 0 {
            let error = InputError::new(format!("{needed} is negative; write 0 or more")).field("spec.minMember");
            return Err(error.at(source).object(ObjectRef::of(Kind::JobGroup, name)));
        }
    }
    let mut said: BTreeMap<FullName, (Option<bool>, String)> = BTreeMap::new();
    for Sourced { object, source } in &objects.pods {
        if let Some(job) = job_of(object) {
            let word = words_of(object).preemptible;
            let name = FullName::of(&object.metadata).to_string();
            let (first, of) = said.entry(job.clone()).or_insert((word, name.clone())).clone();
            if first != word {
                let problem = format!("pod {of} of job {job} says otherwise; all pods of a job say the same");
                let error = InputError::new(problem).at(source).object(ObjectRef::of(Kind::Pod, &name));
                return Err(error.field(format!("metadata.labels[{PREEMPTIBLE}]")));
            }
        }
    }
    let names: BTreeSet<FullName> = said.into_keys().chain(defined.keys().cloned()).collect();
    let needed = |name: &FullName| {
        defined.get(name).map_or(0, |group| usize::try_from(group.object.spec.min_member).unwrap_or(0))
    };
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(at, name)| {
            let needed = needed(&name);
            (name, (JobId::new(at), needed))
        })
        .collect())
}
