//! Where an object came from, and what is wrong with it.

use std::fmt;
use std::sync::Arc;

use crate::kinds::{OfKind, Scope};
use crate::{Kind, NamespacedName, ObjectKey};

/// Where an object stands in the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The file, or what stands for it.
    pub file: Arc<str>,
    /// Which document of the file, from 1.
    pub document: usize,
    /// Which item of the document's list, from 1, if it is a list.
    pub item: Option<usize>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// The object that an error is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: KindRef,
    /// Its namespace, where it has one and it is known.
    pub namespace: Option<String>,
    /// Its name; empty where it has none.
    pub name: String,
}

/// The kind of an object that an error is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KindRef {
    /// A kind of the table.
    Known(Kind),
    /// Another kind, by its name.
    Other(String),
}

impl ObjectRef {
    /// An object of the table of kinds.
    pub fn of(kind: Kind, name: &NamespacedName) -> Self {
        let namespace = (kind.resource().scope == Scope::Namespaced).then(|| name.namespace.clone());
        Self { kind: KindRef::Known(kind), namespace, name: name.name.clone() }
    }

    /// An object of any kind. The group tells apart kinds of one name.
    pub fn any(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let kind = Kind::stored(group, kind).map_or_else(|| KindRef::Other(kind.to_owned()), KindRef::Known);
        Self { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    /// Whether it is the object of this key; without a namespace any object of that kind and name is.
    pub fn refers_to(&self, key: &ObjectKey) -> bool {
        let namespace = self.namespace.as_ref();
        self.kind == KindRef::Known(key.kind)
            && self.name == key.name.name
            && namespace.is_none_or(|namespace| *namespace == key.name.namespace)
    }

    /// The same as the key of an object of the table.
    pub fn key(&self) -> Option<ObjectKey> {
        match &self.kind {
            KindRef::Known(kind) => Some(ObjectKey::new(
                *kind,
                NamespacedName::new(self.namespace.as_deref().unwrap_or_default(), &self.name),
            )),
            KindRef::Other(_) => None,
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            KindRef::Known(kind) => f.write_str(kind.resource().kind)?,
            KindRef::Other(kind) => f.write_str(kind)?,
        }
        match &self.namespace {
            Some(namespace) => write!(f, " {namespace}/{}", self.name),
            None if self.name.is_empty() => Ok(()),
            None => write!(f, " {}", self.name),
        }
    }
}

/// Input that cannot be used. It names the file, the document, the object, the field, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// Where it is, as far as that is known.
    pub source: Option<Source>,
    /// The object.
    pub object: Option<Box<ObjectRef>>,
    /// The field's path.
    pub field: Option<String>,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl InputError {
    /// An error that is about no place in particular.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { source: None, object: None, field: None, problem: problem.into() }
    }

    /// Says where it is.
    pub fn at(mut self, source: &Source) -> Self {
        self.source = Some(source.clone());
        self
    }

    /// Says which object it is about.
    pub fn object(mut self, object: ObjectRef) -> Self {
        self.object = Some(Box::new(object));
        self
    }

    /// Says which field it is about.
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for InputError {}

/// An object and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Sourced<T> {
    /// The object. Many keep the same one.
    pub object: Arc<T>,
    /// Where it came from.
    pub source: Source,
}

impl<T: Clone> Sourced<T> {
    /// The same place, something else in it.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { object: Arc::new(change(Arc::unwrap_or_clone(self.object))), source: self.source }
    }
}

impl<T: OfKind> Sourced<T> {
    /// The error, with which object it is about and where that is.
    pub fn locate(&self, error: InputError) -> InputError {
        error.at(&self.source).object(ObjectRef::of(T::KIND, &NamespacedName::from_meta(self.object.metadata())))
    }
}

/// A field that the API does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The object's kind.
    pub kind: String,
    /// The object.
    pub name: NamespacedName,
    /// Where it is, as in `spec.containers[0].resource`.
    pub path: String,
    /// The known field that is named most like it, if one is.
    pub nearest: Option<String>,
}
