//! The comparison, in every form in which it leaves. How long things took goes to standard error, so that the same seed prints the same.

use std::fmt::Write as _;

use jiff::SignedDuration;
use reprieve_api::kinds::Kind;
use reprieve_api::source::InputError;
use reprieve_loader::time::time;
use reprieve_report::plural::count;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::summary::{Percentiles, Summary};
use reprieve_simulator::trace::SkippedLines;
use serde_json::{Value, json};

use super::args::Output;
use super::simulated::PolicyRun;
use crate::input::Error;
use crate::output;
use crate::render::{format_duration, table};

/// Shows what came of every policy.
pub fn show(
    blueprint: &SimulationInput,
    broken: &SkippedLines,
    simulated: &[PolicyRun],
    output: Output,
) -> Result<(), Error> {
    let summaries: Vec<&Summary> = simulated.iter().map(|one| &one.summary).collect();
    match output {
        Output::Table => {
            output::print(&headline(blueprint))?;
            output::print(&comparison(&summaries))?;
            output::print(&notes(blueprint, broken))?;
        }
        Output::Json => output::line(&format!("{:#}", as_json(blueprint, broken, simulated)))?,
        Output::Csv => output::print(&as_csv(blueprint, broken, &summaries)?)?,
    }
    if output == Output::Table {
        for one in simulated {
            output::note(&speed(one));
        }
    }
    Ok(())
}

fn speed(one: &PolicyRun) -> String {
    let (counts, seconds) = (&one.run.counts, one.took.as_secs_f64());
    let each = counts.decision_nanos as f64 / 1000.0 / (counts.decisions as f64).max(1.0);
    let rate = counts.events as f64 / seconds.max(1e-9);
    let (policy, decisions) = (&one.summary.policy, counts.decisions);
    format!("{policy}: {seconds:.2} s, {rate:.0} events a second, {decisions} decisions of {each:.1} µs")
}

/// What was simulated, in one line.
pub fn headline(blueprint: &SimulationInput) -> String {
    let nodes = blueprint.objects.iter().filter(|object| object.kind() == Kind::Node).count();
    let pods: usize = blueprint.submissions.iter().map(|(submission, _)| submission.pods).sum();
    let length = SignedDuration::from_micros(blueprint.end.0 - blueprint.start.0);
    let (nodes, jobs) = (count(nodes, "node", "nodes"), count(blueprint.submissions.len(), "job", "jobs"));
    format!(
        "{}: {} on {nodes}, {jobs} of {}, seed {}\n\n",
        blueprint.name,
        format_duration(length),
        count(pods, "pod", "pods"),
        blueprint.seed
    )
}

/// What three times with strokes between them are.
pub const WAITING: &str =
    "Waiting: for half, for 95 and for 99 of a hundred jobs at most so long until they first ran.";

/// A column for each policy.
pub fn comparison(summaries: &[&Summary]) -> String {
    let policies: Vec<String> = summaries.iter().map(|summary| summary.policy.to_uppercase()).collect();
    let header = std::iter::once("").chain(policies.iter().map(String::as_str));
    format!("{}\n\n{WAITING}\n", table(header, figures(summaries).into_iter(), None))
}

