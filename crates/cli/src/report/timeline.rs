//! Who evicted whom: a row for each job, with when it waited and when it ran, and an arrow from whoever asked to whoever yielded.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use maud::{Markup, html};
use reprieve_report::plural::count;
use reprieve_simulator::run::{JobRecord, Run};

use super::arrows::Arrow;
use super::axis::{Axis, number};
use super::decisions::anchor;
use super::over_time::since_start;
use super::simulated::PolicyRunPage;
use crate::render::format_duration;

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 1185.0;
const ROW: f64 = 17.0;
/// So many letters of a name have room.
const LETTERS: usize = 34;
/// Up to so many jobs, all have a row.
const ALL: usize = 40;
/// So many rows at most.
const MOST: usize = 200;

/// The rows of one run; `explained` decisions can be gone to.
pub fn timeline(at: usize, one: &PolicyRunPage<'_>, arrows: &[Arrow<'_>], time: &Axis, explained: usize) -> Markup {
    let (jobs, left_out) = shown(one.run, arrows);
    let rows: BTreeMap<&str, usize> = jobs.iter().enumerate().map(|(row, job)| (job.name.as_str(), row)).collect();
    let height = number(jobs.len() as f64 * ROW + 6.0);
    html! {
        @if !left_out.is_empty() { p.none { (left_out) } }
        @if !jobs.is_empty() {
            div.scroll tabindex="0" {
                (header(time))
                svg.rows viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label={ (one.policy) ": who evicted whom" } {
                    defs { (head(at, "evicts")) (head(at, "again")) }
                    @for (moment, _) in &time.ticks {
                        path.grid d=(format!("M{} 0V{height}", number(across(time, *moment)))) {}
                    }
                    @for (row, job) in jobs.iter().enumerate() { (life(one.run, job, row, time)) }
                    @for arrow in arrows {
                        @if let Some(&to) = rows.get(arrow.to) {
                            @let from = arrow.from.and_then(|job| rows.get(job)).copied();
                            @let drawn = drawn(at, one.run, arrow, from, to, time);
                            @match arrow.decision.filter(|decision| *decision < explained) {
                                Some(decision) => a href={ "#" (anchor(at, decision)) } { (drawn) },
                                None => (drawn),
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The head of an arrow, in the colour of its kind.
fn head(at: usize, kind: &str) -> Markup {
    html! {
        marker id={ (kind) (at) } viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
            path class={ "head " (kind) } d="M0 0L8 4L0 8Z" {}
        }
    }
}

/// The axis, which stays in sight.
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

/// The jobs that have a row, in the order in which they came into it, and what is said about the others.
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
    if jobs.len() <= ALL {
        by_time(&mut jobs);
        return (jobs, String::new());
    }
    jobs.retain(|job| involved.contains_key(job.name.as_str()));
    if jobs.is_empty() {
        return (jobs, format!("Of {} none evicted another.", count(run.jobs.len(), "job", "jobs")));
    }
    let n = jobs.len();
    let often = |job: &JobRecord| involved.get(job.name.as_str()).map_or(0, |(often, _)| *often);
    jobs.sort_by(|a, b| often(b).cmp(&often(a)).then_with(|| (first(a), &a.name).cmp(&(first(b), &b.name))));
    jobs.truncate(MOST);
    by_time(&mut jobs);
    let shown = match n - jobs.len() {
        0 => "those have a row.".to_owned(),
        more => format!("the {MOST} with the most evictions have a row, {more} more do not."),
    };
    (jobs, format!("Of {} jobs, {n} evicted others or were evicted; {shown}", run.jobs.len()))
}

fn life(run: &Run, job: &JobRecord, row: usize, time: &Axis) -> Markup {
    let place = |at: i64| across(time, since_start(run, at));
    let (end, middle) = (job.finished.unwrap_or(run.ended), row as f64 * ROW + ROW / 2.0 + 3.0);
    let mut letters = job.name.chars();
    let short: String = letters.by_ref().take(LETTERS).collect();
    let short = if letters.next().is_some() { format!("{short}…") } else { short };
    let (from, to) = (number(place(job.submitted)), number(place(end).max(place(job.submitted) + 1.0)));
    let parts = if job.gang.is_some() { 1 } else { job.pods.max(1) };
    html! {
        g.job {
            title { (about(run, job)) }
            text x="4" y=(number(middle)) dy=".35em" { (short) " " tspan.what { (job.priority) } }
            path.waits d=(format!("M{from} {}H{to}", number(middle))) {}
            @for (from, to, running) in stretches(job, run.ended) {
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

/// From when to when so many parts of a job ran.
fn stretches(job: &JobRecord, ended: i64) -> Vec<(i64, i64, usize)> {
    let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
    for ran in &job.ran {
        *changes.entry(ran.from).or_default() += 1;
        *changes.entry(ran.to.unwrap_or(ended)).or_default() -= 1;
    }
    changes.retain(|_, change| *change != 0);
    let (mut stretches, mut running, mut since) = (Vec::new(), 0, 0);
    for (at, change) in changes {
        if running > 0 {
            stretches.push((since, at, running as usize));
        }
        (running, since) = (running + change, at);
    }
    stretches
}

fn about(run: &Run, job: &JobRecord) -> String {
    let after = |at: i64| format_duration(SignedDuration::from_micros(at - run.began));
    let queue = job.queue.as_ref().map(|queue| format!(", queue {queue}")).unwrap_or_default();
    let started = job.started.map_or_else(|| "never ran".to_owned(), |at| format!("first ran after {}", after(at)));
    let finished = job.finished.map_or_else(|| "was not done".to_owned(), |at| format!("was done after {}", after(at)));
    format!(
        "{}: priority {}{queue}, {}\nsubmitted after {}, {started}, {finished}\n{} evicted",
        job.name,
        job.priority,
        count(job.pods, "pod", "pods"),
        after(job.submitted),
        count(job.evictions as usize, "pod", "pods")
    )
}

fn drawn(at: usize, run: &Run, arrow: &Arrow<'_>, from: Option<usize>, to: usize, time: &Axis) -> Markup {
    let x = number(across(time, since_start(run, arrow.at)));
    let height = |row: usize| row as f64 * ROW + ROW / 2.0 + 3.0;
    let (kind, head) = if arrow.second_order { ("evicts again", "again") } else { ("evicts", "evicts") };
    let after = format_duration(SignedDuration::from_micros(arrow.at - run.began));
    html! {
        g {
            title {
                (arrow.from.unwrap_or("an unknown job")) " evicts " (count(arrow.pods, "pod", "pods")) " of " (arrow.to) " after " (after)
            }
            @if let Some(from) = from.filter(|from| *from != to) {
                @let (start, end) = (height(from), height(to));
                @let end = if start < end { end - 5.0 } else { end + 5.0 };
                @let shaft = format!("M{x} {}V{}", number(start), number(end));
                // The wide one is not seen: it is easier to hit.
                path.hit d=(shaft) {}
                path class=(kind) marker-end={ "url(#" (head) (at) ")" } d=(shaft) {}
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
            ran: ran.iter().map(|&(from, to)| RunInterval { from, to }).collect(),
        }
    }

    #[test]
    fn a_bar_is_as_high_as_many_pods_run() {
        let pods = job("ns/job", &[(1, Some(5)), (3, Some(5)), (5, Some(6)), (8, None)]);
        assert_eq!(stretches(&pods, 9), [(1, 3, 1), (3, 5, 2), (5, 6, 1), (8, 9, 1)]);
    }

    #[test]
    fn of_many_jobs_those_with_evictions_have_a_row_and_the_rest_is_counted() {
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
        for (victims, rows, says) in [
            (0, 0, "Of 9000 jobs none evicted another."),
            (30, 31, "Of 9000 jobs, 31 evicted others or were evicted; those have a row."),
            (
                1_000,
                MOST,
                "Of 9000 jobs, 1001 evicted others or were evicted; the 200 with the most evictions have a row, 801 more do not.",
            ),
        ] {
            let arrows: Vec<Arrow<'_>> = (1..=victims).map(|at| arrow(at, at)).collect();
            let (jobs, note) = shown(&run, &arrows);
            assert_eq!((jobs.len(), note.as_str()), (rows, says));
        }
    }
}
