//! Maps from names to objects.

use std::collections::BTreeMap;

use reprieve_api::kinds::OfKind;
use reprieve_api::meta::Name;
use reprieve_api::{InputError, Sourced};

/// Returns the objects by name. Two objects with the same name are an error.
pub fn by_name<K: Ord + Name, T: OfKind>(objects: &[Sourced<T>]) -> Result<BTreeMap<K, &Sourced<T>>, InputError> {
    let mut named: BTreeMap<K, &Sourced<T>> = BTreeMap::new();
    for object in objects {
        if let Some(first) = named.insert(K::of_object(object.object.metadata()), object) {
            let problem = format!("{} has an object with the same name; rename or remove one of them", first.source);
            return Err(object.locate(InputError::new(problem).field("metadata.name")));
        }
    }
    Ok(named)
}

/// Returns the names from the root of a tree to `name`. The error is a name that is an ancestor of itself.
pub fn path_from_root(name: &str, parent_of: impl Fn(&String) -> Option<String>) -> Result<Vec<String>, String> {
    let mut path = vec![name.to_owned()];
    while let Some(parent) = parent_of(&path[path.len() - 1]) {
        if path.contains(&parent) {
            return Err(parent);
        }
        path.push(parent);
    }
    path.reverse();
    Ok(path)
}

/// Returns the name of an object without its namespace.
pub fn plain_name<T: OfKind>(object: &T) -> String {
    object.metadata().name.clone().unwrap_or_default()
}
