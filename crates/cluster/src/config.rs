//! The configuration file of `reprieve run`. Unknown fields are errors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use reprieve_api::decode::{DecodeError, decode};
use reprieve_api::test_file::Profile as PolicyProfile;
use reprieve_engine::Policy;
use reprieve_loader::policy::policy_of_profile;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;

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
    /// A folder in which every decision is recorded as a PreemptionTest file.
    #[serde(default)]
    pub audit_folder: Option<PathBuf>,
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
        Self { metrics: 10260 }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self { name: "reprieve".to_owned(), policy: "Kubernetes".to_owned(), args: Map::new(), name_preemptors: None }
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
        let value: Value = serde_saphyr::from_str(text).map_err(|error| ("the file".to_owned(), error.to_string()))?;
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
        let ClientLimits { qps, burst, max_in_flight } = self.client_limits;
        for (field, is_zero) in [("qps", qps == 0), ("burst", burst == 0), ("maxInFlight", max_in_flight == 0)] {
            if is_zero {
                return wrong(&format!("clientLimits.{field}"), "write a number above 0");
            }
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

impl Profile {
    /// The policy with its arguments; an error is a field path and a problem.
    pub fn policy(&self) -> Result<Policy, (String, String)> {
        policy_of_profile(&self.policy_profile()).map_err(|error| (error.field.unwrap_or_default(), error.problem))
    }

    /// The profile in the form of a PreemptionTest.
    pub fn policy_profile(&self) -> PolicyProfile {
        let scheduler_name = Some(self.name.clone());
        PolicyProfile { policy: self.policy.clone(), args: self.args.clone(), scheduler_name }
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
            (&format!("{HEAD}logFormat: xml"), "logFormat", "unknown variant"),
        ] {
            let (path, message) = Configuration::parse(text).expect_err(text);
            assert!(path.contains(field) || message.contains(field), "{text}: {path}: {message}");
            assert!(message.contains(problem), "{text}: {path}: {message}");
        }
    }
}
