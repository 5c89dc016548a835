//! Reads Koordinator's elastic quotas and jobs, and the labels of its pods. The rules are in `docs/rules/koordinator.md`.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::koordinator::{ElasticQuota, PARENT, QUOTA, label};
use reprieve_api::{
    InputError, Kind, NamespacedName, ObjectKey, ObjectSet, Pod, ProblemCode, Sourced, job_of, quantity,
};
use reprieve_engine::queues::QueueTree;
use reprieve_engine::{JobId, QueueId};
use serde_json::Value;

use crate::index::{Lost, forest};
use crate::quarantine::{Problem, Quarantine, key_of};
use crate::queue_settings::QueueScope;
use crate::requests::{amount, limit};
use crate::{Amounts, QueueSpec, by_name};

const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
/// The label that says whether a pod may preempt; its value is `true` or `false`.
const CAN_PREEMPT: &str = "quota.scheduling.koordinator.sh/can-preempt";
/// The label of a pod that cannot be preempted; its value is `true`.
pub const DISABLE_PREEMPTIBLE: &str = "scheduling.koordinator.sh/disable-preemptible";

/// The quotas, parents first. A quota is known by its key, `NAMESPACE/NAME`.
#[derive(Debug, Default)]
pub struct ElasticQuotaTree {
    /// Min is the guarantee, max the limit. The name has the namespace if another quota has the same name.
    pub specs: Vec<QueueSpec>,
    /// The index of each quota in `specs`.
    index_by_key: BTreeMap<String, usize>,
    /// The quotas that are set aside.
    lost: BTreeMap<String, ObjectKey>,
    /// For each name the quota that pods and quotas of other namespaces mean by it.
    shared: BTreeMap<String, String>,
}

type Quotas<'o> = BTreeMap<String, &'o Sourced<ElasticQuota>>;

/// Reads the quota tree; `None` if there is no ElasticQuota. A quota that cannot be read is set aside, with the quotas below it.
pub fn quota_tree(objects: &ObjectSet, scope: &QueueScope, quarantine: &mut Quarantine) -> Option<ElasticQuotaTree> {
    let unreadable = objects.unreadable.iter().map(|entry| &entry.object).filter(|key| key.kind == Kind::ElasticQuota);
    let unreadable = unreadable.filter(|quota| scope.has_quotas_of(&quota.name.namespace));
    let by_name = by_name::<NamespacedName, _>(&objects.elastic_quotas).into_iter();
    let counts = by_name.filter(|(name, _)| scope.has_quotas_of(&name.namespace));
    let named: Quotas<'_> = counts.map(|(name, quota)| (name.to_string(), quota)).collect();
    if named.is_empty() && unreadable.clone().next().is_none() {
        return None;
    }
    let mut tree = ElasticQuotaTree { shared: shared(&named), ..ElasticQuotaTree::default() };
    let mut same_name: BTreeMap<String, usize> = BTreeMap::new();
    named.values().for_each(|quota| *same_name.entry(quota.name().name).or_default() += 1);
    let shared = tree.shared.clone();
    let parent_of = |key: &str| {
        let quota = named.get(key)?;
        let parent = parent_name(&quota.object)?;
        let in_own_namespace = format!("{}/{parent}", quota.name().namespace);
        let is_there = named.contains_key(&in_own_namespace);
        Some(if is_there { in_own_namespace } else { shared.get(parent).cloned().unwrap_or(in_own_namespace) })
    };
    let mut specs = BTreeMap::new();
    for (key, quota) in &named {
        let name = quota.name();
        let name = if same_name.get(&name.name) == Some(&1) { name.name } else { key.clone() };
        quarantine.reads(quota);
        let permitted = parent_of(key).map_or(Ok(()), |parent| may_be_below(&quota.name().namespace, &parent, scope));
        match permitted.and_then(|()| queue_spec(name, &quota.object)) {
            Ok(spec) => _ = specs.insert(key.clone(), spec),
            Err(error) => quarantine.add(key_of(quota), Some(&quota.source), error),
        }
    }
    quarantine.reading = None;
    let keys = named.keys().cloned().collect();
    let (order, lost) = forest(&keys, parent_of, |key| specs.contains_key(key));
    for (key, why) in lost {
        let Some(quota) = named.get(&key) else { continue };
        quarantine.add(key_of(quota), Some(&quota.source), lost_quota(quota, &why, &named));
    }
    for key in order {
        let Some(spec) = specs.remove(&key) else { continue };
        let parent = parent_of(&key).and_then(|parent| tree.index_by_key.get(&parent).copied());
        tree.index_by_key.insert(key, tree.specs.len());
        tree.specs.push(QueueSpec { parent, ..spec });
    }
    let lost = named.iter().map(|(key, quota)| (key.clone(), key_of(quota)));
    let lost = unreadable.map(|quota| (quota.name.to_string(), quota.clone())).chain(lost);
    tree.lost = lost.filter(|(key, _)| !tree.index_by_key.contains_key(key)).collect();
    Some(tree)
}

