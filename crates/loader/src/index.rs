//! Objects by name.

use std::collections::BTreeMap;

use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::meta::Name;
use reprieve_api::{InputError, Kind, ObjectRef, Sourced};

/// The objects by name, in the order of names. Two with one name are an error.
pub fn by_name<T, K: Ord + Name>(
    kind: Kind,
    objects: &[Sourced<T>],
    name: impl Fn(&T) -> K,
) -> Result<BTreeMap<K, &Sourced<T>>, InputError> {
    let mut named: BTreeMap<K, &Sourced<T>> = BTreeMap::new();
    for object in objects {
        let key = name(&object.object);
        if let Some(first) = named.get(&key) {
            let problem = format!("this name is taken by the object in {}; give each its own", first.source);
            return Err(InputError::new(problem)
                .at(&object.source)
                .object(ObjectRef::of(kind, &key))
                .field("metadata.name"));
        }
        named.insert(key, object);
    }
    Ok(named)
}

/// The name of an object that has no namespace.
pub fn plain_name<T: Metadata<Ty = ObjectMeta>>(object: &T) -> String {
    object.metadata().name.clone().unwrap_or_default()
}
