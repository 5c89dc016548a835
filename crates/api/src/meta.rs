//! The names of objects, and macros that define the types of custom resources.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Defines an object of the API; every field may be missing in the input.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $(#[$how:meta])* $spec:ty $(, $status:ty)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// The group and version.
            pub api_version: String,
            /// The name of the kind.
            pub kind: String,
            /// The metadata.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// The desired state.
            $(#[$how])*
            pub spec: $spec,
            $(
                /// The observed state.
                #[serde(skip_serializing_if = "Option::is_none")]
                pub status: Option<$status>,
            )?
        }
    };
}
pub(crate) use object;

/// Defines the types of custom resources: their derives, and the names of their fields as in the API.
macro_rules! spec_types {
    ($($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* })+) => {
        $(
            #[serde_with::skip_serializing_none]
            #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
            #[serde(rename_all = "camelCase", default)]
            $(#[$attribute])*
            pub struct $name {
                $($fields)*
            }
        )+
    };
}
pub(crate) use spec_types;

/// A namespace and a name; the default namespace is `default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl NamespacedName {
    /// Returns the name in an object's metadata.
    pub fn from_meta(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }

    /// Returns the name with these parts; an empty namespace means `default`.
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

/// The key of an object in a map: its name with the namespace, or without for cluster-scoped kinds.
pub trait Name {
    /// Returns the key for an object's metadata.
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
