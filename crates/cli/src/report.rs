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

use std::fmt::Write as _;

use self::axis::{Axis, seconds};
use self::chart::{Key, legend};
use crate::web::{self, Script, escaped};

pub use self::simulated::{Explained, Simulated};

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
    pub runs: &'r [Simulated<'r>],
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
    let mut body = format!("<p>{}</p>\n", escaped(page.headline));
    body.push_str(&made_up(page.made_up));
    body.push_str(&comparison(page));
    // Where nothing is beside a plot, the next plot is.
    body.push_str(if runs.len() == 1 { "<div class=\"plots side\">\n" } else { "<div class=\"plots\">\n" });
    let mut section = |title: &str, says: &str, key: &str, drawn: Vec<String>| {
        let _ = write!(body, "<section>\n<h2>{title}</h2>\n<p>{says}</p>\n{key}<div class=\"side\">\n");
        for (one, svg) in runs.iter().zip(drawn) {
            let _ = write!(body, "<figure><figcaption>{}</figcaption>\n{svg}</figure>\n", escaped(one.policy));
        }
        body.push_str("</div>\n</section>\n");
    };
    section("Utilisation", "How full the cluster was.", "", over_time::utilisation(runs, &time));
    section("Pending", "How many pods waited for a place.", "", over_time::pending(runs, &time));
    let key = legend(Key::Patch, evictions::KINDS.into_iter());
    section("Evictions", "When pods had to yield, and for whom.", &key, evictions::evictions(runs, &time));
    let levels = waiting::levels(runs);
    let key = legend(Key::Line, levels.iter().map(|level| level.name.as_str()));
    let says = "The share of all jobs that had started after waiting so long. A line that ends below 100% is of jobs that never ran.";
    section("Waiting", says, &key, waiting::waiting(runs, &levels));
    if let Some(queues) = queues::Queues::of(runs) {
        let key = legend(Key::Patch, queues.names.iter().map(String::as_str));
        section("Queues", "Whose pods filled the cluster.", &key, queues.shares(runs, &time));
    }
    body.push_str("</div>\n");
    body.push_str(&who_and_why(runs, &time));
    let _ = write!(
        body,
        "<section>\n<h2>Make this page again</h2>\n<pre>{}</pre>\n<p class=\"none\">Same input, same version, same bytes. \
         How long decisions took differs from machine to machine, so it is printed and not shown here.</p>\n</section>\n",
        escaped(page.command)
    );
    web::page(&format!("Simulation of {}", page.name), STYLE, Some(SCRIPT), &body)
}

fn made_up(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let notes: String = notes.iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
    format!("<section class=\"note\">\n<h2>What is made up</h2>\n<ul class=\"dots\">\n{notes}</ul>\n</section>\n")
}

fn comparison(page: &Page<'_>) -> String {
    let mut html = "<section>\n<h2>Comparison</h2>\n<table class=\"figures\"><thead><tr><th></th>".to_owned();
    for one in page.runs {
        let _ = write!(html, "<th>{}</th>", escaped(one.policy));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in page.comparison {
        let Some((title, values)) = row.split_first() else { continue };
        let deeper = if title.starts_with(' ') { " class=\"deeper\"" } else { "" };
        let _ = write!(html, "<tr><th scope=\"row\"{deeper}>{}</th>", escaped(title.trim()));
        for (one, value) in page.runs.iter().zip(values) {
            let _ = write!(html, "<td data-is=\"{}\">{}</td>", escaped(one.policy), escaped(value));
        }
        html.push_str("</tr>\n");
    }
    let _ = write!(html, "</tbody></table>\n<p class=\"none\">{}</p>\n</section>\n", escaped(page.legend));
    html
}

fn who_and_why(runs: &[Simulated<'_>], time: &Axis) -> String {
    let mut html = "<section>\n<h2>Who evicted whom</h2>\n<p>A row is a job, with its priority. An arrow goes from the job that asked \
                    to the job that yielded; click it for the decision, or open one below.</p>\n\
                    <ul class=\"legend\"><li><svg class=\"key\" viewBox=\"0 0 28 10\"><path class=\"waits\" d=\"M0 5H28\"/></svg>waits</li>\
                    <li><svg class=\"key\" viewBox=\"0 0 28 10\"><rect class=\"runs\" y=\"1\" width=\"28\" height=\"8\"/></svg>runs</li>\
                    <li><svg class=\"key\" viewBox=\"0 0 28 10\"><path class=\"evicts\" d=\"M0 5H28\"/></svg>evicts</li>\
                    <li><svg class=\"key\" viewBox=\"0 0 28 10\"><path class=\"evicts again\" d=\"M0 5H28\"/></svg>\
                    evicts, having been evicted before</li></ul>\n"
        .to_owned();
    for (at, one) in runs.iter().enumerate() {
        let decisions = decisions::decisions(at, one, runs.len());
        let arrows = arrows::arrows(one.run);
        let _ = write!(
            html,
            "<h3>{}</h3>\n{}<h4>Decisions</h4>\n{}",
            escaped(one.policy),
            timeline::timeline(at, one, &arrows, time, decisions.explained),
            decisions.html
        );
    }
    html.push_str("</section>\n");
    html
}
