//! One cluster, one preemptor, and what every policy says of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use reprieve_api::membership::group_of;
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::source::InputError;
use reprieve_api::test_file::{OutcomeName, PreemptorRef, Profile, TestSpec};
use reprieve_engine::{Outcome, PodId};
use reprieve_loader::build::{Loaded, OnInvalid, load, load_as};
use reprieve_loader::policy::{Question, policy};
use reprieve_loader::time::time;
use reprieve_report::budget_report::{BudgetReport, violated};
use reprieve_report::decision::{DecisionReport, LawReport};
use reprieve_report::plural::count;
use reprieve_report::report::{explained, report};
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_kubernetes::KubernetesObjects;
use reprieve_translate::to_kueue::Translated;
use reprieve_translate::tolerations::{has_tolerations, without_tolerations};
use reprieve_translate::translation::QuotaSystem;
use serde::Serialize;
use serde_json::Map;

use crate::render::format_duration;

/// What one policy says.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyResult {
    /// The policy.
    pub policy: &'static str,
    /// Whether tolerations and opt-outs count.
    pub tolerations: bool,
    /// `None` where the policy has no answer for this cluster.
    pub outcome: Option<OutcomeName>,
    /// The pods that go.
    pub victims: Vec<String>,
    /// What is lost.
    pub lost: EvictionCost,
    /// In one sentence, or why there is no answer.
    pub summary: String,
    /// The law that refuses the preemptor or makes it wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law: Option<LawReport>,
    /// The disruption budgets that this violates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// The laws that make the difference: to the first verdict, or to the policy's own with tolerations. Where nobody may be taken
    /// and there is no other to compare with: the laws that spare them all.
    pub difference: Vec<String>,
}

impl PolicyResult {
    /// A sentence for each budget that this violates.
    pub fn violations(&self) -> impl Iterator<Item = String> + '_ {
        self.budgets.iter().map(|budget| budget.sentence("the plan"))
    }
}

/// What is lost with the victims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionCost {
    /// Pods.
    pub pods: usize,
    /// GPUs that they held.
    pub gpus: i64,
    /// How long they ran, added up, in seconds.
    pub seconds: i64,
}

impl EvictionCost {
    /// Pods, GPUs, and how long the pods ran; nothing where no pod is lost.
    pub fn words(self) -> Vec<String> {
        let Self { pods, gpus, seconds } = self;
        let ran = format_duration(SignedDuration::from_secs(seconds));
        let words = [count(pods, "pod", "pods"), count(gpus as usize, "GPU", "GPUs"), ran];
        if pods == 0 { Vec::new() } else { words.into() }
    }
}

/// The words for whoever no law spares, and yet nobody takes.
const NO_LAW: [&str; 3] = ["Reprieved", "NotEnough", "NotReached"];

/// A way to ask: a policy, and whose accounts it needs, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PolicyVariant {
    title: &'static str,
    keeper: Option<QuotaSystem>,
}

const KUBERNETES: PolicyVariant = PolicyVariant { title: "Kubernetes", keeper: None };
/// Policy Kubernetes without the cut.
const KUBE_SCHEDULER: PolicyVariant = PolicyVariant { title: "kube-scheduler", keeper: None };
const WAYS: [PolicyVariant; 5] = [
    KUBERNETES,
    KUBE_SCHEDULER,
    PolicyVariant { title: "YuniKorn", keeper: Some(QuotaSystem::YuniKorn) },
    PolicyVariant { title: "Koordinator", keeper: Some(QuotaSystem::Koordinator) },
    PolicyVariant { title: "Kueue", keeper: Some(QuotaSystem::Kueue) },
];

impl PolicyVariant {
    fn policy(self) -> &'static str {
        self.keeper.map_or(KUBERNETES.title, |_| self.title)
    }

    /// With the settings that the question came with, where they are this policy's.
    fn profile(self, asked: &Profile) -> Profile {
        let is_own = asked.policy.eq_ignore_ascii_case(self.policy());
        let mut args = if is_own { asked.args.clone() } else { Map::new() };
        if self == KUBERNETES {
            args.remove("priorityCut");
        } else if self == KUBE_SCHEDULER {
            args.insert("priorityCut".to_owned(), false.into());
        }
        Profile { args, scheduler_name: asked.scheduler_name.clone(), ..Profile::of_policy(self.policy()) }
    }
}

