//! Every decision that somebody has to yield, and why, a click away.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use maud::{Markup, html};
use reprieve_loader::time::time;
use reprieve_report::plural::count;
use reprieve_simulator::run::{Preemption, Run};

use super::simulated::{FoldedExplanation, PolicyRunPage};
use crate::render::{Rows, format_duration};

/// How many bytes the explanations of a page may have.
const ROOM: usize = 3_500_000;

/// Decisions as HTML.
pub struct Decisions {
    /// What is shown.
    pub html: Markup,
    /// How many of the run's decisions are in it, from the first on.
    pub explained: usize,
}

/// The decisions of one of so many runs.
pub fn decisions(at: usize, one: &PolicyRunPage<'_>, of: usize) -> Decisions {
    let run = one.run;
    let jobs: BTreeMap<&str, &str> =
        run.evictions.iter().map(|eviction| (eviction.pod.as_str(), eviction.job.as_str())).collect();
    let (mut list, mut size) = (Vec::new(), 0);
    for (number, preemption) in run.preemptions.iter().enumerate() {
        let drawn = decision(&anchor(at, number), run, preemption, one.explained.get(&number), &jobs);
        size += drawn.0.len();
        if size > ROOM / of.max(1) {
            break;
        }
        list.push(drawn);
    }
    let (all, explained) = (run.preemptions.len(), list.len());
    let html = html! {
        @if all == 0 {
            p.none { "No pod was evicted." }
        } @else {
            @if all > explained {
                p.none {
                    "The first " (explained) " of " (all) " decisions; for the other " (all - explained)
                    " there is no room on this page."
                }
            }
            div.decisions tabindex="0" { @for decision in list { (decision) } }
        }
    };
    Decisions { html, explained }
}

/// Where a decision of a run is.
pub fn anchor(run: usize, decision: usize) -> String {
    format!("d{run}-{decision}")
}

fn decision(
    anchor: &str,
    run: &Run,
    preemption: &Preemption,
    explained: Option<&FoldedExplanation>,
    jobs: &BTreeMap<&str, &str>,
) -> Markup {
    let when = format_duration(SignedDuration::from_micros(preemption.at.0 - run.began));
    let now = time(preemption.at).map(|time| time.strftime("%FT%TZ").to_string()).unwrap_or_default();
    html! {
        details.decision id=(anchor) {
            summary {
                span.when { (when) } " " (preemption.unit) " " span.o.Preempt { "evicts" } " " (victims(preemption, jobs))
            }
            @match explained {
                Some(FoldedExplanation { summary, parts }) => {
                    p { (summary) ". (" (now) ")" }
                    @for Rows { header, rows, .. } in parts { (table(header, rows)) }
                },
                None => {
                    @let victims: Vec<_> = preemption.victims.iter().map(|victim| vec![victim.to_string()]).collect();
                    @let placed = preemption.placement.iter().map(|(pod, node)| vec![pod.to_string(), node.clone()]);
                    p.none { (now) }
                    (table(&["VICTIM"], &victims))
                    (table(&["PLACED", "NODE"], &placed.collect::<Vec<_>>()))
                },
            }
        }
    }
}

/// How many pods of which jobs yield.
fn victims(preemption: &Preemption, jobs: &BTreeMap<&str, &str>) -> String {
    let mut of: BTreeMap<String, usize> = BTreeMap::new();
    for victim in &preemption.victims {
        let pod = victim.to_string();
        *of.entry(jobs.get(pod.as_str()).map_or(pod.clone(), |job| (*job).to_owned())).or_default() += 1;
    }
    let whom: Vec<String> = of.iter().map(|(job, pods)| format!("{} of {job}", count(*pods, "pod", "pods"))).collect();
    match whom.as_slice() {
        [] => "no pod".to_owned(),
        few if few.len() <= 3 => few.join(", "),
        many => format!("{} and of {} more jobs", many[..2].join(", "), many.len() - 2),
    }
}

/// A table whose cells say what they are, for narrow screens.
fn table(header: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        table {
            thead { tr { @for title in header { th { (title) } } } }
            tbody {
                @for row in rows {
                    tr { @for (title, cell) in header.iter().zip(row) { td.w data-is=(title) { (cell) } } }
                }
            }
        }
    }
}
