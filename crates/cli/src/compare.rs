//! `reprieve compare`: one cluster, one preemptor, every policy's verdict side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use reprieve_objects::accounts::{Accounts, has_tolerations, without_tolerations};
use reprieve_objects::load::{Loaded, Strictness, load, time};
use reprieve_objects::objects::{FullName, Objects};
use reprieve_objects::question::Question;
use reprieve_objects::report::{Report, count, report};
use reprieve_objects::test_file::{OutcomeName, PreemptorRef, Profile, TestSpec};
use serde::Serialize;
use serde_json::{Map, json};

use crate::input::{self, Error, Input};
use crate::output;
use crate::plan::preemptor_ref;
use crate::render::{span, table};

/// What `reprieve compare` is told.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Files and folders with Kubernetes objects; - is standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub filename: Vec<PathBuf>,
    /// Who asks: a pending pod or a pod group of the input
    #[arg(long = "for", value_name = "pod/NAME|podgroup/NAME")]
    pub preemptor: Option<String>,
    /// The namespace of the one who asks
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// The decision's clock; the present where nothing is said
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,
    /// How the verdicts are printed; html is one file with no outside resources
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// How the verdicts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table
    Table,
    /// One JSON object
    Json,
    /// One HTML page
    Html,
}

/// What one policy says.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The policy.
    pub policy: String,
    /// Whether tolerations and opt-outs count.
    pub tolerations: bool,
    /// `None` where the policy has no answer for this cluster.
    pub outcome: Option<OutcomeName>,
    /// The pods that go.
    pub victims: Vec<String>,
    /// What is lost.
    pub lost: Lost,
    /// In one sentence, or why there is no answer.
    pub summary: String,
    /// The laws that make the difference to the first verdict.
    pub difference: Vec<String>,
}

/// What is lost with the victims.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// Pods.
    pub pods: usize,
    /// GPUs that they held.
    pub gpus: i64,
    /// How long they ran, added up, in seconds.
    pub seconds: i64,
}

/// Prints all verdicts.
pub fn run(args: &CompareArgs) -> Result<u8, Error> {
    let Input { objects, test } = input::read(&args.filename)?;
    let recorded = test.map(|test| test.object.spec);
    let named = args.preemptor.as_deref().map(|name| preemptor_ref(name, &args.namespace)).transpose()?;
    let Some(preemptor) = named.or_else(|| recorded.as_ref().map(|spec| spec.preemptor.clone())) else {
        return Err(Error::Usage("nobody asks: name a pending pod or group with --for".to_owned()));
    };
    let clock = recorded.map(|spec| spec.now);
    let now = args.now.clone().or_else(|| clock.unwrap_or_else(|| Some(Timestamp::now().to_string())));
    let verdicts = verdicts(&objects, &preemptor, now)?;
    match args.output {
        Output::Table => output::print(&as_table(&preemptor, &verdicts)),
        Output::Json => {
            let result = json!({
                "apiVersion": "reprieve.dev/v1alpha1",
                "kind": "Comparison",
                "preemptor": preemptor,
                "verdicts": verdicts,
            });
            output::line(&format!("{result:#}"));
        }
        Output::Html => output::print(&crate::html::page(&preemptor, &verdicts)),
    }
    Ok(0)
}

/// Kubernetes with and without the cut first, then the policies with accounts; each again without tolerations, if there are any.
pub fn verdicts(objects: &Objects, preemptor: &PreemptorRef, now: Option<String>) -> Result<Vec<Verdict>, Error> {
    let mut all = Vec::new();
    let mut first: Option<Report> = None;
    let versions = if has_tolerations(objects) { vec![true, false] } else { vec![true] };
    for tolerations in versions {
        let objects = if tolerations { objects.clone() } else { without_tolerations(objects) };
        let loaded = load(&objects, Strictness::Live)?;
        let accounts = Accounts::of(&objects)?;
        for (policy, title, cut) in [
            ("Kubernetes", "Kubernetes", true),
            ("Kubernetes", "kube-scheduler", false),
            ("YuniKorn", "YuniKorn", true),
            ("Koordinator", "Koordinator", true),
            ("Kueue", "Kueue", true),
        ] {
            let mut args = Map::new();
            if !cut {
                args.insert("priorityCut".to_owned(), false.into());
            }
            let asked =
                Asked { title, tolerations, profile: Profile { policy: policy.to_owned(), args }, now: now.clone() };
            let (verdict, report) = asked.verdict(&objects, accounts.as_ref(), &loaded, preemptor, first.as_ref());
            first = first.or(report);
            all.push(verdict);
        }
    }
    Ok(all)
}

