//! Objects by name.

use std::collections::BTreeMap;

use reprieve_api::kinds::OfKind;
use reprieve_api::meta::Name;
use reprieve_api::{InputError, Sourced};

/// The objects by name, in the order of names. Two with one name are an error.
pub fn by_name<K: Ord + Name, T: OfKind>(objects: &[Sourced<T>]) -> Result<BTreeMap<K, &Sourced<T>>, InputError> {
    let mut named: BTreeMap<K, &Sourced<T>> = BTreeMap::new();
    for object in objects {
        if let Some(first) = named.insert(K::of_object(object.object.metadata()), object) {
            let problem = format!("this name is taken by the object in {}; give each its own", first.source);
            return Err(object.locate(InputError::new(problem).field("metadata.name")));
        }
    }
    Ok(named)
}

/// The name of an object without its namespace.
pub fn plain_name<T: OfKind>(object: &T) -> String {
    object.metadata().name.clone().unwrap_or_default()
}