/// The figures: what each is, then its value for each policy.
pub fn figures(summaries: &[&Summary]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |title: &str, of: &dyn Fn(&Summary) -> String| {
        rows.push(std::iter::once(title.to_owned()).chain(summaries.iter().map(|summary| of(summary))).collect());
    };
    let resource = summaries.first().map_or("", |summary| summary.resource.as_str());
    let unit = resource.strip_prefix("nvidia.com/").map_or_else(|| resource.to_owned(), str::to_uppercase);
    row("jobs finished", &|summary| format!("{} of {}", summary.finished, summary.jobs));
    row("jobs that never ran", &|summary| summary.never_started.to_string());
    row("pods evicted", &|summary| summary.evictions.to_string());
    row("  for a victim that came back", &|summary| summary.second_order_evictions.to_string());
    row("gangs evicted in part", &|summary| summary.partial_gangs.to_string());
    row(&format!("{unit} hours thrown away"), &|summary| format!("{:.1}", summary.lost_hours));
    row(&format!("{unit}s in use"), &|summary| format!("{:.1}%", summary.utilisation * 100.0));
    row("fairness over queues", &|summary| {
        summary.fairness.map_or_else(|| "-".to_owned(), |index| format!("{index:.3}"))
    });
    if let Some(first) = summaries.first() {
        for waiting in &first.waiting {
            row(&format!("waiting at priority {}", waiting.priority), &|summary| {
                let found = summary.waiting.iter().find(|one| one.priority == waiting.priority);
                found.map_or_else(|| "-".to_owned(), |found| percentiles(&found.seconds))
            });
        }
        if first.gang_start.is_some() {
            row("waiting of gangs", &|summary| summary.gang_start.as_ref().map_or_else(|| "-".to_owned(), percentiles));
        }
    }
    rows
}

fn percentiles(Percentiles { p50, p95, p99 }: &Percentiles) -> String {
    [p50, p95, p99].map(|seconds| format_duration(SignedDuration::from_secs_f64(*seconds))).join(" / ")
}

fn notes(blueprint: &SimulationInput, broken: &SkippedLines) -> String {
    let mut text = String::new();
    for (at, note) in blueprint.assumptions.iter().enumerate() {
        let _ = writeln!(text, "{}  {note}", if at == 0 { "\nMade up:" } else { "        " });
    }
    if let Some(passed_over) = skipped_lines(broken) {
        let _ = writeln!(text, "\n{passed_over}");
    }
    text
}

/// How many lines of a trace were broken, if any was.
pub fn skipped_lines(broken: &SkippedLines) -> Option<String> {
    let first = broken.first.as_ref()?;
    let lines = count(broken.lines, "broken line was", "broken lines were");
    Some(format!("{lines} passed over; the first: {first}"))
}

fn as_json(blueprint: &SimulationInput, broken: &SkippedLines, simulated: &[PolicyRun]) -> Value {
    let nodes = blueprint.objects.iter().filter(|object| object.kind() == Kind::Node).count();
    let policies = simulated.iter().map(|one| {
        let mut value = serde_json::to_value(&one.summary).unwrap_or_default();
        value["decisionSeconds"] = json!(one.run.counts.decision_nanos as f64 / 1e9);
        value
    });
    let moment = |at| time(at).map(|time| time.to_string());
    json!({
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "Simulation",
        "name": blueprint.name,
        "seed": blueprint.seed,
        "start": moment(blueprint.start),
        "end": moment(blueprint.end),
        "nodes": nodes,
        "assumptions": blueprint.assumptions,
        "skippedLines": broken.lines,
        "policies": policies.collect::<Vec<Value>>(),
    })
}

fn as_csv(blueprint: &SimulationInput, broken: &SkippedLines, summaries: &[&Summary]) -> Result<String, Error> {
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
        let waiting = summary.waiting.iter().map(|one| (format!("waiting priority {}", one.priority), one.seconds));
        for (name, Percentiles { p50, p95, p99 }) in waiting.chain(gangs) {
            for (part, seconds) in [("p50", p50), ("p95", p95), ("p99", p99)] {
                figure(format!("{name} {part}"), seconds.to_string());
            }
        }
    }
    rows.extend(blueprint.assumptions.iter().map(|note| [String::new(), "assumptions".to_owned(), note.clone()]));
    if broken.lines > 0 {
        rows.push([String::new(), "skippedLines".to_owned(), broken.lines.to_string()]);
    }
    let unwritable = |error: String| Error::Input(InputError::new(format!("the figures cannot be written: {error}")));
    for row in rows {
        writer.write_record(row).map_err(|error| unwritable(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| unwritable(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
