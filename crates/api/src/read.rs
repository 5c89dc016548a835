//! Reads objects from text: YAML streams, JSON, and lists, as `kubectl get` prints them. Kinds that no decision reads are counted and
//! skipped. `cli` calls [`documents`], then [`Document::read`] for a cluster or [`Document::read_submitted`] for `plan -f`.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::controlled::PodController;
use crate::decode::{DecodeError, decode, decode_as_kubectl};
use crate::fields::unknown_fields;
use crate::kinds::{Scope, kind_table};
use crate::object_set::Unreadable;
use crate::test_file::PreemptionTest;
use crate::tree::{Counter, ValueSeed};
use crate::volumes::Volumes;
use crate::{
    InputError, Kind, NamespacedName, ObjectKey, ObjectRef, ObjectSet, ProblemCode, Source, Sourced, pod_group,
};

/// A longer line is refused before it is parsed, because no object of Kubernetes has one.
const MAX_LINE_BYTES: usize = 64 << 20;

/// What every document must be.
const EXPECTED_OBJECT: &str = "a Kubernetes object with apiVersion and kind";

/// One document of a stream.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    /// The position in the input.
    pub source: Source,
    /// The line of the file on which the document begins, from 0.
    line: usize,
    text: &'t str,
}

/// Splits a stream into its documents. Documents with only comments and white space are skipped.
pub fn documents<'t>(file: &str, text: &'t str) -> Vec<Document<'t>> {
    let file: Arc<str> = file.into();
    let mut documents = Vec::new();
    let (mut start, mut start_line) = (0, 0);
    let mut offset = 0;
    let push = |documents: &mut Vec<Document<'t>>, text: &'t str, line: usize| {
        let source = Source { file: file.clone(), document: documents.len() + 1, item: None };
        if text.lines().any(|line| !matches!(line.trim_start().bytes().next(), None | Some(b'#'))) {
            documents.push(Document { source, line, text });
        }
    };
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if let Some(rest) = line.strip_prefix("---")
            && rest.chars().next().is_none_or(char::is_whitespace)
        {
            push(&mut documents, &text[start..offset], start_line);
            (start, start_line) = (offset + 3, number);
        }
        offset += line.len();
    }
    push(&mut documents, &text[start..], start_line);
    documents
}

