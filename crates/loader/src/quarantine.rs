//! The objects that a snapshot cannot use as they are. Each object is read alone: a broken one is set aside with its reason, and so is what
//! refers to it; all other objects are read as if the broken one did not exist.
//!
//! A bound pod keeps its room whatever else is wrong with it. If its requests cannot be read, it counts as its whole node. It is not
//! preempted, because the laws cannot judge it.

use std::collections::BTreeMap;

use reprieve_api::kinds::OfKind;
use reprieve_api::source::KindRef;
use reprieve_api::{InputError, NamespacedName, ObjectKey, ObjectRef, ObjectSet, ProblemCode, Source, Sourced};
use reprieve_engine::Policy;

use crate::reader::reads;

/// An object that is set aside, wholly or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The object.
    pub object: ObjectKey,
    /// The first problem of the object, or of one of its parts, such as a queue of a ConfigMap: the field, the reason and what to do.
    pub error: InputError,
    /// The object that is set aside itself and to which this one refers.
    pub cause: Option<ObjectKey>,
    /// The group or job of a pod, which now lacks a member.
    pub gang: Option<ObjectKey>,
}

impl Quarantined {
    /// Returns the class of the problem.
    pub fn code(&self) -> ProblemCode {
        self.error.code
    }
}

/// A problem of an object that is read alone, before its object is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, the reason and what to do.
    pub error: InputError,
    /// The object that is set aside itself and to which this one refers.
    pub cause: Option<ObjectKey>,
    /// The group or job of a pod.
    pub gang: Option<ObjectKey>,
}

impl From<InputError> for Problem {
    fn from(error: InputError) -> Self {
        Self { error, cause: None, gang: None }
    }
}

impl Problem {
    /// The problem of an object whose field refers to an object that is set aside.
    pub fn refers_to(cause: ObjectKey, field: &str) -> Self {
        let object = ObjectRef::of(cause.kind, &cause.name);
        let error = InputError::new(format!("{object} is set aside because of its own problem; correct that object"));
        Self { error: error.field(field).code(ProblemCode::BrokenReference), cause: Some(cause), gang: None }
    }
}

/// Returns why a preemptor cannot be decided: the problem of the object itself, of a member of its gang, or of an object to which one of
/// these refers.
pub fn of_preemptor<'q>(
    list: &'q [Quarantined],
    object: &ObjectKey,
    gang: Option<&ObjectKey>,
) -> Option<&'q InputError> {
    let member = || list.iter().find(|entry| entry.gang.is_some() && entry.gang.as_ref() == gang);
    let own = root_cause(list, object).or_else(|| root_cause(list, gang?));
    let own = own.or_else(|| root_cause(list, &member()?.object));
    own.map(|entry| &entry.error)
}

/// Collects the objects that are set aside.
pub struct Quarantine {
    /// `None` if the objects of all policies are reported.
    policy: Option<Policy>,
    all: BTreeMap<(ObjectKey, String), Quarantined>,
    /// The object that is being read: a panic is attributed to it.
    pub reading: Option<ObjectKey>,
}

impl Quarantine {
    /// Objects of kinds that the policy does not read are not reported.
    pub fn new(policy: &Policy) -> Self {
        Self { policy: Some(*policy), all: BTreeMap::new(), reading: None }
    }

    /// A quarantine for callers that use only the good parts.
    pub fn unreported() -> Self {
        Self { policy: None, all: BTreeMap::new(), reading: None }
    }

    /// Adds an object; of several problems with the same field the first stays.
    pub fn add(&mut self, object: ObjectKey, source: Option<&Source>, problem: impl Into<Problem>) {
        if self.policy.as_ref().is_some_and(|policy| !reads(policy, object.kind)) {
            return;
        }
        let entry = quarantined(object, source, problem.into());
        let field = entry.error.field.clone().unwrap_or_default();
        self.all.entry((entry.object.clone(), field)).or_insert(entry);
    }

