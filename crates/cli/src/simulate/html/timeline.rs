//! The timeline of evictions: a row for each job with the times when it waited and ran, and an arrow from each preemptor to its victims.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use maud::{Markup, html};
use reprieve_report::plural::count;
use reprieve_simulator::run::{JobRecord, Run};

use super::super::policy_run::PolicyRun;
use super::arrows::Arrow;
use super::axis::{Axis, number};
use super::decisions::anchor;
use super::over_time::since_start;
use crate::render::format_duration;

// In units of the SVG: its width, the ends of the time axis, and the height of a row.
const WIDTH: f64 = 1200.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 1185.0;
const ROW: f64 = 17.0;
/// Longer names are cut.
const MAX_NAME_LENGTH: usize = 34;
/// Up to this number of jobs, every job has a row; beyond it, only jobs with evictions.
const MAX_ALL_SHOWN: usize = 40;
/// The maximum number of rows.
const MAX_ROWS: usize = 200;

/// The timeline of the policy with this index on the page; arrows of the first `explained` decisions are links to their explanations.
pub fn timeline(index: usize, result: &PolicyRun, arrows: &[Arrow<'_>], time: &Axis, explained: usize) -> Markup {
    let (jobs, left_out) = shown(&result.run, arrows);
    let rows: BTreeMap<&str, usize> = jobs.iter().enumerate().map(|(row, job)| (job.name.as_str(), row)).collect();
    let height = number(jobs.len() as f64 * ROW + 6.0);
    html! {
        @if !left_out.is_empty() { p.none { (left_out) } }
        @if !jobs.is_empty() {
            div.scroll tabindex="0" {
                (header(time))
                svg.rows viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label={ (result.summary.policy) ": timeline of evictions" } {
                    defs { (head(index, "evicts")) (head(index, "again")) }
                    @for (moment, _) in &time.ticks {
                        path.grid d=(format!("M{} 0V{height}", number(across(time, *moment)))) {}
                    }
                    @for (row, job) in jobs.iter().enumerate() { (job_row(&result.run, job, row, time)) }
                    @for arrow in arrows {
                        @if let Some(&to) = rows.get(arrow.to) {
                            @let from = arrow.from.and_then(|job| rows.get(job)).copied();
                            @let svg = draw_arrow(index, &result.run, arrow, from, to, time);
                            @match arrow.decision.filter(|decision| *decision < explained) {
                                Some(decision) => a href={ "#" (anchor(index, decision)) } { (svg) },
                                None => (svg),
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The head of an arrow, in the colour of its kind: `evicts`, or `again` for a second-order eviction.
fn head(index: usize, kind: &str) -> Markup {
    html! {
        marker id={ (kind) (index) } viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
            path class={ "head " (kind) } d="M0 0L8 4L0 8Z" {}
        }
    }
}

/// The time axis, which stays visible while the rows scroll.
fn header(time: &Axis) -> Markup {
    html! {
        svg.rows.top viewBox=(format!("0 0 {WIDTH} 40")) aria-hidden="true" {
            text.what x=(number(LEFT)) y="12" { (time.title) }
            @for (moment, text) in &time.ticks {
                @let x = number(across(time, *moment));
                text.middle x=(x) y="29" { (text) }
                path.axis d=(format!("M{x} 34v6")) {}
            }
        }
    }
}

/// The jobs that have a row, in the order of their first eviction or submission, and a note about the others.
fn shown<'r>(run: &'r Run, arrows: &[Arrow<'_>]) -> (Vec<&'r JobRecord>, String) {
    let mut involved: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
    for arrow in arrows {
        for job in arrow.from.into_iter().chain([arrow.to]) {
            involved.entry(job).or_insert((0, arrow.at)).0 += 1;
        }
    }
    let first = |job: &JobRecord| involved.get(job.name.as_str()).map_or(job.submitted, |(_, at)| *at);
    let by_time = |jobs: &mut Vec<&JobRecord>| jobs.sort_by(|a, b| (first(a), &a.name).cmp(&(first(b), &b.name)));
    let mut jobs: Vec<&JobRecord> = run.jobs.iter().collect();
    if jobs.len() <= MAX_ALL_SHOWN {
        by_time(&mut jobs);
        return (jobs, String::new());
    }
    jobs.retain(|job| involved.contains_key(job.name.as_str()));
    if jobs.is_empty() {
        return (jobs, format!("None of {} evicted another job.", count(run.jobs.len(), "job", "jobs")));
    }
    let n = jobs.len();
    let arrows_of = |job: &JobRecord| involved.get(job.name.as_str()).map_or(0, |(arrows, _)| *arrows);
    jobs.sort_by(|a, b| arrows_of(b).cmp(&arrows_of(a)).then_with(|| (first(a), &a.name).cmp(&(first(b), &b.name))));
    jobs.truncate(MAX_ROWS);
    by_time(&mut jobs);
    let shown = match n - jobs.len() {
        0 => "these are shown.".to_owned(),
        more => format!("the {MAX_ROWS} with the most evictions are shown, {more} are not."),
    };
    (jobs, format!("{n} of {} jobs evicted others or were evicted; {shown}", run.jobs.len()))
}

fn job_row(run: &Run, job: &JobRecord, row: usize, time: &Axis) -> Markup {
    let place = |at: i64| across(time, since_start(run, at));
    let (end, middle) = (job.finished.unwrap_or(run.ended), row as f64 * ROW + ROW / 2.0 + 3.0);
    let mut letters = job.name.chars();
    let short: String = letters.by_ref().take(MAX_NAME_LENGTH).collect();
    let short = if letters.next().is_some() { format!("{short}…") } else { short };
    let (from, to) = (number(place(job.submitted)), number(place(end).max(place(job.submitted) + 1.0)));
    let parts = if job.gang.is_some() { 1 } else { job.pods.max(1) };
    html! {
        g.job {
            title { (tooltip(run, job)) }
            text x="4" y=(number(middle)) dy=".35em" { (short) " " tspan.what { (job.priority) } }
            path.waits d=(format!("M{from} {}H{to}", number(middle))) {}
            @for (from, to, running) in intervals(job, run.ended) {
                @let (left, right) = (place(from), place(to));
                @let high = 10.0 * running as f64 / parts as f64;
                rect.runs
                    x=(number(left))
                    y=(number(middle - high / 2.0))
                    width=(number((right - left).max(0.5)))
                    height=(number(high.max(1.0))) {}
            }
        }
    }
}

/// The intervals in which parts of a job ran: start, end, and the number of running parts.
fn intervals(job: &JobRecord, ended: i64) -> Vec<(i64, i64, usize)> {
    let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
    for ran in &job.ran {
        *changes.entry(ran.from).or_default() += 1;
        *changes.entry(ran.to.unwrap_or(ended)).or_default() -= 1;
    }
    changes.retain(|_, change| *change != 0);
    let (mut intervals, mut running, mut since) = (Vec::new(), 0, 0);
    for (at, change) in changes {
        if running > 0 {
            intervals.push((since, at, running as usize));
        }
        (running, since) = (running + change, at);
    }
    intervals
}

fn tooltip(run: &Run, job: &JobRecord) -> String {
    let after = |at: i64| format_duration(SignedDuration::from_micros(at - run.began));
    let queue = job.queue.as_ref().map(|queue| format!(", queue {queue}")).unwrap_or_default();
    let started =
        job.started.map_or_else(|| "never started".to_owned(), |at| format!("first started after {}", after(at)));
    let finished = job.finished.map_or_else(|| "not finished".to_owned(), |at| format!("finished after {}", after(at)));
    format!(
        "{}: priority {}{queue}, {}\nsubmitted after {}, {started}, {finished}\n{} evicted",
        job.name,
        job.priority,
        count(job.pods, "pod", "pods"),
        after(job.submitted),
        count(job.evictions as usize, "pod", "pods")
    )
}

fn draw_arrow(index: usize, run: &Run, arrow: &Arrow<'_>, from: Option<usize>, to: usize, time: &Axis) -> Markup {
    let x = number(across(time, since_start(run, arrow.at)));
    let height = |row: usize| row as f64 * ROW + ROW / 2.0 + 3.0;
    let (kind, head) = if arrow.second_order { ("evicts again", "again") } else { ("evicts", "evicts") };
    let after = format_duration(SignedDuration::from_micros(arrow.at - run.began));
    html! {
        g {
            title {
                (arrow.from.unwrap_or("unknown job")) " evicts " (count(arrow.pods, "pod", "pods")) " of " (arrow.to) " after " (after)
            }
            @if let Some(from) = from.filter(|from| *from != to) {
                @let (start, end) = (height(from), height(to));
                @let end = if start < end { end - 5.0 } else { end + 5.0 };
                @let shaft = format!("M{x} {}V{}", number(start), number(end));
                // An invisible wide line is easier to click.
                path.hit d=(shaft) {}
                path class=(kind) marker-end={ "url(#" (head) (index) ")" } d=(shaft) {}
                circle class=(kind) cx=(x) cy=(number(start)) r="2" {}
            }
            path class=(kind) d=(format!("M{x} {}v11", number(height(to) - 5.5))) {}
        }
    }
}

fn across(time: &Axis, seconds: f64) -> f64 {
    LEFT + time.part(seconds) * (RIGHT - LEFT)
}

#[cfg(test)]
mod tests {
    use reprieve_simulator::run::RunInterval;

    use super::*;

    fn job(name: &str, ran: &[(i64, Option<i64>)]) -> JobRecord {
        JobRecord {
            name: name.to_owned(),
            priority: 0,
            queue: None,
            pods: 2,
            gang: None,
            each: 1,
            submitted: 0,
            started: None,
            finished: None,
            evictions: 0,
            lost_micros: 0,
            idle_micros: 0,
            finished_micros: 0,
            held: None,
            ran: ran.iter().map(|&(from, to)| RunInterval { from, to }).collect(),
        }
    }

    #[test]
    fn height_of_a_bar_is_the_number_of_running_pods() {
        let pods = job("ns/job", &[(1, Some(5)), (3, Some(5)), (5, Some(6)), (8, None)]);
        assert_eq!(intervals(&pods, 9), [(1, 3, 1), (3, 5, 2), (5, 6, 1), (8, 9, 1)]);
    }

    #[test]
    fn only_jobs_with_evictions_are_shown_of_many_and_the_rest_is_counted() {
        let names: Vec<String> = (0..9_000).map(|at| format!("ns/job-{at:04}")).collect();
        let run = Run { jobs: names.iter().map(|name| job(name, &[])).collect(), ..Run::default() };
        let arrow = |at: usize, to: usize| Arrow {
            at: at as i64,
            from: Some(&names[0]),
            to: &names[to],
            pods: 1,
            second_order: false,
            decision: None,
        };
        for (victims, rows, text) in [
            (0, 0, "None of 9000 jobs evicted another job."),
            (30, 31, "31 of 9000 jobs evicted others or were evicted; these are shown."),
            (
                1_000,
                MAX_ROWS,
                "1001 of 9000 jobs evicted others or were evicted; the 200 with the most evictions are shown, 801 are not.",
            ),
        ] {
            let arrows: Vec<Arrow<'_>> = (1..=victims).map(|at| arrow(at, at)).collect();
            let (jobs, note) = shown(&run, &arrows);
            assert_eq!((jobs.len(), note.as_str()), (rows, text));
        }
    }
}