impl Document<'_> {
    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns `apiVersion` and `kind`.
    pub fn kind(&self) -> Result<TypeMeta, InputError> {
        Ok(TypeMeta::of(&self.parse(false, None)?.0))
    }

    /// Adds the objects of the document to `objects`, or returns the PreemptionTest that it is.
    pub fn read(&self, objects: &mut ObjectSet) -> Result<Option<Sourced<PreemptionTest>>, InputError> {
        let (value, mut read) = self.parse(false, None)?;
        let test = if TypeMeta::of(&value).is_test() {
            Some(self.decode_own(&value)?)
        } else {
            self.accept(value, &mut read)?;
            None
        };
        objects.extend(read.objects);
        Ok(test)
    }

    /// Reads another kind of Reprieve itself, such as a Scenario.
    pub fn read_own<T: DeserializeOwned>(&self) -> Result<Sourced<T>, InputError> {
        self.decode_own(&self.parse(false, None)?.0)
    }

    fn decode_own<T: DeserializeOwned>(&self, value: &Value) -> Result<Sourced<T>, InputError> {
        let object = typed(value, &self.source, &reference(value))?;
        Ok(Sourced { object: Arc::new(object), source: self.source.clone() })
    }

    /// Reads submitted objects, among them objects whose controllers create pods. As with kubectl, `namespace` is the namespace of objects
    /// that name none, and an object that names another namespace is an error.
    pub fn read_submitted(
        &self,
        objects: &mut ObjectSet,
        controlled: &mut Vec<Sourced<PodController>>,
        namespace: Option<&str>,
    ) -> Result<(), InputError> {
        let (value, mut read) = self.parse(true, namespace)?;
        self.accept(value, &mut read)?;
        objects.extend(read.objects);
        controlled.extend(read.controlled);
        Ok(())
    }

    /// Adds the object to `read`, unless it is a list, whose items the visitor has already added.
    fn accept(&self, value: Value, read: &mut ReadState<'_>) -> Result<(), InputError> {
        if TypeMeta::of(&value).kind.ends_with("List") { Ok(()) } else { accept(value, &self.source, read) }
    }

    /// Parses the document into a tree. The items of a list are not in the tree: each is decoded as soon as it is parsed.
    fn parse<'r>(&self, submitted: bool, namespace: Option<&'r str>) -> Result<(Value, ReadState<'r>), InputError> {
        let counter = Counter::first_pass(looks_like_json(self.text));
        let parsed = self.parse_once(&counter, submitted, namespace);
        if counter.needs_second_pass() {
            return self.parse_once(&Counter::second_pass(counter), submitted, namespace);
        }
        parsed
    }

    fn parse_once<'r>(
        &self,
        counter: &Counter,
        submitted: bool,
        namespace: Option<&'r str>,
    ) -> Result<(Value, ReadState<'r>), InputError> {
        let mut read = ReadState { objects: ObjectSet::default(), submitted, controlled: Vec::new(), namespace };
        let mut tree = DocumentVisitor {
            source: &self.source,
            read: &mut read,
            counter,
            kindless: Vec::new(),
            items: 0,
            error: None,
        };
        let parsed = if looks_like_json(self.text) {
            let mut json = serde_json::Deserializer::from_str(self.text);
            let parsed = tree.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
            parsed.map_err(|error| self.problem("JSON", Some((error.line(), error.column())), &error.to_string()))
        } else {
            self.refuse_endless_lines()?;
            let options = yaml_options(self.text.len());
            serde_saphyr::with_deserializer_from_str_with_options(self.text, options, |yaml| tree.deserialize(yaml))
                .map_err(|error| self.yaml_problem(&error))
        };
        if let Some(error) = tree.error {
            return Err(error);
        }
        let kindless = std::mem::take(&mut tree.kindless);
        let value = parsed.map_err(|problem| InputError::new(problem).at(&self.source))?;
        let list = TypeMeta::of(&value);
        for (item, mut value) in kindless {
            list.give_to_item(&mut value);
            accept(value, &Source { item: Some(item), ..self.source.clone() }, &mut read)?;
        }
        Ok((value, read))
    }

    fn refuse_endless_lines(&self) -> Result<(), InputError> {
        let longest = self.text.lines().enumerate().find(|(_, line)| line.len() > MAX_LINE_BYTES);
        longest.map_or(Ok(()), |(index, line)| {
            let (number, bytes) = (index + self.line + 1, line.len());
            let problem = format!("line {number} has {bytes} bytes; split it; the limit is {MAX_LINE_BYTES} bytes");
            Err(InputError::new(problem).at(&self.source))
        })
    }

    fn yaml_problem(&self, error: &serde_saphyr::Error) -> String {
        let error = error.without_snippet();
        let position = error.location().map(|location| (location.line() as usize, location.column() as usize));
        self.problem("YAML", position, &error.to_string())
    }

    /// Describes a parser's error, with the line in the file instead of the line in the document.
    fn problem(&self, language: &str, position: Option<(usize, usize)>, message: &str) -> String {
        let position =
            position.map(|(line, column)| format!("line {}, column {column}: ", line + self.line)).unwrap_or_default();
        let first = message.lines().next().unwrap_or_default();
        if message.contains(EXPECTED_OBJECT) {
            return format!("{position}this is not {EXPECTED_OBJECT}");
        }
        let problem = match first.split_once(" at line ").map_or(first, |(problem, _)| problem) {
            problem if problem.starts_with("cannot deserialize null into string") => {
                "a key is null; quote it".to_owned()
            }
            problem => plain_problem(problem),
        };
        format!("{position}this is not valid {language}: {problem}")
    }
}

/// Describes a parser's error without its advice for programmers.
fn plain_problem(problem: &str) -> String {
    const SEPARATE: &str = "put --- between two documents, on a line of its own";
    if let Some(rest) = problem.strip_prefix("duplicate mapping key: ") {
        let key = rest.split_once(", set ").map_or(rest, |(key, _)| key);
        let advice = if matches!(key, "apiVersion" | "kind") { SEPARATE } else { "remove one of the two" };
        return format!("the key {key} occurs twice; {advice}");
    }
    if problem.contains("trailing characters") || problem.contains("from_str_multiple") {
        return format!("there is more text after the end of the object; {SEPARATE}");
    }
    if problem.contains("budget breached") {
        return "it is nested too deeply, or its aliases expand too much; write it without aliases".to_owned();
    }
    problem.to_owned()
}

