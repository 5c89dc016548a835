//! How objects in one namespace show units and pods of another. A name in another namespace may tell a tenant what another tenant runs, so
//! they show its uid there, as kube-scheduler's victims do. The log, the audit records and `plan` are for operators and have the names.

use std::fmt;

use reprieve_api::{NamespacedName, ObjectKey};
use reprieve_engine::laws::Law;
use reprieve_report::reasons::{self, ReasonText};
use reprieve_report::unit_ref::UnitRef;

use super::ClusterView;

/// A preemptor as a victim shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownPreemptor {
    Named(UnitRef),
    /// The name of the kind, and the uid if the object is known.
    Unnamed(&'static str, Option<String>),
}

impl ShownPreemptor {
    /// The preemptor as the related object of an event, if the event may name it.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Named(unit) => Some(unit.key()),
            Self::Unnamed(..) => None,
        }
    }

    /// The name or the uid alone.
    pub fn without_kind(&self) -> String {
        match self {
            Self::Named(unit) => unit.key().name.to_string(),
            Self::Unnamed(_, uid) => uid.clone().unwrap_or_else(|| "of another namespace".to_owned()),
        }
    }
}

impl fmt::Display for ShownPreemptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(unit) => unit.fmt(f),
            Self::Unnamed(kind, _) => write!(f, "{kind} {}", self.without_kind()),
        }
    }
}

impl ClusterView {
    /// The uid of a unit's object. A gang without an object of its own has the uid of its first pod.
    pub fn uid(&self, unit: &UnitRef) -> Option<String> {
        let key = unit.key();
        let own = self.observed_object(key.kind, &key.name).or_else(|| self.live.get(&key).cloned());
        let uid = own.map(|object| object.uid().to_owned());
        let of_pod = || self.observed_pod(self.members(unit).first()?)?.metadata.uid.clone();
        uid.or_else(of_pod).filter(|uid| !uid.is_empty())
    }

    /// How objects in a namespace show a preemptor.
    pub fn preemptor_shown_in(&self, namespace: &str, unit: &UnitRef) -> ShownPreemptor {
        if self.names_preemptors || unit.key().name.namespace == namespace {
            ShownPreemptor::Named(unit.clone())
        } else {
            ShownPreemptor::Unnamed(unit.kind_name(), self.uid(unit))
        }
    }

    /// Whether objects in a namespace may show the name of another object.
    pub fn may_name(&self, namespace: &str, other: &NamespacedName) -> bool {
        self.names_preemptors || other.namespace == namespace
    }

    /// The name of a victim, or its uid, for objects in a namespace.
    pub fn victim_shown_in(&self, namespace: &str, victim: &ObjectKey) -> String {
        if self.may_name(namespace, &victim.name) {
            return victim.name.to_string();
        }
        let uid = self.observed_object(victim.kind, &victim.name).map(|object| object.uid().to_owned());
        uid.unwrap_or_else(|| "of another namespace".to_owned())
    }

    /// The law that refuses a unit or makes it wait, as the objects of the unit show it.
    pub fn law_shown_to(&self, unit: &UnitRef, law: &Law) -> ReasonText {
        let names = &self.loaded().names;
        reasons::law_without(law, names, |pod| !self.may_name(&unit.key().name.namespace, names.pod(pod)))
    }
}
