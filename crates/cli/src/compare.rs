//! `reprieve compare`: the decision of every policy for one preemptor on one cluster, side by side.

pub mod html;
pub mod policies;

use clap::{Args, ValueEnum};
use reprieve_api::{PreemptorRef, TestSpec, fields};
use reprieve_loader::QueueSettings;
use reprieve_report::gpu_hours::GpuResources;
use serde_json::json;

use self::policies::{PolicyResult, compare_policies};
use crate::args::{QuestionArgs, attribute_to_flag, missing_preemptor};
use crate::input::{Error, Input};
use crate::output;
use crate::render::{document, first_n_and_more, table};

/// The arguments of `reprieve compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The input and the preemptor.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// Resources that count as GPUs, separated by commas; * stands for any text
    #[arg(long, value_name = "RESOURCE", default_value_t = GpuResources::default())]
    pub gpu_resources: GpuResources,
    /// Output format; html is one file that loads nothing from the network
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
    /// One HTML page
    Html,
}

/// Prints the decisions of all policies.
pub fn run(args: &CompareArgs) -> Result<u8, Error> {
    let question = &args.question;
    if question.filename.is_empty() && question.preemptor.is_none() {
        return Err(missing_preemptor(""));
    }
    let Input { objects, test } = question.read(&QueueSettings::default(), true)?;
    let (recorded, source): (Option<TestSpec>, _) = test.map(|test| (test.object.spec.clone(), test.source)).unzip();
    let Some(preemptor) = question.named()?.or_else(|| recorded.as_ref().map(|spec| spec.preemptor.clone())) else {
        return Err(missing_preemptor(""));
    };
    let mut warnings = fields::warnings_about(&preemptor, &objects, true);
    warnings.extend(question.check(&objects, recorded.as_ref(), None)?);
    let now = question.clock(recorded.as_ref());
    let profile = recorded.map(|spec| spec.profile).unwrap_or_default();
    let spec = TestSpec { now, profile, preemptor, expect: None };
    let attribute = |error| attribute_to_flag(error, &question.flags(), source.as_ref());
    let results = compare_policies(&objects, &spec, &args.gpu_resources).map_err(attribute)?;
    let preemptor = spec.preemptor;
    match args.output {
        Output::Table => output::print(&as_table(&preemptor, &results, &warnings))?,
        Output::Json => {
            let mut result = json!({
                "apiVersion": "reprieve.dev/v1alpha1",
                "kind": "Comparison",
                "preemptor": preemptor,
                "results": results,
            });
            if !warnings.is_empty() {
                result["warnings"] = warnings.into();
            }
            output::line(&format!("{result:#}"))?;
        }
        Output::Html => output::print(&html::page(&preemptor, &results, &warnings))?,
    }
    Ok(0)
}

/// What the first two rows are.
pub const KUBERNETES_ROWS: &str = "Kubernetes: Reprieve's policy; for a group it evicts no unit above the lowest priority that is enough (the priority cut).\n\
     kube-scheduler: the same policy without the priority cut, as kube-scheduler decides.";

fn as_table(preemptor: &PreemptorRef, results: &[PolicyResult], warnings: &[String]) -> String {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let rows = results.iter().map(|result| {
        let outcome = result.outcome.map_or_else(|| "-".to_owned(), |outcome| format!("{outcome:?}"));
        let why = if result.difference.is_empty() { result.summary.clone() } else { result.difference.join("; ") };
        vec![
            result.policy.to_owned(),
            if result.tolerations { "on" } else { "off" }.to_owned(),
            outcome,
            or_none(first_n_and_more(&result.victims, 4)),
            or_none(result.eviction_cost.texts().join(", ")),
            why,
        ]
    });
    let table = table(["POLICY", "TOLERATIONS", "OUTCOME", "VICTIMS", "EVICTED", "DIFFERENCE"], rows, None);
    let violations = results.iter().flat_map(|result| {
        let tolerations = if result.tolerations { "" } else { " without tolerations" };
        result.violations().map(move |violation| format!("{}{tolerations} {violation}", result.policy))
    });
    let warnings: Vec<String> = violations.chain(warnings.iter().cloned()).collect();
    let first_line = format!("preemptor: {} {}", preemptor.kind, preemptor.full_name());
    document(first_line, std::iter::empty(), [table, KUBERNETES_ROWS.to_owned()], &warnings)
}
