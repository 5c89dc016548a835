//! Reads the question of a PreemptionTest or a command: the policy with its arguments, the time, and the preemptor.

use reprieve_engine::explanation::Explanation;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kueue::{FairSharing, Kueue, PlacementMode, Strategy};
use reprieve_engine::{Decision, GroupId, Outcome, Policy, Timestamp, decide, decide_and_explain};
use serde_json::Value;

use crate::arguments::{boolean, owner_kinds, unknown_argument};
use crate::kubernetes_arguments;
use crate::queue_settings::{ARGUMENTS, QueueSettings};
pub use crate::reader::{reader, reads};
use crate::time::parse_time;
use crate::{Loaded, quarantine, timestamp, yunikorn_arguments};
use reprieve_api::decode::decode;
use reprieve_api::{InputError, Kind, NamespacedName, ObjectKey, PreemptorRef, Profile, TestSpec};

/// The time of a PreemptionTest without `spec.now`.
pub const DEFAULT_NOW: &str = "2026-01-01T01:00:00Z";

/// The input of a decision besides the snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The policy with its settings.
    pub policy: Policy,
    /// The time of the decision.
    pub now: Timestamp,
    /// The pending unit that needs room.
    pub preemptor: PreemptorId,
}

impl Question {
    /// Reads the question of a PreemptionTest. A problem of the preemptor, or of an object on which it depends, is an error.
    pub fn new(spec: &TestSpec, loaded: &Loaded) -> Result<Self, InputError> {
        if let Some(problem) = problem_of(&spec.preemptor, &spec.profile.policy, loaded) {
            return Err(problem.clone());
        }
        let now = parse_time(spec.now.as_deref().unwrap_or(DEFAULT_NOW)).map_err(|error| error.field("spec.now"))?;
        Ok(Self {
            policy: policy(&spec.profile)?,
            now: timestamp(now),
            preemptor: preemptor(&spec.preemptor, &spec.profile.policy, loaded)?,
        })
    }

    /// Returns the outcome.
    pub fn decide(&self, loaded: &mut Loaded) -> Outcome {
        decide(&mut loaded.snapshot, &self.policy, self.preemptor, self.now).outcome
    }

    /// Returns the decision with its explanation.
    pub fn decide_and_explain(&self, loaded: &mut Loaded) -> (Decision, Explanation) {
        decide_and_explain(&mut loaded.snapshot, &self.policy, self.preemptor, self.now)
    }

    /// Returns the preemptor with its pods and requirements.
    pub fn preemptor(&self, loaded: &Loaded) -> Preemptor {
        self.policy.preemptor(&loaded.snapshot, self.preemptor)
    }
}

/// Reads the policy of a PreemptionTest's profile. Errors name a field of the test.
pub fn policy(profile: &Profile) -> Result<Policy, InputError> {
    policy_of_profile(profile)
        .map_err(|error| InputError { field: error.field.map(|field| format!("spec.profile.{field}")), ..error })
}

/// Reads the policy of a profile. Errors name a field of the profile.
pub fn policy_of_profile(profile: &Profile) -> Result<Policy, InputError> {
    match profile.policy.to_ascii_lowercase().as_str() {
        "kubernetes" => kubernetes_arguments::read(profile).map(Policy::Kubernetes),
        "yunikorn" => yunikorn_arguments::read(profile).map(Policy::YuniKorn),
        "kueue" => kueue(profile).map(Policy::Kueue),
        "koordinator" => koordinator(profile).map(Policy::Koordinator),
        _ => {
            let problem =
                format!("{:?} is not a policy; write Kubernetes, YuniKorn, Kueue or Koordinator", profile.policy);
            Err(InputError::new(problem).field("policy"))
        }
    }
}

/// Returns the name of a policy.
pub fn policy_name(policy: &Policy) -> &'static str {
    match policy {
        Policy::Kubernetes(_) => "Kubernetes",
        Policy::YuniKorn(_) => "YuniKorn",
        Policy::Kueue(_) => "Kueue",
        Policy::Koordinator(_) => "Koordinator",
    }
}

