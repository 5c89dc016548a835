//! `reprieve compare`: one cluster, one preemptor, every policy's verdict side by side.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use reprieve_api::fields;
use reprieve_api::test_file::{PreemptorRef, TestSpec};
use serde_json::json;

use crate::args::{QuestionArgs, attribute_to_flag};
use crate::input::{Error, Input};
use crate::output;
use crate::policies::{PolicyResult, verdicts};
use crate::render::table;

/// What `reprieve compare` is told.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The question.
    #[command(flatten)]
    pub asking: QuestionArgs,
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

fn missing_preemptor() -> Error {
    Error::Usage("nobody asks: name a pending pod or group with --for".to_owned())
}

/// Prints all verdicts.
pub fn run(args: &CompareArgs) -> Result<u8, Error> {
    let asking = &args.asking;
    if asking.filename.is_empty() && asking.preemptor.is_none() {
        return Err(missing_preemptor());
    }
    let Input { objects, test } = asking.read()?;
    let (recorded, source): (Option<TestSpec>, _) = test.map(|test| (test.object.spec.clone(), test.source)).unzip();
    let Some(preemptor) = asking.named()?.or_else(|| recorded.as_ref().map(|spec| spec.preemptor.clone())) else {
        return Err(missing_preemptor());
    };
    let mut warnings = fields::warnings_about(&preemptor, &objects, true);
    warnings.extend(asking.check(&objects, recorded.as_ref(), None)?);
    let now = asking.clock(recorded.as_ref());
    let profile = recorded.map(|spec| spec.profile).unwrap_or_default();
    let asked = TestSpec { now, profile, preemptor, expect: None };
    let verdicts =
        verdicts(&objects, &asked).map_err(|error| attribute_to_flag(error, &asking.flags(), source.as_ref()))?;
    let preemptor = asked.preemptor;
    match args.output {
        Output::Table => output::print(&as_table(&preemptor, &verdicts, &warnings))?,
        Output::Json => {
            let mut result = json!({
                "apiVersion": "reprieve.dev/v1alpha1",
                "kind": "Comparison",
                "preemptor": preemptor,
                "verdicts": verdicts,
            });
            if !warnings.is_empty() {
                result["warnings"] = warnings.into();
            }
            output::line(&format!("{result:#}"))?;
        }
        Output::Html => output::print(&crate::html::page(&preemptor, &verdicts, &warnings))?,
    }
    Ok(0)
}

fn as_table(preemptor: &PreemptorRef, verdicts: &[PolicyResult], warnings: &[String]) -> String {
    let rows = verdicts.iter().map(|verdict| {
        let lost = verdict.lost.words();
        let victims = match verdict.victims.as_slice() {
            [] => "-".to_owned(),
            few if few.len() <= 4 => few.join(", "),
            many => format!("{} and {} more", many[..3].join(", "), many.len() - 3),
        };
        let outcome = verdict.outcome.map_or_else(|| "-".to_owned(), |outcome| format!("{outcome:?}"));
        let why = if verdict.difference.is_empty() { verdict.summary.clone() } else { verdict.difference.join("; ") };
        vec![
            verdict.policy.to_owned(),
            if verdict.tolerations { "on" } else { "off" }.to_owned(),
            outcome,
            victims,
            if lost.is_empty() { "-".to_owned() } else { lost.join(", ") },
            why,
        ]
    });
    let table = table(["POLICY", "TOLERATIONS", "OUTCOME", "VICTIMS", "LOST", "WHAT MAKES THE DIFFERENCE"], rows, None);
    let mut text = format!("{} {} asks\n\n{table}\n", preemptor.kind, preemptor.full_name());
    for verdict in verdicts {
        let tolerations = if verdict.tolerations { "" } else { " without tolerations" };
        for violation in verdict.violations() {
            let _ = write!(text, "\nwarning: {}{tolerations} {violation}\n", verdict.policy);
        }
    }
    for warning in warnings {
        let _ = write!(text, "\nwarning: {}\n", output::escaped(warning));
    }
    text
}
