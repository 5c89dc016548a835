//! Every decision that somebody has to yield, and why, a click away.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::SignedDuration;
use reprieve_objects::load::time;
use reprieve_objects::report::count;
use reprieve_simulator::run::{Preemption, Run};

use super::simulated::{Explained, Simulated};
use crate::render::{Part, span};
use crate::web::escaped;

/// How many bytes the explanations of a page may have.
const ROOM: usize = 3_500_000;

/// Decisions as HTML.
pub struct Decisions {
    /// What is shown.
    pub html: String,
    /// How many of the run's decisions are in it, from the first on.
    pub explained: usize,
}

/// The decisions of one of so many runs.
pub fn decisions(at: usize, one: &Simulated<'_>, of: usize) -> Decisions {
    let run = one.run;
    let jobs: BTreeMap<&str, &str> =
        run.evictions.iter().map(|eviction| (eviction.pod.as_str(), eviction.job.as_str())).collect();
    let (mut list, mut explained) = (String::new(), 0);
    for (number, preemption) in run.preemptions.iter().enumerate() {
        let drawn = decision(&anchor(at, number), run, preemption, one.explained.get(&number), &jobs);
        if list.len() + drawn.len() > ROOM / of.max(1) {
            break;
        }
        list.push_str(&drawn);
        explained += 1;
    }
    let all = run.preemptions.len();
    let note = match all - explained {
        0 => String::new(),
        more => format!(
            "<p class=\"none\">The first {explained} of {all} decisions; for the other {more} there is no room on this page.</p>\n"
        ),
    };
    let html = match all {
        0 => "<p class=\"none\">Nobody had to yield.</p>\n".to_owned(),
        _ => format!("{note}<div class=\"decisions\" tabindex=\"0\">\n{list}</div>\n"),
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
    explained: Option<&Explained>,
    jobs: &BTreeMap<&str, &str>,
) -> String {
    let mut of: BTreeMap<String, usize> = BTreeMap::new();
    for victim in &preemption.victims {
        let pod = victim.to_string();
        *of.entry(jobs.get(pod.as_str()).map_or(pod.clone(), |job| (*job).to_owned())).or_default() += 1;
    }
    let whom: Vec<String> = of.iter().map(|(job, pods)| format!("{} of {job}", count(*pods, "pod", "pods"))).collect();
    let whom = match whom.as_slice() {
        [] => "nobody".to_owned(),
        few if few.len() <= 3 => few.join(", "),
        many => format!("{} and of {} more jobs", many[..2].join(", "), many.len() - 2),
    };
    let mut html = format!(
        "<details class=\"decision\" id=\"{anchor}\"><summary><span class=\"when\">{}</span> {} <span class=\"o Preempt\">evicts</span> {}</summary>\n",
        escaped(&span(SignedDuration::from_micros(preemption.at.0 - run.began))),
        escaped(&preemption.unit),
        escaped(&whom)
    );
    let now = time(preemption.at).map(|time| time.strftime("%FT%TZ").to_string()).unwrap_or_default();
    match explained {
        Some(Explained { summary, parts }) => {
            let _ = writeln!(html, "<p>{}. ({now})</p>", escaped(summary));
            for Part { header, rows, .. } in parts {
                table(&mut html, header, rows);
            }
        }
        None => {
            let _ = writeln!(html, "<p class=\"none\">{now}</p>");
            let rows = |names: Vec<String>| names.into_iter().map(|name| vec![name]).collect::<Vec<_>>();
            table(&mut html, &["VICTIM"], &rows(preemption.victims.iter().map(ToString::to_string).collect()));
            let placed = preemption.placement.iter().map(|(pod, node)| vec![pod.to_string(), node.clone()]);
            table(&mut html, &["PLACED", "NODE"], &placed.collect::<Vec<_>>());
        }
    }
    html.push_str("</details>\n");
    html
}

/// A table whose cells say what they are, for narrow screens.
pub fn table(html: &mut String, header: &[&str], rows: &[Vec<String>]) {
    html.push_str("<table><thead><tr>");
    for title in header {
        let _ = write!(html, "<th>{}</th>", escaped(title));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (title, cell) in header.iter().zip(row) {
            let _ = write!(html, "<td class=\"w\" data-is=\"{}\">{}</td>", escaped(title), escaped(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
}
