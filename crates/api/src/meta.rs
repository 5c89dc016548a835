//! How an object is named.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// An object of the API with these fields, all of which may be missing.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $(#[$how:meta])* $spec:ty $(, $status:ty)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// Its group and version.
            pub api_version: String,
            /// What it is.
            pub kind: String,
            /// Its metadata.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What it asks for.
            $(#[$how])*
            pub spec: $spec,
            $(
                /// What came of it.
                #[serde(skip_serializing_if = "Option::is_none")]
                pub status: Option<$status>,
            )?
        }
    };
}
pub(crate) use object;

/// A namespace and a name; the namespace is `default` where none is given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl NamespacedName {
    /// Of an object.
    pub fn from_meta(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }

    /// From its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The name of an object: with its namespace, or alone.
pub trait Name {
    /// Of an object.
    fn of_object(metadata: &ObjectMeta) -> Self;
}

impl Name for NamespacedName {
    fn of_object(metadata: &ObjectMeta) -> Self {
        Self::from_meta(metadata)
    }
}

impl Name for String {
    fn of_object(metadata: &ObjectMeta) -> Self {
        metadata.name.clone().unwrap_or_default()
    }
}
