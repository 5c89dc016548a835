//! What tenants do besides their jobs: a hostile tenant writes objects that are invalid, forged or extreme, and others relabel a bound pod.

use reprieve_api::koordinator::QUOTA;
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey};
use reprieve_engine::Policy;
use reprieve_loader::policy::reads;

use super::VirtualCluster;
use crate::hostile::{Harm, Hostile, TENANT, Targets, is_of_tenant};
use crate::rng::Rng;

/// The most objects of the hostile tenant at a time.
const MAX_HOSTILE_OBJECTS: usize = 12;

impl VirtualCluster {
    /// Creates, changes or deletes an object of the hostile tenant.
    pub(super) fn act_as_hostile_tenant(&mut self, mut rng: Rng) {
        let owned: Vec<ObjectKey> = self.api.all().filter(|object| is_of_tenant(object)).map(Object::key).collect();
        if owned.len() >= MAX_HOSTILE_OBJECTS || !owned.is_empty() && rng.happens(250_000) {
            let key = &owned[usize::try_from(rng.below(owned.len() as u64)).expect("below the length")];
            self.api.remove(key);
            return self.deliver_changes();
        }
        let targets = Targets::of(&self.objects());
        let kinds: Vec<Kind> = Hostile::kinds().filter(|kind| self.watches(*kind)).collect();
        let Some(object) = Hostile::new(rng.below(u64::MAX), &targets, Harm::None).object(&kinds) else { return };
        // A pod cannot be changed as much as other objects, so it replaces the pod of its name.
        if object.kind() == Kind::Pod {
            self.api.remove(&object.key());
        }
        self.api.create(object, self.timeline.now());
        self.deliver_changes();
    }

    /// Whether a live scheduler of this policy watches the kind.
    fn watches(&self, kind: Kind) -> bool {
        reads(&self.setup.policy, kind)
    }

    /// Gives a bound pod the label of a queue that does not exist, under the policies whose queues are named by labels of pods.
    pub(super) fn relabel_pod(&mut self, mut rng: Rng) {
        let label = match self.setup.policy {
            Policy::YuniKorn(_) => "queue",
            Policy::Koordinator(_) => QUOTA,
            Policy::Kubernetes(_) | Policy::Kueue(_) => return,
        };
        let bound = self.api.pods().filter(|pod| pod.node_name.is_some());
        let bound = bound.map(|pod| NamespacedName::from_meta(&pod.metadata)).filter(|pod| pod.namespace != TENANT);
        let bound: Vec<NamespacedName> = bound.collect();
        if bound.is_empty() {
            return;
        }
        let pod = &bound[usize::try_from(rng.below(bound.len() as u64)).expect("below the length")];
        self.api.change(pod, |pod| {
            pod.metadata.labels.get_or_insert_default().insert(label.to_owned(), "root.no.such.queue".to_owned());
        });
        self.deliver_changes();
    }
}
