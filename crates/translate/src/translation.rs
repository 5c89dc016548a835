//! Reads the queues of a cluster and translates the cluster to another quota system. A queue has a guarantee (`guaranteed` in YuniKorn, `min`
//! in Koordinator, nominal quota in Kueue) and a limit (`max`, `max`, nominal quota plus borrowing limit). Other settings (delays, fences,
//! weights, flavors) get their defaults.

use std::collections::BTreeMap;

use reprieve_api::koordinator::{QUOTA, label};
use reprieve_api::{InputError, NamespacedName, ObjectSet, Reader};
use reprieve_loader::{Loaded, Quarantine, QueueScope, QueueSettings, queue_of, queue_tree, quota_tree};

use crate::queue_tree::{NeutralQueues, add_leaf_queues, rename};
use crate::to_kubernetes::{KubernetesObjects, retain};
use crate::to_kueue::{Translated, limit_roots_to_their_quota};

/// A policy with queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaSystem {
    /// Queues in a ConfigMap.
    YuniKorn,
    /// ElasticQuotas.
    Koordinator,
    /// ClusterQueues and Cohorts.
    Kueue,
}

impl NeutralQueues {
    /// Reads the queues of a cluster, which the settings may name; `None` if it has no queues of any policy.
    pub fn from_objects(objects: &ObjectSet, plain: &KubernetesObjects, settings: &QueueSettings) -> Option<Self> {
        let scope = QueueScope::new(settings, objects);
        let quarantine = &mut Quarantine::unreported();
        let (system, mut queues) =
            if let Some(tree) = queue_tree(objects, &scope, false, |_| true, &mut Vec::new(), quarantine) {
                (QuotaSystem::YuniKorn, tree.queue_specs())
            } else if let Some(tree) = quota_tree(objects, &scope, quarantine) {
                (QuotaSystem::Koordinator, tree.specs)
            } else if has(QuotaSystem::Kueue, objects) {
                (QuotaSystem::Kueue, limit_roots_to_their_quota(reprieve_loader::queue_specs(objects, quarantine)))
            } else {
                return None;
            };
        // A cohort and a ClusterQueue may have the same name. Pods use only ClusterQueues, which come after the cohorts.
        let find = |name: &str| queues.iter().rposition(|queue| queue.name == name);
        let of_pod = plain.objects.pods.iter().filter_map(|pod| {
            let queue = match system {
                QuotaSystem::YuniKorn => queue_of(&pod.object),
                QuotaSystem::Koordinator => label(&pod.object, QUOTA).map(str::to_owned),
                QuotaSystem::Kueue => plain.cluster_queue_of(&pod.object, objects),
            };
            Some((pod.name(), find(&queue?)?))
        });
        let mut of_pod: BTreeMap<NamespacedName, usize> = of_pod.collect();
        let leaves = add_leaf_queues(&mut queues, of_pod.values().copied().collect());
        for index in of_pod.values_mut() {
            *index = leaves.get(index).copied().unwrap_or(*index);
        }
        rename(&mut queues);
        Some(Self { queues, of_pod })
    }

    /// Returns the cluster in the objects of a quota system. If the cluster has queues of that system, they stay as they are.
    pub fn translate_to(
        &self,
        system: QuotaSystem,
        objects: &ObjectSet,
        plain: &KubernetesObjects,
        loaded: &Loaded,
    ) -> Result<Translated, InputError> {
        if has(system, objects) {
            return Ok(Translated { objects: only(system, objects), workload_of: plain.workload_of.clone() });
        }
        let objects = match system {
            QuotaSystem::YuniKorn => self.to_yunikorn(&plain.objects),
            QuotaSystem::Koordinator => self.to_koordinator(&plain.objects),
            QuotaSystem::Kueue => return self.to_kueue(&plain.objects, loaded),
        };
        Ok(Translated { objects, workload_of: BTreeMap::new() })
    }
}

/// Whether a cluster has queues of this quota system.
fn has(system: QuotaSystem, objects: &ObjectSet) -> bool {
    match system {
        QuotaSystem::YuniKorn => !objects.config_maps.is_empty(),
        QuotaSystem::Koordinator => !objects.elastic_quotas.is_empty(),
        QuotaSystem::Kueue => !objects.cluster_queues.is_empty(),
    }
}

/// Returns a cluster without the queues of other quota systems.
fn only(system: QuotaSystem, objects: &ObjectSet) -> ObjectSet {
    let own = match system {
        QuotaSystem::YuniKorn => Reader::YuniKorn,
        QuotaSystem::Koordinator => Reader::Koordinator,
        QuotaSystem::Kueue => Reader::Kueue,
    };
    retain(objects, &[Reader::Kubernetes, own])
}
