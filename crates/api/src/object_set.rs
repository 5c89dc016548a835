//! The input of a decision: a list of objects for each kind. The code is generated from the table in [`crate::kinds`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::decode::decode;
use crate::kinds::{OfKind, Scope, kind_table};
use crate::kueue::{KueueWorkload, KueueWorkloadStatus};
use crate::source::UnknownField;
use crate::{InputError, Kind, NamespacedName, Object, ObjectKey, Source, Sourced};

/// An object of which only the identity can be read, and the node or quota that it uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreadable {
    /// The object.
    pub object: ObjectKey,
    /// The node, if the object is a bound pod.
    pub node: Option<String>,
    /// The object with only its status, if it is a Workload of Kueue that holds quota.
    pub held: Option<Arc<KueueWorkload>>,
    /// Why it cannot be read.
    pub error: InputError,
}

impl Unreadable {
    /// Reads what can be read of an object whatever else is wrong with it: the node or the quota that it uses.
    pub fn new(object: ObjectKey, value: &Value, error: InputError) -> Self {
        let field = |path: &str| value.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        let is_finished = matches!(field("/status/phase"), Some("Succeeded" | "Failed"));
        let node = field("/spec/nodeName").filter(|_| object.kind == Kind::Pod && !is_finished);
        let held = if object.kind == Kind::KueueWorkload { held_quota(&object.name, value) } else { None };
        Self { node: node.map(str::to_owned), held: held.map(Arc::new), error, object }
    }
}

/// The Workload with only its status, if that can be read and gives it quota.
fn held_quota(name: &NamespacedName, value: &Value) -> Option<KueueWorkload> {
    let status: KueueWorkloadStatus = decode(value.get("status")?).ok()?;
    let NamespacedName { namespace, name } = name.clone();
    let metadata = ObjectMeta { namespace: Some(namespace), name: Some(name), ..ObjectMeta::default() };
    let holds = status.admission.is_some();
    holds.then(|| KueueWorkload { metadata, status: Some(status), ..KueueWorkload::default() })
}

macro_rules! object_set {
    (
        stored { $($kind:ident($type:ty) $list:ident:
            $name:literal $group:literal $version:literal $plural:literal $scope:ident $reader:ident $need:ident;)+ }
        watched { $($live:ident($live_type:ty): $($where:literal)+ $($how:ident)+;)+ }
    ) => {
        /// The objects that a decision reads, a list for each kind.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct ObjectSet {
            $(#[doc = concat!($name, " of group `", $group, "`.")] pub $list: Vec<Sourced<$type>>,)+
            /// The number of objects of each kind that no decision reads.
            pub skipped: BTreeMap<String, usize>,
            /// Unknown fields of objects that may be a preemptor.
            pub unknown_fields: Vec<UnknownField>,
            /// The objects that do not have the form of their kind.
            pub unreadable: Vec<Unreadable>,
            /// Whether these are all objects of a cluster, so that an object to which another refers does not exist if it is missing here.
            pub is_complete: bool,
        }

        impl ObjectSet {
            /// Adds all of `other`.
            pub fn extend(&mut self, other: Self) {
                $(self.$list.extend(other.$list);)+
                for (kind, count) in other.skipped {
                    *self.skipped.entry(kind).or_default() += count;
                }
                self.unknown_fields.extend(other.unknown_fields);
                self.unreadable.extend(other.unreadable);
                self.is_complete |= other.is_complete;
            }

            /// Adds an object. Objects of kinds that only a scheduler reads are ignored.
            pub fn push(&mut self, object: &Object, source: &Source) {
                match object {
                    $(Object::$kind(object) => {
                        self.$list.push(Sourced { object: Arc::clone(object), source: source.clone() });
                    })+
                    $(Object::$live(_) => {})+
                }
            }

            /// Returns all objects in the order of the table of kinds.
            pub fn iter(&self) -> impl Iterator<Item = Object> {
                std::iter::empty()$(.chain(self.$list.iter().map(|sourced| Object::from(Arc::clone(&sourced.object)))))+
            }

            /// Removes the objects of kinds for which `keeps` is false.
            pub fn retain_kinds(&mut self, keeps: impl Fn(Kind) -> bool) {
                $(if !keeps(Kind::$kind) {
                    self.$list.clear();
                })+
            }

            /// Returns each object for which an earlier one in the input has the same kind and name: its key, its position, and that of
            /// the earlier one.
            pub fn duplicates(&self) -> Vec<(ObjectKey, Source, Source)> {
                let mut found = Vec::new();
                $(add_duplicates(&self.$list, &mut found);)+
                found
            }

            /// Returns the number of objects.
            pub fn len(&self) -> usize {
                0 $(+ self.$list.len())+
            }

            /// Returns the objects in another, reproducible order for each round. Tests check that no decision depends on the order.
            pub fn shuffled(&self, round: u64) -> Self {
                let mut objects = self.clone();
                let mut state = round.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                $(shuffle(&mut objects.$list, &mut state);)+
                objects
            }
        }
    };
}
kind_table!(object_set);

impl ObjectSet {
    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn add_duplicates<T: OfKind>(objects: &[Sourced<T>], found: &mut Vec<(ObjectKey, Source, Source)>) {
    let mut first: BTreeMap<NamespacedName, &Source> = BTreeMap::new();
    let name = |object: &Sourced<T>| match T::KIND.resource().scope {
        Scope::Namespaced => object.name(),
        Scope::Cluster => NamespacedName::new("", &object.name().name),
    };
    for object in objects {
        let known = first.entry(name(object)).or_insert(&object.source);
        *known = (*known).min(&object.source);
    }
    let mut seen = BTreeSet::new();
    for object in objects {
        let first = first.get(&name(object)).copied().filter(|first| **first != object.source);
        // Objects that a program made share one position.
        let is_second = !seen.insert(name(object));
        if let Some(first) = first.or(is_second.then_some(&object.source)) {
            found.push((ObjectKey::new(T::KIND, object.name()), object.source.clone(), first.clone()));
        }
    }
}

fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for index in (1..items.len()).rev() {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(index, (*state >> 33) as usize % (index + 1));
    }
}
