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
use super::policy_run::PolicyRun;
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
            output::print(&(headline(input) + &comparison(&summaries) + &notes(input, skipped)))?;
            results.iter().for_each(|result| output::note(&speed(result)));
            Ok(())
        }
        Output::Json => output::line(&format!("{:#}", as_json(input, skipped, results))),
        Output::Csv => output::print(&as_csv(input, skipped, &summaries)?),
    }
}

fn speed(result: &PolicyRun) -> String {
    let (counts, seconds) = (&result.run.counts, result.took.as_secs_f64());
    let each = counts.decision_nanos as f64 / 1000.0 / (counts.decisions as f64).max(1.0);
    let rate = counts.events as f64 / seconds.max(1e-9);
    let (policy, decisions) = (&result.summary.policy, counts.decisions);
    format!("{policy}: {seconds:.2} s, {rate:.0} events/s, {decisions} decisions, mean {each:.1} µs")
}

/// The simulation in one line.
pub fn headline(input: &SimulationInput) -> String {
    let nodes = input.objects.iter().filter(|object| object.kind() == Kind::Node).count();
    let pods: usize = input.submissions.iter().map(|(submission, _)| submission.pods).sum();
    let length = SignedDuration::from_micros(input.end.0 - input.start.0);
    let (nodes, jobs) = (count(nodes, "node", "nodes"), count(input.submissions.len(), "job", "jobs"));
    format!(
        "{}: {} on {nodes}, {jobs} with {}, seed {}\n\n",
        input.name,
        format_duration(length),
        count(pods, "pod", "pods"),
        input.seed
    )
}

/// The meaning of the three durations in a cell.
pub const PERCENTILES: &str = "Wait before first start: p50 / p95 / p99.";

/// A column for each policy.
pub fn comparison(summaries: &[&Summary]) -> String {
    let policies: Vec<String> = summaries.iter().map(|summary| summary.policy.to_uppercase()).collect();
    let header = std::iter::once("").chain(policies.iter().map(String::as_str));
    format!("{}\n\n{PERCENTILES}\n", table(header, statistics(summaries).into_iter(), None))
}

/// The statistics: a title, then the value for each policy.
pub fn statistics(summaries: &[&Summary]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |title: &str, of: &dyn Fn(&Summary) -> String| {
        rows.push(std::iter::once(title.to_owned()).chain(summaries.iter().map(|summary| of(summary))).collect());
    };
    let resource = summaries.first().map_or("", |summary| summary.resource.as_str());
    let unit = resource.strip_prefix("nvidia.com/").map_or_else(|| resource.to_owned(), str::to_uppercase);
    row("jobs finished", &|summary| format!("{} of {}", summary.finished, summary.jobs));
    row("jobs never started", &|summary| summary.never_started.to_string());
    row("pods evicted", &|summary| summary.evictions.to_string());
    row("  second-order (caused by a returning victim)", &|summary| summary.second_order_evictions.to_string());
    row("    foreseen / unforeseen", &|summary| {
        format!("{} / {}", summary.foreseen_second_order_evictions, summary.unforeseen_second_order_evictions)
    });
    row("gangs partly evicted", &|summary| summary.partial_gangs.to_string());
    row(&format!("{unit}-hours lost"), &|summary| format!("{:.1}", summary.lost_hours));
    row(&format!("{unit} utilization (mean)"), &|summary| format!("{:.1}%", summary.utilisation * 100.0));
    row("fairness across queues (Jain's index)", &|summary| {
        summary.fairness.map_or_else(|| "-".to_owned(), |index| format!("{index:.3}"))
    });
    if let Some(first) = summaries.first() {
        for waiting in &first.waiting {
            row(&format!("wait at priority {}", waiting.priority), &|summary| {
                let found = summary.waiting.iter().find(|level| level.priority == waiting.priority);
                found.map_or_else(|| "-".to_owned(), |found| percentiles(&found.seconds))
            });
        }
        if first.gang_start.is_some() {
            row("wait of gangs", &|summary| summary.gang_start.as_ref().map_or_else(|| "-".to_owned(), percentiles));
        }
    }
    rows
}

fn percentiles(Percentiles { p50, p95, p99 }: &Percentiles) -> String {
    [p50, p95, p99].map(|seconds| format_duration(SignedDuration::from_secs_f64(*seconds))).join(" / ")
}

fn notes(input: &SimulationInput, skipped: &SkippedLines) -> String {
    let mut text = String::new();
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
        "skippedLines": skipped.lines,
        "policies": policies.collect::<Vec<Value>>(),
    })
}

fn as_csv(input: &SimulationInput, skipped: &SkippedLines, summaries: &[&Summary]) -> Result<String, Error> {
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