/// Whether the text starts like JSON. A YAML flow mapping starts with a brace, too, but rarely with a quoted key.
fn looks_like_json(text: &str) -> bool {
    text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']))
}

/// Returns the parser's settings. The limits are proportional to the size of the text and stop aliases that expand exponentially.
/// [`crate::tree`] explains which scalars without quotes are text; `010` is 8, as in kubectl.
fn yaml_options(bytes: usize) -> serde_saphyr::Options {
    let max = bytes.saturating_mul(2).saturating_add(10_000);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: max,
            max_nodes: max,
            max_total_scalar_bytes: max,
            max_depth: 128,
        },
        strict_booleans: true,
        legacy_octal_numbers: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::PassThrough,
    }
}

/// `apiVersion` and `kind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    /// The group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl TypeMeta {
    fn of(value: &Value) -> Self {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { api_version: text("apiVersion"), kind: text("kind") }
    }

    /// Whether the object is a PreemptionTest.
    pub fn is_test(&self) -> bool {
        self.api_version.starts_with("reprieve.dev/") && self.kind == "PreemptionTest"
    }

    /// Sets `apiVersion` and `kind` of an item of a typed list, such as a PodList.
    fn give_to_item(&self, item: &mut Value) {
        if let (Value::Object(fields), Some(kind)) = (item, self.kind.strip_suffix("List")) {
            fields.insert("apiVersion".to_owned(), self.api_version.clone().into());
            fields.insert("kind".to_owned(), kind.into());
        }
    }
}

/// The objects that were read so far.
struct ReadState<'r> {
    objects: ObjectSet,
    /// Whether the objects are submitted. If not, objects whose controllers create pods are skipped, because their pods are in the input.
    submitted: bool,
    /// Submitted objects whose controllers create pods.
    controlled: Vec<Sourced<PodController>>,
    /// The namespace that `-n` gives submitted objects.
    namespace: Option<&'r str>,
}

/// Builds the tree of a document without the items of a list.
struct DocumentVisitor<'a, 'r> {
    source: &'a Source,
    read: &'a mut ReadState<'r>,
    counter: &'a Counter,
    /// Items without a kind, and their numbers.
    kindless: Vec<(usize, Value)>,
    items: usize,
    error: Option<InputError>,
}

impl<'de> DeserializeSeed<'de> for &mut DocumentVisitor<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut DocumentVisitor<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED_OBJECT)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                map.next_value_seed(ItemsVisitor(self))?;
            } else {
                fields.insert(key, map.next_value_seed(ValueSeed(self.counter))?);
            }
        }
        Ok(Value::Object(fields))
    }
}

struct ItemsVisitor<'t, 'a, 'r>(&'t mut DocumentVisitor<'a, 'r>);

impl<'de> DeserializeSeed<'de> for ItemsVisitor<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemsVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects under items")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let tree = self.0;
        while let Some(value) = items.next_element_seed(ValueSeed(tree.counter))? {
            tree.items += 1;
            if tree.counter.needs_second_pass() {
                continue;
            }
            if value.get("kind").is_none() {
                tree.kindless.push((tree.items, value));
                continue;
            }
            let source = Source { item: Some(tree.items), ..tree.source.clone() };
            if let Err(error) = accept(value, &source, tree.read) {
                tree.error = Some(error);
                return Err(serde::de::Error::custom("an item cannot be read"));
            }
        }
        Ok(())
    }
}

