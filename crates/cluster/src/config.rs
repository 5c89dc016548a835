//! The configuration file of `reprieve run`. Unknown fields are refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use reprieve_api::decode::{DecodeError, decode};
use reprieve_api::test_file::Profile as PolicyProfile;
use reprieve_engine::policy::Policy;
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
    /// Which pods are scheduled, and how.
    #[serde(default = "default_profiles")]
    pub profiles: Vec<Profile>,
    /// How much is asked of the API server.
    #[serde(default)]
    pub client_limits: ClientLimits,
    /// Which of several replicas schedules.
    #[serde(default)]
    pub leader_election: LeaderElection,
    /// Where it can be looked at.
    #[serde(default)]
    pub ports: Ports,
    /// How it logs.
    #[serde(default)]
    pub log_format: LogFormat,
    /// How many pods are evicted in a minute at most; 0 is no limit.
    #[serde(default)]
    pub evictions_per_minute: u32,
    /// Namespaces in which nobody is preempted.
    #[serde(default = "default_protected")]
    pub protected_namespaces: BTreeSet<String>,
    /// A folder for every decision as a PreemptionTest file.
    #[serde(default)]
    pub audit_folder: Option<PathBuf>,
}

/// The pods that name a scheduler, and the policy for them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Profile {
    /// The `schedulerName` of its pods.
    pub name: String,
    /// The policy.
    pub policy: String,
    /// The policy's settings.
    pub args: Map<String, Value>,
}

/// How much is asked of the API server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClientLimits {
    /// Requests a second.
    pub qps: u32,
    /// How many at once after a quiet time.
    pub burst: u32,
    /// How many are under way at most.
    pub max_in_flight: usize,
}

/// Which of several replicas schedules.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether there may be several.
    pub enabled: bool,
    /// The lease's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How long it holds without being renewed.
    pub lease_seconds: u32,
}

/// Where it can be looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Ports {
    /// `/metrics`, `/livez` and `/readyz`; 0 takes a free one.
    pub metrics: u16,
}

/// How it logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
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
        Self { name: "reprieve".to_owned(), policy: "Kubernetes".to_owned(), args: Map::new() }
    }
}

fn default_profiles() -> Vec<Profile> {
    vec![Profile::default()]
}

fn default_protected() -> BTreeSet<String> {
    BTreeSet::from(["kube-system".to_owned(), "reprieve-system".to_owned()])
}

impl Configuration {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })?;
        Self::parse(&text).map_err(|(field, problem)| Error::Configuration { path: path.to_owned(), field, problem })
    }

    /// Reads the text; an error is a field and what is wrong with it.
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
            return wrong("profiles", "there is none; leave the field out for the default, or name one");
        }
        let mut names = BTreeSet::new();
        for (i, profile) in self.profiles.iter().enumerate() {
            if profile.name.is_empty() {
                return wrong(&format!("profiles[{i}].name"), "it is empty; write the schedulerName of the pods");
            }
            if !names.insert(&profile.name) {
                let problem = format!("{:?} is the name of another profile, too; each needs its own", profile.name);
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
            return wrong("leaderElection.leaseSeconds", "write 3 or more; a shorter lease is lost at every hiccup");
        }
        Ok(())
    }
}

impl Profile {
    /// The policy that it names.
    pub fn policy(&self) -> Result<Policy, (String, String)> {
        policy_of_profile(&self.policy_profile()).map_err(|error| (error.field.unwrap_or_default(), error.problem))
    }

    /// The same, as a PreemptionTest says it.
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
    fn what_is_left_out_has_a_default() {
        let config = Configuration::parse(HEAD).expect("it is whole");
        assert_eq!(config.profiles[0].name, "reprieve");
        let config = Configuration::parse(&format!("{HEAD}profiles: [{{policy: Kueue}}, {{name: other}}]"));
        let profiles = config.expect("it is whole").profiles;
        let named = profiles.iter().map(|profile| (profile.name.as_str(), profile.policy.as_str()));
        assert_eq!(named.collect::<Vec<_>>(), [("reprieve", "Kueue"), ("other", "Kubernetes")]);
        let config = Configuration::parse(HEAD).expect("it is whole");
        assert!(config.protected_namespaces.contains("kube-system"));
        assert!(config.leader_election.enabled);
    }

    #[test]
    fn mistakes_are_named_with_their_field() {
        for (text, field, problem) in [
            ("kind: Configuration", "apiVersion", "missing field"),
            ("apiVersion: v1\nkind: Configuration", "apiVersion, kind", "reprieve.dev/v1alpha1"),
            (&format!("{HEAD}nope: 1"), "nope", "unknown field"),
            (&format!("{HEAD}profiles: []"), "profiles", "there is none"),
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
            let (at, why) = Configuration::parse(text).expect_err(text);
            assert!(at.contains(field) || why.contains(field), "{text}: {at}: {why}");
            assert!(why.contains(problem), "{text}: {at}: {why}");
        }
    }
}
