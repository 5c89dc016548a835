//! Decides one question under every policy, on the same cluster. Queues and quotas of one policy are translated into those of the others,
//! so `compare` can explain the differences between policies by the laws that cause them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use reprieve_api::{
    InputError, NamespacedName, ObjectSet, OutcomeName, Pod, PreemptorRef, Profile, TestSpec, group_of,
};
use reprieve_engine::{Outcome, PodId};
use reprieve_loader::build::{OnInvalid, load, load_as};
use reprieve_loader::policy::{policy, problem_of};
use reprieve_loader::time::timestamp;
use reprieve_loader::{LoadScope, Loaded, Question, QueueSettings};
use reprieve_report::budget_report::{BudgetReport, violated};
use reprieve_report::decision::{DecisionReport, LawReport};
use reprieve_report::gpu_hours::{GpuResources, LostWork};
use reprieve_report::plural::count;
use reprieve_report::report::{decide_and_report, report_decision};
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_kubernetes::KubernetesObjects;
use reprieve_translate::to_kueue::Translated;
use reprieve_translate::tolerations::{has_tolerations, without_tolerations};
use reprieve_translate::translation::QuotaSystem;
use serde::Serialize;
use serde_json::Map;

use crate::render::format_duration;

/// The decision of one policy.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyResult {
    /// The policy.
    pub policy: &'static str,
    /// Whether tolerations and opt-outs count.
    pub tolerations: bool,
    /// `None` if the policy cannot decide on this cluster; `summary` has the reason.
    pub outcome: Option<OutcomeName>,
    /// The pods that are evicted.
    pub victims: Vec<String>,
    /// The cost of the evictions.
    pub eviction_cost: EvictionCost,
    /// The decision in one sentence, or the reason why there is none.
    pub summary: String,
    /// The law that refuses the preemptor or makes it wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law: Option<LawReport>,
    /// The disruption budgets that the plan violates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// The laws that cause the difference to the first policy, or to the same policy with tolerations. For an unschedulable preemptor
    /// without another decision to compare with: the laws that spare the pods.
    pub difference: Vec<String>,
}

impl PolicyResult {
    /// A sentence for each violated budget.
    pub fn violations(&self) -> impl Iterator<Item = String> + '_ {
        self.budgets.iter().map(|budget| budget.sentence("the plan"))
    }
}

/// The cost of evicting the victims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionCost {
    /// The number of evicted pods.
    pub pods: usize,
    /// The GPUs of these pods, and the work that they lose.
    #[serde(flatten)]
    pub lost: LostWork,
    /// The running time of these pods, added up, in seconds; `None` if it is unknown for one of them.
    pub seconds: Option<i64>,
}

impl EvictionCost {
    /// The cost as text: pods, GPUs, and the lost work or, without GPUs, the running time; empty if no pod is evicted.
    pub fn texts(self) -> Vec<String> {
        if self.pods == 0 {
            return Vec::new();
        }
        let LostWork { gpus, .. } = self.lost;
        let lost = (gpus > 0).then(|| format!("{} lost", self.lost));
        let running = || {
            let ran = self.seconds.map(|seconds| format_duration(SignedDuration::from_secs(seconds)));
            format!("{} of running time", ran.unwrap_or_else(|| "–".to_owned()))
        };
        vec![
            count(self.pods, "pod", "pods"),
            count(usize::try_from(gpus).unwrap_or(0), "GPU", "GPUs"),
            lost.unwrap_or_else(running),
        ]
    }
}

/// A policy to compare, and the quota system whose objects it reads, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PolicyVariant {
    title: &'static str,
    quota_system: Option<QuotaSystem>,
}

