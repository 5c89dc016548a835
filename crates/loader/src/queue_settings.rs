//! Where the queues of a profile are, and which namespaces may use which of them: the arguments `queues` and `queueAccess`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reprieve_api::decode::decode;
use reprieve_api::{InputError, NamespacedName, ObjectSet, Profile};
use serde::Deserialize;
use serde_json::Value;

use crate::namespace_selector::{Namespaces, check};

/// The arguments of a profile that this module reads.
pub const ARGUMENTS: [&str; 2] = ["queues", "queueAccess"];
/// The ConfigMap with YuniKorn's queues, unless `queues` names another.
const DEFAULT_CONFIG_MAP: (&str, &str) = ("yunikorn", "yunikorn-configs");

/// The scheduler for which objects are loaded, and its settings that no decision reads.
#[derive(Clone, Debug, Default)]
pub struct LoadScope {
    /// The scheduler that decides. It does not place members of gangs that name another one. Without a name, each gang belongs to the
    /// scheduler that its members name.
    pub scheduler_name: Option<String>,
    /// Its queues.
    pub queues: QueueSettings,
}

impl LoadScope {
    /// Reads the scope of a profile. Errors name a field of the profile.
    pub fn of_profile(profile: &Profile) -> Result<Self, InputError> {
        Ok(Self { scheduler_name: profile.scheduler_name.clone(), queues: QueueSettings::of_profile(profile)? })
    }
}

/// The arguments `queues` and `queueAccess` of a profile.
#[derive(Clone, Debug, Default)]
pub struct QueueSettings {
    /// The ConfigMap with YuniKorn's queues; without it, the only ConfigMap with queues in the input.
    config_map: Option<NamespacedName>,
    /// The namespace of Koordinator's quotas; without it, quotas of all namespaces count.
    quota_namespace: Option<String>,
    /// What namespaces may use; without it, every namespace may use every queue.
    grants: Option<Vec<Grant>>,
}

/// Queues that some namespaces may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Grant {
    namespace_selector: LabelSelector,
    queues: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Address {
    namespace: Option<String>,
    name: Option<String>,
}

impl QueueSettings {
    /// Reads the settings of a profile. Errors name a field of the profile.
    pub fn of_profile(profile: &Profile) -> Result<Self, InputError> {
        let mut settings = Self::default();
        let is = |policy: &str| profile.policy.eq_ignore_ascii_case(policy);
        let (yunikorn, koordinator) = (is("YuniKorn"), is("Koordinator"));
        if !yunikorn && !koordinator {
            return Ok(settings);
        }
        if let Some(value) = profile.args.get("queues") {
            let Address { namespace, name } = read(value, "args.queues")?;
            if koordinator && name.is_some() {
                let problem = "policy Koordinator reads all ElasticQuotas of the namespace; remove the name";
                return Err(InputError::new(problem).field("args.queues.name"));
            }
            let name = NamespacedName {
                namespace: namespace.unwrap_or_else(|| DEFAULT_CONFIG_MAP.0.to_owned()),
                name: name.unwrap_or_else(|| DEFAULT_CONFIG_MAP.1.to_owned()),
            };
            settings.quota_namespace = koordinator.then(|| name.namespace.clone());
            settings.config_map = yunikorn.then_some(name);
        }
        if let Some(value) = profile.args.get("queueAccess") {
            settings.grants = Some(grants(value, yunikorn)?);
        }
        Ok(settings)
    }

    /// The ConfigMap that a live cluster must have under policy YuniKorn.
    pub fn config_map(&self) -> NamespacedName {
        let (namespace, name) = DEFAULT_CONFIG_MAP;
        self.config_map.clone().unwrap_or_else(|| NamespacedName::new(namespace, name))
    }

    /// The namespace of the ElasticQuotas that count; `None` for all.
    pub fn quota_namespace(&self) -> Option<&str> {
        self.quota_namespace.as_deref()
    }
}

fn grants(value: &Value, are_paths: bool) -> Result<Vec<Grant>, InputError> {
    let mut grants: Vec<Grant> = read(value, "args.queueAccess")?;
    for (index, grant) in grants.iter_mut().enumerate() {
        let field = format!("args.queueAccess[{index}]");
        // A misspelt field of a selector would select every namespace.
        let selector = value[index]["namespaceSelector"].as_object();
        let is_unknown = |key: &&String| !matches!(key.as_str(), "matchLabels" | "matchExpressions");
        if let Some(unknown) = selector.and_then(|selector| selector.keys().find(is_unknown)) {
            let problem = format!("unknown field {unknown:?}; write matchLabels or matchExpressions");
            return Err(InputError::new(problem).field(format!("{field}.namespaceSelector")));
        }
        check(&Some(Some(grant.namespace_selector.clone())))
            .map_err(|error| error.field(format!("{field}.namespaceSelector")))?;
        for pattern in &mut grant.queues {
            check_pattern(pattern, are_paths)
                .map_err(|problem| InputError::new(problem).field(format!("{field}.queues")))?;
            if are_paths {
                *pattern = pattern.to_ascii_lowercase();
            }
        }
    }
    Ok(grants)
}

