//! The last version of each object, to ignore events that come late, twice or out of order.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{Kind, ObjectKey};

/// The last version of each object, including deleted ones.
#[derive(Default)]
pub(crate) struct SeenVersions {
    versions: BTreeMap<ObjectKey, SeenVersion>,
    /// The version of the last list of each kind.
    listed: BTreeMap<Kind, u64>,
}

struct SeenVersion {
    version: u64,
    deleted: bool,
}

impl SeenVersions {
    /// Whether this version of an object is newer than the last; if so, it becomes the last.
    pub fn accept(&mut self, key: &ObjectKey, version: u64) -> bool {
        let last = self.versions.get(key).map(|known| known.version).or_else(|| self.listed.get(&key.kind).copied());
        let is_newer = last.is_none_or(|last| last < version);
        if is_newer {
            self.versions.insert(key.clone(), SeenVersion { version, deleted: false });
        }
        is_newer
    }

    /// The same for a version that cannot be read. The version of the list that contains the object is new enough.
    pub fn accept_unreadable(&mut self, key: &ObjectKey, version: u64) -> bool {
        let is_newer = self.versions.get(key).is_none_or(|known| known.version <= version);
        if is_newer {
            self.versions.insert(key.clone(), SeenVersion { version, deleted: false });
        }
        is_newer
    }

    /// The same for the deletion of an object.
    pub fn accept_deleted(&mut self, key: &ObjectKey, version: u64) -> bool {
        let is_newer = self.versions.get(key).is_none_or(|known| known.version <= version);
        if is_newer {
            self.versions.insert(key.clone(), SeenVersion { version, deleted: true });
        }
        is_newer
    }

    /// The last version of an object; 0 if there is none.
    pub fn last(&self, key: &ObjectKey) -> u64 {
        self.versions.get(key).map_or(0, |known| known.version)
    }

    /// Whether a newer list of the kind was received.
    pub fn is_outdated(&self, kind: Kind, version: u64) -> bool {
        self.listed.get(&kind).is_some_and(|last| *last > version)
    }

    /// The known objects of a kind that are not in a list.
    pub fn missing(&self, kind: Kind, listed: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let known = self.versions.iter().filter(|(key, known)| key.kind == kind && !known.deleted);
        known.filter(|(key, _)| !listed.contains(key)).map(|(key, _)| key.clone()).collect()
    }

    /// Notes a list. Deletions before the list need not be remembered, because an older event cannot be newer than the list.
    pub fn listed(&mut self, kind: Kind, version: u64) {
        self.listed.insert(kind, version);
        self.versions.retain(|key, known| key.kind != kind || !known.deleted || known.version > version);
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::meta::NamespacedName;

    use super::*;

    #[test]
    fn only_newer_versions_are_accepted() {
        let (mut seen, key) = (SeenVersions::default(), ObjectKey::new(Kind::Pod, NamespacedName::new("default", "a")));
        assert!(seen.accept(&key, 5));
        assert!(!seen.accept(&key, 5), "it comes twice");
        assert!(!seen.accept_deleted(&key, 4), "it comes late");
        assert!(seen.accept_deleted(&key, 6));
        assert!(!seen.accept(&key, 6), "it is deleted");
        seen.listed(Kind::Pod, 7);
        assert!(!seen.accept(&key, 6), "the list is newer");
        assert!(seen.accept(&key, 8), "it is created again");
        assert_eq!(seen.missing(Kind::Pod, &BTreeSet::new()), [key]);
        assert!(seen.is_outdated(Kind::Pod, 6));
    }
}