fn koordinator(profile: &Profile) -> Result<Koordinator, InputError> {
    QueueSettings::of_profile(profile)?;
    let mut policy = Koordinator::default();
    for (argument, value) in profile.args.iter().filter(|(argument, _)| !ARGUMENTS.contains(&argument.as_str())) {
        let field = format!("args.{argument}");
        let setting = match argument.as_str() {
            "disableDefaultPreemptible" | "disableDefaultPreemptiable" => &mut policy.disable_default_preemptible,
            "disableDefaultTriggerPreemption" => &mut policy.disable_default_trigger,
            "gangsFromOwners" => {
                policy.gangs_from_owners = owner_kinds(value, &field)?;
                continue;
            }
            "podShouldBeDeletedWhenPreempted" => &mut policy.deletes_victims,
            "wholeGangs" => &mut policy.whole_gangs,
            _ => {
                let known = "disableDefaultPreemptible, disableDefaultTriggerPreemption, gangsFromOwners, podShouldBeDeletedWhenPreempted, \
                             queueAccess, queues and wholeGangs";
                return Err(unknown_argument("Koordinator", known, field));
            }
        };
        *setting = boolean(value, field)?;
    }
    Ok(policy)
}

fn kueue(profile: &Profile) -> Result<Kueue, InputError> {
    let mut policy = Kueue::default();
    for (argument, value) in &profile.args {
        let field = format!("args.{argument}");
        match argument.as_str() {
            "placement" if value == "QuotaOnly" => policy.placement = PlacementMode::QuotaOnly,
            "placement" if value == "Joint" => policy.placement = PlacementMode::Joint,
            "placement" => {
                let problem = format!("{value} is not valid; write QuotaOnly or Joint");
                return Err(InputError::new(problem).field(field));
            }
            "fairSharing" => policy.fair_sharing = fair_sharing(value, &field)?,
            _ => return Err(unknown_argument("Kueue", "placement and fairSharing", field)),
        }
    }
    Ok(policy)
}

fn fair_sharing(value: &Value, field: &str) -> Result<Option<FairSharing>, InputError> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Settings {
        #[serde(default)]
        enable: bool,
        #[serde(default)]
        preemption_strategies: Vec<String>,
    }
    let settings: Settings =
        decode(value).map_err(|error| InputError::new(error.problem).field(format!("{field}.{}", error.field)))?;
    let strategy = |name: &String| match name.as_str() {
        "LessThanOrEqualToFinalShare" => Ok(Strategy::LessThanOrEqualToFinalShare),
        "LessThanInitialShare" => Ok(Strategy::LessThanInitialShare),
        other => {
            let problem = format!("{other:?} is not valid; write LessThanOrEqualToFinalShare or LessThanInitialShare");
            Err(InputError::new(problem).field(format!("{field}.preemptionStrategies")))
        }
    };
    let strategies = settings.preemption_strategies.iter().map(strategy).collect::<Result<Vec<_>, _>>()?;
    let (first, second) = match strategies.as_slice() {
        [] => (Strategy::LessThanOrEqualToFinalShare, Some(Strategy::LessThanInitialShare)),
        [first, rest @ ..] => (*first, rest.first().copied()),
    };
    Ok(settings.enable.then_some(FairSharing { first, second }))
}

/// Returns the problem of the preemptor, or of an object on which its decision depends.
pub fn problem_of<'l>(reference: &PreemptorRef, policy: &str, loaded: &'l Loaded) -> Option<&'l InputError> {
    let (list, name) = (&loaded.quarantined, reference.full_name());
    if list.is_empty() {
        return None;
    }
    let no_queues = policy.eq_ignore_ascii_case("YuniKorn") && loaded.snapshot.queues().ids().len() == 0;
    let config = list.iter().find(|entry| no_queues && entry.object.kind == Kind::ConfigMap);
    if let Some(config) = config {
        return Some(&config.error);
    }
    let kind = match reference.kind.as_str() {
        "Pod" => Kind::Pod,
        "PodGroup" => Kind::PodGroup,
        "Workload" => Kind::KueueWorkload,
        _ => return None,
    };
    let gang = match kind {
        Kind::PodGroup => Some(ObjectKey::new(kind, name.clone())),
        Kind::Pod => {
            let job = loaded.names.pod_id(&name).and_then(|pod| loaded.snapshot.pod(pod).job);
            job.map(|job| ObjectKey::new(Kind::KoordinatorPodGroup, loaded.names.job(job).clone()))
        }
        _ => None,
    };
    quarantine::of_preemptor(list, &ObjectKey::new(kind, name), gang.as_ref())
}

