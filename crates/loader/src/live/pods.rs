//! The pods of a snapshot that lives on: each comes, changes and goes in the tables by itself.

use std::sync::Arc;

use reprieve_engine::snapshot::Pod;
use reprieve_engine::{PodId, ShapeId};

use super::{FORGOTTEN, Live, between, sizes};
use crate::load::Loaded;
use crate::order::nth_rank;
use crate::shape::same_shape;
use reprieve_api::kinds::{Key, Kind};
use reprieve_api::koordinator::job_of;
use reprieve_api::membership::group_of;
use reprieve_api::meta::FullName;
use reprieve_api::pod::Pod as ApiPod;
use reprieve_api::source::InputError;
use reprieve_api::source::ObjectRef;

impl Live {
    pub(super) fn put_pod(&mut self, object: Arc<ApiPod>) -> Result<(), InputError> {
        let name = FullName::of(&object.metadata);
        let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            self.remove_pod(&name);
            return Ok(());
        }
        if self.pods.get(&name).is_none_or(|old| !memberships(old).eq(memberships(&object))) {
            self.forget_membership(&name);
            for group in memberships(&object) {
                self.members.entry(group).or_default().insert(name.clone());
            }
        }
        let old = self.pods.insert(name.clone(), Arc::clone(&object));
        if self.stale {
            return Ok(());
        }
        let known = old.filter(|old| same_shape(old, &object)).and_then(|_| {
            let Loaded { snapshot, names, .. } = &self.loaded;
            names.pod_id(&name).map(|id| snapshot.pod(id).shape)
        });
        self.enter(&name, &object, known)
    }

    /// Puts the pod into the tables, if they have a place for it. Its shape need not be worked out where it is known.
    fn enter(&mut self, name: &FullName, object: &ApiPod, shape: Option<ShapeId>) -> Result<(), InputError> {
        if self.loader.queues.lacks_queue_of(object) {
            self.stale = true;
            return Ok(());
        }
        let rank = self.rank(name);
        if let Some(job) = job_of(object).filter(|job| !self.loader.jobs.contains_key(job)) {
            self.new_job(&job, 0);
        }
        let converted = self.loader.pod(name, object, shape);
        self.keep_texts();
        self.stale |= sizes(&self.loader) != self.sizes;
        let pod = match converted {
            Err(error) => {
                self.leave(name);
                return Err(error.object(ObjectRef::of(Kind::Pod, name)));
            }
            Ok(_) if self.stale => return Ok(()),
            Ok(Some(pod)) => pod,
            Ok(None) => {
                self.leave(name);
                return Ok(());
            }
        };
        let Loaded { snapshot, names, .. } = &mut self.loaded;
        for shape in std::mem::take(&mut self.loader.new_shapes) {
            snapshot.add_shape(self.loader.filled(&shape));
        }
        // What only pods had that are long gone is forgotten now and then.
        let kept = snapshot.n_shapes().max(names.groups.len()).max(names.jobs.len()).max(names.texts.len());
        self.stale |= kept > 2 * self.pods.len() + FORGOTTEN;
        for value in &self.loader.vocabulary.values.names()[snapshot.n_numbers()..] {
            snapshot.add_number(value.parse().ok());
        }
        let budgets = match pod.node {
            Some(_) => self.loader.budgets_of(name, &snapshot.shape(pod.shape).labels),
            None => Vec::new(),
        };
        let mut pod = Pod { rank, budgets, ..pod };
        let known = names.pod_ids.get(name).copied();
        if let Some(known) = known.map(|id| snapshot.pod(id)) {
            pod.originator = known.originator;
            if pod == *known {
                return Ok(());
            }
            pod.originator = false;
        }
        let id = known.or_else(|| self.free.pop());
        let id = id.unwrap_or_else(|| PodId::new(names.pods.len()));
        if id.index() == names.pods.len() {
            names.pods.push(name.clone());
        } else {
            self.leave_application(id);
        }
        let Loaded { snapshot, names, .. } = &mut self.loaded;
        names.pods[id.index()] = name.clone();
        names.pod_ids.insert(name.clone(), id);
        snapshot.put_pod(id, pod);
        self.join_application(id);
        Ok(())
    }

    pub(super) fn remove_pod(&mut self, name: &FullName) {
        self.forget_membership(name);
        self.pods.remove(name);
        self.leave(name);
    }

    /// Takes the pod out of the tables.
    fn leave(&mut self, name: &FullName) {
        if let Some(id) = self.loaded.names.pod_ids.remove(name) {
            self.leave_application(id);
            self.loaded.snapshot.remove_pod(id);
            self.free.push(id);
        }
    }

    fn forget_membership(&mut self, name: &FullName) {
        let Some(old) = self.pods.get(name) else { return };
        for group in memberships(old) {
            let members = self.members.get_mut(&group).expect("it was entered");
            members.remove(name);
            if members.is_empty() {
                self.members.remove(&group);
            }
        }
    }

    /// The pod's place in the order of names: its own, or one between its neighbours. Where there is none left, all get new ones.
    fn rank(&mut self, name: &FullName) -> u64 {
        let Loaded { snapshot, names, .. } = &mut self.loaded;
        if let Some(&id) = names.pod_ids.get(name) {
            return snapshot.pod(id).rank;
        }
        if let Some(rank) = between(&names.pod_ids, name, |id| snapshot.pod(*id).rank) {
            return rank;
        }
        snapshot.set_ranks(names.pod_ids.values().enumerate().map(|(at, id)| (*id, nth_rank(at))));
        self.index_applications();
        let Loaded { snapshot, names, .. } = &self.loaded;
        between(&names.pod_ids, name, |id| snapshot.pod(*id).rank).expect("there is room between any two")
    }

    /// Pods that came before their group.
    pub(super) fn enter_members(&mut self, group: &Key) {
        let members: Vec<FullName> = self.members(group).iter().cloned().collect();
        for name in members {
            let pod = Arc::clone(&self.pods[&name]);
            if !self.stale {
                let _ = self.enter(&name, &pod, None); // its fault was told when it came
            }
        }
    }

    pub(super) fn index_applications(&mut self) {
        self.applications.clear();
        for &id in self.loaded.names.pod_ids.values() {
            let pod = self.loaded.snapshot.pod(id);
            if let Some(application) = pod.application {
                self.applications.entry(application).or_default().insert((pod.created, pod.rank, id));
            }
        }
    }

    fn join_application(&mut self, id: PodId) {
        let pod = self.loaded.snapshot.pod(id);
        if let Some(application) = pod.application {
            let place = (pod.created, pod.rank, id);
            let pods = self.applications.entry(application).or_default();
            let first = pods.first().map(|(_, _, id)| *id);
            pods.insert(place);
            if pods.first() == Some(&place) {
                if let Some(first) = first {
                    self.loaded.snapshot.set_originator(first, false);
                }
                self.loaded.snapshot.set_originator(id, true);
            }
        }
    }

    fn leave_application(&mut self, id: PodId) {
        let pod = self.loaded.snapshot.pod(id);
        if let Some(application) = pod.application {
            let pods = self.applications.get_mut(&application).expect("it joined");
            pods.remove(&(pod.created, pod.rank, id));
            match pods.first() {
                Some((_, _, first)) => self.loaded.snapshot.set_originator(*first, true),
                None => {
                    self.applications.remove(&application);
                }
            }
        }
    }
}

