//! Which version of each object was seen last. Events may come late, twice or out of order.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::{Kind, ObjectKey};

/// The last version of each object that was seen, and of its end.
#[derive(Default)]
pub(crate) struct SeenVersions {
    versions: BTreeMap<ObjectKey, SeenVersion>,
    /// By kind: as of which version it was listed last.
    listed: BTreeMap<Kind, u64>,
}

struct SeenVersion {
    version: u64,
    gone: bool,
}

impl SeenVersions {
    /// Whether a state of an object is newer than what was seen; if so, it is seen now.
    pub fn accept(&mut self, key: &ObjectKey, version: u64) -> bool {
        let last = self.versions.get(key).map(|known| known.version).or_else(|| self.listed.get(&key.kind).copied());
        let is_newer = last.is_none_or(|last| last < version);
        if is_newer {
            self.versions.insert(key.clone(), SeenVersion { version, gone: false });
        }
        is_newer
    }

    /// The same for the end of an object.
    pub fn accept_gone(&mut self, key: &ObjectKey, version: u64) -> bool {
        let is_newer = self.versions.get(key).is_none_or(|known| known.version <= version);
        if is_newer {
            self.versions.insert(key.clone(), SeenVersion { version, gone: true });
        }
        is_newer
    }

    /// The last version that was seen; 0 where none was.
    pub fn last(&self, key: &ObjectKey) -> u64 {
        self.versions.get(key).map_or(0, |known| known.version)
    }

    /// Whether a newer list of this kind was seen.
    pub fn is_outdated(&self, kind: Kind, version: u64) -> bool {
        self.listed.get(&kind).is_some_and(|last| *last > version)
    }

    /// The objects of a kind that were there and are not in a list.
    pub fn missing(&self, kind: Kind, listed: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let known = self.versions.iter().filter(|(key, known)| key.kind == kind && !known.gone);
        known.filter(|(key, _)| !listed.contains(key)).map(|(key, _)| key.clone()).collect()
    }

    /// All objects of a list were seen. What is older than the list, and not in it, is gone: its end need not be remembered.
    pub fn listed(&mut self, kind: Kind, version: u64) {
        self.listed.insert(kind, version);
        self.versions.retain(|key, known| key.kind != kind || !known.gone || known.version > version);
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::meta::NamespacedName;

    use super::*;

    #[test]
    fn only_news_is_accepted() {
        let (mut seen, key) = (SeenVersions::default(), ObjectKey::new(Kind::Pod, NamespacedName::new("default", "a")));
        assert!(seen.accept(&key, 5));
        assert!(!seen.accept(&key, 5), "it comes twice");
        assert!(!seen.accept_gone(&key, 4), "it comes late");
        assert!(seen.accept_gone(&key, 6));
        assert!(!seen.accept(&key, 6), "it is gone");
        seen.listed(Kind::Pod, 7);
        assert!(!seen.accept(&key, 6), "the list is newer");
        assert!(seen.accept(&key, 8), "it is there again");
        assert_eq!(seen.missing(Kind::Pod, &BTreeSet::new()), [key]);
        assert!(seen.is_outdated(Kind::Pod, 6));
    }
}