struct Asked {
    title: &'static str,
    tolerations: bool,
    profile: Profile,
    now: Option<String>,
}

impl Asked {
    fn verdict(
        &self,
        objects: &Objects,
        accounts: Option<&Accounts>,
        loaded: &Loaded,
        preemptor: &PreemptorRef,
        first: Option<&Report>,
    ) -> (Verdict, Option<Report>) {
        let none = |summary: String| {
            let verdict = Verdict {
                policy: self.title.to_owned(),
                tolerations: self.tolerations,
                outcome: None,
                victims: Vec::new(),
                lost: Lost::default(),
                summary,
                difference: Vec::new(),
            };
            (verdict, None)
        };
        let policy = self.profile.policy.as_str();
        let mapped = match (policy, accounts) {
            ("Kubernetes", _) => objects.clone(),
            (_, None) => return none("the cluster has no queues or quotas".to_owned()),
            (_, Some(accounts)) => accounts.under(policy, objects, loaded),
        };
        let spec = TestSpec {
            now: self.now.clone(),
            profile: self.profile.clone(),
            preemptor: preemptor_under(policy, preemptor, loaded),
            expect: None,
        };
        let mut world = match load(&mapped, Strictness::Live) {
            Ok(world) => world,
            Err(error) => return none(error.to_string()),
        };
        let question = match Question::new(&spec, &world) {
            Ok(question) => question,
            Err(error) => return none(error.problem),
        };
        let report = report(&question, &mut world);
        let victims = victims(&report, objects);
        let verdict = Verdict {
            policy: self.title.to_owned(),
            tolerations: self.tolerations,
            outcome: Some(report.answer.outcome),
            lost: lost(&victims, loaded, time(question.now).unwrap_or_default()),
            summary: report.explanation.summary.clone(),
            difference: first.map(|first| difference(first, &report, objects)).unwrap_or_default(),
            victims,
        };
        (verdict, Some(report))
    }
}

/// A group asks as its first pending pod where a policy knows only pods, and everybody as a workload under Kueue.
fn preemptor_under(policy: &str, preemptor: &PreemptorRef, loaded: &Loaded) -> PreemptorRef {
    let name = preemptor.full_name();
    let first_pod = || {
        let group = loaded.names.group_id(&name)?;
        let members = &loaded.snapshot.group(group).members;
        let pod = members.iter().copied().find(|&pod| loaded.snapshot.pod(pod).node.is_none())?;
        Some(loaded.names.pod(pod).name.clone())
    };
    let group_of_pod = || {
        let pod = loaded.names.pod_id(&name)?;
        Some(loaded.names.group(loaded.snapshot.pod(pod).group?).name.clone())
    };
    let (kind, name) = match (policy, preemptor.kind.as_str()) {
        ("YuniKorn" | "Koordinator", "PodGroup") => ("Pod", first_pod()),
        ("Kueue", "Pod") => ("Workload", group_of_pod()),
        ("Kueue", "PodGroup") => ("Workload", None),
        ("Kubernetes" | "YuniKorn" | "Koordinator", "Workload") => ("Pod", None),
        (_, kind) => (kind, None),
    };
    let name = name.unwrap_or_else(|| preemptor.name.clone());
    PreemptorRef { kind: kind.to_owned(), namespace: preemptor.namespace.clone(), name }
}

/// The pods that go; a workload stands for its pods.
fn victims(report: &Report, objects: &Objects) -> Vec<String> {
    let mut victims: Vec<String> = Vec::new();
    for victim in &report.answer.victims {
        match (&victim.pod, &victim.workload) {
            (Some(pod), _) => victims.push(pod.clone()),
            (None, Some(workload)) => victims.extend(pods_of(workload, objects)),
            (None, None) => {}
        }
    }
    victims.sort_unstable();
    victims
}

