//! The queues of a cluster in the words of no policy: a tree with a guarantee and a ceiling for each.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::meta::FullName;
use reprieve_loader::queue_spec::Account;

use crate::kueue_objects::ROOT;

/// The accounts of a cluster and which of them each pod uses.
#[derive(Clone, Debug)]
pub struct Accounts {
    pub(crate) accounts: Vec<Account>,
    /// One for each account: fit for every policy, and no two the same.
    pub(crate) names: Vec<String>,
    pub(crate) of_pod: BTreeMap<FullName, usize>,
}

impl Accounts {
    pub(crate) fn children(&self, of: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        (0..self.accounts.len()).filter(move |&at| self.accounts[at].parent == of)
    }

    pub(crate) fn is_parent(&self, at: usize) -> bool {
        self.children(Some(at)).next().is_some()
    }

    /// What an account and all below it are guaranteed: its own word, or its children's together if that is more.
    pub(crate) fn guaranteed(&self, at: usize, resource: &str) -> i64 {
        let own = self.accounts[at].guarantee.get(resource).copied().unwrap_or(0);
        own.max(self.guaranteed_below(Some(at), resource))
    }

    pub(crate) fn guaranteed_below(&self, at: Option<usize>, resource: &str) -> i64 {
        self.children(at).fold(0, |sum: i64, child| sum.saturating_add(self.guaranteed(child, resource)))
    }
}

/// Only some policies let pods use an account that has accounts below it. Elsewhere they use one more below it, which is
/// guaranteed nothing. By parent: that account.
pub(crate) fn leaves_below_parents(accounts: &mut Vec<Account>, used: BTreeSet<usize>) -> BTreeMap<usize, usize> {
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
pub(crate) fn names(accounts: &[Account]) -> Vec<String> {
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