/// All verdicts; each policy is asked again without tolerations, if there are any. An error where no policy has an answer.
pub fn verdicts(objects: &ObjectSet, asked: &TestSpec) -> Result<Vec<PolicyResult>, InputError> {
    policy(&asked.profile)?;
    let with = Cluster::new(objects, asked)?;
    let mut heard: Vec<_> = WAYS.iter().map(|&way| with.ask(way, asked)).collect();
    if heard.iter().all(Result::is_err) {
        heard.swap_remove(0)?;
    }
    let first = WAYS.iter().zip(&heard).find_map(|(way, heard)| Some((*way, heard.as_ref().ok()?)));
    let mut verdicts = Vec::new();
    for (&way, heard) in WAYS.iter().zip(&heard) {
        let base = first.filter(|(first, _)| *first != way);
        let base = base.map(|(first, heard)| (format!("under {}", first.title), heard));
        verdicts.push(with.verdict(way, true, heard, base));
    }
    if has_tolerations(objects) {
        let without = Cluster::new(&without_tolerations(objects), asked)?;
        for (&way, with) in WAYS.iter().zip(&heard) {
            let base = with.as_ref().ok().map(|with| ("with tolerations on".to_owned(), with));
            verdicts.push(without.verdict(way, false, &without.ask(way, asked), base));
        }
    }
    Ok(verdicts)
}

/// The cluster in its own words and in plain ones.
struct Cluster {
    objects: ObjectSet,
    plain: KubernetesObjects,
    loaded: Loaded,
    accounts: Option<NeutralQueues>,
    /// The refusal of a preemptor that its own policy does not place, whatever room there is: no policy does.
    refusal: Option<DecisionReport>,
}

/// What a policy answered, by pod.
struct PolicyAnswer {
    report: DecisionReport,
    taken: BTreeSet<String>,
    /// By pod: the law that spares it.
    spared: BTreeMap<String, &'static str>,
}

impl Cluster {
    fn new(objects: &ObjectSet, asked: &TestSpec) -> Result<Self, InputError> {
        load(objects, OnInvalid::Files)?;
        let plain = KubernetesObjects::from_objects(objects)?;
        let loaded = load(&plain.objects, OnInvalid::Files)?;
        let accounts = NeutralQueues::from_objects(objects, &plain)?;
        Ok(Self { objects: objects.clone(), plain, loaded, accounts, refusal: refusal(objects, asked) })
    }

    fn ask(&self, way: PolicyVariant, asked: &TestSpec) -> Result<PolicyAnswer, InputError> {
        if let (Some(refusal), true) = (&self.refusal, self.accounts.is_some() || way.keeper.is_none()) {
            return Ok(PolicyAnswer { report: refusal.clone(), taken: BTreeSet::new(), spared: BTreeMap::new() });
        }
        let mapped = match (way.keeper, &self.accounts) {
            (None, _) => Translated { objects: self.plain.objects.clone(), workload_of: BTreeMap::new() },
            (Some(_), None) => return Err(InputError::new("the cluster has no queues or quotas")),
            (Some(keeper), Some(accounts)) => {
                accounts.translate_to(keeper, &self.objects, &self.plain, &self.loaded)?
            }
        };
        let spec = TestSpec {
            now: asked.now.clone(),
            profile: way.profile(&asked.profile),
            preemptor: self.preemptor(way, &asked.preemptor, &mapped),
            expect: None,
        };
        let mut world = load_as(
            &mapped.objects,
            OnInvalid::Files,
            &policy(&spec.profile)?,
            spec.profile.scheduler_name.as_deref(),
        )?;
        let question = Question::new(&spec, &world)?;
        let report = report(&question, &mut world);
        let mut pods_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (pod, workload) in &mapped.workload_of {
            pods_of.entry(workload.to_string()).or_default().push(pod.to_string());
        }
        let pods = |workload: &String| pods_of.get(workload).cloned().unwrap_or_else(|| vec![workload.clone()]);
        let mut taken = BTreeSet::new();
        for victim in &report.answer.victims {
            taken.extend(victim.pod.clone());
            taken.extend(victim.workload.iter().flat_map(pods));
        }
        let mut spared = BTreeMap::new();
        for unit in &report.explanation.spared {
            let of_workload = unit.unit.workload.iter().flat_map(pods);
            spared.extend(unit.unit.pods.iter().cloned().chain(of_workload).map(|pod| (pod, unit.law)));
        }
        Ok(PolicyAnswer { report, taken, spared })
    }

