//! The configuration file of `reprieve run`. Unknown fields are errors.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use reprieve_api::NamespacedName;
use reprieve_api::decode::{DecodeError, decode};
use reprieve_api::test_file::Profile as PolicyProfile;
use reprieve_engine::Policy;
use reprieve_loader::QueueSettings;
use reprieve_loader::policy::policy_of_profile;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;

/// The port of the health checks, unless `ports.health` names another.
const DEFAULT_HEALTH_PORT: u16 = 10261;

/// `reprieve.dev/v1alpha1` Configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    /// `reprieve.dev/v1alpha1`.
    pub api_version: String,
    /// `Configuration`.
    pub kind: String,
    /// The schedulers: which pods each one schedules, and by which policy.
    #[serde(default = "default_profiles")]
    pub profiles: Vec<Profile>,
    /// Limits for requests to the API server.
    #[serde(default)]
    pub client_limits: ClientLimits,
    /// Leader election between replicas.
    #[serde(default)]
    pub leader_election: LeaderElection,
    /// Ports for metrics and health checks.
    #[serde(default)]
    pub ports: Ports,
    /// The format of the log.
    #[serde(default)]
    pub log_format: LogFormat,
    /// The maximum number of evicted pods per minute; 0 means no limit.
    #[serde(default)]
    pub evictions_per_minute: u32,
    /// Namespaces whose pods are never preempted.
    #[serde(default = "default_protected")]
    pub protected_namespaces: BTreeSet<String>,
    /// The only namespaces in which objects are changed: pods of other namespaces are neither scheduled nor evicted. `None` means all.
    #[serde(default)]
    pub managed_namespaces: Option<BTreeSet<String>>,
    /// A folder in which every decision is recorded as a PreemptionTest file.
    #[serde(default)]
    pub audit_folder: Option<PathBuf>,
}

/// The namespaces that the schedulers may change.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    /// Namespaces without victims, in addition to those with the label.
    pub protected: BTreeSet<String>,
    /// The only namespaces in which objects are changed; `None` for all.
    pub managed: Option<BTreeSet<String>>,
}

impl Namespaces {
    /// Whether pods of the namespace may be scheduled and evicted.
    pub fn is_managed(&self, namespace: &str) -> bool {
        self.managed.as_ref().is_none_or(|managed| managed.contains(namespace))
    }

    /// Whether no pod of the namespace may be evicted.
    pub fn is_protected(&self, namespace: &str) -> bool {
        self.protected.contains(namespace) || !self.is_managed(namespace)
    }
}

/// The scheduler for the pods with one `schedulerName`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Profile {
    /// The `schedulerName` of the pods.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// The arguments of the policy.
    pub args: Map<String, Value>,
    /// Whether victims in other namespaces show the name of their preemptor; by default only under policy Koordinator.
    pub name_preemptors: Option<bool>,
    /// Where the queues are: the ConfigMap of policy YuniKorn, or the namespace of Koordinator's quotas. The same as `args.queues`.
    pub queues: Option<Value>,
    /// Which namespaces may use which queues. The same as `args.queueAccess`.
    pub queue_access: Option<Value>,
}

/// Limits for requests to the API server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClientLimits {
    /// Requests per second.
    pub qps: u32,
    /// Requests that may exceed `qps` for a short time.
    pub burst: u32,
    /// The maximum number of requests in flight.
    pub max_in_flight: usize,
}

/// Leader election between replicas.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether several replicas may run.
    pub enabled: bool,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// Seconds after which a lease expires that is not renewed.
    pub lease_seconds: u32,
}

/// Ports for metrics and health checks.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Ports {
    /// The port of `/metrics`, `/livez` and `/readyz`; 0 selects a free one.
    pub metrics: u16,
    /// The address on which the metrics port listens. Every client that reaches it can read the names of queues.
    pub metrics_address: IpAddr,
    /// The port of `/livez` and `/readyz` on all addresses; 0 selects a free one.
    pub(crate) health: Option<u16>,
}

