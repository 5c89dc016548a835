//! Reads YuniKorn's queues from their ConfigMap; [`crate::yunikorn_pods`] reads its pods. Where YuniKorn replaces an invalid setting by
//! a default without a message, this module does the same and adds a warning.
//!
//! [`crate::builder`] calls it for the snapshot, `translate` for the queues of another policy. The rules are in
//! `docs/rules/yunikorn.md`.

mod duration;
mod dynamic;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use reprieve_engine::QueueId;
use reprieve_engine::queues::{Queue, QueuePriority, QueueTree};
use serde::Deserialize;
use serde_json::Value;

use self::duration::go_duration;
use self::dynamic::named_queues;
use crate::quarantine::{Problem, Quarantine, key_of};
use crate::queue_settings::QueueScope;
use crate::requests::{amount, limit, text_of};
use crate::{Amounts, QueueSpec, Warning};
use reprieve_api::decode::plain_problem;
use reprieve_api::{InputError, ObjectKey, ObjectSet, Pod, ProblemCode, Sourced, quantity};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    partitions: Vec<Partition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Partition {
    name: String,
    queues: Vec<QueueFields>,
    preemption: PartitionPreemption,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PartitionPreemption {
    /// The default is true.
    enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct QueueFields {
    name: String,
    parent: bool,
    resources: Resources,
    properties: BTreeMap<String, Value>,
    queues: Vec<QueueFields>,
    childtemplate: Option<ChildTemplate>,
    /// The users and groups that may submit to the queue. Users are not known here, so only `*` is usable.
    submitacl: Option<Value>,
    /// The limits of users and groups are not evaluated.
    limits: Value,
    /// The maximum number of applications is not evaluated.
    maxapplications: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ChildTemplate {
    resources: Resources,
    properties: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    guaranteed: BTreeMap<String, Value>,
    max: BTreeMap<String, Value>,
}

/// The queues by full path, parents first.
#[derive(Debug, Default)]
pub struct YuniKornTree {
    pub enabled: bool,
    pub queues: Vec<QueueConfig>,
    /// The ConfigMap of the queues.
    config: Option<ObjectKey>,
    /// The paths of the configured queues that are set aside.
    lost: Vec<String>,
    /// The paths that pods name and that no queue can have.
    refused: BTreeMap<String, Problem>,
}

/// A queue of the configuration, or a dynamic queue that a pod names.
#[derive(Debug)]
pub struct QueueConfig {
    /// The name is the full path.
    pub spec: QueueSpec,
    leaf: bool,
    /// Whether the configuration has the queue, so that its name is not a pod's word.
    configured: bool,
    /// Whether pods may name queues below it that the configuration does not have.
    dynamic: bool,
    template: Option<ChildTemplate>,
    settings: Settings,
    /// Whether only some users may submit to the queue; `None` if the queue has no `submitacl`.
    is_restricted: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    policy: PreemptionPolicy,
    delay_micros: i64,
    priority: QueuePriority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreemptionPolicy {
    Default,
    Fence,
    Disabled,
}

/// Reads the queue tree and adds the dynamic queues that pods name and may use; `reads_queue` says whether the queue of a pod is read.
/// `follows_code` means that the root may have a preemption policy, as in the code of YuniKorn.
/// `None` if the input has no ConfigMap with queues, or none that can be read. A queue that cannot be read is set aside with the queues below it.
pub fn queue_tree(
    objects: &ObjectSet,
    scope: &QueueScope,
    follows_code: bool,
    reads_queue: impl Fn(&Pod) -> bool,
    warnings: &mut Vec<Warning>,
    quarantine: &mut Quarantine,
) -> Option<YuniKornTree> {
    let map = config_map(objects, scope, warnings, quarantine)?;
    quarantine.reads(map);
    let mut texts = Vec::new();
    let (mut tree, problems) = match read_config(&map.object, follows_code, &mut texts) {
        Ok(read) => read,
        Err(error) => {
            quarantine.add(key_of(map), Some(&map.source), error);
            return None;
        }
    };
    for (_, error) in &problems {
        quarantine.add(key_of(map), Some(&map.source), error.clone());
    }
    tree.lost = problems.into_iter().filter(|(path, _)| tree.find(path).is_none()).map(|(path, _)| path).collect();
    tree.config = Some(key_of(map));
    quarantine.reading = None;
    let named = named_queues(objects, &tree, scope, reads_queue);
    let mut builder = TreeBuilder { tree: &mut tree, follows_code, warnings: &mut texts, problems: Vec::new() };
    for path in named {
        builder.add_dynamic(&path);
    }
    warnings.extend(texts.into_iter().map(|text| Warning::about(key_of(map), text)));
    Some(tree)
}

/// Checks a ConfigMap with queues as a whole.
pub fn check_queues(map: &ConfigMap) -> Result<(), InputError> {
    let (_, problems) = read_config(map, false, &mut Vec::new())?;
    problems.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

/// Finds the ConfigMap with the queues: the one that the settings name, else the only one with queues.
fn config_map<'o>(
    objects: &'o ObjectSet,
    scope: &QueueScope,
    warnings: &mut Vec<Warning>,
    quarantine: &mut Quarantine,
) -> Option<&'o Sourced<ConfigMap>> {
    if let Some(named) = scope.config_map() {
        let map = objects.config_maps.iter().find(|map| map.name() == *named);
        if map.is_none() {
            let problem = "which the argument queues names, is not in the input: there are no queues";
            warnings.push(format!("ConfigMap {named}, {problem}").into());
        }
        return map;
    }
    let mut found: Vec<_> = objects.config_maps.iter().collect();
    found.sort_by_key(|map| map.name());
    found.dedup_by_key(|map| map.name());
    let [first, rest @ ..] = found.as_slice() else { return None };
    for second in rest {
        let problem = format!(
            "has queues, and so has ConfigMap {}; name one of them in the argument queues: {{namespace: …, name: …}}",
            first.name()
        );
        quarantine.add(key_of(second), Some(&second.source), InputError::new(problem).code(ProblemCode::Conflict));
    }
    rest.is_empty().then_some(first)
}

/// Reads the queues of a configuration. Returns the tree, and the path and the error of each queue that cannot be read.
#[allow(clippy::type_complexity, reason = "the two results of one reading")]
fn read_config(
    map: &ConfigMap,
    follows_code: bool,
    warnings: &mut Vec<String>,
) -> Result<(YuniKornTree, Vec<(String, InputError)>), InputError> {
    let text = map.data.as_ref().and_then(|data| data.get("queues.yaml")).map(String::as_str);
    let text = text.ok_or_else(|| InputError::new("is missing; add the queues").field("data[queues.yaml]"))?;
    let config: Config = serde_saphyr::from_str(text).map_err(|error| {
        let message = error.without_snippet().to_string();
        let problem = plain_problem(message.lines().next().unwrap_or_default());
        InputError::new(problem).field("data[queues.yaml]").code(ProblemCode::Undecodable)
    })?;
    let [partition] = config.partitions.as_slice() else {
        let problem = format!("{} partitions are given; keep one, others are not supported", config.partitions.len());
        return Err(InputError::new(problem).field("data[queues.yaml].partitions"));
    };
    let mut tree = YuniKornTree { enabled: partition.preemption.enabled.unwrap_or(true), ..YuniKornTree::default() };
    let mut builder = TreeBuilder { tree: &mut tree, follows_code, warnings, problems: Vec::new() };
    builder.add(&root_of(partition), None);
    let problems = builder.problems;
    if tree.queues.is_empty() {
        // The root itself cannot be read.
        return Err(problems.into_iter().next().map_or_else(|| InputError::new("has no queue"), |(_, error)| error));
    }
    Ok((tree, problems))
}

/// Returns the root queue; if the configuration does not name it, its queues are the children of the root.
fn root_of(partition: &Partition) -> QueueFields {
    match partition.queues.as_slice() {
        [root] if root.name == "root" => root.clone(),
        queues => QueueFields { name: "root".to_owned(), queues: queues.to_vec(), ..QueueFields::default() },
    }
}

struct TreeBuilder<'a> {
    tree: &'a mut YuniKornTree,
    follows_code: bool,
    warnings: &'a mut Vec<String>,
    /// The path and the error of each queue that is not in the tree.
    problems: Vec<(String, InputError)>,
}

impl TreeBuilder<'_> {
    /// Adds a queue and all queues below it, without those that cannot be read. Returns its guarantee, or the sum of its children's
    /// guarantees if it has none.
    fn add(&mut self, config: &QueueFields, parent: Option<usize>) -> Amounts {
        let path = match parent {
            None => config.name.to_ascii_lowercase(),
            Some(parent) => format!("{}.{}", self.tree.queues[parent].spec.name, config.name.to_ascii_lowercase()),
        };
        let index = self.tree.queues.len();
        self.try_add(config, parent, &path).unwrap_or_else(|error| {
            self.tree.queues.truncate(index);
            self.problems.push((path, error));
            Amounts::new()
        })
    }

    fn try_add(&mut self, config: &QueueFields, parent: Option<usize>, path: &str) -> Result<Amounts, InputError> {
        let wrong = |problem: String| Err(InputError::new(problem).field(format!("data[queues.yaml] {path}")));
        if !is_queue_name(&config.name) {
            let problem = "is not a queue's name; write 1 to 64 letters, digits or any of _ - : # / @";
            return wrong(format!("{:?} {problem}", config.name));
        }
        if self.tree.find(path).is_some() {
            return wrong("two queues have this name; rename one of them".to_owned());
        }
        if let Some(template) = &config.childtemplate {
            amounts(&template.resources.guaranteed, path, amount)?;
            amounts(&template.resources.max, path, limit)?;
        }
        for (field, value) in [("limits", &config.limits), ("maxapplications", &config.maxapplications)] {
            if !value.is_null() {
                self.warnings.push(format!("queue {path}: {field} is not evaluated"));
            }
        }
        let (guarantee, limit) = self.read_limits(&config.resources, parent, path)?;
        self.check_limits(path, parent, &guarantee, &limit)?;
        let inherited = parent.map(|parent| self.tree.queues[parent].settings.policy);
        let settings = self.settings(path, &config.properties, inherited);
        let acl = config.submitacl.as_ref().map(text_of);
        let is_restricted = acl.as_ref().map(|acl| acl.trim() != "*");
        if let Some(acl) = acl.filter(|_| is_restricted == Some(true)) {
            self.warnings.push(format!(
                "queue {path}: submitacl {acl:?} names users, which are not known here: pods that name the queue are refused"
            ));
        }
        let index = self.tree.queues.len();
        let template = config.childtemplate.clone().or_else(|| self.tree.queues[parent?].template.clone());
        self.tree.queues.push(QueueConfig {
            spec: QueueSpec { name: path.to_owned(), parent, guarantee, limit },
            leaf: config.queues.is_empty() && !config.parent && parent.is_some(),
            configured: true,
            dynamic: config.parent || config.childtemplate.is_some() || parent.is_none() && config.queues.is_empty(),
            template,
            settings,
            is_restricted,
        });
        let mut children = Amounts::new();
        for child in &config.queues {
            for (resource, amount) in self.add(child, Some(index)) {
                let sum = children.entry(resource).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        self.check_children(index, &children)?;
        let own = &self.tree.queues[index].spec.guarantee;
        Ok(if own.is_empty() { children } else { own.clone() })
    }

    /// Reads guarantee and maximum. As in YuniKorn, amounts that are all zero count as none, and the root has neither.
    fn read_limits(
        &mut self,
        resources: &Resources,
        parent: Option<usize>,
        path: &str,
    ) -> Result<(Amounts, Amounts), InputError> {
        let mut read = |written: &BTreeMap<String, Value>, field: &str, read: AmountReader| {
            let amounts = amounts(written, path, read)?;
            let instead = if parent.is_none() {
                "the root has none of its own; its maximum is the sum of the nodes' allocatable resources"
            } else if positive(amounts.clone()).is_empty() {
                "zero of everything counts as none"
            } else {
                return Ok(amounts);
            };
            if !amounts.is_empty() {
                self.warnings.push(format!("queue {path}: {field}: {instead}, as in YuniKorn"));
            }
            Ok(BTreeMap::new())
        };
        Ok((read(&resources.guaranteed, "guaranteed", amount)?, read(&resources.max, "max", limit)?))
    }

    /// YuniKorn rejects a queue whose children together have a larger guarantee than its own guarantee or maximum.
    fn check_children(&self, index: usize, children: &Amounts) -> Result<(), InputError> {
        let QueueSpec { name, guarantee, limit, .. } = &self.tree.queues[index].spec;
        for (resource, sum) in children {
            for (bounds, bound) in [(guarantee, "it has a guarantee of"), (limit, "it has a maximum of")] {
                refuse_above(name, resource, ("its children together are guaranteed", *sum), (bound, bounds))?;
            }
        }
        Ok(())
    }

    /// YuniKorn rejects a queue whose guarantee or maximum exceeds its own maximum or that of a queue above it.
    fn check_limits(
        &self,
        path: &str,
        parent: Option<usize>,
        guarantee: &Amounts,
        limit: &Amounts,
    ) -> Result<(), InputError> {
        let above = std::iter::successors(parent, |&index| self.tree.queues[index].spec.parent);
        let above = above.map(|index| &self.tree.queues[index].spec).map(|spec| (&*spec.name, &spec.limit));
        let bounds: Vec<(&str, &Amounts)> = std::iter::once((path, limit)).chain(above).collect();
        for (what, amounts) in [("guarantees", guarantee), ("has a maximum of", limit)] {
            for (resource, amount) in amounts {
                for (owner, bounds) in &bounds {
                    refuse_above(path, resource, (what, *amount), (&format!("{owner} has a maximum of"), bounds))?;
                }
            }
        }
        Ok(())
    }

    fn settings(
        &mut self,
        path: &str,
        properties: &BTreeMap<String, Value>,
        inherited: Option<PreemptionPolicy>,
    ) -> Settings {
        let known = [
            "application.sort.policy",
            "application.sort.priority",
            "preemption.delay",
            "preemption.policy",
            "priority.offset",
            "priority.policy",
        ];
        for key in properties.keys().filter(|key| !known.contains(&key.as_str())) {
            self.warnings.push(format!("queue {path}: property {key} does not affect preemption and is ignored"));
        }
        let mut setting = |key: &str, default: &str, is_valid: &dyn Fn(&str) -> bool| {
            let text = properties.get(key).map_or_else(|| default.to_owned(), text_of);
            if is_valid(&text) {
                return text;
            }
            self.warnings
                .push(format!("queue {path}: {key}: {text:?} is not valid; {default} is used, as in YuniKorn"));
            default.to_owned()
        };
        let is_policy = |text: &str| matches!(text, "" | "default" | "fence" | "disabled");
        let policy = match setting("preemption.policy", "default", &is_policy).as_str() {
            _ if inherited.is_none() && !self.follows_code => PreemptionPolicy::Default, // the root
            "fence" => PreemptionPolicy::Fence,
            "disabled" => PreemptionPolicy::Disabled,
            _ if inherited == Some(PreemptionPolicy::Disabled) && !properties.contains_key("preemption.policy") => {
                PreemptionPolicy::Disabled
            }
            _ => PreemptionPolicy::Default,
        };
        let delay = setting("preemption.delay", "30s", &|text| go_duration(text).is_some_and(|micros| micros > 0));
        let delay_micros = go_duration(&delay).unwrap_or_default();
        let offset = setting("priority.offset", "0", &|text| text.parse::<i32>().is_ok());
        let offset = offset.parse().unwrap_or_default();
        let is_policy = |text: &str| matches!(text, "" | "default" | "fence");
        let priority = match setting("priority.policy", "default", &is_policy).as_str() {
            "fence" => QueuePriority::Fence(offset),
            _ => QueuePriority::Offset(offset),
        };
        Settings { policy, delay_micros, priority }
    }
}

impl YuniKornTree {
    fn find(&self, path: &str) -> Option<usize> {
        self.queues.iter().position(|queue| queue.spec.name == path)
    }

    fn has_children(&self, index: usize) -> bool {
        self.queues.iter().any(|queue| queue.spec.parent == Some(index))
    }

    /// The queues without the root, which every tree has.
    pub fn queue_specs(&self) -> Vec<QueueSpec> {
        let without_root = |queue: &QueueConfig| {
            let parent = queue.spec.parent.filter(|&index| index > 0).map(|index| index - 1);
            QueueSpec { parent, ..queue.spec.clone() }
        };
        self.queues.iter().skip(1).map(without_root).collect()
    }

    /// The id of the queue with this full path. `None` if the tree was built without pods that name it.
    pub fn queue_id(&self, path: &str) -> Option<Result<QueueId, Problem>> {
        if let Some(problem) = self.refused.get(path) {
            return Some(Err(problem.clone()));
        }
        let index = self.find(path).filter(|&index| self.queues[index].leaf)?;
        Some(Ok(QueueId::new(index)))
    }

    /// Whether the tree may differ with other pods that name this queue: it competes with another one for pods or children.
    pub fn depends_on_pods_of(&self, path: &str) -> bool {
        let is_below = |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'));
        let conflicts = self.refused.iter().filter(|(_, problem)| problem.error.code == ProblemCode::Conflict);
        conflicts
            .map(|(refused, _)| refused.as_str())
            .any(|refused| refused == path || is_below(refused, path) || is_below(path, refused))
    }

    /// The queue whose `submitacl` applies to this path, if only some users may submit to it. The lowest queue that has one decides.
    pub fn restricted(&self, path: &str) -> Option<&str> {
        if self.queues.iter().all(|queue| queue.is_restricted.is_none()) {
            return None;
        }
        let ends = std::iter::once(path.len()).chain(path.rmatch_indices('.').map(|(at, _)| at));
        let mut queues = ends.filter_map(|end| self.find(&path[..end])).map(|index| &self.queues[index]);
        let queue = queues.find(|queue| queue.is_restricted.is_some())?;
        (queue.is_restricted == Some(true)).then_some(queue.spec.name.as_str())
    }

    /// Whether the configuration has the queue; a dynamic queue exists because a pod names it.
    pub fn is_configured(&self, queue: QueueId) -> bool {
        self.queues.get(queue.index()).is_some_and(|queue| queue.configured)
    }

    /// The tree for the engine. `offered` is the sum of the nodes' allocatable amounts and limits the root.
    pub fn to_queue_tree(&self, resources: &[String], offered: &[i64]) -> QueueTree {
        let queue = |QueueConfig { spec, settings, .. }: &QueueConfig| {
            let mut queue = spec.queue(resources);
            if spec.parent.is_none() {
                queue.limit.iter_mut().zip(offered).for_each(|(own, offered)| *own = (*own).min(*offered));
            }
            Queue {
                fence: settings.policy == PreemptionPolicy::Fence,
                preemptible: settings.policy != PreemptionPolicy::Disabled,
                delay_micros: settings.delay_micros,
                priority: settings.priority,
                ..queue
            }
        };
        QueueTree::new(self.enabled, resources.len(), self.queues.iter().map(queue).collect())
    }
}

/// Returns an error if an amount of a queue exceeds a bound of that resource.
fn refuse_above(
    path: &str,
    resource: &str,
    (what, amount): (&str, i64),
    (owner, bounds): (&str, &Amounts),
) -> Result<(), InputError> {
    let Some(bound) = bounds.get(resource).filter(|bound| **bound < amount) else { return Ok(()) };
    let (amount, bound) = (quantity::format(resource, amount), quantity::format(resource, *bound));
    let problem = format!("{what} {amount} {resource}, but {owner} {bound}; lower the one or raise the other");
    Err(InputError::new(problem).field(format!("data[queues.yaml] {path}")))
}

type AmountReader = fn(&str, &Value) -> Result<i64, InputError>;

/// Reads amounts; YuniKorn calls cpu `vcore`.
fn amounts(written: &BTreeMap<String, Value>, path: &str, amount: AmountReader) -> Result<Amounts, InputError> {
    let read = |(resource, value): (&String, &Value)| {
        let name = if resource == "vcore" { "cpu" } else { resource };
        let field = || format!("data[queues.yaml] {path} {resource}");
        Ok((name.to_owned(), amount(name, value).map_err(|error| error.field(field()))?))
    };
    written.iter().map(read).collect()
}

/// In YuniKorn, amounts that are all zero count as no amounts.
fn positive(amounts: Amounts) -> Amounts {
    if amounts.values().all(|amount| *amount == 0) { BTreeMap::new() } else { amounts }
}

/// Whether YuniKorn allows the name for a queue.
fn is_queue_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:#/@".contains(&byte))
}
