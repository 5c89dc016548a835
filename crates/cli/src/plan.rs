//! `reprieve plan`: decides for one preemptor, or for one Kueue cycle, and explains the decision. The command is read-only.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use reprieve_api::record::record;
use reprieve_api::source::UnknownField;
use reprieve_api::{InputError, NamespacedName, ObjectSet, OutcomeName, Pod, Profile, TestSpec, VictimRef, fields};
use reprieve_engine::laws::Law;
use reprieve_engine::{Outcome, Policy};
use reprieve_loader::build::{OnInvalid, load_as};
use reprieve_loader::policy::{DEFAULT_NOW, policy};
use reprieve_loader::submit::submit;
use reprieve_loader::time::parse_time;
use reprieve_loader::unsupported::{Requirement, assume};
use reprieve_loader::{LoadScope, Question, QueueSettings, timestamp};
use reprieve_report::cycle::cycle_report;
use reprieve_report::decision::DecisionReport;
use reprieve_report::gpu_hours::{GpuResources, LostWork};
use reprieve_report::report::decide_and_report;
use serde::Serialize;
use serde_json::Value;

use crate::args::{QuestionArgs, attribute_to_flag, missing_preemptor};
use crate::input::{self, Error, Input};
use crate::render::{self, Detail};
use crate::{output, render_cycle};

/// The arguments of `reprieve plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The input and the preemptor.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// Take the preemptor from a file: a Pod, a PodGroup with its pods, a Job, or a new pod of a Deployment, ReplicaSet or StatefulSet
    #[arg(long, value_name = "FILE")]
    pub submit: Option<PathBuf>,
    /// Decide one Kueue cycle: the first pending workload of every ClusterQueue, instead of a single preemptor
    #[arg(long, conflicts_with_all = ["preemptor", "submit"])]
    pub cycle: bool,
    /// Policy: Kubernetes, YuniKorn, Koordinator or Kueue [default: Kubernetes, or Kueue with --cycle]
    #[arg(long)]
    pub policy: Option<String>,
    /// Argument of the policy; may be repeated. An unknown KEY is an error that lists the arguments
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    pub args: Vec<String>,
    /// Requirements of the preemptor that Reprieve does not evaluate and should assume to be satisfied, separated by commas: volumes,
    /// claims (devices of spec.resourceClaims), features (of the kubelet)
    #[arg(long, value_name = "REQUIREMENT", value_delimiter = ',', value_parser = requirement)]
    pub assume: Vec<Requirement>,
    /// Resources that count as GPUs in the lost work, separated by commas; * stands for any text
    #[arg(long, value_name = "RESOURCE", default_value_t = GpuResources::default())]
    pub gpu_resources: GpuResources,
    /// Name of the deciding scheduler; members of a gang that name another scheduler are not placed [default: the scheduler that the
    /// members name]
    #[arg(long, value_name = "NAME")]
    pub scheduler_name: Option<String>,
    /// Output format; test prints a PreemptionTest file with the input and the decision
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A short table
    Table,
    /// Tables with all rows, actions and queues
    Wide,
    /// One JSON object
    Json,
    /// The same object as YAML
    Yaml,
    /// The names of the victims, one per line
    Name,
    /// A PreemptionTest file
    Test,
}

fn requirement(name: &str) -> Result<Requirement, String> {
    let known = Requirement::ALL.into_iter().find(|requirement| requirement.word() == name);
    known.ok_or_else(|| format!("unknown requirement; write {}", Requirement::ALL.map(Requirement::word).join(", ")))
}