impl Ports {
    /// The port of the health checks. Its default is free if that of the metrics is, so that several programs can run on one machine.
    pub fn health(&self) -> u16 {
        self.health.unwrap_or(if self.metrics == 0 { 0 } else { DEFAULT_HEALTH_PORT })
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line per entry.
    Text,
    /// One JSON object per line.
    #[default]
    Json,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { qps: 1000, burst: 2000, max_in_flight: 25 }
    }
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self { enabled: true, namespace: "reprieve-system".to_owned(), name: "reprieve".to_owned(), lease_seconds: 15 }
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self { metrics: 10260, metrics_address: IpAddr::V4(Ipv4Addr::LOCALHOST), health: None }
    }
}

impl Default for Profile {
    fn default() -> Self {
        let (name, policy) = ("reprieve".to_owned(), "Kubernetes".to_owned());
        Self { name, policy, args: Map::new(), queues: None, queue_access: None, name_preemptors: None }
    }
}

fn default_profiles() -> Vec<Profile> {
    vec![Profile::default()]
}

fn default_protected() -> BTreeSet<String> {
    BTreeSet::from(["kube-system".to_owned(), "reprieve-system".to_owned()])
}

impl Configuration {
    /// Reads and validates a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })?;
        Self::parse(&text).map_err(|(field, problem)| Error::Configuration { path: path.to_owned(), field, problem })
    }

    /// Reads and validates the text. An error is a field path and a problem.
    fn parse(text: &str) -> Result<Self, (String, String)> {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet();
            let position = error.location().map(|place| format!("line {}, column {}", place.line(), place.column()));
            let text = error.to_string();
            let problem = text.split(" at line ").next().unwrap_or(&text);
            (position.unwrap_or_else(|| "the file".to_owned()), format!("this is not valid YAML: {problem}"))
        })?;
        let config: Self = decode(&value).map_err(|DecodeError { field, problem }| (field, problem))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), (String, String)> {
        let wrong = |field: &str, problem: &str| Err((field.to_owned(), problem.to_owned()));
        if (self.api_version.as_str(), self.kind.as_str()) != ("reprieve.dev/v1alpha1", "Configuration") {
            return wrong("apiVersion, kind", "write apiVersion: reprieve.dev/v1alpha1 and kind: Configuration");
        }
        if self.profiles.is_empty() {
            return wrong(
                "profiles",
                "the list is empty; name at least one profile, or remove the field for the default",
            );
        }
        let mut names = BTreeSet::new();
        for (i, profile) in self.profiles.iter().enumerate() {
            if profile.name.is_empty() {
                return wrong(&format!("profiles[{i}].name"), "the name is empty; write the schedulerName of the pods");
            }
            if !names.insert(&profile.name) {
                let problem = format!("{:?} is also the name of another profile; write a unique name", profile.name);
                return wrong(&format!("profiles[{i}].name"), &problem);
            }
            profile.policy().map_err(|(field, problem)| (format!("profiles[{i}].{field}"), problem))?;
        }
        self.check_queues()?;
        let ClientLimits { qps, burst, max_in_flight } = self.client_limits;
        for (field, is_zero) in [("qps", qps == 0), ("burst", burst == 0), ("maxInFlight", max_in_flight == 0)] {
            if is_zero {
                return wrong(&format!("clientLimits.{field}"), "write a number above 0");
            }
        }
        let (metrics, health) = (self.ports.metrics, self.ports.health());
        if metrics == health && metrics != 0 {
            return wrong("ports.health", "is the same as ports.metrics; write another port");
        }
        if self.managed_namespaces.as_ref().is_some_and(BTreeSet::is_empty) {
            return wrong("managedNamespaces", "the list is empty; name at least one namespace, or remove the field");
        }
        if self.leader_election.lease_seconds < 3 {
            return wrong(
                "leaderElection.leaseSeconds",
                "write 3 or more; a shorter lease is lost after one slow request",
            );
        }
        Ok(())
    }
}

impl Configuration {
    /// The policy and the queues of each profile.
    pub fn policies(&self) -> Vec<(Policy, QueueSettings)> {
        let valid = |profile: &Profile| Some((profile.policy().ok()?, profile.queues().ok()?));
        self.profiles.iter().filter_map(valid).collect()
    }

