//! A simulation as one HTML page with no outside resources: the comparison, plots, who evicted whom, and why.
//!
//! All policies are drawn on the same scales. The same runs make the same bytes.

mod arrows;
mod axis;
mod chart;
mod decisions;
mod evictions;
mod over_time;
mod queues;
mod simulated;
mod timeline;
mod waiting;

use maud::{Markup, html};

use self::axis::{Axis, seconds};
use self::chart::{Key, legend};
use crate::web_page::{self, Script};

pub use self::simulated::{FoldedExplanation, PolicyRunPage};

const STYLE: &str = include_str!("report/style.css");
const SCRIPT: Script =
    Script { text: include_str!("report/script.js"), sha256: "HYJnRl0GJK4nF9qyregwCckCrRAcCSnKL+jg/7mpPyk=" };

/// What a page shows.
pub struct Page<'r> {
    /// What was simulated.
    pub name: &'r str,
    /// What it was, in a sentence.
    pub headline: &'r str,
    /// Figures: what it is, then its value for each policy.
    pub comparison: &'r [Vec<String>],
    /// What the figures mean, where that needs saying.
    pub legend: &'r str,
    /// For each policy what happened.
    pub runs: &'r [PolicyRunPage<'r>],
    /// What was made up.
    pub made_up: &'r [String],
    /// What makes the page again.
    pub command: &'r str,
}

/// The whole page.
pub fn page(page: &Page<'_>) -> String {
    let runs = page.runs;
    let longest = runs.iter().map(|one| one.run.ended - one.run.began).max().unwrap_or(0);
    let time = Axis::time(seconds(longest));
    let body = html! {
        p { (page.headline) }
        @if !page.made_up.is_empty() {
            section.note {
                h2 { "What is made up" }
                ul.dots { @for note in page.made_up { li { (note) } } }
            }
        }
        (comparison(page))
        // Where nothing is beside a plot, the next plot is.
        div class=(if runs.len() == 1 { "plots side" } else { "plots" }) { (plots(runs, &time)) }
        (who_and_why(runs, &time))
        section {
            h2 { "Make this page again" }
            pre { (page.command) }
            p.none {
                "Same input, same version, same bytes. How long decisions took differs from machine to machine, so it is printed and \
                 not shown here."
            }
        }
    };
    web_page::page(&format!("Simulation of {}", page.name), STYLE, Some(SCRIPT), body)
}

fn comparison(page: &Page<'_>) -> Markup {
    let rows = page.comparison.iter().filter_map(|row| row.split_first());
    html! {
        section {
            h2 { "Comparison" }
            table.figures {
                thead { tr { th {} @for one in page.runs { th { (one.policy) } } } }
                tbody {
                    @for (title, values) in rows {
                        tr {
                            th scope="row" class=[title.starts_with(' ').then_some("deeper")] { (title.trim()) }
                            @for (one, value) in page.runs.iter().zip(values) { td data-is=(one.policy) { (value) } }
                        }
                    }
                }
            }
            p.none { (page.legend) }
        }
    }
}

fn plots(runs: &[PolicyRunPage<'_>], time: &Axis) -> Markup {
    let nothing = || html! {};
    let section = |title: &str, says: &str, key: Markup, drawn: Vec<Markup>| {
        html! {
            section {
                h2 { (title) }
                p { (says) }
                (key)
                div.side {
                    @for (one, svg) in runs.iter().zip(drawn) { figure { figcaption { (one.policy) } (svg) } }
                }
            }
        }
    };
    let levels = waiting::levels(runs);
    html! {
        (section("Utilisation", "How full the cluster was.", nothing(), over_time::utilisation(runs, time)))
        (section("Pending", "How many pods waited for a place.", nothing(), over_time::pending(runs, time)))
        (section(
            "Evictions",
            "When pods had to yield, and for whom.",
            legend(Key::Patch, evictions::KINDS.into_iter()),
            evictions::evictions(runs, time),
        ))
        (section(
            "Waiting",
            "The share of all jobs that had started after waiting so long. A line that ends below 100% is of jobs that never ran.",
            legend(Key::Line, levels.iter().map(|level| level.name.as_str())),
            waiting::waiting(runs, &levels),
        ))
        @if let Some(queues) = queues::Queues::of(runs) {
            (section(
                "Queues",
                "Whose pods filled the cluster.",
                legend(Key::Patch, queues.names.iter().map(String::as_str)),
                queues.shares(runs, time),
            ))
        }
    }
}

fn who_and_why(runs: &[PolicyRunPage<'_>], time: &Axis) -> Markup {
    let key = |mark: Markup, name: &str| html! { li { svg.key viewBox="0 0 28 10" { (mark) } (name) } };
    html! {
        section {
            h2 { "Who evicted whom" }
            p {
                "A row is a job, with its priority. An arrow goes from the job that asked to the job that yielded; click it for the \
                 decision, or open one below."
            }
            ul.legend {
                (key(html! { path.waits d="M0 5H28" {} }, "waits"))
                (key(html! { rect.runs y="1" width="28" height="8" {} }, "runs"))
                (key(html! { path.evicts d="M0 5H28" {} }, "evicts"))
                (key(html! { path.evicts.again d="M0 5H28" {} }, "evicts, having been evicted before"))
            }
            @for (at, one) in runs.iter().enumerate() {
                @let decisions = decisions::decisions(at, one, runs.len());
                h3 { (one.policy) }
                (timeline::timeline(at, one, &arrows::arrows(one.run), time, decisions.explained))
                h4 { "Decisions" }
                (decisions.html)
            }
        }
    }
}
