//! Prints the comparison of policies as table, JSON or CSV. Wall-clock times go to standard error, so that standard output depends only
//! on the input and the seed.

use std::fmt::Write as _;

use jiff::SignedDuration;
use reprieve_api::{InputError, Kind};
use reprieve_loader::time::time;
use reprieve_report::plural::count;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::summary::{Percentiles, Summary};
use reprieve_simulator::trace::SkippedLines;
use serde_json::{Value, json};

use super::args::Output;
use super::notes::notes;
use super::policy_run::PolicyRun;
use super::statistics::{StatisticsValue, statistics};
use crate::input::Error;
use crate::output;
use crate::render::{format_duration, table};

/// Prints the results of all policies.
pub fn show(
    input: &SimulationInput,
    skipped: &SkippedLines,
    results: &[PolicyRun],
    output: Output,
) -> Result<(), Error> {
    let summaries: Vec<&Summary> = results.iter().map(|result| &result.summary).collect();
    match output {
        Output::Table => {
            let remarks = remarks(input, skipped, results);
            output::print(&(headline(input, results) + &comparison(&summaries) + &remarks))?;
            results.iter().for_each(|result| output::note(&speed(result)));
            Ok(())
        }
        Output::Json => output::line(&format!("{:#}", as_json(input, skipped, results))),
        Output::Csv => output::print(&as_csv(input, skipped, &summaries, &notes(input, results))?),
    }
}

fn speed(result: &PolicyRun) -> String {
    let (counts, seconds) = (&result.run.counts, result.took.as_secs_f64());
    let each = counts.decision_nanos as f64 / 1000.0 / (counts.decisions as f64).max(1.0);
    let rate = counts.events as f64 / seconds.max(1e-9);
    let (policy, decisions) = (&result.summary.policy, counts.decisions);
    format!(
        "{policy}: simulated in {seconds:.2} s ({rate:.0} events/s), {decisions} decisions with a mean of {each:.1} µs"
    )
}

/// The simulation in one line: what was simulated, which may be less than the input asks for.
pub fn headline(input: &SimulationInput, results: &[PolicyRun]) -> String {
    let nodes = input.objects.iter().filter(|object| object.kind() == Kind::Node).count();
    let asked = input.end.0 - input.start.0;
    let lasted = results.iter().map(|result| result.run.ended - result.run.began).max().unwrap_or(asked);
    let length = format_duration(SignedDuration::from_micros(lasted));
    let until = if lasted < asked { ", until all jobs had finished" } else { "" };
    let submitted = results.iter().map(|result| result.summary.jobs).max().unwrap_or(0);
    let arrived = input.submissions.iter().filter(|(submission, _)| submission.at <= input.end);
    let pods: usize = arrived.map(|(submission, _)| submission.pods).sum();
    let late = input.submissions.len().saturating_sub(submitted);
    let late = if late > 0 { format!(" ({late} more would arrive after the end)") } else { String::new() };
    format!(
        "{}: {length} on {}{until}; {} with {}{late}; seed {}\n\n",
        input.name,
        count(nodes, "node", "nodes"),
        count(submitted, "job", "jobs"),
        count(pods, "pod", "pods"),
        input.seed
    )
}

/// How to read the comparison.
pub const LEGEND: &str =
    "* best value of the row. Wait before first start: p50 / p95 / p99; the best is that with the lowest p95.";

/// A column for each policy.
pub fn comparison(summaries: &[&Summary]) -> String {
    let policies: Vec<String> = summaries.iter().map(|summary| summary.policy.to_uppercase()).collect();
    let header = ["", "BETTER"].into_iter().chain(policies.iter().map(String::as_str));
    let cell = |value: StatisticsValue| if value.is_best { value.text + " *" } else { value.text };
    let rows = statistics(summaries).into_iter().map(|row| {
        let values = row.values.into_iter().map(cell);
        [row.title, row.better.word().to_owned()].into_iter().chain(values).collect()
    });
    format!("{}\n\n{LEGEND}\n", table(header, rows, None))
}

fn remarks(input: &SimulationInput, skipped: &SkippedLines, results: &[PolicyRun]) -> String {
    let mut text = String::new();
    for note in notes(input, results) {
        let _ = writeln!(text, "\nnote: {note}");
    }
    for (index, note) in input.assumptions.iter().enumerate() {
        let _ = writeln!(text, "{} {note}", if index == 0 { "\nSynthetic:" } else { "          " });
    }
    if let Some(lines) = skipped_lines(skipped) {
        let _ = writeln!(text, "\n{lines}");
    }
    text
}

/// A note about the skipped lines of a trace, if there are any.
pub fn skipped_lines(skipped: &SkippedLines) -> Option<String> {
    let first = skipped.first.as_ref()?;
    let lines = count(skipped.lines, "invalid line", "invalid lines");
    Some(format!("{lines} skipped; the first: {first}"))
}

fn as_json(input: &SimulationInput, skipped: &SkippedLines, results: &[PolicyRun]) -> Value {
    let nodes = input.objects.iter().filter(|object| object.kind() == Kind::Node).count();
    let policies = results.iter().map(|result| {
        let mut value = serde_json::to_value(&result.summary).unwrap_or_default();
        value["decisionSeconds"] = json!(result.run.counts.decision_nanos as f64 / 1e9);
        value
    });
    let format_time = |timestamp| time(timestamp).map(|time| time.to_string());
    json!({
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "Simulation",
        "name": input.name,
        "seed": input.seed,
        "start": format_time(input.start),
        "end": format_time(input.end),
        "nodes": nodes,
        "assumptions": input.assumptions,
        "notes": notes(input, results),
        "skippedLines": skipped.lines,
        "policies": policies.collect::<Vec<Value>>(),
    })
}

fn as_csv(
    input: &SimulationInput,
    skipped: &SkippedLines,
    summaries: &[&Summary],
    notes: &[String],
) -> Result<String, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut rows = vec![["policy".to_owned(), "figure".to_owned(), "value".to_owned()]];
    for summary in summaries {
        let mut figure = |name: String, value: String| rows.push([summary.policy.clone(), name, value]);
        if let Ok(Value::Object(fields)) = serde_json::to_value(summary) {
            let single =
                fields.into_iter().filter(|(name, value)| name != "policy" && !value.is_object() && !value.is_array());
            for (name, value) in single {
                figure(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
        let gangs = summary.gang_start.iter().map(|seconds| ("gangStart".to_owned(), *seconds));
        let waiting =
            summary.waiting.iter().map(|level| (format!("waiting priority {}", level.priority), level.seconds));
        for (name, Percentiles { p50, p95, p99 }) in waiting.chain(gangs) {
            for (part, seconds) in [("p50", p50), ("p95", p95), ("p99", p99)] {
                figure(format!("{name} {part}"), seconds.to_string());
            }
        }
    }
    rows.extend(input.assumptions.iter().map(|note| [String::new(), "assumptions".to_owned(), note.clone()]));
    rows.extend(notes.iter().map(|note| [String::new(), "notes".to_owned(), note.clone()]));
    if skipped.lines > 0 {
        rows.push([String::new(), "skippedLines".to_owned(), skipped.lines.to_string()]);
    }
    let unwritable =
        |error: String| Error::Input(InputError::new(format!("the CSV output cannot be written: {error}")));
    for row in rows {
        writer.write_record(row).map_err(|error| unwritable(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| unwritable(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