    /// The namespaces that the schedulers may change.
    pub fn namespaces(&self) -> Namespaces {
        Namespaces { protected: self.protected_namespaces.clone(), managed: self.managed_namespaces.clone() }
    }

    /// The ConfigMap in which the last valid queues are stored.
    pub fn copy_of_queues(&self) -> NamespacedName {
        let LeaderElection { namespace, name, .. } = &self.leader_election;
        NamespacedName::new(namespace, &format!("{name}-queues"))
    }

    /// The ConfigMap with the queues; `None` if no profile has policy YuniKorn.
    pub fn config_map_of_queues(&self) -> Option<NamespacedName> {
        let profile = self.profiles.iter().find(|profile| profile.reads_config_map())?;
        profile.queues().ok().map(|queues| queues.config_map())
    }

    /// All profiles share one ConfigMap with queues, because one watch follows it.
    fn check_queues(&self) -> Result<(), (String, String)> {
        let first = self.config_map_of_queues();
        for (i, profile) in self.profiles.iter().enumerate().filter(|(_, profile)| profile.reads_config_map()) {
            let own = profile.queues()?.config_map();
            if let Some(first) = first.as_ref().filter(|first| **first != own) {
                let problem = format!("is {own}, but another profile has {first}; all profiles share one ConfigMap");
                return Err((format!("profiles[{i}].queues"), problem));
            }
        }
        Ok(())
    }
}

impl Profile {
    fn reads_config_map(&self) -> bool {
        matches!(self.policy(), Ok(Policy::YuniKorn(_)))
    }

    /// The policy with its arguments; an error is a field path and a problem.
    pub fn policy(&self) -> Result<Policy, (String, String)> {
        for (field, value) in self.queue_arguments() {
            if value.is_some() && self.args.contains_key(field) {
                return Err((field.to_owned(), format!("is also in args.{field}; write it only once")));
            }
        }
        policy_of_profile(&self.policy_profile()).map_err(|error| {
            let field = error.field.unwrap_or_default();
            let own = field.strip_prefix("args.").filter(|field| {
                self.queue_arguments().iter().any(|(name, value)| value.is_some() && field.starts_with(name))
            });
            (own.unwrap_or(&field).to_owned(), error.problem)
        })
    }

    /// The profile in the form of a PreemptionTest.
    pub fn policy_profile(&self) -> PolicyProfile {
        let mut args = self.args.clone();
        let given = self.queue_arguments().into_iter().filter_map(|(field, value)| Some((field, value.clone()?)));
        args.extend(given.map(|(field, value)| (field.to_owned(), value)));
        PolicyProfile { policy: self.policy.clone(), args, scheduler_name: Some(self.name.clone()) }
    }

    /// Where the queues are, and who may use them.
    pub fn queues(&self) -> Result<QueueSettings, (String, String)> {
        QueueSettings::of_profile(&self.policy_profile())
            .map_err(|error| (error.field.unwrap_or_default(), error.problem))
    }

