//! `reprieve simulate --report`: a simulation as one HTML page with no outside resources. The page has the comparison, plots, a timeline
//! of evictions, and the explanation of every decision.
//!
//! All policies are drawn on the same scales. The same runs make the same bytes.

mod arrows;
mod axis;
mod chart;
mod command;
mod decisions;
mod evictions;
mod over_time;
mod queues;
mod timeline;
mod waiting;

use maud::{Markup, html};
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::summary::Summary;
use reprieve_simulator::trace::SkippedLines;

use self::axis::{Axis, seconds};
use self::chart::{Key, legend};
use super::notes::notes;
use super::policy_run::PolicyRun;
use super::show::{LEGEND, headline, skipped_lines};
use super::statistics::statistics;
use crate::web_page::{self, Script};

pub use self::command::command;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: Script =
    Script { text: include_str!("html/script.js"), sha256: "1a7Y99sFDT9ZxmWZjgM44wfRTrahbIH+9D0m5vAH+cc=" };

/// The whole page; `command` reproduces it.
pub fn page(input: &SimulationInput, skipped: &SkippedLines, results: &[PolicyRun], command: &str) -> String {
    let longest = results.iter().map(|result| result.run.ended - result.run.began).max().unwrap_or(0);
    let time = Axis::time(seconds(longest));
    let body = html! {
        p { (headline(input, results).trim_end()) @if let Some(skipped) = skipped_lines(skipped) { "; " (skipped) } }
        @if !input.assumptions.is_empty() {
            section.note {
                h2 { "Synthetic data" }
                ul.dots { @for note in &input.assumptions { li { (note) } } }
            }
        }
        @for note in notes(input, results) { p.note { "Note: " (note) } }
        (comparison(results))
        // With a single policy the plots are side by side.
        div class=(if results.len() == 1 { "plots side" } else { "plots" }) { (plots(results, &time)) }
        (evictions_and_decisions(results, &time))
        section {
            h2 { "Reproduce this page" }
            pre { (command) }
            p.none {
                "The same input and version give the same bytes. Decision times depend on the machine; the command prints them, this page \
                 does not show them."
            }
        }
    };
    web_page::page(&format!("Simulation of {}", input.name), STYLE, Some(SCRIPT), body)
}

fn comparison(results: &[PolicyRun]) -> Markup {
    let summaries: Vec<&Summary> = results.iter().map(|result| &result.summary).collect();
    let rows = statistics(&summaries);
    html! {
        section {
            h2 { "Comparison" }
            table.figures {
                thead { tr { th {} th { "better" } @for summary in &summaries { th { (summary.policy) } } } }
                tbody {
                    @for row in &rows {
                        tr {
                            th scope="row" class=[row.title.starts_with(' ').then_some("deeper")] { (row.title.trim()) }
                            td data-is="better" { (row.better.word()) }
                            @for (summary, value) in summaries.iter().zip(&row.values) {
                                td data-is=(summary.policy) class=[value.is_best.then_some("best")] {
                                    (value.text) @if value.is_best { " *" }
                                }
                            }
                        }
                    }
                }
            }
            p.none { (LEGEND) }
        }
    }
}

fn plots(results: &[PolicyRun], time: &Axis) -> Markup {
    let section = |title: &str, description: &str, key: Markup, plots: Vec<Markup>| {
        html! {
            section {
                h2 { (title) }
                p { (description) }
                (key)
                div.side {
                    @for (result, svg) in results.iter().zip(plots) { figure { figcaption { (result.summary.policy) } (svg) } }
                }
            }
        }
    };
    let levels = waiting::levels(results);
    html! {
        (section("Utilization", "Share of the cluster's capacity that bound pods request, also those of incomplete gangs.", html! {}, over_time::utilization(results, time)))
        (section("Pending pods", "Pods that waited for a node or for quota.", html! {}, over_time::pending(results, time)))
        (section(
            "Evictions",
            "Evicted pods over time.",
            legend(Key::Patch, evictions::KINDS.into_iter()),
            evictions::evictions(results, time),
        ))
        (section(
            "Wait before first start",
            "Share of all jobs that had started within a waiting time. A line that ends below 100% has jobs that never started.",
            legend(Key::Line, levels.iter().map(|level| level.name.as_str())),
            waiting::waiting(results, &levels),
        ))
        @if let Some(queues) = queues::Queues::of(results) {
            (section(
                "Queues",
                "Share of the cluster's capacity that the bound pods of each queue request.",
                legend(Key::Patch, queues.names.iter().map(String::as_str)),
                queues.shares(results, time),
            ))
        }
    }
}

fn evictions_and_decisions(results: &[PolicyRun], time: &Axis) -> Markup {
    let key = |mark: Markup, name: &str| html! { li { svg.key viewBox="0 0 28 10" { (mark) } (name) } };
    html! {
        section {
            h2 { "Timeline of evictions" }
            p {
                "Each row is a job, with its priority. An arrow points from the preemptor to the victim; click it for the decision, or open \
                 a decision below."
            }
            ul.legend {
                (key(html! { path.waits d="M0 5H28" {} }, "waits"))
                (key(html! { rect.runs y="1" width="28" height="8" {} }, "runs"))
                (key(html! { path.evicts d="M0 5H28" {} }, "eviction"))
                (key(html! { path.evicts.again d="M0 5H28" {} }, "second-order eviction (caused by a returning victim)"))
            }
            @for (index, result) in results.iter().enumerate() {
                @let decisions = decisions::decisions(index, result, results.len());
                h3 { (result.summary.policy) }
                (timeline::timeline(index, result, &arrows::arrows(&result.run), time, decisions.explained))
                h4 { "Decisions" }
                (decisions.html)
            }
        }
    }
}
