//! The position of an object in the input, and errors that name position, object and field.

use std::fmt;
use std::sync::Arc;

use crate::kinds::{OfKind, Scope};
use crate::{Kind, NamespacedName, ObjectKey};

/// The position of an object in the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The file name, or `the cluster`.
    pub file: Arc<str>,
    /// The number of the document in the file, from 1.
    pub document: usize,
    /// The number of the item, from 1, if the document is a list.
    pub item: Option<usize>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// The object of an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// The kind.
    pub kind: KindRef,
    /// The namespace, if the kind has one and it is known.
    pub namespace: Option<String>,
    /// The name; empty if it is missing.
    pub name: String,
}

/// The kind of an error's object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KindRef {
    /// A kind of the table.
    Known(Kind),
    /// The name of another kind.
    Other(String),
}

impl ObjectRef {
    /// Returns a reference to an object of the table of kinds.
    pub fn of(kind: Kind, name: &NamespacedName) -> Self {
        let namespace = (kind.resource().scope == Scope::Namespaced).then(|| name.namespace.clone());
        Self { kind: KindRef::Known(kind), namespace, name: name.name.clone() }
    }

    /// Returns a reference to an object of any kind. The group distinguishes kinds of the same name.
    pub fn any(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let kind = Kind::stored(group, kind).map_or_else(|| KindRef::Other(kind.to_owned()), KindRef::Known);
        Self { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    /// Whether this refers to the object of a key. A reference without a namespace refers to objects in all namespaces.
    pub fn refers_to(&self, key: &ObjectKey) -> bool {
        let namespace = self.namespace.as_ref();
        self.kind == KindRef::Known(key.kind)
            && self.name == key.name.name
            && namespace.is_none_or(|namespace| *namespace == key.name.namespace)
    }

    /// Returns the key of an object of the table of kinds.
    pub fn key(&self) -> Option<ObjectKey> {
        let KindRef::Known(kind) = self.kind else { return None };
        let name = NamespacedName::new(self.namespace.as_deref().unwrap_or_default(), &self.name);
        Some(ObjectKey::new(kind, name))
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

/// An error in the input. Its text names the file, the document, the object, the field, the problem and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The position, if it is known.
    pub source: Option<Source>,
    /// The object, if it is known.
    pub object: Option<Box<ObjectRef>>,
    /// The path of the field.
    pub field: Option<String>,
    /// The problem and what to do.
    pub problem: String,
    /// The class of the problem.
    pub code: ProblemCode,
}

/// The class of a problem: a small set of names, for metrics and programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemCode {
    /// The value of a field is not valid.
    InvalidValue,
    /// An amount is larger than [`crate::quantity::MAX_AMOUNT`].
    TooLarge,
    /// The object does not have the form of its kind.
    Undecodable,
    /// The object refers to an object that does not exist.
    MissingReference,
    /// The pod is bound to a node that does not exist.
    MissingNode,
    /// The object refers to an object that is set aside itself.
    BrokenReference,
    /// The object is an ancestor of itself.
    Cycle,
    /// The object contradicts another one.
    Conflict,
    /// Processing the object failed because of a fault of this program.
    InternalError,
}

impl ProblemCode {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidValue => "InvalidValue",
            Self::TooLarge => "TooLarge",
            Self::Undecodable => "Undecodable",
            Self::MissingReference => "MissingReference",
            Self::MissingNode => "MissingNode",
            Self::BrokenReference => "BrokenReference",
            Self::Cycle => "Cycle",
            Self::Conflict => "Conflict",
            Self::InternalError => "InternalError",
        }
    }
}

impl InputError {
    /// Returns an error without position, object and field.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { source: None, object: None, field: None, problem: problem.into(), code: ProblemCode::InvalidValue }
    }

    /// Sets the class of the problem.
    pub fn code(mut self, code: ProblemCode) -> Self {
        self.code = code;
        self
    }

    /// Sets the position.
    pub fn at(mut self, source: &Source) -> Self {
        self.source = Some(source.clone());
        self
    }

    /// Sets the object.
    pub fn object(mut self, object: ObjectRef) -> Self {
        self.object = Some(Box::new(object));
        self
    }

    /// Sets the field.
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

/// An object and its position in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Sourced<T> {
    /// The object, which copies share.
    pub object: Arc<T>,
    /// The position.
    pub source: Source,
}

impl<T: Clone> Sourced<T> {
    /// Replaces the object and keeps the position.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { object: Arc::new(change(Arc::unwrap_or_clone(self.object))), source: self.source }
    }
}

impl<T: OfKind> Sourced<T> {
    /// Returns the namespace and name of the object.
    pub fn name(&self) -> NamespacedName {
        NamespacedName::from_meta(self.object.metadata())
    }

    /// Sets the object and the position of an error.
    pub fn locate(&self, error: InputError) -> InputError {
        error.at(&self.source).object(ObjectRef::of(T::KIND, &self.name()))
    }
}

/// A field that the API does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: NamespacedName,
    /// The path, for example `spec.containers[0].resource`.
    pub path: String,
    /// The known field with the most similar name, if it is similar enough.
    pub nearest: Option<String>,
}