const KUBERNETES: PolicyVariant = PolicyVariant { title: "Kubernetes", quota_system: None };
/// Policy Kubernetes without the priority cut, as kube-scheduler decides.
const KUBE_SCHEDULER: PolicyVariant = PolicyVariant { title: "kube-scheduler", quota_system: None };
const VARIANTS: [PolicyVariant; 5] = [
    KUBERNETES,
    KUBE_SCHEDULER,
    PolicyVariant { title: "YuniKorn", quota_system: Some(QuotaSystem::YuniKorn) },
    PolicyVariant { title: "Koordinator", quota_system: Some(QuotaSystem::Koordinator) },
    PolicyVariant { title: "Kueue", quota_system: Some(QuotaSystem::Kueue) },
];

impl PolicyVariant {
    fn policy(self) -> &'static str {
        self.quota_system.map_or(KUBERNETES.title, |_| self.title)
    }

    /// The profile of this policy, with the arguments of the question if they are for the same policy.
    fn profile(self, given: &Profile) -> Profile {
        let is_own = given.policy.eq_ignore_ascii_case(self.policy());
        let mut args = if is_own { given.args.clone() } else { Map::new() };
        if self == KUBERNETES {
            args.remove("priorityCut");
        } else if self == KUBE_SCHEDULER {
            args.insert("priorityCut".to_owned(), false.into());
        }
        Profile { args, scheduler_name: given.scheduler_name.clone(), ..Profile::of_policy(self.policy()) }
    }
}

/// The decisions of all policies, followed by those without tolerations if the cluster has any. An error if no policy can decide.
pub fn compare_policies(
    objects: &ObjectSet,
    given: &TestSpec,
    gpus: &GpuResources,
) -> Result<Vec<PolicyResult>, InputError> {
    policy(&given.profile)?;
    let with = ComparedCluster::new(objects, given, gpus)?;
    let mut answers: Vec<_> = VARIANTS.iter().map(|&variant| with.decide(variant, given)).collect();
    if answers.iter().all(Result::is_err) {
        answers.swap_remove(0)?;
    }
    let first = VARIANTS.iter().zip(&answers).find_map(|(variant, answer)| Some((*variant, answer.as_ref().ok()?)));
    let mut results = Vec::new();
    for (&variant, answer) in VARIANTS.iter().zip(&answers) {
        let base = first.filter(|(first, _)| *first != variant);
        let base = base.map(|(first, answer)| (format!("under {}", first.title), answer));
        results.push(with.result(variant, true, answer, base));
    }
    if has_tolerations(objects) {
        let without = ComparedCluster::new(&without_tolerations(objects), given, gpus)?;
        for (&variant, with) in VARIANTS.iter().zip(&answers) {
            let base = with.as_ref().ok().map(|with| ("with tolerations on".to_owned(), with));
            results.push(without.result(variant, false, &without.decide(variant, given), base));
        }
    }
    Ok(results)
}

/// The cluster as given, as objects of policy Kubernetes only, and its queues in a neutral form.
struct ComparedCluster {
    objects: ObjectSet,
    kubernetes: KubernetesObjects,
    loaded: Loaded,
    queues: Option<NeutralQueues>,
    /// Set if the preemptor's own policy refuses it because of an obstacle (scheduling gates, another scheduler, an unsupported
    /// requirement); then all policies refuse it.
    refusal: Option<DecisionReport>,
    /// The resources that count as GPUs.
    gpus: GpuResources,
}

/// The decision of one policy, by pod.
struct PolicyAnswer {
    report: DecisionReport,
    evicted: BTreeSet<String>,
    /// The recorded reason why each pod is spared.
    spared: BTreeMap<String, SparedBy>,
}

