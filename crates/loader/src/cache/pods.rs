//! Adds, changes and removes single pods in the tables of a [`SnapshotCache`].

use std::sync::Arc;

use reprieve_engine::snapshot::Pod;
use reprieve_engine::{PodId, Policy, ShapeId};

use super::{MIN_UNUSED_ENTRIES, SnapshotCache};
use crate::builder::ReadPod;
use crate::koordinator::preemptible;
use crate::shape::same_shape;
use crate::unsupported::ignored_tolerations;
use crate::{Loaded, Warning};
use reprieve_api::{Kind, NamespacedName, ObjectKey, Pod as ApiPod, group_of, job_of, owner_gang_of};

impl SnapshotCache {
    pub(super) fn upsert_pod(&mut self, object: Arc<ApiPod>) {
        let name = NamespacedName::from_meta(&object.metadata);
        if object.is_finished() {
            self.remove_pod(&name);
            return;
        }
        let object = self.with_gang(object);
        self.stale |= self.tables.builder.is_over_sum || self.others_depend_on_change(&name, Some(&object));
        if self.pods.get(&name).is_none_or(|old| !memberships(old).eq(memberships(&object))) {
            self.remove_membership(&name);
            for group in memberships(&object) {
                self.members.entry(group).or_default().insert(name.clone());
            }
        }
        let old = self.pods.insert(name.clone(), Arc::clone(&object));
        self.update_pod_owner(&name, old.as_deref(), Some(&object));
        self.stale |= self.names_new_replica(&object);
        if self.stale {
            return;
        }
        let known = old.filter(|old| same_shape(old, &object)).and_then(|_| {
            let Loaded { snapshot, names, .. } = &self.tables.loaded;
            let pod = names.pod_id(&name).map(|id| snapshot.pod(id)).filter(|pod| !pod.set_aside)?;
            Some(pod.shape)
        });
        self.add_pod_to_tables(&name, &object, known);
    }

    /// Whether a pod is the first of a replica of a Workload's pod group (Kubernetes 1.35). The Workload does not name its replicas.
    fn names_new_replica(&self, pod: &ApiPod) -> bool {
        let reference = pod.spec.as_ref().and_then(|spec| spec.workload_ref.as_ref());
        let is_known = || group_of(pod).is_some_and(|group| self.tables.builder.groups.contains_key(&group));
        reference.is_some_and(|reference| {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let workload = NamespacedName::new(namespace, &reference.name);
            self.objects.contains_key(&ObjectKey::new(Kind::Workload, workload)) && !is_known()
        })
    }

    /// Whether a change of a pod can change how other pods are read: `new` is `None` if the pod is removed.
    fn others_depend_on_change(&self, name: &NamespacedName, new: Option<&ApiPod>) -> bool {
        let builder = &self.tables.builder;
        let is_own = |pod: &&ApiPod| !builder.obstacles.schedulers.is_foreign(pod);
        let old = self.pods.get(name).map(AsRef::as_ref).filter(is_own);
        let new = new.filter(is_own);
        let [was, is] = [old, new].map(|pod| pod.map(|pod| (&pod.metadata.labels, &pod.metadata.creation_timestamp)));
        if was != is && [old, new].into_iter().flatten().any(|pod| builder.queues.depends_on(pod)) {
            return true;
        }
        if !matches!(self.policy, Policy::Koordinator(_)) {
            return false;
        }
        let declared = |pod: &ApiPod| Some((job_of(pod)?, preemptible(pod)));
        let (before, after) = (old.and_then(declared), new.and_then(declared));
        if before == after {
            return false;
        }
        let is_disputed = |job: &NamespacedName| builder.broken.jobs.contains_key(job);
        if before.as_ref().is_some_and(|(job, _)| is_disputed(job)) {
            return true;
        }
        let Some((job, value)) = after else { return false };
        let members = self.members(&ObjectKey::new(Kind::KoordinatorPodGroup, job.clone())).iter();
        let others = members.filter(|other| *other != name).filter_map(|other| self.pods.get(other));
        // All own pods of a job that is not disputed say the same about whether they are preemptible.
        let other = others.map(AsRef::as_ref).find(is_own);
        is_disputed(&job) || other.is_some_and(|other| preemptible(other) != value)
    }

