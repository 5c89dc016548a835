//! The plot of waiting times by priority: the share of jobs that had started within a time. Jobs that never started count in the total,
//! so a line may end below 100 %.

use std::collections::BTreeSet;

use maud::Markup;
use reprieve_report::plural::count;
use reprieve_simulator::run::JobRecord;

use super::super::policy_run::PolicyRun;
use super::axis::{Axis, seconds};
use super::chart::Chart;

/// The number of lines that a reader can distinguish.
const MAX_LINES: usize = 6;
/// The maximum number of points of a line.
const MAX_POINTS: usize = 200;

/// Priorities that share a line.
pub struct Level {
    from: i32,
    to: i32,
    /// The name in the legend.
    pub name: String,
}

/// The lines, highest priorities first.
pub fn levels(results: &[PolicyRun]) -> Vec<Level> {
    let jobs = results.first().map(|result| result.run.jobs.as_slice()).unwrap_or_default();
    let priorities: BTreeSet<i32> =
        results.iter().flat_map(|result| &result.run.jobs).map(|job| job.priority).collect();
    let priorities: Vec<i32> = priorities.into_iter().rev().collect();
    let each = priorities.len().div_ceil(MAX_LINES).max(1);
    let level = |priorities: &[i32]| {
        let (to, from) = (priorities[0], priorities[priorities.len() - 1]);
        let n = jobs.iter().filter(|job| (from..=to).contains(&job.priority)).count();
        let name = if from == to { format!("priority {to}") } else { format!("priorities {from} to {to}") };
        Level { from, to, name: format!("{name} ({})", count(n, "job", "jobs")) }
    };
    priorities.chunks(each).map(level).collect()
}

/// A line for each level, for each policy.
pub fn waiting(results: &[PolicyRun], levels: &[Level]) -> Vec<Markup> {
    let all = results.iter().flat_map(|result| &result.run.jobs).filter_map(waited);
    let x = Axis::waiting(all.fold(0.0, f64::max), "wait before first start");
    let y = Axis::percent("jobs started (%)");
    let draw = |result: &PolicyRun| {
        let mut chart = Chart::new(format!("{}: waiting times by priority", result.summary.policy), &x, &y, "%");
        for (colour, level) in levels.iter().enumerate() {
            let jobs = result.run.jobs.iter().filter(|job| (level.from..=level.to).contains(&job.priority));
            let points = shares(&jobs.collect::<Vec<_>>(), x.to);
            if !points.is_empty() {
                chart.line(colour, &level.name, &points);
            }
        }
        chart.finish()
    };
    results.iter().map(draw).collect()
}

fn waited(job: &JobRecord) -> Option<f64> {
    job.started.map(|started| seconds(started - job.submitted))
}

/// The steps of a line: the logarithm of the waiting time, and the percentage of jobs that had started by then.
fn shares(jobs: &[&JobRecord], end: f64) -> Vec<(f64, f64)> {
    let mut waits: Vec<f64> = jobs.iter().filter_map(|job| waited(job)).collect();
    waits.sort_by(f64::total_cmp);
    if waits.is_empty() {
        return Vec::new();
    }
    let share = |n: usize| 100.0 * n as f64 / jobs.len() as f64;
    let every = waits.len().div_ceil(MAX_POINTS);
    let mut points = vec![(0.0, 0.0)];
    let mut before = 0.0;
    for (index, wait) in waits.iter().enumerate() {
        if (index + 1).is_multiple_of(every) || index + 1 == waits.len() {
            let x = wait.max(1.0).log10();
            points.extend([(x, before), (x, share(index + 1))]);
            before = share(index + 1);
        }
    }
    points.push((end, before));
    points
}