/// A recorded reason why a pod is spared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SparedBy {
    Law(&'static str),
    /// The name of a reason that is not a law, such as `Reprieved`.
    Other(&'static str),
}

impl ComparedCluster {
    fn new(objects: &ObjectSet, given: &TestSpec, gpus: &GpuResources) -> Result<Self, InputError> {
        if let Some(problem) = own_problem(objects, given) {
            return Err(problem);
        }
        let kubernetes = KubernetesObjects::from_objects(objects)?;
        let loaded = load(&kubernetes.objects, OnInvalid::Quarantine)?;
        let queues = NeutralQueues::from_objects(objects, &kubernetes, &QueueSettings::of_profile(&given.profile)?);
        let (objects, refusal) = (objects.clone(), refusal(objects, given));
        Ok(Self { objects, kubernetes, loaded, queues, refusal, gpus: gpus.clone() })
    }

    fn decide(&self, variant: PolicyVariant, given: &TestSpec) -> Result<PolicyAnswer, InputError> {
        if let (Some(refusal), true) = (&self.refusal, self.queues.is_some() || variant.quota_system.is_none()) {
            return Ok(PolicyAnswer { report: refusal.clone(), evicted: BTreeSet::new(), spared: BTreeMap::new() });
        }
        let mapped = match (variant.quota_system, &self.queues) {
            (None, _) => Translated { objects: self.kubernetes.objects.clone(), workload_of: BTreeMap::new() },
            (Some(_), None) => return Err(InputError::new("the input has no queues or quotas")),
            (Some(quota_system), Some(queues)) => {
                queues.translate_to(quota_system, &self.objects, &self.kubernetes, &self.loaded)?
            }
        };
        let spec = TestSpec {
            now: given.now.clone(),
            profile: variant.profile(&given.profile),
            preemptor: self.preemptor(variant, &given.preemptor, &mapped),
            expect: None,
        };
        let (policy, scope) = (policy(&spec.profile)?, LoadScope::of_profile(&spec.profile)?);
        let mut loaded = load_as(&mapped.objects, OnInvalid::Quarantine, &policy, &scope)?;
        let question = Question::new(&spec, &loaded)?;
        let report = decide_and_report(&question, &mut loaded);
        let mut pods_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (pod, workload) in &mapped.workload_of {
            pods_of.entry(workload.to_string()).or_default().push(pod.to_string());
        }
        let pods = |workload: &String| pods_of.get(workload).cloned().unwrap_or_else(|| vec![workload.clone()]);
        let mut evicted = BTreeSet::new();
        for victim in &report.answer.victims {
            evicted.extend(victim.pod.clone());
            evicted.extend(victim.workload.iter().flat_map(pods));
        }
        let mut spared = BTreeMap::new();
        for unit in &report.explanation.spared {
            let reason = if unit.is_lawful { SparedBy::Law(unit.law) } else { SparedBy::Other(unit.law) };
            let of_workload = unit.unit.workload.iter().flat_map(pods);
            spared.extend(unit.unit.pods.iter().cloned().chain(of_workload).map(|pod| (pod, reason)));
        }
        Ok(PolicyAnswer { report, evicted, spared })
    }

    /// The preemptor under a policy: a job or a workload becomes a PodGroup, its first pending pod where the policy has only pods, or a
    /// Workload under Kueue.
    fn preemptor(&self, variant: PolicyVariant, given: &PreemptorRef, mapped: &Translated) -> PreemptorRef {
        let name = given.full_name();
        let is_member = |pod: &NamespacedName| match given.kind.as_str() {
            "Pod" => *pod == name,
            "PodGroup" => self.group_of(pod).as_ref() == Some(&name),
            _ => self.kubernetes.workload_of.get(pod) == Some(&name),
        };
        let ids = self.loaded.names.pod_ids().filter(|&id| is_member(self.loaded.names.pod(id)));
        let Some(pod) = ids.min_by_key(|&id| self.loaded.snapshot.bound_node(id).is_some()) else {
            return given.clone();
        };
        let pod = self.loaded.names.pod(pod);
        // A pod that names a group itself, rather than by translation, is decided alone.
        let names_group = given.kind == "Pod"
            && self.objects.pods.iter().any(|candidate| {
                NamespacedName::from_meta(&candidate.object.metadata) == *pod && group_of(&candidate.object).is_some()
            });
        let (kind, name) = match variant.quota_system {
            Some(QuotaSystem::YuniKorn | QuotaSystem::Koordinator) => ("Pod", Some(pod.clone())),
            Some(QuotaSystem::Kueue) => ("Workload", mapped.workload_of.get(pod).cloned()),
            None => match self.group_of(pod) {
                Some(group) if !names_group => ("PodGroup", Some(group)),
                _ => ("Pod", Some(pod.clone())),
            },
        };
        let NamespacedName { namespace, name } = name.unwrap_or_else(|| given.full_name());
        PreemptorRef { kind: kind.to_owned(), namespace, name }
    }

    fn group_of(&self, pod: &NamespacedName) -> Option<NamespacedName> {
        let id = self.loaded.names.pod_id(pod)?;
        self.loaded.snapshot.pod(id).group.map(|group| self.loaded.names.group(group).clone())
    }

    fn result(
        &self,
        variant: PolicyVariant,
        tolerations: bool,
        answer: &Result<PolicyAnswer, InputError>,
        base: Option<(String, &PolicyAnswer)>,
    ) -> PolicyResult {
        let policy = variant.title;
        match answer {
            Err(error) => {
                PolicyResult { policy, tolerations, summary: error.problem.clone(), ..PolicyResult::default() }
            }
            Ok(answer) => PolicyResult {
                policy,
                tolerations,
                outcome: Some(answer.report.answer.outcome),
                victims: answer.evicted.iter().cloned().collect(),
                eviction_cost: self.eviction_cost(answer),
                budgets: violated(&self.loaded, self.pods(&answer.evicted)),
                summary: answer.report.explanation.summary.clone(),
                law: answer.report.explanation.law.clone(),
                difference: match base.map(|(context, base)| answer.difference(base, &context)).unwrap_or_default() {
                    none if none.is_empty() => answer.sparing_laws(),
                    difference => difference,
                },
            },
        }
    }

    /// The pods with these names; the name of a workload without pods has none.
    fn pods(&self, names: &BTreeSet<String>) -> impl Iterator<Item = PodId> {
        self.loaded.names.pod_ids().filter(|&pod| names.contains(&self.loaded.names.pod(pod).to_string()))
    }

    fn eviction_cost(&self, answer: &PolicyAnswer) -> EvictionCost {
        let is_evicted = |pod: &&Pod| answer.evicted.contains(&NamespacedName::from_meta(&pod.metadata).to_string());
        let pods = || self.kubernetes.objects.pods.iter().map(|pod| &*pod.object).filter(is_evicted);
        let now = answer.report.now;
        let running = |pod: &Pod| {
            let start = pod.status.as_ref()?.start_time.as_ref()?;
            Some(now.duration_since(start.0).as_secs().max(0))
        };
        EvictionCost {
            pods: answer.evicted.len(),
            lost: self.gpus.lost_work(pods(), timestamp(now)),
            seconds: pods().map(running).sum(),
        }
    }
}

/// The question under the preemptor's own policy.
fn own_question(given: &TestSpec) -> TestSpec {
    let profile = match given.preemptor.kind.as_str() {
        "Workload" if !given.profile.policy.eq_ignore_ascii_case("Kueue") => Profile::of_policy("Kueue"),
        _ => given.profile.clone(),
    };
    TestSpec { profile, ..given.clone() }
}

/// The problem of the preemptor, or of an object on which its decision depends under its own policy.
fn own_problem(objects: &ObjectSet, given: &TestSpec) -> Option<InputError> {
    let spec = own_question(given);
    let (policy, scope) = (policy(&spec.profile).ok()?, LoadScope::of_profile(&spec.profile).ok()?);
    let loaded = load_as(objects, OnInvalid::Quarantine, &policy, &scope).ok()?;
    problem_of(&spec.preemptor, &spec.profile.policy, &loaded).cloned()
}

/// The refusal of a preemptor by its own policy because of an obstacle. `None` if that policy cannot decide.
fn refusal(objects: &ObjectSet, given: &TestSpec) -> Option<DecisionReport> {
    let spec = own_question(given);
    let (policy, scope) = (policy(&spec.profile).ok()?, LoadScope::of_profile(&spec.profile).ok()?);
    let mut loaded = load_as(objects, OnInvalid::Quarantine, &policy, &scope).ok()?;
    let question = Question::new(&spec, &loaded).ok()?;
    let (decision, explanation) = question.decide_and_explain(&mut loaded);
    let is_obstacle = matches!(&decision.outcome, Outcome::Unschedulable(Some(law)) if law.is_obstacle());
    is_obstacle.then(|| report_decision(&question, &mut loaded, &decision, &explanation))
}

impl PolicyAnswer {
    /// For an unschedulable preemptor: the laws that spare the pods, with the number of pods.
    fn sparing_laws(&self) -> Vec<String> {
        if self.report.answer.outcome != OutcomeName::Unschedulable || self.report.explanation.law.is_some() {
            return Vec::new();
        }
        let mut laws: BTreeMap<&str, usize> = BTreeMap::new();
        for spared in self.spared.values() {
            if let SparedBy::Law(law) = spared {
                *laws.entry(law).or_default() += 1;
            }
        }
        laws.into_iter().map(|(law, n)| format!("{law} spares {}", count(n, "pod", "pods"))).collect()
    }

    /// The law that refuses the preemptor; else the pods that only one of the two decisions evicts, with the reason for which the other
    /// one spares them. `context` describes the base, as in "under Kubernetes".
    fn difference(&self, base: &Self, context: &str) -> Vec<String> {
        if let Some(law) = &self.report.explanation.law {
            return vec![format!("{}: {}", law.name, law.text)];
        }
        if self.report.answer.outcome == OutcomeName::Schedule {
            return Vec::new();
        }
        let mut differences = Vec::new();
        for (spared, pods) in base.by_reason(self.evicted.difference(&base.evicted)) {
            let pods = pods.join(", ");
            differences.push(match (spared, &base.report.explanation.law) {
                (Some(SparedBy::Law(law)), _) => format!("evicts {pods}, spared by {law} {context}"),
                (_, Some(law)) => format!("evicts {pods}; {context} {}: {}", law.name, law.text),
                (spared, None) => match base.without_law(spared) {
                    Some(reason) => format!("evicts {pods}, {reason} {context}"),
                    None => format!("evicts {pods}; {context}: {}", base.report.explanation.summary),
                },
            });
        }
        for (spared, pods) in self.by_reason(base.evicted.difference(&self.evicted)) {
            let pods = pods.join(", ");
            differences.push(match spared {
                Some(SparedBy::Law(law)) => format!("{law} spares {pods}"),
                spared => match self.without_law(spared) {
                    Some(reason) => format!("evicting {pods} is {reason}"),
                    None => format!("does not evict {pods}: {}", self.report.explanation.summary),
                },
            });
        }
        differences
    }

    /// The pods by the reason for which this decision spares them; `None` for pods that it did not record.
    fn by_reason<'p>(&self, pods: impl Iterator<Item = &'p String>) -> BTreeMap<Option<SparedBy>, Vec<String>> {
        let mut reasons: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for pod in pods {
            reasons.entry(self.spared.get(pod).copied()).or_default().push(pod.clone());
        }
        reasons
    }

    /// Why this decision spares pods that no law spares. `None` if only the summary says why it evicts nothing.
    fn without_law(&self, spared: Option<SparedBy>) -> Option<&'static str> {
        match (spared, self.report.answer.outcome) {
            (Some(SparedBy::Other("NotEnough")), _) => Some("not enough"),
            (_, OutcomeName::Schedule | OutcomeName::Preempt) => Some("not needed"),
            (_, OutcomeName::Wait | OutcomeName::Unschedulable) => None,
        }
    }
}