    fn queue_arguments(&self) -> [(&'static str, &Option<Value>); 2] {
        [("queues", &self.queues), ("queueAccess", &self.queue_access)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: reprieve.dev/v1alpha1\nkind: Configuration\n";

    #[test]
    fn absent_fields_have_defaults() {
        let config = Configuration::parse(HEAD).expect("the configuration is valid");
        assert_eq!(config.profiles[0].name, "reprieve");
        let config = Configuration::parse(&format!("{HEAD}profiles: [{{policy: Kueue}}, {{name: other}}]"));
        let profiles = config.expect("the configuration is valid").profiles;
        let named = profiles.iter().map(|profile| (profile.name.as_str(), profile.policy.as_str()));
        assert_eq!(named.collect::<Vec<_>>(), [("reprieve", "Kueue"), ("other", "Kubernetes")]);
        let config = Configuration::parse(HEAD).expect("the configuration is valid");
        assert!(config.protected_namespaces.contains("kube-system"));
        assert!(config.leader_election.enabled);
    }

    #[test]
    fn queues_have_one_address() {
        for (profile, expected) in [
            ("{}", None),
            ("{policy: YuniKorn}", Some("yunikorn/yunikorn-configs")),
            ("{policy: YuniKorn, queues: {namespace: a, name: b}}", Some("a/b")),
            ("{policy: yunikorn, args: {queues: {namespace: a, name: b}}}", Some("a/b")),
        ] {
            let config = Configuration::parse(&format!("{HEAD}profiles: [{profile}]")).expect(profile);
            assert_eq!(config.config_map_of_queues().map(|name| name.to_string()).as_deref(), expected, "{profile}");
            assert_eq!(config.copy_of_queues().to_string(), "reprieve-system/reprieve-queues");
        }
    }

    #[test]
    fn metrics_are_on_loopback_and_health_has_its_own_port() {
        for (ports, expected) in [
            ("{}", ("127.0.0.1", 10260, 10261)),
            ("{metrics: 9000}", ("127.0.0.1", 9000, 10261)),
            ("{metrics: 0}", ("127.0.0.1", 0, 0)),
            ("{metrics: 0, health: 9001, metricsAddress: '::'}", ("::", 0, 9001)),
        ] {
            let ports = Configuration::parse(&format!("{HEAD}ports: {ports}")).expect(ports).ports;
            assert_eq!((ports.metrics_address.to_string().as_str(), ports.metrics, ports.health()), expected);
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (text, field, problem) in [
            ("kind: Configuration", "apiVersion", "missing field"),
            ("apiVersion: v1\nkind: Configuration", "apiVersion, kind", "reprieve.dev/v1alpha1"),
            (&format!("{HEAD}nope: 1"), "nope", "unknown field"),
            (&format!("{HEAD}profiles: []"), "profiles", "is empty"),
            (&format!("{HEAD}profiles: [{{name: a, policy: Fifo}}]"), "profiles[0].policy", "not a policy"),
            (
                &format!("{HEAD}profiles: [{{name: a, policy: Koordinator, args: {{x: 1}}}}]"),
                "profiles[0].args.x",
                "no such argument",
            ),
            (
                &format!(
                    "{HEAD}profiles: [{{name: a, policy: Kubernetes, args: {{maxPreemptionPriorityExcess: far}}}}]"
                ),
                "profiles[0].args.maxPreemptionPriorityExcess",
                "not a whole number",
            ),
            (
                &format!("{HEAD}profiles: [{{name: a, policy: Kueue}}, {{name: a, policy: Kueue}}]"),
                "profiles[1].name",
                "another profile",
            ),
            (&format!("{HEAD}clientLimits: {{qps: 0}}"), "clientLimits.qps", "above 0"),
            (&format!("{HEAD}leaderElection: {{leaseSeconds: 1}}"), "leaderElection.leaseSeconds", "3 or more"),
            (&format!("{HEAD}profiles: [{{queues: {{name: a}}}}]"), "profiles[0].queues", "no such argument"),
            (
                &format!("{HEAD}profiles: [{{policy: YuniKorn, queues: {{path: a}}}}]"),
                "profiles[0].queues",
                "unknown field",
            ),
            (
                &format!("{HEAD}profiles: [{{policy: YuniKorn, queues: {{}}, args: {{queues: {{}}}}}}]"),
                "profiles[0].queues",
                "only once",
            ),
            (
                &format!(
                    "{HEAD}profiles: [{{policy: YuniKorn}}, {{name: b, policy: YuniKorn, queues: {{namespace: a}}}}]"
                ),
                "profiles[1].queues",
                "share one",
            ),
            (
                &format!("{HEAD}profiles: [{{policy: YuniKorn, queueAccess: [{{queues: []}}]}}]"),
                "profiles[0].queueAccess",
                "missing field",
            ),
            (&format!("{HEAD}logFormat: xml"), "logFormat", "unknown variant"),
            (&format!("{HEAD}managedNamespaces: []"), "managedNamespaces", "is empty"),
            (&format!("{HEAD}ports: {{metricsAddress: here}}"), "ports.metricsAddress", "IP address"),
            (&format!("{HEAD}ports: {{health: 10260}}"), "ports.health", "ports.metrics"),
        ] {
            let (path, message) = Configuration::parse(text).expect_err(text);
            assert!(path.contains(field) || message.contains(field), "{text}: {path}: {message}");
            assert!(message.contains(problem), "{text}: {path}: {message}");
        }
    }
}
