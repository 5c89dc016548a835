//! Gangs from owners (docs/rules/kubernetes-groups.md#ga8): the pods of a JobSet or of another owner of the table form a gang although no
//! PodGroup names them.
//!
//! A pod belongs to the last owner in the chain of its controllers, such as Pod → Job → JobSet → TrainJob, that is in the table and that the
//! policy considers. A reference counts only if the owner exists in the pod's namespace with the uid of the reference. In files, an owner
//! whose kind is absent from the input is taken as stated; the labels of the pod then stand for the owners above it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::owners::OwnerJobSpec;
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, ObjectSet, Pod, Sourced, named_group_of, named_job_of};
use reprieve_engine::Policy;
use reprieve_engine::policy::owner_kinds::{OwnerKind, OwnerKinds};

use crate::by_name;
use crate::untrusted::Untrusted;

/// The annotation of an owner that says whether its pods form a gang: `true` or `false`.
const GANG: &str = "reprieve.dev/gang";

/// A longer chain of controllers is not followed.
const MAX_CHAIN: usize = 8;

/// A kind of owner, and how its pods form gangs.
struct OwnerRow {
    owner: OwnerKind,
    kind: Kind,
    /// The label with which the pods name the owner. It is read only if the owners between are absent from the input.
    name_label: Option<&'static str>,
    /// The label by whose values the pods of one owner form several gangs. A pod without it is in none.
    part_label: Option<&'static str>,
    /// Whether the pods form a gang unless the annotation of the owner says otherwise.
    default: Default,
}

/// Whether the pods of an owner form a gang if nothing else says so.
enum Default {
    Always,
    /// Unless the number of pods changes with the load.
    WithoutAutoscaling,
    /// If the pods start together, find each other by name, and none can fail alone.
    IfCoupled,
}

/// All owners whose pods can form gangs.
const OWNERS: [OwnerRow; 6] = [
    OwnerRow {
        owner: OwnerKind::JobSet,
        kind: Kind::JobSet,
        name_label: Some("jobset.sigs.k8s.io/jobset-name"),
        part_label: None,
        default: Default::Always,
    },
    OwnerRow {
        owner: OwnerKind::LeaderWorkerSet,
        kind: Kind::LeaderWorkerSet,
        name_label: Some("leaderworkerset.sigs.k8s.io/name"),
        part_label: Some("leaderworkerset.sigs.k8s.io/group-index"),
        default: Default::Always,
    },
    OwnerRow {
        owner: OwnerKind::MpiJob,
        kind: Kind::MpiJob,
        name_label: Some("training.kubeflow.org/job-name"),
        part_label: None,
        default: Default::Always,
    },
    OwnerRow {
        owner: OwnerKind::RayCluster,
        kind: Kind::RayCluster,
        name_label: None, // its pods have no other controller
        part_label: None,
        default: Default::WithoutAutoscaling,
    },
    OwnerRow {
        owner: OwnerKind::TrainJob,
        kind: Kind::TrainJob,
        name_label: None, // its only JobSet has the same pods
        part_label: None,
        default: Default::Always,
    },
    OwnerRow {
        owner: OwnerKind::IndexedJob,
        kind: Kind::OwnerJob,
        name_label: None,
        part_label: None,
        default: Default::IfCoupled,
    },
];

impl OwnerRow {
    fn of(kind: Kind) -> Option<&'static Self> {
        OWNERS.iter().find(|row| row.kind == kind)
    }

    /// Whether the pods of an owner form a gang.
    fn forms_gang(&self, object: &Object) -> bool {
        let job = if let Object::OwnerJob(job) = object { Some(&job.spec) } else { None };
        if job.is_some_and(|job| job.scheduling.is_some()) {
            return false; // its controller creates the PodGroup, if there is to be one
        }
        let annotation = object.metadata().annotations.as_ref().and_then(|annotations| annotations.get(GANG));
        match (annotation.map(String::as_str), &self.default) {
            (Some("true"), _) => true,
            (Some("false"), _) => false,
            (_, Default::Always) => true,
            (_, Default::WithoutAutoscaling) => match object {
                Object::RayCluster(cluster) => cluster.spec.enable_in_tree_autoscaling != Some(true),
                _ => true,
            },
            (_, Default::IfCoupled) => job.is_some_and(is_coupled),
        }
    }

    /// Whether the pods of an owner that is absent from the input are taken for a gang.
    fn is_gang_as_stated(&self) -> bool {
        match self.default {
            Default::Always | Default::WithoutAutoscaling => true,
            Default::IfCoupled => false,
        }
    }

    /// Returns the name of the gang that a pod of this owner is in. No name of an object contains `/`.
    fn gang(&self, pod: &Pod, owner: &str) -> Option<Arc<str>> {
        let kind = self.kind.resource().kind;
        match self.part_label {
            None => Some(format!("{kind}/{owner}").into()),
            Some(label) => Some(format!("{kind}/{owner}/{}", label_of(pod, label)?).into()),
        }
    }
}

