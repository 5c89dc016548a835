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
use crate::requests::{amount, limit};
use crate::{Amounts, QueueSpec, by_name};

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
    /// The quotas that are set aside.
    lost: BTreeMap<String, ObjectKey>,
}

/// Reads the quota tree; `None` if there is no ElasticQuota. A quota that cannot be read is set aside, with the quotas below it. Of several
/// quotas with the same name the oldest counts.
pub fn quota_tree(objects: &ObjectSet, quarantine: &mut Quarantine) -> Option<ElasticQuotaTree> {
    let unreadable = objects.unreadable.iter().map(|one| &one.object).filter(|one| one.kind == Kind::ElasticQuota);
    if objects.elastic_quotas.is_empty() && unreadable.clone().next().is_none() {
        return None;
    }
    let named = oldest_by_name(objects, quarantine);
    let mut tree = ElasticQuotaTree::default();
    let mut specs = BTreeMap::new();
    for (name, quota) in &named {
        match queue_spec(name.clone(), &quota.object) {
            Ok(spec) => _ = specs.insert(name.clone(), spec),
            Err(error) => quarantine.add(key_of(quota), Some(&quota.source), error),
        }
    }
    let parent_of = |name: &str| -> Option<String> {
        let labels = named.get(name)?.object.metadata.labels.as_ref()?;
        labels.get(PARENT).filter(|parent| !parent.is_empty() && *parent != "koordinator-root-quota").cloned()
    };
    let names = named.keys().cloned().collect();
    let (order, lost) = forest(&names, parent_of, |name| specs.contains_key(name));
    for (name, why) in lost {
        let Some(quota) = named.get(&name) else { continue };
        quarantine.add(key_of(quota), Some(&quota.source), lost_quota(&name, &why, &named));
    }
    for name in order {
        let Some(spec) = specs.remove(&name) else { continue };
        let parent = parent_of(&name).and_then(|parent| tree.index_by_name.get(&parent).copied());
        tree.index_by_name.insert(name, tree.specs.len());
        tree.specs.push(QueueSpec { parent, ..spec });
    }
    tree.lost = unreadable.map(|quota| (quota.name.name.clone(), quota.clone())).collect();
    tree.lost.retain(|name, _| !tree.index_by_name.contains_key(name));
    let lost = named.iter().filter(|(name, _)| !tree.index_by_name.contains_key(*name)).map(lost_key);
    tree.lost.extend(lost);
    Some(tree)
}

fn lost_key((name, quota): (&String, &&Sourced<ElasticQuota>)) -> (String, ObjectKey) {
    (name.clone(), key_of(quota))
}

fn lost_quota(name: &str, why: &Lost, named: &BTreeMap<String, &Sourced<ElasticQuota>>) -> Problem {
    let field = format!("metadata.labels[{PARENT}]");
    match why {
        Lost::Cycle => {
            let problem = format!("quota {name:?} is an ancestor of itself; break the cycle");
            InputError::new(problem).field(field).code(ProblemCode::Cycle).into()
        }
        Lost::Parent(parent) => match named.get(parent) {
            Some(parent) => Problem::refers_to(key_of(parent), &field),
            None => {
                let problem = format!("quota {parent:?} is not in the input; add it, or name another");
                InputError::new(problem).field(field).code(ProblemCode::MissingReference).into()
            }
        },
    }
}

/// Returns the quotas by name. A quota with the name of an older one is set aside; of two with the same age, the later by namespace.
fn oldest_by_name<'o>(
    objects: &'o ObjectSet,
    quarantine: &mut Quarantine,
) -> BTreeMap<String, &'o Sourced<ElasticQuota>> {
    let by_key = by_name::<NamespacedName, _>(&objects.elastic_quotas);
    let mut quotas: Vec<_> = by_key.into_iter().collect();
    // Without a time the age is unknown, and the quota counts as the oldest, like other objects of files.
    quotas.sort_by_key(|(_, quota)| quota.object.metadata.creation_timestamp.as_ref().map(|time| time.0));
    let mut named: BTreeMap<String, &Sourced<ElasticQuota>> = BTreeMap::new();
    for (name, quota) in quotas {
        match named.get(&name.name) {
            None => _ = named.insert(name.name, quota),
            Some(older) => {
                let problem = format!("{} has the same name and is older; rename this quota", older.name());
                let error = InputError::new(problem).field("metadata.name").code(ProblemCode::Conflict);
                quarantine.add(key_of(quota), Some(&quota.source), error);
            }
        }
    }
    named
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
    /// Returns the quota that a pod names. A pod that names none is limited only by the nodes.
    pub fn queue_of(&self, pod: &Pod) -> Result<Option<QueueId>, Problem> {
        let Some(name) = label(pod, QUOTA) else { return Ok(None) };
        let field = format!("metadata.labels[{QUOTA}]");
        match (self.index_by_name.get(name), self.lost.get(name)) {
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
    Disagreement(NamespacedName, NamespacedName),
}

impl BrokenJob {
    /// Returns the problem of a pod of the job.
    pub fn of_pod(&self, pod: &NamespacedName, job: &NamespacedName) -> Problem {
        match self {
            Self::Group => Problem::refers_to(
                ObjectKey::new(Kind::KoordinatorPodGroup, job.clone()),
                &format!("metadata.labels[{}]", reprieve_api::koordinator::JOB),
            ),
            Self::Disagreement(first, second) => {
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
            broken.entry(job).or_insert_with(|| BrokenJob::Disagreement(first.clone(), name));
        }
    }
    let numbered = names.into_iter().enumerate().map(|(index, name)| {
        let min_member = defined.get(&name).map_or(0, |group| group.object.spec.min_member);
        (name, (JobId::new(index), usize::try_from(min_member).unwrap_or(0)))
    });
    Jobs { all: numbered.collect(), broken }
}
