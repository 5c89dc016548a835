//! Where an object came from, and what is wrong with it.

use std::fmt;
use std::sync::Arc;

use crate::meta::FullName;

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

/// Input that cannot be used. It names the file, the document, the object, the field, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// Where it is, as far as that is known.
    pub source: Option<Source>,
    /// The object: kind, namespace and name.
    pub object: Option<String>,
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
    pub fn object(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
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

/// A field that the API does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The object's kind.
    pub kind: String,
    /// The object.
    pub name: FullName,
    /// Where it is, as in `spec.containers[0].resource`.
    pub path: String,
    /// The known field that is named most like it, if one is.
    pub nearest: Option<String>,
}