fn is_coupled(job: &OwnerJobSpec) -> bool {
    job.completion_mode.as_deref() == Some("Indexed")
        && job.parallelism.is_some_and(|parallelism| parallelism > 1)
        && job.parallelism == job.completions
        && job.backoff_limit_per_index.is_none()
        && job.template.spec.subdomain.as_ref().is_some_and(|subdomain| !subdomain.is_empty())
}

fn label_of<'p>(pod: &'p Pod, label: &str) -> Option<&'p String> {
    pod.metadata.labels.as_ref()?.get(label)
}

/// Whether objects of this kind can be in a chain of controllers.
pub fn is_link(kind: Kind) -> bool {
    matches!(kind, Kind::Pod | Kind::StatefulSet) || OwnerRow::of(kind).is_some()
}

/// The controller of an object, as the object states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    kind: Kind,
    name: String,
    pub uid: String,
}

/// Returns the controller that an object names, if it is of a kind that can be in a chain.
pub fn controller_of(metadata: &ObjectMeta) -> Option<Controller> {
    let reference = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = Kind::stored(group, &reference.kind).filter(|kind| is_link(*kind))?;
    Some(Controller { kind, name: reference.name.clone(), uid: reference.uid.clone() })
}

/// What a chain of controllers reads of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub uid: String,
    pub controller: Option<Controller>,
    /// For an owner that the policy considers: whether its pods form a gang.
    gang: Option<bool>,
}

/// The objects that can be in chains of controllers.
#[derive(Debug)]
pub struct OwnerLinks {
    kinds: OwnerKinds,
    /// Whether the label of a Koordinator job counts as the gang that a pod names.
    reads_jobs: bool,
    links: BTreeMap<ObjectKey, Link>,
    /// The kinds of which the input has no object, so that references to them are taken as stated.
    absent: Vec<Kind>,
}

impl OwnerLinks {
    /// No objects; every reference must be confirmed.
    pub fn new(policy: &Policy) -> Self {
        let (kinds, reads_jobs) = match policy {
            Policy::Kubernetes(policy) => (policy.gangs_from_owners, false),
            Policy::YuniKorn(policy) => (policy.gangs_from_owners, false),
            Policy::Koordinator(policy) => (policy.gangs_from_owners, true),
            Policy::Kueue(_) => (OwnerKinds::NONE, false),
        };
        Self { kinds, reads_jobs, links: BTreeMap::new(), absent: Vec::new() }
    }

    fn of_objects(objects: &ObjectSet, policy: &Policy) -> Self {
        let mut links = Self::new(policy);
        if links.kinds == OwnerKinds::NONE {
            return links;
        }
        for pod in by_name::<NamespacedName, _>(&objects.pods).into_values() {
            if !pod.object.is_finished() && is_leader(&pod.object) {
                links.put(&Object::Pod(Arc::clone(&pod.object)));
            }
        }
        links.put_all(&objects.stateful_sets);
        links.put_all(&objects.owner_jobs);
        links.put_all(&objects.job_sets);
        links.put_all(&objects.leader_worker_sets);
        links.put_all(&objects.mpi_jobs);
        links.put_all(&objects.ray_clusters);
        links.put_all(&objects.train_jobs);
        if !objects.is_complete {
            let present = |kind: Kind| kind == Kind::Pod || links.links.keys().any(|key| key.kind == kind);
            links.absent = Kind::STORED.iter().copied().filter(|kind| is_link(*kind) && !present(*kind)).collect();
        }
        links
    }

    fn put_all<T: reprieve_api::kinds::OfKind>(&mut self, objects: &[Sourced<T>])
    where
        Object: From<Arc<T>>,
    {
        for object in by_name::<NamespacedName, _>(objects).into_values() {
            self.put(&Object::from(Arc::clone(&object.object)));
        }
    }

    fn put(&mut self, object: &Object) {
        if let Some(link) = self.link(object) {
            self.links.insert(object.key(), link);
        }
    }

    /// Returns what chains read of an object; `None` if no chain has it.
    pub fn link(&self, object: &Object) -> Option<Link> {
        let kind = object.kind();
        let is_in_chains = match object {
            Object::Pod(pod) => is_leader(pod),
            _ => is_link(kind),
        };
        if self.kinds == OwnerKinds::NONE || !is_in_chains {
            return None;
        }
        let row = OwnerRow::of(kind).filter(|row| self.kinds.contains(row.owner));
        let controller = controller_of(object.metadata());
        Some(Link { uid: object.uid().to_owned(), controller, gang: row.map(|row| row.forms_gang(object)) })
    }

    /// Returns the uid of an object that can be in chains.
    pub fn uid(&self, key: &ObjectKey) -> Option<&str> {
        self.links.get(key).map(|link| link.uid.as_str())
    }