/// For each name the oldest quota, of equally old ones the first by namespace. A younger quota of the same name, which any namespace may
/// create, does not change what the pods of other namespaces use. Without a time a quota counts as the oldest.
fn shared(named: &Quotas<'_>) -> BTreeMap<String, String> {
    let created = |key: &String| named[key].object.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let mut shared: BTreeMap<String, String> = BTreeMap::new();
    for (key, quota) in named {
        let oldest = shared.entry(quota.name().name).or_insert_with(|| key.clone());
        if created(key) < created(oldest) {
            oldest.clone_from(key);
        }
    }
    shared
}

fn parent_name(quota: &ElasticQuota) -> Option<&str> {
    let parent = quota.metadata.labels.as_ref()?.get(PARENT)?;
    Some(parent.as_str()).filter(|parent| !parent.is_empty() && *parent != "koordinator-root-quota")
}

/// A quota may have a parent in its own namespace, or one that its namespace may use.
fn may_be_below(namespace: &str, parent: &str, scope: &QueueScope) -> Result<(), InputError> {
    let is_own = parent.split_once('/').is_some_and(|(above, _)| above == namespace);
    if is_own || scope.permits(namespace, parent) {
        return Ok(());
    }
    let problem =
        format!("namespace {namespace} may not use quota {parent}; name another, or add a rule to queueAccess");
    Err(InputError::new(problem).field(format!("metadata.labels[{PARENT}]")))
}

fn lost_quota(quota: &Sourced<ElasticQuota>, why: &Lost, named: &Quotas<'_>) -> Problem {
    let field = format!("metadata.labels[{PARENT}]");
    match why {
        Lost::Cycle => {
            let problem = format!("quota {:?} is an ancestor of itself; break the cycle", quota.name().name);
            InputError::new(problem).field(field).code(ProblemCode::Cycle).into()
        }
        Lost::Parent(parent) => match named.get(parent) {
            Some(parent) => Problem::refers_to(key_of(parent), &field),
            None => {
                let name = parent.split_once('/').map_or(parent.as_str(), |(_, name)| name);
                let problem = format!("quota {name:?} is not in the input; add it, or name another");
                InputError::new(problem).field(field).code(ProblemCode::MissingReference).into()
            }
        },
    }
}

fn queue_spec(name: String, quota: &ElasticQuota) -> Result<QueueSpec, InputError> {
    let guarantee = amounts(&quota.spec.min, "spec.min", amount)?;
    let limit = amounts(&quota.spec.max, "spec.max", limit)?;
    for (resource, min) in &guarantee {
        if let Some(max) = limit.get(resource).filter(|max| *max < min) {
            let (min, max) = (quantity::format(resource, *min), quantity::format(resource, *max));
            let problem = format!("{min} is above spec.max, which is {max}; lower the one or raise the other");
            return Err(InputError::new(problem).field(format!("spec.min.{resource}")));
        }
    }
    Ok(QueueSpec { name, parent: None, guarantee, limit })
}

impl ElasticQuotaTree {
    /// Returns the key of the quota that a pod names: that of its own namespace, else the shared one. `None` if it names none, or one that
    /// does not exist.
    pub fn key_of(&self, pod: &Pod) -> Option<String> {
        let (name, namespace) = (label(pod, QUOTA)?, NamespacedName::from_meta(&pod.metadata).namespace);
        let own = format!("{namespace}/{name}");
        let exists = self.index_by_key.contains_key(&own) || self.lost.contains_key(&own);
        if exists { Some(own) } else { self.shared.get(name).cloned() }
    }

