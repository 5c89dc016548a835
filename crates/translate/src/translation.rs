//! One cluster under another policy's rules. Every policy has accounts with a guarantee and a ceiling; where a cluster has only one
//! kind of them, they are written in the words of the other: guarantee = nominal quota = min; ceiling = max = nominal quota +
//! borrowing limit. What a policy has beyond that (delays, fences, weights, flavors) is left at its default.

use std::collections::BTreeMap;

use reprieve_api::koordinator::{QUOTA, label};
use reprieve_api::{FullName, InputError, Objects, Reader};
use reprieve_loader::{Loaded, queue_of, queue_tree, quota_tree};

use crate::queue_tree::{NeutralQueues, add_leaf_queues, rename};
use crate::to_kubernetes::{Plain, retain};
use crate::to_kueue::{Mapped, with_roots_closed};

/// A policy that has accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// Queues in a ConfigMap.
    YuniKorn,
    /// ElasticQuotas.
    Koordinator,
    /// ClusterQueues and Cohorts.
    Kueue,
}

impl NeutralQueues {
    /// Reads the queues of a cluster; `None` if it has no queues of any policy.
    pub fn from_objects(objects: &Objects, plain: &Plain) -> Result<Option<Self>, InputError> {
        let (keeper, mut queues) = if let Some(tree) = queue_tree(objects, &mut Vec::new())? {
            (Keeper::YuniKorn, tree.accounts())
        } else if let Some(tree) = quota_tree(objects)? {
            (Keeper::Koordinator, tree.accounts)
        } else if has(Keeper::Kueue, objects) {
            (Keeper::Kueue, with_roots_closed(reprieve_loader::accounts(objects)?))
        } else {
            return Ok(None);
        };
        // A cohort and a ClusterQueue may have the same name. Cohorts come first and pods use only ClusterQueues, so the last one is meant.
        let find = |name: &str| queues.iter().rposition(|queue| queue.name == name);
        let of_pod = plain.objects.pods.iter().filter_map(|pod| {
            let queue = match keeper {
                Keeper::YuniKorn => queue_of(&pod.object),
                Keeper::Koordinator => label(&pod.object, QUOTA).map(str::to_owned),
                Keeper::Kueue => plain.cluster_queue_of(&pod.object, objects),
            };
            Some((FullName::of(&pod.object.metadata), find(&queue?)?))
        });
        let mut of_pod: BTreeMap<FullName, usize> = of_pod.collect();
        let leaves = add_leaf_queues(&mut queues, of_pod.values().copied().collect());
        for at in of_pod.values_mut() {
            *at = leaves.get(at).copied().unwrap_or(*at);
        }
        rename(&mut queues);
        Ok(Some(Self { queues, of_pod }))
    }

    /// The cluster in the objects of a policy. If it has queues of this policy, they stay as they are.
    pub fn translate_to(
        &self,
        keeper: Keeper,
        objects: &Objects,
        plain: &Plain,
        loaded: &Loaded,
    ) -> Result<Mapped, InputError> {
        if has(keeper, objects) {
            return Ok(Mapped { objects: only(keeper, objects), workload_of: plain.workload_of.clone() });
        }
        let objects = match keeper {
            Keeper::YuniKorn => self.to_yunikorn(&plain.objects),
            Keeper::Koordinator => self.to_koordinator(&plain.objects),
            Keeper::Kueue => return self.to_kueue(&plain.objects, loaded),
        };
        Ok(Mapped { objects, workload_of: BTreeMap::new() })
    }
}

/// Whether a cluster has accounts of this kind.
fn has(keeper: Keeper, objects: &Objects) -> bool {
    match keeper {
        Keeper::YuniKorn => {
            objects.config_maps.iter().any(|map| map.object.metadata.name.as_deref() == Some("yunikorn-configs"))
        }
        Keeper::Koordinator => !objects.elastic_quotas.is_empty(),
        Keeper::Kueue => !objects.cluster_queues.is_empty(),
    }
}

/// A cluster with the accounts of one kind alone.
fn only(keeper: Keeper, objects: &Objects) -> Objects {
    let own = match keeper {
        Keeper::YuniKorn => Reader::YuniKorn,
        Keeper::Koordinator => Reader::Koordinator,
        Keeper::Kueue => Reader::Kueue,
    };
    retain(objects, &[Reader::All, Reader::Kubernetes, own])
}