/// Finds the only group of a Workload that is called `WORKLOAD-GROUP` or `WORKLOAD-GROUP-KEY`.
fn group_of_workload(name: &NamespacedName, loaded: &Loaded) -> Option<GroupId> {
    let is_it = |group: &&NamespacedName| {
        group.name.contains('/') && group.namespace == name.namespace && group.name.replace('/', "-") == name.name
    };
    let mut named = loaded.names.groups.ids.keys().filter(is_it);
    let first = named.next()?;
    if named.next().is_some() { None } else { loaded.names.group_id(first) }
}

/// Finds the preemptor by name. It must be pending and of a kind that the policy decides about.
pub fn preemptor(reference: &PreemptorRef, policy: &str, loaded: &Loaded) -> Result<PreemptorId, InputError> {
    let name = reference.full_name();
    let error = |problem: String| Err(InputError::new(problem).field("preemptor"));
    let is = |name: &str| policy.eq_ignore_ascii_case(name);
    match reference.kind.as_str() {
        "Workload" if is("Kueue") => {
            let Some(id) = loaded.names.workload_id(&name) else {
                return error(format!("there is no Workload {name}; add it to the input, or name another"));
            };
            if loaded.snapshot.workload(id).admission.is_some() {
                return error(format!("Workload {name} holds quota already; name a pending one"));
            }
            Ok(PreemptorId::Workload(id))
        }
        "Pod" if !is("Kueue") => {
            let Some(id) = loaded.names.pod_id(&name) else {
                let same = |pod: &&NamespacedName| pod.name == name.name;
                let elsewhere = loaded.names.pod_ids().map(|id| loaded.names.pod(id)).find(same);
                let advice = elsewhere.map_or_else(
                    || "add it to the input, or name another".to_owned(),
                    |NamespacedName { namespace, .. }| {
                        format!("there is one in namespace {namespace} (-n {namespace})")
                    },
                );
                return error(format!("there is no running or pending pod {name}; {advice}"));
            };
            let pod = loaded.snapshot.pod(id);
            match pod.node {
                Some(node) if !pod.resizing => {
                    let node = loaded.names.node(node);
                    error(format!("pod {name} already runs on node {node}; name a pending pod"))
                }
                Some(_) => Ok(PreemptorId::Pod(id)),
                // docs/rules/kubernetes-groups.md#g27
                None => match pod.group.filter(|_| is("Kubernetes") && pod.takes_part()) {
                    Some(group) => Ok(PreemptorId::Group(group)),
                    None => Ok(PreemptorId::Pod(id)),
                },
            }
        }
        "PodGroup" if is("Kubernetes") => {
            let Some(id) = loaded.names.group_id(&name).or_else(|| group_of_workload(&name, loaded)) else {
                return error(format!("there is no PodGroup {name}; add it to the input, or name another"));
            };
            let members = &loaded.snapshot.group(id).members;
            if !members.iter().any(|&pod| loaded.snapshot.pod(pod).node.is_none()) {
                return error(format!("PodGroup {name} has no pending pod; name a group with pending pods"));
            }
            Ok(PreemptorId::Group(id))
        }
        other if is("Kueue") => error(format!(
            "policy Kueue decides about Workloads, not about a {other}; Kueue creates a Workload for each Job that names a queue: add the \
             output of kubectl get workloads.kueue.x-k8s.io -A -o yaml, and choose one with --for workload/NAME"
        )),
        "Workload" => error(format!(
            "a Workload cannot preempt under policy {policy}, only under policy Kueue; add --policy Kueue"
        )),
        other => {
            let known = "a Pod, or under policy Kubernetes a PodGroup";
            error(format!("kind {other:?} cannot preempt under policy {policy}; name {known}"))
        }
    }
}