    /// A job or a workload asks as a group; where a policy knows only pods, as its first pending one; under Kueue all ask as
    /// workloads.
    fn preemptor(&self, way: PolicyVariant, asked: &PreemptorRef, mapped: &Translated) -> PreemptorRef {
        let name = asked.full_name();
        let is_it = |pod: &NamespacedName| match asked.kind.as_str() {
            "Pod" => *pod == name,
            "PodGroup" => self.group_of(pod).as_ref() == Some(&name),
            _ => self.plain.workload_of.get(pod) == Some(&name),
        };
        let ids = self.loaded.names.pod_ids().filter(|&id| is_it(self.loaded.names.pod(id)));
        let Some(pod) = ids.min_by_key(|&id| self.loaded.snapshot.bound_node(id).is_some()) else {
            return asked.clone();
        };
        let pod = self.loaded.names.pod(pod);
        let own_words =
            asked.kind == "Pod"
                && self.objects.pods.iter().any(|one| {
                    NamespacedName::from_meta(&one.object.metadata) == *pod && group_of(&one.object).is_some()
                });
        let (kind, name) = match way.keeper {
            Some(QuotaSystem::YuniKorn | QuotaSystem::Koordinator) => ("Pod", Some(pod.clone())),
            Some(QuotaSystem::Kueue) => ("Workload", mapped.workload_of.get(pod).cloned()),
            None => match self.group_of(pod) {
                Some(group) if !own_words => ("PodGroup", Some(group)),
                _ => ("Pod", Some(pod.clone())),
            },
        };
        let NamespacedName { namespace, name } = name.unwrap_or_else(|| asked.full_name());
        PreemptorRef { kind: kind.to_owned(), namespace, name }
    }

    fn group_of(&self, pod: &NamespacedName) -> Option<NamespacedName> {
        let id = self.loaded.names.pod_id(pod)?;
        self.loaded.snapshot.pod(id).group.map(|group| self.loaded.names.group(group).clone())
    }

    fn verdict(
        &self,
        way: PolicyVariant,
        tolerations: bool,
        heard: &Result<PolicyAnswer, InputError>,
        base: Option<(String, &PolicyAnswer)>,
    ) -> PolicyResult {
        let policy = way.title;
        match heard {
            Err(error) => {
                PolicyResult { policy, tolerations, summary: error.problem.clone(), ..PolicyResult::default() }
            }
            Ok(heard) => PolicyResult {
                policy,
                tolerations,
                outcome: Some(heard.report.answer.outcome),
                victims: heard.taken.iter().cloned().collect(),
                lost: self.lost(heard),
                budgets: violated(&self.loaded, self.pods(&heard.taken)),
                summary: heard.report.explanation.summary.clone(),
                law: heard.report.explanation.law.clone(),
                difference: match base.map(|(there, base)| heard.difference(base, &there)).unwrap_or_default() {
                    none if none.is_empty() => heard.spares_all(),
                    some => some,
                },
            },
        }
    }

    /// The pods of these names; a workload without pods has none.
    fn pods(&self, names: &BTreeSet<String>) -> impl Iterator<Item = PodId> {
        self.loaded.names.pod_ids().filter(|&pod| names.contains(&self.loaded.names.pod(pod).to_string()))
    }