    /// Reads a pod and adds it to the tables, or marks the tables stale if they lack its queue, a resource or a label key.
    fn add_pod_to_tables(&mut self, name: &NamespacedName, object: &ApiPod, shape: Option<ShapeId>) {
        let builder = &self.tables.builder;
        if !builder.obstacles.schedulers.is_foreign(object)
            && builder.queues.lacks_queue_of(object, &builder.queue_scope)
        {
            self.stale = true;
            return;
        }
        let rank = self.tables.rank(name);
        if let Some(job) = job_of(object).filter(|job| !self.tables.builder.jobs.contains_key(job)) {
            self.insert_job(&job, 0);
        }
        if let Some(gang) = owner_gang_of(object).filter(|gang| !self.tables.builder.groups.contains_key(gang)) {
            self.add_owner_gang(gang);
        }
        let ReadPod { pod, problem, blocks_node } = self.tables.builder.pod(name, object, shape);
        self.tables.append_new_texts();
        self.note_warnings(name, object);
        self.stale |= self.tables.are_too_small() || self.tables.builder.has_large_new_shape();
        self.set_quarantined(&ObjectKey::new(Kind::Pod, name.clone()), problem);
        if self.stale {
            return;
        }
        self.tables.set_blocked(name, pod.as_ref().and_then(|pod| pod.node).filter(|_| blocks_node));
        match pod {
            Some(pod) => self.write_pod(name, Pod { rank, ..pod }),
            None => self.tables.remove_pod(name),
        }
    }

    /// Replaces the warnings about a pending pod.
    fn note_warnings(&mut self, name: &NamespacedName, object: &ApiPod) {
        let key = ObjectKey::new(Kind::Pod, name.clone());
        let new = if object.node_name.is_none() { ignored_tolerations(&key, object) } else { Vec::new() };
        let warnings = &mut self.tables.loaded.warnings;
        let is_about = |warning: &Warning| warning.object.as_ref() == Some(&key);
        if !warnings.iter().filter(|warning| is_about(warning)).eq(&new) {
            warnings.retain(|warning| !is_about(warning));
            warnings.extend(new);
            self.quarantine_version += 1;
        }
    }

    /// Writes a converted pod into the tables, with its shape and its label values.
    fn write_pod(&mut self, name: &NamespacedName, pod: Pod) {
        let Loaded { snapshot, names, .. } = &mut self.tables.loaded;
        for shape in std::mem::take(&mut self.tables.builder.shapes.new) {
            snapshot.add_shape(self.tables.builder.with_all_resources(&shape));
        }
        // A rebuild removes entries that only deleted pods used.
        let entries = snapshot.n_shapes().max(names.groups.names.len()).max(names.jobs.len()).max(names.texts.len());
        self.stale |= entries > 2 * self.pods.len() + MIN_UNUSED_ENTRIES;
        for value in &self.tables.builder.interners.values.names()[snapshot.n_numbers()..] {
            snapshot.add_number(value.parse().ok());
        }
        let budgets = match pod.node {
            Some(_) => self.tables.builder.budgets_of(name, &snapshot.shape(pod.shape).labels),
            None => Vec::new(),
        };
        let mut pod = Pod { budgets, ..pod };
        let known = names.pods.id(name);
        if let Some(known) = known.map(|id| snapshot.pod(id)) {
            pod.originator = known.originator;
            if pod == *known {
                return;
            }
            pod.originator = false;
        }
        let id = known.or_else(|| self.tables.free_pods.pop());
        let id = id.unwrap_or_else(|| PodId::new(names.pods.names.len()));
        if id.index() == names.pods.names.len() {
            names.pods.names.push(name.clone());
        } else {
            self.tables.remove_from_application(id);
        }
        let Loaded { snapshot, names, .. } = &mut self.tables.loaded;
        names.pods.names[id.index()] = name.clone();
        names.pods.ids.insert(name.clone(), id);
        snapshot.put_pod(id, pod);
        self.tables.add_to_application(id);
    }

