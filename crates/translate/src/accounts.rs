//! One cluster under another policy's rules. Every policy has accounts with a guarantee and a ceiling; where a cluster has only one
//! kind of them, they are written in the words of the other: guarantee = nominal quota = min; ceiling = max = nominal quota +
//! borrowing limit. What a policy has beyond that (delays, fences, weights, flavors) is left at its default.

mod koordinator;
mod kueue;
mod plain;
mod yunikorn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::made_up::ROOT;
use reprieve_api::kinds::Reader;
use reprieve_api::koordinator::{QUOTA, label};
use reprieve_api::meta::FullName;
use reprieve_api::object_set::Objects;
use reprieve_api::source::{InputError, Source, Sourced};
use reprieve_loader::load::Loaded;
use reprieve_loader::queue_spec::Account;
use reprieve_loader::quota_tree;
use reprieve_loader::{queue_of, queue_tree};

pub use plain::Plain;

const LOCAL_QUEUE: &str = "kueue.x-k8s.io/queue-name";

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

/// A cluster in the words of a policy, and which of its pods are which workload there.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The cluster.
    pub objects: Objects,
    /// By pod: its workload, under a policy that has workloads.
    pub workload_of: BTreeMap<FullName, FullName>,
}

/// The accounts of a cluster and which of them each pod uses.
#[derive(Clone, Debug)]
pub struct Accounts {
    accounts: Vec<Account>,
    /// One for each account: fit for every policy, and no two the same.
    names: Vec<String>,
    of_pod: BTreeMap<FullName, usize>,
}

impl Accounts {
    /// `None` where the cluster has no accounts of any kind.
    pub fn of(objects: &Objects, plain: &Plain) -> Result<Option<Self>, InputError> {
        let (keeper, accounts) = if let Some(tree) = queue_tree(objects, &mut Vec::new())? {
            (Keeper::YuniKorn, tree.accounts())
        } else if let Some(tree) = quota_tree(objects)? {
            (Keeper::Koordinator, tree.accounts())
        } else if has(Keeper::Kueue, objects) {
            (Keeper::Kueue, kueue::with_roots_closed(reprieve_loader::accounts(objects)?))
        } else {
            return Ok(None);
        };
        // Cohorts stand before queues, and only queues have pods: of two with one name the last is meant.
        let at = |name: &str| accounts.iter().rposition(|account| account.name == name);
        let of_pod = plain.objects.pods.iter().filter_map(|pod| {
            let name = FullName::of(&pod.object.metadata);
            let account = match keeper {
                Keeper::YuniKorn => queue_of(&pod.object),
                Keeper::Koordinator => label(&pod.object, QUOTA).map(str::to_owned),
                Keeper::Kueue => plain.cluster_queue_of(&pod.object, objects),
            };
            Some((name, at(&account?)?))
        });
        let mut of_pod: BTreeMap<FullName, usize> = of_pod.collect();
        let mut accounts = accounts;
        let below = leaves_below_parents(&mut accounts, of_pod.values().copied().collect());
        for at in of_pod.values_mut() {
            *at = below.get(at).copied().unwrap_or(*at);
        }
        let names = names(&accounts);
        Ok(Some(Self { accounts, names, of_pod }))
    }

    /// The cluster in the words of a policy. Accounts that it has for this policy stay as they are.
    pub fn under(
        &self,
        keeper: Keeper,
        objects: &Objects,
        plain: &Plain,
        loaded: &Loaded,
    ) -> Result<Mapped, InputError> {
        if has(keeper, objects) {
            return Ok(Mapped { objects: only(keeper, objects), workload_of: plain.workload_of.clone() });
        }
        match keeper {
            Keeper::YuniKorn => Ok(Mapped { objects: self.as_yunikorn(&plain.objects), workload_of: BTreeMap::new() }),
            Keeper::Koordinator => {
                Ok(Mapped { objects: self.as_koordinator(&plain.objects), workload_of: BTreeMap::new() })
            }
            Keeper::Kueue => self.as_kueue(&plain.objects, loaded),
        }
    }

    fn children(&self, of: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        (0..self.accounts.len()).filter(move |&at| self.accounts[at].parent == of)
    }

    fn is_parent(&self, at: usize) -> bool {
        self.children(Some(at)).next().is_some()
    }

    /// What an account and all below it are guaranteed: its own word, or its children's together if that is more.
    fn guaranteed(&self, at: usize, resource: &str) -> i64 {
        let own = self.accounts[at].guarantee.get(resource).copied().unwrap_or(0);
        own.max(self.guaranteed_below(Some(at), resource))
    }

    fn guaranteed_below(&self, at: Option<usize>, resource: &str) -> i64 {
        self.children(at).fold(0, |sum: i64, child| sum.saturating_add(self.guaranteed(child, resource)))
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

/// Only some policies let pods use an account that has accounts below it. Elsewhere they use one more below it, which is
/// guaranteed nothing. By parent: that account.
fn leaves_below_parents(accounts: &mut Vec<Account>, used: BTreeSet<usize>) -> BTreeMap<usize, usize> {
    let parents: BTreeSet<usize> = accounts.iter().filter_map(|account| account.parent).collect();
    let mut leaves = BTreeMap::new();
    for &parent in parents.intersection(&used) {
        leaves.insert(parent, accounts.len());
        let name = format!("{}-own", accounts[parent].name);
        accounts.push(Account { name, parent: Some(parent), ..Account::default() });
    }
    leaves
}

/// The last part of each account's path, lowercase, with a number where another has it already.
fn names(accounts: &[Account]) -> Vec<String> {
    let mut taken: BTreeSet<String> = BTreeSet::from(["root".to_owned(), ROOT.to_owned()]);
    let mut unique = |account: &Account| {
        let last = account.name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let numbered = (2..).map(|n| format!("{plain}-{n}"));
        let name = std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = name.expect("numbers do not run out");
        taken.insert(name.clone());
        name
    };
    accounts.iter().map(&mut unique).collect()
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

/// Pods are complete by then: what completes the templates of workloads goes with them.
fn without_accounts(objects: &Objects) -> Objects {
    retain(objects, &[Reader::All, Reader::Kubernetes])
}

fn retain(objects: &Objects, readers: &[Reader]) -> Objects {
    let mut kept = objects.clone();
    kept.retain_kinds(|kind| readers.contains(&kind.resource().reader));
    kept
}

fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: namespace.map(str::to_owned), ..ObjectMeta::default() }
}

/// An object that came from no file.
fn made<T>(object: T) -> Sourced<T> {
    Sourced {
        object: Arc::new(object),
        source: Source { file: "the mapping between policies".into(), document: 1, item: None },
    }
}

/// The same objects as if no priority class tolerated anybody or opted out.
pub fn without_tolerations(objects: &Objects) -> Objects {
    let mut objects = objects.clone();
    for class in &mut objects.priority_classes {
        if let Some(annotations) = &mut Arc::make_mut(&mut class.object).metadata.annotations {
            annotations.retain(|key, _| !is_toleration(key));
        }
    }
    objects
}

/// Whether any priority class tolerates anybody or opted out.
pub fn has_tolerations(objects: &Objects) -> bool {
    let annotations = objects.priority_classes.iter().filter_map(|class| class.object.metadata.annotations.as_ref());
    annotations.flat_map(BTreeMap::keys).any(|key| is_toleration(key))
}

fn is_toleration(key: &str) -> bool {
    key.starts_with("preemption-toleration.scheduling.x-k8s.io/") || key == "yunikorn.apache.org/allow-preemption"
}