    /// Replaces what is known of an object, and returns the state before.
    pub fn replace(&mut self, key: &ObjectKey, link: Option<Link>) -> Option<Link> {
        match link {
            Some(link) => self.links.insert(key.clone(), link),
            None => self.links.remove(key),
        }
    }

    /// Returns the name of the gang that the owners of a pod form. A pod that names a group or a job is in no such gang.
    pub fn gang_of(&self, pod: &Pod) -> Option<Arc<str>> {
        self.find(pod).map(|(gang, _)| gang)
    }

    /// Returns the gang of a pod, and whether an owner is taken as stated.
    fn find(&self, pod: &Pod) -> Option<(Arc<str>, bool)> {
        if self.kinds == OwnerKinds::NONE {
            return None;
        }
        let mut next = Some(controller_of(&pod.metadata)?);
        if named_group_of(pod).is_some() || self.reads_jobs && named_job_of(pod).is_some() {
            return None;
        }
        let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
        let (mut found, mut as_stated) = (None, false);
        for _ in 0..MAX_CHAIN {
            let Some(owner) = next else { break };
            if self.absent.contains(&owner.kind) {
                let stated = self.stated(pod, &namespace, &owner);
                as_stated = stated.is_some();
                found = stated.or(found);
                break;
            }
            let key = ObjectKey::new(owner.kind, NamespacedName::new(&namespace, &owner.name));
            let is_confirmed =
                |link: &&Link| Untrusted::new(&owner.uid).check(|uid| !uid.is_empty() && *uid == link.uid);
            let Some(link) = self.links.get(&key).filter(is_confirmed) else { break };
            found = link.gang.map(|is_gang| (owner.kind, owner.name, is_gang)).or(found);
            next = link.controller.clone();
        }
        let (kind, owner, _) = found.filter(|(_, _, is_gang)| *is_gang)?;
        Some((OwnerRow::of(kind)?.gang(pod, &owner)?, as_stated))
    }

    /// Returns the owner of a pod if the kind of a controller in its chain is absent: the owner that a label of the pod names, or else the
    /// controller itself.
    fn stated(&self, pod: &Pod, namespace: &str, controller: &Controller) -> Option<(Kind, String, bool)> {
        let considered = |row: &&OwnerRow| self.kinds.contains(row.owner);
        let labelled = OWNERS.iter().filter(considered).find_map(|row| {
            let owner = label_of(pod, row.name_label?)?;
            let key = ObjectKey::new(row.kind, NamespacedName::new(namespace, owner));
            let is_gang = if self.absent.contains(&row.kind) { Some(true) } else { self.links.get(&key)?.gang };
            Some((row.kind, owner.clone(), is_gang?))
        });
        labelled.or_else(|| {
            let row = OwnerRow::of(controller.kind).filter(considered)?;
            row.is_gang_as_stated().then(|| (row.kind, controller.name.clone(), true))
        })
    }
}

/// Whether a pod may be the controller of others: the leader of a LeaderWorkerSet's replica owns the StatefulSet of the workers.
fn is_leader(pod: &Pod) -> bool {
    OWNERS.iter().filter_map(|row| row.part_label).any(|label| label_of(pod, label).is_some())
}

/// Returns the objects with the gang of each pod, and a warning if the owner of a pod is taken as stated.
pub fn assign_gangs<'o>(objects: &'o ObjectSet, policy: &Policy) -> (Cow<'o, ObjectSet>, Option<String>) {
    let links = OwnerLinks::of_objects(objects, policy);
    let mut first_stated: Option<NamespacedName> = None;
    let mut changed = Vec::new();
    for (index, pod) in objects.pods.iter().enumerate() {
        let found = if pod.object.is_finished() { None } else { links.find(&pod.object) };
        if found.as_ref().is_some_and(|(_, as_stated)| *as_stated) {
            let name = pod.name();
            first_stated = Some(first_stated.map_or(name.clone(), |first| first.min(name)));
        }
        let gang = found.map(|(gang, _)| gang);
        if gang != pod.object.owner_gang {
            changed.push((index, gang));
        }
    }
    let warning = first_stated.map(|pod| {
        let kinds: Vec<&str> = links.absent.iter().map(|kind| kind.resource().plural).collect();
        format!(
            "Pod {pod}: metadata.ownerReferences: this owner, and those of other pods, are taken as stated; add the output of \
             kubectl get KIND -A -o yaml for those of these kinds that the cluster has: {}",
            kinds.join(", ")
        )
    });
    if changed.is_empty() {
        return (Cow::Borrowed(objects), warning);
    }
    let mut assigned = objects.clone();
    for (index, gang) in changed {
        Arc::make_mut(&mut assigned.pods[index].object).owner_gang = gang;
    }
    (Cow::Owned(assigned), warning)
}