/// The group and the job that a pod names.
fn memberships(pod: &ApiPod) -> impl Iterator<Item = Key> + use<> {
    let group = group_of(pod).map(|name| Key::new(Kind::PodGroup, name));
    let job = job_of(pod).map(|name| Key::new(Kind::JobGroup, name));
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

    fn live(objects: impl IntoIterator<Item = Object>) -> Live {
        let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "10", "pods": "10"}}});
        let mut live = Live::default();
        let node = Object::from(serde_json::from_value::<Node>(node).expect("a node"));
        for object in std::iter::once(node).chain(objects) {
            live.put(object).expect("it is well formed");
        }
        live.refresh().expect("it is well formed");
        live
    }

    #[test]
    fn pods_are_told_apart_only_by_labels_that_somebody_reads() {
        let worker = |index: &str| pod(index, json!({"app": "a", "index": index}), Value::Null);
        let mut live = live([worker("0"), worker("1")]);
        live.put(worker("2")).expect("a pod");
        assert_eq!((live.loaded().snapshot.n_shapes(), live.is_stale()), (1, false));
        let term = json!({"labelSelector": {"matchLabels": {"index": "1"}}, "topologyKey": "kubernetes.io/hostname"});
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        live.put(pod("reader", json!({}), apart)).expect("a pod");
        assert!(live.is_stale(), "it reads what nobody did before");
        live.refresh().expect("it is well formed");
        assert_eq!(live.loaded().snapshot.n_shapes(), 4);
    }

    #[test]
    fn a_budget_is_about_pods_with_labels_that_nobody_reads() {
        let selector = json!({"matchExpressions": [{"key": "spare", "operator": "DoesNotExist"}]});
        let budget = json!({
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        });
        let budget = Object::from(serde_json::from_value::<PodDisruptionBudget>(budget).expect("a budget"));
        let live = live([
            budget,
            pod("labelled", json!({"app": "a"}), Value::Null),
            pod("spare", json!({"spare": "yes"}), Value::Null),
            pod("unlabelled", json!({}), Value::Null),
        ]);
        let Loaded { snapshot, names, .. } = live.loaded();
        let charged = names.pod_ids().filter(|&pod| !snapshot.pod(pod).budgets.is_empty());
        let charged: Vec<&str> = charged.map(|pod| names.pod(pod).name.as_str()).collect();
        assert_eq!(charged, ["labelled"]);
    }
}