/// Prints the decision and returns the exit status, which depends on the outcome.
pub fn run(args: &PlanArgs) -> Result<u8, Error> {
    if args.question.filename.is_empty() && args.question.preemptor.is_none() && args.submit.is_none() && !args.cycle {
        return Err(missing_preemptor(", or submit one with --submit"));
    }
    let from_flags = profile(args, None, Profile::default())?;
    let reads_config_map = from_flags.policy.eq_ignore_ascii_case("YuniKorn");
    let Input { mut objects, test } = args.question.read(&QueueSettings::of_profile(&from_flags)?, reads_config_map)?;
    let (recorded, source) = test.map(|test| (test.object.spec.clone(), test.source)).unzip();
    let attribute = |error| attribute_to_flag(error, &question_flags(args), source.as_ref());
    if args.cycle {
        assume(&mut objects, &args.assume);
        return cycle(args, recorded.as_ref(), &objects, attribute);
    }
    let mut warnings = Vec::new();
    let spec = question(args, recorded.as_ref(), &mut objects, &mut warnings)?;
    assume(&mut objects, &args.assume);
    let (policy, scope) = (policy(&spec.profile).map_err(&attribute)?, LoadScope::of_profile(&spec.profile)?);
    warnings.extend(fields::warnings_about(&spec.preemptor, &objects, matches!(policy, Policy::Koordinator(_))));
    warnings.extend(args.question.check(&objects, recorded.as_ref(), Some(&policy))?);
    let mut loaded = load_as(&objects, OnInvalid::Quarantine, &policy, &scope)?;
    let question = Question::new(&spec, &loaded).map_err(attribute)?;
    let mut report = decide_and_report(&question, &mut loaded);
    report.warnings.extend(warnings);
    report.assumed = assumed(&args.assume);
    report.explanation.lost_work = lost_work(&report, &objects, &args.gpu_resources);
    if report.explanation.law.as_ref().is_some_and(|law| law.field.is_some()) {
        report.warnings.extend(hint(args, &objects, &spec));
    }
    if !objects.skipped.is_empty() && args.output != Output::Test {
        report.warnings.push(skipped(&objects));
    }
    if matches!(args.output, Output::Name | Output::Test) {
        note_warnings(&report.warnings, &report.assumed);
    }
    match args.output {
        Output::Name => print_names(report.answer.victims.iter())?,
        Output::Test => {
            let is_loaded = |pod: &NamespacedName| loaded.names.pod_id(pod).is_some();
            output::print(&record(&objects, is_loaded, &spec, &report.answer, &report.assumed)?)?;
        }
        output => print_whole(output, &report, render::decision)?,
    }
    Ok(match report.answer.outcome {
        OutcomeName::Schedule => 0,
        OutcomeName::Preempt => 2,
        OutcomeName::Wait => 3,
        OutcomeName::Unschedulable => 4,
    })
}

/// The question: from the flags, else from the PreemptionTest in the input. Problems of submitted objects go into `warnings`.
fn question(
    args: &PlanArgs,
    recorded: Option<&TestSpec>,
    objects: &mut ObjectSet,
    warnings: &mut Vec<String>,
) -> Result<TestSpec, Error> {
    let named = args.question.named()?;
    let profile = profile(args, recorded, Profile::default())?;
    let submitted = match &args.submit {
        Some(path) => {
            let (mut new, controlled) = input::read_submitted(path, args.question.namespace.as_deref())?;
            warnings.extend(fields::warnings(std::mem::take(&mut new.unknown_fields).iter()));
            let flag = format!("--submit {}", path.display());
            let kinds =
                if new.skipped.is_empty() { String::new() } else { format!("; skipped {}", input::skipped(&new)) };
            let located = |error: InputError| match error.source {
                Some(_) => error,
                None => InputError { problem: error.problem.clone() + &kinds, ..error.field(flag) },
            };
            let submitted = submit(objects, new, controlled, named.as_ref()).map_err(located)?;
            let queued_jobs = submitted.queued_jobs.iter().filter(|_| !profile.policy.eq_ignore_ascii_case("Kueue"));
            warnings.extend(queued_jobs.map(|(job, queue)| not_queued(job, queue, &profile.policy)));
            warnings.extend(submitted.warnings);
            Some(submitted.preemptor)
        }
        None => None,
    };
    let Some(preemptor) = named.or(submitted).or(recorded.map(|spec| spec.preemptor.clone())) else {
        return Err(missing_preemptor(", or submit one with --submit"));
    };
    let now = args.question.clock(recorded);
    Ok(TestSpec { now, profile, preemptor, expect: None })
}