/// Decodes an object and adds it to the objects of its kind.
fn accept(mut value: Value, source: &Source, read: &mut ReadState<'_>) -> Result<(), InputError> {
    if value.is_null() {
        return Ok(());
    }
    let TypeMeta { api_version, kind } = TypeMeta::of(&value);
    if kind.is_empty() || api_version.is_empty() {
        let field = if kind.is_empty() { "kind" } else { "apiVersion" };
        let problem = "is missing; add it, because every object has apiVersion and kind";
        return Err(InputError::new(problem).at(source).field(field));
    }
    let group = group_of_version(&api_version);
    if read.submitted {
        name_submitted(&mut value);
        if let Some(namespace) = read.namespace {
            place_submitted(&mut value, namespace, source)?;
        }
        let controller = match (group, kind.as_str()) {
            ("batch", "Job") => {
                Some(sourced(&value, source)?.map(|job| PodController::Job(Box::new(job), template_volumes(&value))))
            }
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => Some(
                sourced(&value, source)?.map(|one| PodController::Replicas(Box::new(one), template_volumes(&value))),
            ),
            _ => None,
        };
        if let Some(controller) = controller {
            read.controlled.push(controller);
            read.objects.unknown_fields.extend(unknown_fields(&kind, &kind, &value));
            return Ok(());
        }
    }
    let objects = &mut read.objects;
    if let Some(type_name) = preemptor_type(group, &kind, &value) {
        objects.unknown_fields.extend(unknown_fields(type_name, &kind, &value));
    }
    let of_table = Kind::stored(group, &kind);
    // Only ConfigMaps with YuniKorn's queues are read. The one with YuniKorn's name is read even if it lacks them, to say so.
    let has_queues = value["data"].get("queues.yaml").is_some() || reference(&value).name == "yunikorn-configs";
    let other_config_map = of_table == Some(Kind::ConfigMap) && !has_queues;
    let Some(of_table) = of_table.filter(|_| !other_config_map) else {
        *objects.skipped.entry(format!("{api_version} {kind}")).or_default() += 1;
        return Ok(());
    };
    if of_table == Kind::PodGroup {
        pod_group::convert(&mut value);
    }
    store(objects, of_table, &value, source);
    // A submitted object is a preemptor or a part of one.
    match objects.unreadable.last().filter(|_| read.submitted) {
        Some(unreadable) => Err(unreadable.error.clone()),
        None => Ok(()),
    }
}

macro_rules! store {
    (
        stored { $($kind:ident($type:ty) $list:ident: $($where:literal)+ $($how:ident)+;)+ }
        watched { $($live:ident($live_type:ty): $($live_where:literal)+ $($live_how:ident)+;)+ }
    ) => {
        /// Decodes an object and adds it to the list of its kind.
        fn store(objects: &mut ObjectSet, kind: Kind, value: &Value, source: &Source) {
            match kind {
                $(Kind::$kind => match sourced(value, source) {
                    Ok(object) => objects.$list.push(object),
                    Err(error) => objects.unreadable.push(unreadable(kind, value, error)),
                },)+
                $(Kind::$live => {})+
            }
        }
    };
}
kind_table!(store);

/// Returns the identity of an object that cannot be decoded. An object without a name has an empty one: it cannot be a preemptor, and no
/// other object can refer to it.
fn unreadable(kind: Kind, value: &Value, error: InputError) -> Unreadable {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = text("/metadata/name").unwrap_or_default();
    let name = NamespacedName::new(text("/metadata/namespace").unwrap_or("default"), name);
    Unreadable::new(ObjectKey::new(kind, name), value, error.code(ProblemCode::Undecodable))
}

/// Returns the group of an API version: `batch` for `batch/v1`, empty for `v1`.
fn group_of_version(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// Completes `metadata.generateName`; the API server would add a random suffix, here it is always `new`.
fn name_submitted(value: &mut Value) {
    let Some(Value::Object(metadata)) = value.get_mut("metadata") else { return };
    if !matches!(metadata.get("name"), None | Some(Value::Null)) {
        return;
    }
    if let Some(start) = metadata.get("generateName").and_then(Value::as_str).filter(|start| !start.is_empty()) {
        let name = Value::from(format!("{start}new"));
        metadata.insert("name".to_owned(), name);
    }
}

/// Sets the namespace of a submitted object to that of `-n`.
fn place_submitted(value: &mut Value, namespace: &str, source: &Source) -> Result<(), InputError> {
    let (TypeMeta { api_version, kind }, object) = (TypeMeta::of(value), reference(value));
    let of_table = Kind::stored(group_of_version(&api_version), &kind);
    let Some(Value::Object(metadata)) = value.get_mut("metadata") else { return Ok(()) };
    if kind == "PersistentVolume" || of_table.is_some_and(|kind| kind.resource().scope == Scope::Cluster) {
        return Ok(());
    }
    match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
        "" => {
            metadata.insert("namespace".to_owned(), namespace.into());
            Ok(())
        }
        own if own == namespace => Ok(()),
        own => {
            let problem = format!("{own:?} is not the namespace {namespace:?} given with -n; remove one of the two");
            Err(InputError::new(problem).at(source).object(object).field("metadata.namespace"))
        }
    }
}

