//! What is listed and watched: all objects of a kind, those of a namespace, or a single one.

use kube::core::Request;
use reprieve_api::{Kind, NamespacedName};

use crate::served::ServedVersions;

/// The objects of a kind that are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchScope {
    /// The kind.
    pub kind: Kind,
    /// The namespace; `None` for all.
    namespace: Option<String>,
    /// The name; `None` for all.
    name: Option<String>,
}

impl WatchScope {
    /// All objects of a kind.
    pub fn all(kind: Kind) -> Self {
        Self { kind, namespace: None, name: None }
    }

    /// The objects of a kind in a namespace.
    pub fn in_namespace(kind: Kind, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::all(kind) }
    }

    /// A single object.
    pub fn object(kind: Kind, name: &NamespacedName) -> Self {
        Self { name: Some(name.name.clone()), ..Self::in_namespace(kind, &name.namespace) }
    }

    /// The namespace of the objects; `None` for all.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name of the object; `None` for all.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The requests for these objects.
    pub fn request(&self, versions: &ServedVersions) -> Request {
        Request::new(versions.path(self.kind, self.namespace.as_deref()))
    }

    /// The field selector of these requests. RBAC permits such a list to those who may read the object of that name.
    pub fn field_selector(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("metadata.name={name}"))
    }

    /// Where the objects are, for messages: ` in namespace a`, or nothing.
    pub fn place(&self) -> String {
        self.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
    }
}