/// The warning about a Job with a Kueue queue under another policy: its pods exist only after Kueue has admitted the Job.
fn not_queued(job: &NamespacedName, queue: &str, policy: &str) -> String {
    format!(
        "Job {job}: queue {queue:?} is not evaluated under policy {policy}, which assumes that Kueue has admitted the Job; to evaluate \
         the queue, add the Workload of the Job to the input and use --policy Kueue --for workload/NAME"
    )
}

fn profile(args: &PlanArgs, recorded: Option<&TestSpec>, default: Profile) -> Result<Profile, Error> {
    let mut profile = recorded.map_or(default, |spec| spec.profile.clone());
    if let Some(policy) = &args.policy {
        profile = Profile { scheduler_name: profile.scheduler_name, ..Profile::of_policy(policy) };
    }
    if args.scheduler_name.is_some() {
        profile.scheduler_name.clone_from(&args.scheduler_name);
    }
    for arg in &args.args {
        let Some((key, value)) = arg.split_once('=') else {
            return Err(Error::Usage(format!("--arg {arg}: write KEY=VALUE, for example priorityCut=false")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        profile.args.insert(key.to_owned(), value);
    }
    Ok(profile)
}

/// Prints a Kueue cycle and returns the exit status: 2 if there are victims, else 0.
fn cycle(
    args: &PlanArgs,
    recorded: Option<&TestSpec>,
    objects: &ObjectSet,
    attribute: impl Fn(InputError) -> InputError,
) -> Result<u8, Error> {
    let profile = profile(args, recorded, Profile::of_policy("Kueue"))?;
    let policy = policy(&profile).map_err(&attribute)?;
    let Policy::Kueue(kueue) = policy else {
        return Err(Error::Usage(
            "--cycle: only policy Kueue decides in cycles; omit --policy or write --policy Kueue".to_owned(),
        ));
    };
    let now = parse_time(args.question.clock(recorded).as_deref().unwrap_or(DEFAULT_NOW));
    let now = now.map_err(|error| attribute(error.field("spec.now")))?;
    let missing = args.question.check(objects, recorded, Some(&policy))?;
    let loaded = load_as(objects, OnInvalid::Quarantine, &policy, &LoadScope::of_profile(&profile)?)?;
    let mut report = cycle_report(&loaded, &kueue, timestamp(now));
    let heads: BTreeSet<&str> = report.heads.iter().map(|head| head.workload.as_str()).collect();
    let of_heads = |unknown: &&UnknownField| unknown.kind == "Workload" && heads.contains(&*unknown.name.to_string());
    let unknown = fields::warnings(objects.unknown_fields.iter().filter(of_heads));
    report.warnings.extend(unknown.into_iter().chain(missing));
    report.assumed = assumed(&args.assume);
    if !objects.skipped.is_empty() {
        report.warnings.push(skipped(objects));
    }
    match args.output {
        Output::Name => {
            note_warnings(&report.warnings, &report.assumed);
            print_names(report.heads.iter().flat_map(|head| &head.victims))?;
        }
        Output::Test => {
            let problem = "--cycle: a PreemptionTest holds one decision; write -o table, wide, json, yaml or name";
            return Err(Error::Usage(problem.to_owned()));
        }
        output => print_whole(output, &report, render_cycle::cycle)?,
    }
    let preempts = report.heads.iter().any(|head| !head.victims.is_empty());
    Ok(if preempts { 2 } else { 0 })
}

/// The work that the victims lose; `None` if they have no GPUs, or if their pods are not known.
fn lost_work(report: &DecisionReport, objects: &ObjectSet, gpus: &GpuResources) -> Option<LostWork> {
    let victims: BTreeSet<&String> = report.explanation.victims.iter().flat_map(|victim| &victim.unit.pods).collect();
    let is_victim = |pod: &&Pod| victims.contains(&NamespacedName::from_meta(&pod.metadata).to_string());
    let pods = objects.pods.iter().map(|pod| &*pod.object).filter(is_victim);
    Some(gpus.lost_work(pods, timestamp(report.now))).filter(|lost| lost.gpus > 0)
}

/// The smallest set of requirements that must be assumed so that Reprieve can decide, as a hint.
fn hint(args: &PlanArgs, objects: &ObjectSet, spec: &TestSpec) -> Option<String> {
    let subset = |bits: usize| -> Vec<Requirement> {
        let is_in = |(index, _): &(usize, Requirement)| (bits >> index) % 2 == 1;
        Requirement::ALL.into_iter().enumerate().filter(is_in).map(|(_, requirement)| requirement).collect()
    };
    let mut sets: Vec<Vec<Requirement>> = (1..1 << Requirement::ALL.len()).map(subset).collect();
    sets.sort_by_key(Vec::len);
    let (policy, scope) = (policy(&spec.profile).ok()?, LoadScope::of_profile(&spec.profile).ok()?);
    let can_decide = |set: &Vec<Requirement>| {
        let mut objects = objects.clone();
        assume(&mut objects, set);
        let loaded = load_as(&objects, OnInvalid::Quarantine, &policy, &scope);
        loaded.is_ok_and(|mut loaded| {
            let outcome = Question::new(spec, &loaded).map(|question| question.decide(&mut loaded));
            !matches!(outcome, Err(_) | Ok(Outcome::Unschedulable(Some(Law::Unsupported { .. }))))
        })
    };
    let set = sets.into_iter().find(can_decide)?;
    let names: Vec<&str> = args.assume.iter().chain(&set).map(|requirement| requirement.word()).collect();
    Some(format!("add --assume {} to assume that every node satisfies the requirement", names.join(",")))
}

fn assumed(assumed: &[Requirement]) -> Vec<&'static str> {
    assumed.iter().map(|requirement| requirement.word()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn question_flags(args: &PlanArgs) -> Vec<(String, String)> {
    let mut flags = args.question.flags();
    flags.extend(args.policy.iter().map(|_| ("spec.profile.policy".to_owned(), "--policy".to_owned())));
    let keys = args.args.iter().filter_map(|arg| arg.split_once('='));
    flags.extend(keys.map(|(key, _)| (format!("spec.profile.args.{key}"), format!("--arg {key}"))));
    flags
}

fn skipped(objects: &ObjectSet) -> String {
    format!("skipped objects that no decision reads: {}", input::skipped(objects))
}

/// Prints a whole report.
fn print_whole<R: Serialize>(output: Output, report: &R, table: fn(&R, Detail) -> String) -> Result<(), Error> {
    match output {
        Output::Json => output::line(&serde_json::to_string_pretty(report).map_err(Error::unprintable)?),
        Output::Yaml => output::print(&serde_saphyr::to_string(report).map_err(Error::unprintable)?),
        Output::Wide => output::print(&table(report, Detail::Wide)),
        Output::Table | Output::Name | Output::Test => output::print(&table(report, Detail::Short)),
    }
}

/// Prints to standard error the warnings that the output format has no field for.
fn note_warnings(warnings: &[String], assumed: &[&str]) {
    if !assumed.is_empty() {
        output::note(&format!("warning: the preemptor's {} are assumed to be satisfied", assumed.join(" and ")));
    }
    for warning in warnings {
        output::note(&format!("warning: {}", output::escaped(warning)));
    }
}

fn print_names<'a>(victims: impl Iterator<Item = &'a VictimRef>) -> Result<(), Error> {
    let mut names = victims.filter_map(|victim| victim.pod.as_deref().or(victim.workload.as_deref()));
    names.try_for_each(|name| output::line(&output::escaped(name)))
}