/// A pattern is the name of a queue, the prefix of names with `*` at its end, or `*`.
fn check_pattern(pattern: &str, is_path: bool) -> Result<(), String> {
    let prefix = pattern.strip_suffix('*').unwrap_or(pattern);
    let is_prefix = prefix.len() < pattern.len();
    if prefix.contains('*') || is_prefix && !prefix.is_empty() && !prefix.ends_with(['.', '/']) {
        return Err(format!("{pattern:?}: write * only at the end, as a whole part of the name"));
    }
    let root = prefix.split('.').next().unwrap_or_default();
    if is_path && pattern != "*" && !root.eq_ignore_ascii_case("root") {
        return Err(format!("{pattern:?} is not the full path of a queue; begin it with root"));
    }
    if !is_path && pattern != "*" && !pattern.contains('/') {
        return Err(format!("{pattern:?} is not a quota; write NAMESPACE/NAME or NAMESPACE/*"));
    }
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(value: &Value, field: &str) -> Result<T, InputError> {
    decode(value).map_err(|error| {
        let path = match error.field.as_str() {
            "." => field.to_owned(),
            path if path.starts_with('[') => format!("{field}{path}"),
            path => format!("{field}.{path}"),
        };
        InputError::new(error.problem).field(path)
    })
}

/// The settings of the queues, with the labels of the namespaces to which they refer.
pub struct QueueScope {
    settings: QueueSettings,
    namespaces: Namespaces,
}

impl QueueScope {
    /// The scope for the namespaces of the input.
    pub fn new(settings: &QueueSettings, objects: &ObjectSet) -> Self {
        Self { settings: settings.clone(), namespaces: Namespaces::new(objects) }
    }

    /// The ConfigMap that the settings name.
    pub fn config_map(&self) -> Option<&NamespacedName> {
        self.settings.config_map.as_ref()
    }

    /// Whether the quotas of a namespace count.
    pub fn has_quotas_of(&self, namespace: &str) -> bool {
        self.settings.quota_namespace.as_deref().is_none_or(|only| only == namespace)
    }

    /// Whether the objects of a namespace may use a queue: a full path under YuniKorn, `NAMESPACE/NAME` under Koordinator.
    pub fn permits(&self, namespace: &str, queue: &str) -> bool {
        let Some(grants) = &self.settings.grants else { return true };
        let names = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => queue.starts_with(prefix),
            None => queue == pattern,
        };
        grants.iter().any(|grant| {
            grant.queues.iter().any(names)
                && self.namespaces.fits(&Some(Some(grant.namespace_selector.clone())), namespace)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile(policy: &str, args: Value) -> Profile {
        let Value::Object(args) = args else { panic!("arguments are a map") };
        Profile { args, ..Profile::of_policy(policy) }
    }

    #[test]
    fn address_has_defaults_by_policy() {
        let name = |args: Value| {
            QueueSettings::of_profile(&profile("yunikorn", args)).expect("valid").config_map().to_string()
        };
        assert_eq!(name(json!({})), "yunikorn/yunikorn-configs");
        assert_eq!(name(json!({"queues": {"namespace": "a"}})), "a/yunikorn-configs");
        assert_eq!(name(json!({"queues": {"namespace": "a", "name": "b"}})), "a/b");
        let settings = QueueSettings::of_profile(&profile("Koordinator", json!({"queues": {"namespace": "a"}})));
        assert_eq!(settings.expect("valid").quota_namespace(), Some("a"));
    }

    #[test]
    fn errors_name_the_field() {
        for (policy, args, field, problem) in [
            ("YuniKorn", json!({"queues": {"path": "a"}}), "args.queues", "unknown field"),
            ("YuniKorn", json!({"queues": "a"}), "args.queues", "expected"),
            ("Koordinator", json!({"queues": {"name": "a"}}), "args.queues.name", "remove the name"),
            ("YuniKorn", json!({"queueAccess": [{"queues": ["root"]}]}), "args.queueAccess[0]", "missing field"),
            (
                "YuniKorn",
                json!({"queueAccess": [{"namespaceSelector": {"matchLabel": {"a": "b"}}, "queues": []}]}),
                "args.queueAccess[0].namespaceSelector",
                "unknown field",
            ),
            (
                "YuniKorn",
                json!({"queueAccess": [{"namespaceSelector": {}, "queues": ["root.a*"]}]}),
                "args.queueAccess[0].queues",
                "only at the end",
            ),
            (
                "YuniKorn",
                json!({"queueAccess": [{"namespaceSelector": {}, "queues": ["a"]}]}),
                "args.queueAccess[0].queues",
                "begin it with root",
            ),
            (
                "Koordinator",
                json!({"queueAccess": [{"namespaceSelector": {}, "queues": ["a"]}]}),
                "args.queueAccess[0].queues",
                "NAMESPACE/NAME",
            ),
        ] {
            let error = QueueSettings::of_profile(&profile(policy, args.clone())).expect_err(&args.to_string());
            assert!(error.field.as_deref().is_some_and(|path| path.starts_with(field)), "{args}: {error}");
            assert!(error.problem.contains(problem), "{args}: {error}");
        }
    }

    #[test]
    fn namespace_may_use_the_queues_of_every_rule_that_selects_it() {
        let access = json!([
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}, "queues": ["root.A.*", "root.b"]},
            {"namespaceSelector": {}, "queues": ["root.public"]},
        ]);
        let settings = QueueSettings::of_profile(&profile("YuniKorn", json!({"queueAccess": access}))).expect("valid");
        let scope = QueueScope::new(&settings, &ObjectSet::default());
        for (namespace, queue, permitted) in [
            ("a", "root.a.x", true),
            ("a", "root.a.x.y", true),
            ("a", "root.a", false),
            ("a", "root.ab", false),
            ("a", "root.b", true),
            ("a", "root.b.c", false),
            ("a", "root.public", true),
            ("b", "root.public", true),
            ("b", "root.a.x", false),
        ] {
            assert_eq!(scope.permits(namespace, queue), permitted, "{namespace} {queue}");
        }
        let all = QueueScope::new(&QueueSettings::default(), &ObjectSet::default());
        assert!(all.permits("b", "root.a.x"));
    }
}
