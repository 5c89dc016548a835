//! Maps from names to objects.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::Sourced;
use reprieve_api::kinds::OfKind;
use reprieve_api::meta::Name;

/// Returns the objects by name. Of several objects with the same name the first in the input counts; the [`Quarantine`](crate::Quarantine)
/// has the others.
pub fn by_name<K: Ord + Name, T: OfKind>(objects: &[Sourced<T>]) -> BTreeMap<K, &Sourced<T>> {
    let mut named: BTreeMap<K, &Sourced<T>> = BTreeMap::new();
    for object in objects {
        let first = named.entry(K::of_object(object.object.metadata())).or_insert(object);
        if object.source < first.source {
            *first = object;
        }
    }
    named
}

/// Why an element of a forest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It is an ancestor of itself.
    Cycle,
    /// Its parent with this name is missing, or cannot be used.
    Parent(String),
}

/// Returns the elements of a forest with every parent before its children, and the elements that cannot be used. `names` are all elements;
/// `is_good` says whether an element can be used apart from its ancestors.
pub fn forest(
    names: &BTreeSet<String>,
    parent_of: impl Fn(&str) -> Option<String>,
    is_good: impl Fn(&str) -> bool,
) -> (Vec<String>, BTreeMap<String, Lost>) {
    let (mut order, mut placed) = (Vec::new(), BTreeSet::new());
    let mut lost: BTreeMap<String, Lost> = BTreeMap::new();
    for name in names.iter().filter(|name| is_good(name)) {
        // The path from the element up to an ancestor that is already placed, lost, or not usable, or to a root.
        let mut path = vec![name.clone()];
        let mut on_path: BTreeSet<String> = BTreeSet::from([name.clone()]);
        let mut end = None;
        loop {
            let last = &path[path.len() - 1];
            if placed.contains(last) || lost.contains_key(last) {
                break;
            }
            let Some(parent) = parent_of(last) else { break };
            if !names.contains(&parent) || !is_good(&parent) {
                end = Some(Lost::Parent(parent));
                break;
            }
            if !on_path.insert(parent.clone()) {
                let start = path.iter().position(|name| *name == parent).unwrap_or_default();
                lost.extend(path.drain(start..).map(|name| (name, Lost::Cycle)));
                path.push(parent);
                break;
            }
            path.push(parent);
        }
        while let Some(name) = path.pop() {
            if placed.contains(&name) || lost.contains_key(&name) {
                continue;
            }
            let above = parent_of(&name).filter(|parent| lost.contains_key(parent)).map(Lost::Parent);
            match end.take().or(above) {
                Some(why) => _ = lost.insert(name, why),
                None => {
                    placed.insert(name.clone());
                    order.push(name);
                }
            }
        }
    }
    (order, lost)
}

/// Returns the name of an object without its namespace.
pub fn plain_name<T: OfKind>(object: &T) -> String {
    object.metadata().name.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forest_loses_only_cycles_and_what_is_below_a_lost_element() {
        let edges = [
            ("a", ""),
            ("b", "a"),
            ("c", "b"),
            ("x", "y"),
            ("y", "z"),
            ("z", "x"),
            ("below", "y"),
            ("lower", "below"),
            ("self", "self"),
            ("orphan", "ghost"),
            ("bad", "a"),
            ("child", "bad"),
        ];
        let parents: BTreeMap<&str, &str> = edges.into();
        let names: BTreeSet<String> = parents.keys().map(|name| (*name).to_owned()).collect();
        let parent_of =
            |name: &str| parents.get(name).filter(|parent| !parent.is_empty()).map(|parent| (*parent).to_owned());
        let (order, lost) = forest(&names, parent_of, |name| name != "bad");
        assert_eq!(order, ["a", "b", "c"]);
        let parent = |name: &str| Lost::Parent(name.to_owned());
        let expected = [
            ("below", parent("y")),
            ("child", parent("bad")),
            ("lower", parent("below")),
            ("orphan", parent("ghost")),
            ("self", Lost::Cycle),
            ("x", Lost::Cycle),
            ("y", Lost::Cycle),
            ("z", Lost::Cycle),
        ];
        assert_eq!(lost, expected.map(|(name, why)| (name.to_owned(), why)).into());
    }
}