    /// Adds the objects of files that have the name of an earlier object.
    pub fn add_duplicates(&mut self, objects: &ObjectSet) {
        let mut duplicates = objects.duplicates();
        duplicates.sort();
        for (object, source, first) in duplicates {
            let problem = format!("{first} has an object with the same name; rename or remove one of them");
            let error = InputError::new(problem).field("metadata.name").code(ProblemCode::Conflict);
            self.add(object, Some(&source), error);
        }
    }

    /// Notes that an object is being read.
    pub fn reads<T: OfKind>(&mut self, object: &Sourced<T>) {
        self.reading = Some(key_of(object));
    }

    /// Returns all objects that are set aside, in the order of kinds, names and fields.
    pub fn take_list(&mut self) -> Vec<Quarantined> {
        std::mem::take(&mut self.all).into_values().collect()
    }
}

/// Returns the key of an object.
pub fn key_of<T: OfKind>(object: &Sourced<T>) -> ObjectKey {
    ObjectKey::new(T::KIND, object.name())
}

/// Returns the key of the object of an error.
pub fn key_of_error(error: &InputError) -> Option<ObjectKey> {
    let ObjectRef { kind, namespace, name } = error.object.as_deref()?;
    let KindRef::Known(kind) = kind else { return None };
    let name = NamespacedName::new(namespace.as_deref().unwrap_or("default"), name);
    Some(ObjectKey::new(*kind, name))
}

/// Sets the object and the position of a problem.
pub fn quarantined(object: ObjectKey, source: Option<&Source>, problem: Problem) -> Quarantined {
    let Problem { mut error, cause, gang } = problem;
    if error.object.is_none() {
        error = error.object(ObjectRef::of(object.kind, &object.name));
    }
    if let (None, Some(source)) = (&error.source, source) {
        error = error.at(source);
    }
    Quarantined { object, error, cause, gang }
}

/// Finds the first entry of an object in a sorted list.
pub fn find<'q>(list: &'q [Quarantined], object: &ObjectKey) -> Option<&'q Quarantined> {
    let first = list.partition_point(|entry| entry.object < *object);
    list.get(first).filter(|entry| entry.object == *object)
}

/// Returns the entry at the end of the chain of references that begins with an object.
pub fn root_cause<'q>(list: &'q [Quarantined], object: &ObjectKey) -> Option<&'q Quarantined> {
    let mut entry = find(list, object)?;
    // A chain is no longer than the list, so that a circle of references cannot make this endless.
    for _ in 0..list.len() {
        match entry.cause.as_ref().and_then(|cause| find(list, cause)) {
            Some(cause) => entry = cause,
            None => break,
        }
    }
    Some(entry)
}

/// Replaces the entries of an object in a sorted list.
pub fn replace(list: &mut Vec<Quarantined>, object: &ObjectKey, entry: Option<Quarantined>) {
    let first = list.partition_point(|known| known.object < *object);
    let n = list[first..].iter().take_while(|known| known.object == *object).count();
    list.splice(first..first + n, entry);
}

/// Returns a warning for each object with a problem of its own, with the number of objects that are set aside because they refer to it.
pub fn warnings(list: &[Quarantined]) -> Vec<String> {
    let mut dependents: BTreeMap<&ObjectKey, usize> = BTreeMap::new();
    for entry in list.iter().filter(|entry| entry.cause.is_some()) {
        if let Some(root) = root_cause(list, &entry.object) {
            *dependents.entry(&root.object).or_default() += 1;
        }
    }
    let mut named: Vec<&ObjectKey> = Vec::new();
    let mut warnings = Vec::new();
    for entry in list.iter().filter(|entry| entry.cause.is_none()) {
        let with = if named.last() == Some(&&entry.object) { None } else { dependents.get(&entry.object) };
        named.push(&entry.object);
        let mut error = entry.error.clone();
        let ignored = if entry.code() == ProblemCode::MissingNode {
            // Files from a cluster may have been written at different times, so the place in the file does not matter.
            error.source = None;
            "the pod is ignored"
        } else {
            "it is set aside"
        };
        let with = match with {
            None => String::new(),
            Some(1) => ", with 1 object that refers to it".to_owned(),
            Some(n) => format!(", with {n} objects that refer to it"),
        };
        warnings.push(format!("{error}; {ignored}{with}"));
    }
    warnings
}