fn pods_of(workload: &str, objects: &Objects) -> Vec<String> {
    let is_member = |pod: &k8s_openapi::api::core::v1::Pod| {
        let name = FullName::of(&pod.metadata);
        let group = pod.spec.as_ref().and_then(|spec| spec.scheduling_group.as_ref()?.pod_group_name.clone());
        let unit = group.map_or_else(|| name.to_string(), |group| FullName::new(&name.namespace, &group).to_string());
        unit == workload
    };
    let pods: Vec<String> = objects
        .pods
        .iter()
        .filter(|pod| is_member(&pod.object))
        .map(|pod| FullName::of(&pod.object.metadata).to_string())
        .collect();
    if pods.is_empty() { vec![workload.to_owned()] } else { pods }
}

fn lost(victims: &[String], loaded: &Loaded, now: Timestamp) -> Lost {
    let gpus: Vec<usize> = loaded
        .snapshot
        .resource_ids()
        .filter(|&resource| loaded.names.resource(resource).ends_with("/gpu"))
        .map(|resource| resource.index())
        .collect();
    let mut lost = Lost { pods: victims.len(), ..Lost::default() };
    for victim in victims {
        let id =
            victim.split_once('/').and_then(|(namespace, name)| loaded.names.pod_id(&FullName::new(namespace, name)));
        if let Some(id) = id {
            let pod = loaded.snapshot.pod(id);
            let requests = loaded.snapshot.requests(pod.shape);
            lost.gpus += gpus.iter().map(|&gpu| requests[gpu]).sum::<i64>();
            lost.seconds += time(pod.start).map_or(0, |start| now.duration_since(start).as_secs().max(0));
        }
    }
    lost
}

/// Whom the first verdict takes and this one spares, by which law; or the law that refuses the preemptor.
fn difference(first: &Report, report: &Report, objects: &Objects) -> Vec<String> {
    if let Some(law) = &report.explanation.law {
        return vec![format!("{}: {}", law.name, law.text)];
    }
    let taken = victims(report, objects);
    let spared_here: BTreeMap<&String, (&str, &String)> = report
        .explanation
        .spared
        .iter()
        .flat_map(|spared| spared.unit.pods.iter().map(|pod| (pod, (spared.law, &spared.text))))
        .collect();
    let missed = victims(first, objects).into_iter().filter(|pod| !taken.contains(pod));
    let mut laws: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in missed {
        let law = spared_here.get(&pod).map_or("not needed", |(law, _)| law);
        laws.entry(law.to_owned()).or_default().push(pod);
    }
    laws.into_iter().map(|(law, pods)| format!("{law} spares {}", pods.join(", "))).collect()
}

fn as_table(preemptor: &PreemptorRef, verdicts: &[Verdict]) -> String {
    let rows = verdicts.iter().map(|verdict| {
        let Lost { pods, gpus, seconds } = verdict.lost;
        let lost = if pods == 0 {
            "-".to_owned()
        } else {
            format!(
                "{}, {}, {}",
                count(pods, "pod", "pods"),
                count(gpus as usize, "GPU", "GPUs"),
                span(SignedDuration::from_secs(seconds))
            )
        };
        let victims = match verdict.victims.as_slice() {
            [] => "-".to_owned(),
            few if few.len() <= 4 => few.join(", "),
            many => format!("{} and {} more", many[..3].join(", "), many.len() - 3),
        };
        let outcome = verdict.outcome.map_or_else(|| "-".to_owned(), |outcome| format!("{outcome:?}"));
        let why = if verdict.difference.is_empty() { verdict.summary.clone() } else { verdict.difference.join("; ") };
        vec![
            verdict.policy.clone(),
            if verdict.tolerations { "on" } else { "off" }.to_owned(),
            outcome,
            victims,
            lost,
            why,
        ]
    });
    let table = table(["POLICY", "TOLERATIONS", "OUTCOME", "VICTIMS", "LOST", "WHAT MAKES THE DIFFERENCE"], rows, None);
    format!("{} {} asks\n\n{table}\n", preemptor.kind, preemptor.full_name())
}