/// Returns the volumes of an object's pod template, because the types of the API drop unknown volume sources.
fn template_volumes(value: &Value) -> Volumes {
    let volumes = value.pointer("/spec/template/spec/volumes");
    volumes.and_then(|volumes| decode(volumes).ok()).unwrap_or_default()
}

/// Returns the type in the table of fields for an object that may be a preemptor or a part of one, because it is pending.
fn preemptor_type(group: &str, kind: &str, value: &Value) -> Option<&'static str> {
    let is_set = |pointer: &str| match value.pointer(pointer) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => true,
    };
    match Kind::stored(group, kind)? {
        Kind::Pod => (!is_set("/spec/nodeName")).then_some("Pod"),
        Kind::PodGroup => Some("PodGroup"),
        Kind::KoordinatorPodGroup => Some("KoordinatorPodGroup"),
        Kind::KueueWorkload => (!is_set("/status/admission")).then_some("KueueWorkload"),
        // A Workload of scheduling.k8s.io is a template of groups.
        Kind::Workload => None,
        Kind::Node
        | Kind::Namespace
        | Kind::PriorityClass
        | Kind::LimitRange
        | Kind::RuntimeClass
        | Kind::PodDisruptionBudget
        | Kind::ConfigMap
        | Kind::ElasticQuota
        | Kind::ResourceFlavor
        | Kind::Cohort
        | Kind::ClusterQueue
        | Kind::LocalQueue
        | Kind::WorkloadPriorityClass
        | Kind::DaemonSet
        | Kind::StatefulSet
        | Kind::OwnerJob
        | Kind::JobSet
        | Kind::LeaderWorkerSet
        | Kind::MpiJob
        | Kind::RayCluster
        | Kind::TrainJob
        | Kind::Job => None,
    }
}

fn sourced<T: DeserializeOwned>(value: &Value, source: &Source) -> Result<Sourced<T>, InputError> {
    let object = reference(value);
    let problem = match value.pointer("/metadata/name") {
        None | Some(Value::Null) => Some("is missing; every object needs a name".to_owned()),
        Some(Value::String(name)) => name.is_empty().then(|| "is empty; every object needs a name".to_owned()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => None, // decoding reports the error
    };
    if let Some(problem) = problem {
        return Err(InputError::new(problem).at(source).object(object.clone()).field("metadata.name"));
    }
    Ok(Sourced { object: Arc::new(typed(value, source, &object)?), source: source.clone() })
}

/// Returns a reference to the object in a document, as far as it has kind and name.
fn reference(value: &Value) -> ObjectRef {
    let TypeMeta { api_version, kind } = TypeMeta::of(value);
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default();
    ObjectRef::any(group_of_version(&api_version), &kind, text("/metadata/namespace"), name)
}

/// Decodes an object. An error names the object and the field.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value, source: &Source, object: &ObjectRef) -> Result<T, InputError> {
    decode(value).or_else(|_| {
        let mut quoted = value.clone();
        quote_quantities(&mut quoted);
        decode_as_kubectl(&quoted).map_err(|DecodeError { field, problem }| {
            InputError::new(problem).at(source).object(object.clone()).field(field)
        })
    })
}

/// Converts numbers in lists of quantities into text, because Kubernetes accepts `cpu: 2` for `cpu: "2"`.
fn quote_quantities(value: &mut Value) {
    const OF_PODS: [&str; 4] = ["requests", "limits", "overhead", "allocatedResources"];
    const OF_NODES: [&str; 3] = ["allocatable", "capacity", "podFixed"];
    const OF_LIMIT_RANGES: [&str; 5] = ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"];
    let is_list =
        |key: &str| [&OF_PODS[..], &OF_NODES, &OF_LIMIT_RANGES].into_iter().flatten().any(|list| *list == key);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::Object(quantities) if is_list(key) => {
                        for quantity in quantities.values_mut().filter(|quantity| quantity.is_number()) {
                            *quantity = Value::String(quantity.to_string());
                        }
                    }
                    _ => quote_quantities(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quote_quantities),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