    pub(super) fn remove_pod(&mut self, name: &NamespacedName) {
        self.stale |= self.tables.builder.is_over_sum || self.others_depend_on_change(name, None);
        self.forget_pod(name);
        self.tables.remove_pod(name);
        self.tables.set_blocked(name, None);
        let key = ObjectKey::new(Kind::Pod, name.clone());
        self.tables.loaded.warnings.retain(|warning| warning.object.as_ref() != Some(&key));
        self.set_quarantined(&key, None);
    }

    /// Removes a pod, but not from the tables.
    pub(super) fn forget_pod(&mut self, name: &NamespacedName) {
        self.remove_membership(name);
        if let Some(old) = self.pods.remove(name) {
            self.update_pod_owner(name, Some(&old), None);
        }
    }

    fn remove_membership(&mut self, name: &NamespacedName) {
        let Some(old) = self.pods.get(name) else { return };
        for group in memberships(old) {
            let Some(members) = self.members.get_mut(&group) else { continue };
            members.remove(name);
            if members.is_empty() {
                self.members.remove(&group);
            }
        }
    }

    /// Adds pods that arrived before their group.
    pub(super) fn add_members(&mut self, group: &ObjectKey) {
        let members: Vec<NamespacedName> = self.members(group).iter().cloned().collect();
        for name in members {
            if let Some(pod) = self.pods.get(&name).cloned().filter(|_| !self.stale) {
                self.add_pod_to_tables(&name, &pod, None);
            }
        }
    }
}

/// Returns the group and the job that a pod names.
fn memberships(pod: &ApiPod) -> impl Iterator<Item = ObjectKey> + use<> {
    let group = group_of(pod).map(|name| ObjectKey::new(Kind::PodGroup, name));
    let job = job_of(pod).map(|name| ObjectKey::new(Kind::KoordinatorPodGroup, name));
    group.into_iter().chain(job)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use k8s_openapi::api::policy::v1::PodDisruptionBudget;
    use serde_json::{Value, json};

    use super::*;
    use reprieve_api::kinds::Object;

    fn pod(name: &str, labels: Value, affinity: Value) -> Object {
        let pod = json!({
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}], "affinity": affinity},
        });
        Object::from(serde_json::from_value::<ApiPod>(pod).expect("a pod"))
    }

    fn cache_with(objects: impl IntoIterator<Item = Object>) -> SnapshotCache {
        let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "10", "pods": "10"}}});
        let mut cache = SnapshotCache::default();
        let node = Object::from(serde_json::from_value::<Node>(node).expect("a node"));
        for object in std::iter::once(node).chain(objects) {
            cache.upsert(object);
        }
        cache.refresh();
        cache
    }

    #[test]
    fn pods_share_a_shape_if_they_differ_only_in_labels_that_no_selector_reads() {
        let worker = |index: &str| pod(index, json!({"app": "a", "index": index}), Value::Null);
        let mut cache = cache_with([worker("0"), worker("1")]);
        cache.upsert(worker("2"));
        assert_eq!((cache.loaded().snapshot.n_shapes(), cache.is_stale()), (1, false));
        let term = json!({"labelSelector": {"matchLabels": {"index": "1"}}, "topologyKey": "kubernetes.io/hostname"});
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        cache.upsert(pod("reader", json!({}), apart));
        assert!(cache.is_stale(), "its selector reads a label key that no selector read before");
        cache.refresh();
        assert_eq!(cache.loaded().snapshot.n_shapes(), 4);
    }

    #[test]
    fn budget_covers_pods_whose_labels_no_selector_reads() {
        let selector = json!({"matchExpressions": [{"key": "spare", "operator": "DoesNotExist"}]});
        let budget = json!({
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        });
        let budget = Object::from(serde_json::from_value::<PodDisruptionBudget>(budget).expect("a budget"));
        let cache = cache_with([
            budget,
            pod("labelled", json!({"app": "a"}), Value::Null),
            pod("spare", json!({"spare": "yes"}), Value::Null),
            pod("unlabelled", json!({}), Value::Null),
        ]);
        let Loaded { snapshot, names, .. } = cache.loaded();
        let charged = names.pod_ids().filter(|&pod| !snapshot.pod(pod).budgets.is_empty());
        let charged: Vec<&str> = charged.map(|pod| names.pod(pod).name.as_str()).collect();
        assert_eq!(charged, ["labelled"]);
    }
}