    fn lost(&self, heard: &PolicyAnswer) -> EvictionCost {
        let Loaded { snapshot, names, .. } = &self.loaded;
        let is_gpu = |name: &str| name.ends_with("/gpu");
        let gpus: Vec<usize> =
            snapshot.resource_ids().filter(|&id| is_gpu(names.resource(id))).map(|id| id.index()).collect();
        let mut lost = EvictionCost { pods: heard.taken.len(), ..EvictionCost::default() };
        for id in self.pods(&heard.taken) {
            let pod = snapshot.pod(id);
            let requests = snapshot.requests(pod.shape);
            lost.gpus += gpus.iter().map(|&gpu| requests[gpu]).sum::<i64>();
            lost.seconds += time(pod.start).map_or(0, |start| heard.report.now.duration_since(start).as_secs().max(0));
        }
        lost
    }
}

/// The refusal under the policy whose objects these are, if the preemptor is not to be placed at all. Where that policy has no answer, the
/// others are asked.
fn refusal(objects: &ObjectSet, asked: &TestSpec) -> Option<DecisionReport> {
    let profile = match asked.preemptor.kind.as_str() {
        "Workload" if !asked.profile.policy.eq_ignore_ascii_case("Kueue") => Profile::of_policy("Kueue"),
        _ => asked.profile.clone(),
    };
    let spec = TestSpec { profile, ..asked.clone() };
    let (policy, scheduler_name) = (policy(&spec.profile).ok()?, spec.profile.scheduler_name.as_deref());
    let mut loaded = load_as(objects, OnInvalid::Files, &policy, scheduler_name).ok()?;
    let question = Question::new(&spec, &loaded).ok()?;
    let (decision, explanation) = question.decide_and_explain(&mut loaded);
    let is_obstacle = matches!(&decision.outcome, Outcome::Unschedulable(Some(law)) if law.is_obstacle());
    is_obstacle.then(|| explained(&question, &loaded, &decision, &explanation))
}

impl PolicyAnswer {
    /// Where nobody may be taken: by which laws.
    fn spares_all(&self) -> Vec<String> {
        if self.report.answer.outcome != OutcomeName::Unschedulable || self.report.explanation.law.is_some() {
            return Vec::new();
        }
        let mut laws: BTreeMap<&str, usize> = BTreeMap::new();
        for law in self.spared.values().filter(|law| !NO_LAW.contains(law)) {
            *laws.entry(law).or_default() += 1;
        }
        laws.into_iter().map(|(law, n)| format!("{law} spares {}", count(n, "pod", "pods"))).collect()
    }

    /// The law that refuses the preemptor; else who is taken only here, and who only there, and by which law they are spared.
    fn difference(&self, base: &Self, there: &str) -> Vec<String> {
        if let Some(law) = &self.report.explanation.law {
            return vec![format!("{}: {}", law.name, law.text)];
        }
        let not_needed = match self.report.answer.outcome {
            OutcomeName::Schedule => return Vec::new(),
            OutcomeName::Preempt => "need not go",
            OutcomeName::Wait | OutcomeName::Unschedulable => "would not be enough",
        };
        let by_law = |pods: Vec<&String>, heard: &Self| -> BTreeMap<Option<&'static str>, Vec<String>> {
            let mut laws: BTreeMap<_, Vec<String>> = BTreeMap::new();
            for pod in pods {
                let law = heard.spared.get(pod).copied().filter(|law| !NO_LAW.contains(law));
                laws.entry(law).or_default().push(pod.clone());
            }
            laws
        };
        let mut said = Vec::new();
        for (law, pods) in by_law(self.taken.difference(&base.taken).collect(), base) {
            let pods = pods.join(", ");
            said.push(match (law, &base.report.explanation.law) {
                (Some(law), _) => format!("takes {pods}, which {law} spares {there}"),
                (None, Some(law)) => format!("takes {pods}; {there} {}: {}", law.name, law.text),
                (None, None) => format!("takes {pods}, which need not go {there}"),
            });
        }
        for (law, pods) in by_law(base.taken.difference(&self.taken).collect(), self) {
            let pods = pods.join(", ");
            said.push(law.map_or_else(|| format!("{pods} {not_needed}"), |law| format!("{law} spares {pods}")));
        }
        said
    }
}
