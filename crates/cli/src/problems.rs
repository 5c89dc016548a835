//! `reprieve problems`: lists the objects that decisions set aside, and why. The command is read-only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use reprieve_api::{ObjectSet, Profile};
use reprieve_engine::Policy;
use reprieve_loader::build::{OnInvalid, load_as};
use reprieve_loader::policy::policy;
use reprieve_loader::{LoadScope, Quarantined, QueueSettings};
use serde::Serialize;

use crate::args::ClusterArgs;
use crate::input::{self, Error};
use crate::output;
use crate::render::table;

/// The arguments of `reprieve problems`.
#[derive(Debug, Args)]
pub struct ProblemsArgs {
    /// Files and folders with Kubernetes objects, as printed by kubectl get -o yaml; - is standard input [default: read the cluster of
    /// the kubeconfig]
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    pub filename: Vec<PathBuf>,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Policy whose objects are checked: Kubernetes, YuniKorn, Koordinator or Kueue [default: every policy with objects in the input]
    #[arg(long)]
    pub policy: Option<String>,
    /// Name of the scheduler; of pods that name another one only the room and the priority are read [default: any]
    #[arg(long, value_name = "NAME")]
    pub scheduler_name: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table
    Table,
    /// One JSON object
    Json,
    /// The same object as YAML
    Yaml,
}

/// All problems of the input.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemList {
    api_version: &'static str,
    kind: &'static str,
    problems: Vec<ProblemEntry>,
}

/// An object that is set aside.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemEntry {
    /// The kind of the object.
    kind: &'static str,
    /// The name, with the namespace if the kind has one.
    name: String,
    /// The path of the field.
    field: String,
    /// The class of the problem.
    reason: &'static str,
    /// The problem and what to do.
    problem: String,
    /// The object that is set aside itself and to which this one refers.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The position in the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// Prints the problems and returns the exit status: 0 without problems, 2 with problems.
pub fn run(args: &ProblemsArgs) -> Result<u8, Error> {
    let objects = if args.filename.is_empty() {
        let (objects, warnings) =
            reprieve_cluster::snapshot::read(&args.cluster.cluster(), &QueueSettings::default(), true)?;
        warnings.iter().for_each(|warning| output::note(&format!("warning: {}", output::escaped(warning))));
        objects
    } else {
        input::read(&args.filename)?.objects
    };
    let mut problems = Vec::new();
    let scope = LoadScope { scheduler_name: args.scheduler_name.clone(), ..LoadScope::default() };
    for policy in policies(args, &objects)? {
        let loaded = load_as(&objects, OnInvalid::Quarantine, &policy, &scope)?;
        let from_files = !args.filename.is_empty();
        problems.extend(loaded.quarantined.iter().map(|entry| problem_entry(entry, from_files)));
    }
    problems.sort();
    problems.dedup();
    let status = if problems.is_empty() { 0 } else { 2 };
    let list = ProblemList { api_version: "reprieve.dev/v1alpha1", kind: "ProblemList", problems };
    match args.output {
        Output::Json => output::line(&serde_json::to_string_pretty(&list).map_err(Error::unprintable)?)?,
        Output::Yaml => output::print(&serde_saphyr::to_string(&list).map_err(Error::unprintable)?)?,
        Output::Table => output::print(&as_table(&list.problems))?,
    }
    Ok(status)
}

/// The policy of the arguments, or every policy of which the input has objects.
fn policies(args: &ProblemsArgs, objects: &ObjectSet) -> Result<Vec<Policy>, Error> {
    if let Some(name) = &args.policy {
        return Ok(vec![policy(&Profile::of_policy(name)).map_err(|error| error.field("--policy"))?]);
    }
    let names = ["Kubernetes", "YuniKorn", "Koordinator", "Kueue"];
    let policies = names.map(|name| policy(&Profile::of_policy(name)));
    let is_used = |policy: &Policy| match policy {
        Policy::Kubernetes(_) => true,
        policy => {
            let reader = reprieve_loader::policy::reader(policy);
            objects.iter().any(|object| object.kind().resource().reader == reader)
                || objects.unreadable.iter().any(|one| one.object.kind.resource().reader == reader)
        }
    };
    Ok(policies.into_iter().flatten().filter(is_used).collect())
}

fn problem_entry(entry: &Quarantined, from_files: bool) -> ProblemEntry {
    let resource = entry.object.kind.resource();
    let shown = |object: &reprieve_api::ObjectKey| reprieve_api::ObjectRef::of(object.kind, &object.name).to_string();
    let name = shown(&entry.object);
    let name = name.strip_prefix(resource.kind).unwrap_or(&name).trim_start().to_owned();
    ProblemEntry {
        kind: resource.kind,
        name,
        field: entry.error.field.clone().unwrap_or_default(),
        reason: entry.code().as_str(),
        problem: entry.error.problem.clone(),
        cause: entry.cause.as_ref().map(shown),
        source: entry.error.source.as_ref().filter(|_| from_files).map(ToString::to_string),
    }
}

fn as_table(problems: &[ProblemEntry]) -> String {
    if problems.is_empty() {
        return "no problems\n".to_owned();
    }
    let row = |entry: &ProblemEntry| {
        let ProblemEntry { kind, name, field, reason, problem, .. } = entry;
        vec![(*kind).to_owned(), name.clone(), (*reason).to_owned(), field.clone(), problem.clone()]
    };
    table(["KIND", "NAME", "REASON", "FIELD", "PROBLEM"], problems.iter().map(row), None) + "\n"
}