    /// Returns the quota that a pod names. A pod that names none is limited only by the nodes.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, Problem> {
        let Some(name) = label(pod, QUOTA) else { return Ok(None) };
        let field = format!("metadata.labels[{QUOTA}]");
        let key = self.key_of(pod).unwrap_or_default();
        match (self.index_by_key.get(&key), self.lost.get(&key)) {
            (Some(index), _) => Ok(Some(QueueId::new(*index))),
            (None, Some(lost)) => Err(Problem::refers_to(lost.clone(), &field)),
            (None, None) => {
                let problem = format!("quota {name:?} is not in the input; add it, or name another");
                Err(InputError::new(problem).field(field).code(ProblemCode::MissingReference).into())
            }
        }
    }

    /// Returns the tree for the engine.
    pub fn to_queue_tree(&self, resources: &[String]) -> QueueTree {
        QueueTree::new(true, resources.len(), self.specs.iter().map(|spec| spec.queue(resources)).collect())
    }
}

fn amounts(
    written: &BTreeMap<String, Value>,
    path: &str,
    amount: fn(&str, &Value) -> Result<i64, InputError>,
) -> Result<Amounts, InputError> {
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

/// Whether a pod may preempt, by its label; `None` without the label, or if its value is neither `true` nor `false`.
pub fn can_preempt(pod: &Pod) -> Option<bool> {
    match label(pod, CAN_PREEMPT)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The jobs of the cluster.
#[derive(Default)]
pub struct Jobs {
    /// The id and the minimum size of every job that a pod names or a PodGroup defines.
    pub all: BTreeMap<NamespacedName, (JobId, usize)>,
    /// The jobs whose pods are set aside.
    pub broken: BTreeMap<NamespacedName, BrokenJob>,
}

/// Why the pods of a job are set aside.
#[derive(Clone, Debug)]
pub enum BrokenJob {
    /// The PodGroup of the job is set aside.
    Group,
    /// Two pods of the job have different values of the label `preemptible`.
    DifferentPreemptible(NamespacedName, NamespacedName),
}

impl BrokenJob {
    /// Returns the problem of a pod of the job.
    pub fn of_pod(&self, pod: &NamespacedName, job: &NamespacedName) -> Problem {
        match self {
            Self::Group => Problem::refers_to(
                ObjectKey::new(Kind::KoordinatorPodGroup, job.clone()),
                &format!("metadata.labels[{}]", reprieve_api::koordinator::JOB),
            ),
            Self::DifferentPreemptible(first, second) => {
                let other = if pod == first { second } else { first };
                let problem = format!(
                    "the pods {other} and {pod} have different values; give all pods of job {job} the same value"
                );
                let error = InputError::new(problem).field(format!("metadata.labels[{PREEMPTIBLE}]"));
                error.code(ProblemCode::Conflict).into()
            }
        }
    }
}

/// Reads the jobs. All pods of a job that name this scheduler must have the same value of the label `preemptible`; `is_own` says whether a
/// pod names it.
pub fn jobs(objects: &ObjectSet, is_own: impl Fn(&Pod) -> bool, quarantine: &mut Quarantine) -> Jobs {
    let defined = by_name::<NamespacedName, _>(&objects.koordinator_pod_groups);
    let mut broken = BTreeMap::new();
    for (name, group) in &defined {
        let needed = group.object.spec.min_member;
        if needed < 0 {
            let error = InputError::new(format!("{needed} is negative; write 0 or more")).field("spec.minMember");
            quarantine.add(key_of(group), Some(&group.source), error);
            broken.insert(name.clone(), BrokenJob::Group);
        }
    }
    let mut declared: BTreeMap<NamespacedName, (NamespacedName, Option<bool>)> = BTreeMap::new();
    let mut pods: Vec<(NamespacedName, NamespacedName, &Pod)> =
        objects.pods.iter().filter_map(|pod| Some((job_of(&pod.object)?, pod.name(), &*pod.object))).collect();
    pods.sort_unstable_by(|(job, pod, _), (other_job, other, _)| (job, pod).cmp(&(other_job, other)));
    let mut names: BTreeSet<NamespacedName> = defined.keys().cloned().collect();
    for (job, name, pod) in pods {
        names.insert(job.clone());
        if !is_own(pod) || pod.is_finished() {
            continue;
        }
        let value = preemptible(pod);
        let (first, same) = declared.entry(job.clone()).or_insert_with(|| (name.clone(), value));
        if *same != value {
            broken.entry(job).or_insert_with(|| BrokenJob::DifferentPreemptible(first.clone(), name));
        }
    }
    let numbered = names.into_iter().enumerate().map(|(index, name)| {
        let min_member = defined.get(&name).map_or(0, |group| group.object.spec.min_member);
        (name, (JobId::new(index), usize::try_from(min_member).unwrap_or(0)))
    });
    Jobs { all: numbered.collect(), broken }
}
