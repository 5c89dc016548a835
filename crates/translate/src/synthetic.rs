//! Helpers for objects that the translation from one policy's objects to another's creates.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::{Source, Sourced};

pub(crate) fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: namespace.map(str::to_owned), ..ObjectMeta::default() }
}

pub(crate) fn synthetic<T>(object: T) -> Sourced<T> {
    Sourced { object: Arc::new(object), source: source() }
}

/// The position of a created object, for error messages only.
pub(crate) fn source() -> Source {
    Source { file: "the translation between policies".into(), document: 1, item: None }
}
