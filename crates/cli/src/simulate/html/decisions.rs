//! The list of decisions that evict pods; a click opens the explanation.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use maud::{Markup, html};
use reprieve_loader::time::time;
use reprieve_report::plural::count;
use reprieve_simulator::run::{Preemption, Run};

use super::super::policy_run::{FoldedExplanation, PolicyRun};
use crate::render::{Rows, format_duration};

/// The size limit of all explanations of a page, in bytes.
const MAX_BYTES: usize = 3_500_000;

/// Decisions as HTML.
pub struct Decisions {
    /// The list.
    pub html: Markup,
    /// The number of decisions in the list, from the first on.
    pub explained: usize,
}

/// The decisions under one of several policies.
pub fn decisions(index: usize, result: &PolicyRun, policies: usize) -> Decisions {
    let run = &result.run;
    let jobs: BTreeMap<&str, &str> =
        run.evictions.iter().map(|eviction| (eviction.pod.as_str(), eviction.job.as_str())).collect();
    let (mut list, mut size) = (Vec::new(), 0);
    for (number, preemption) in run.preemptions.iter().enumerate() {
        let entry = decision(&anchor(index, number), run, preemption, result.explained.get(&number), &jobs);
        size += entry.0.len();
        if size > MAX_BYTES / policies.max(1) {
            break;
        }
        list.push(entry);
    }
    let (all, explained) = (run.preemptions.len(), list.len());
    let html = html! {
        @if all == 0 {
            p.none { "No pod was evicted." }
        } @else {
            @if all > explained {
                p.none {
                    "The first " (explained) " of " (all) " decisions; the other " (all - explained)
                    " do not fit on this page."
                }
            }
            div.decisions tabindex="0" { @for decision in list { (decision) } }
        }
    };
    Decisions { html, explained }
}

/// The anchor of a decision.
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

/// The number of evicted pods by job.
fn victims(preemption: &Preemption, jobs: &BTreeMap<&str, &str>) -> String {
    let mut pods_of: BTreeMap<String, usize> = BTreeMap::new();
    for victim in &preemption.victims {
        let pod = victim.to_string();
        *pods_of.entry(jobs.get(pod.as_str()).map_or(pod.clone(), |job| (*job).to_owned())).or_default() += 1;
    }
    let jobs: Vec<String> =
        pods_of.iter().map(|(job, pods)| format!("{} of {job}", count(*pods, "pod", "pods"))).collect();
    match jobs.as_slice() {
        [] => "no pod".to_owned(),
        few if few.len() <= 3 => few.join(", "),
        many => format!("{} and pods of {} more jobs", many[..2].join(", "), many.len() - 2),
    }
}

/// A table whose cells carry their column title, for narrow screens.
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
