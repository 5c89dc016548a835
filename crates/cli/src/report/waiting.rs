//! How long jobs waited, by priority: the share of them that had started after so long. Whoever never started is in the whole of
//! which that is a share, so that a line may end below 100%.

use std::collections::BTreeSet;

use maud::Markup;
use reprieve_report::plural::count;
use reprieve_simulator::run::JobRecord;

use super::axis::{Axis, seconds};
use super::chart::Chart;
use super::simulated::PolicyRunPage;

/// More lines than these cannot be told apart.
const LINES: usize = 6;
/// How many points a line has at most.
const POINTS: usize = 200;

/// Priorities that share a line.
pub struct Level {
    from: i32,
    to: i32,
    /// What they are called.
    pub name: String,
}

/// The lines, highest priorities first.
pub fn levels(runs: &[PolicyRunPage<'_>]) -> Vec<Level> {
    let jobs = runs.first().map(|one| one.run.jobs.as_slice()).unwrap_or_default();
    let priorities: BTreeSet<i32> = runs.iter().flat_map(|one| &one.run.jobs).map(|job| job.priority).collect();
    let priorities: Vec<i32> = priorities.into_iter().rev().collect();
    let each = priorities.len().div_ceil(LINES).max(1);
    let level = |these: &[i32]| {
        let (to, from) = (these[0], these[these.len() - 1]);
        let n = jobs.iter().filter(|job| (from..=to).contains(&job.priority)).count();
        let name = if from == to { format!("priority {to}") } else { format!("priorities {from} to {to}") };
        Level { from, to, name: format!("{name} ({})", count(n, "job", "jobs")) }
    };
    priorities.chunks(each).map(level).collect()
}

/// A line for each level, for each policy.
pub fn waiting(runs: &[PolicyRunPage<'_>], levels: &[Level]) -> Vec<Markup> {
    let all = runs.iter().flat_map(|one| &one.run.jobs).filter_map(waited);
    let x = Axis::waiting(all.fold(0.0, f64::max), "waiting time until the first start");
    let y = Axis::percent("jobs that had started (%)");
    let draw = |one: &PolicyRunPage<'_>| {
        let mut chart = Chart::new(format!("{}: waiting times by priority", one.policy), &x, &y, "%");
        for (colour, level) in levels.iter().enumerate() {
            let alike = one.run.jobs.iter().filter(|job| (level.from..=level.to).contains(&job.priority));
            let points = shares(&alike.collect::<Vec<_>>(), x.to);
            if !points.is_empty() {
                chart.line(colour, &level.name, &points);
            }
        }
        chart.finish()
    };
    runs.iter().map(draw).collect()
}

fn waited(job: &JobRecord) -> Option<f64> {
    job.started.map(|started| seconds(started - job.submitted))
}

/// Steps: after so long (its logarithm), so many in a hundred had started.
fn shares(jobs: &[&JobRecord], end: f64) -> Vec<(f64, f64)> {
    let mut waits: Vec<f64> = jobs.iter().filter_map(|job| waited(job)).collect();
    waits.sort_by(f64::total_cmp);
    if waits.is_empty() {
        return Vec::new();
    }
    let share = |n: usize| 100.0 * n as f64 / jobs.len() as f64;
    let every = waits.len().div_ceil(POINTS);
    let mut points = vec![(0.0, 0.0)];
    let mut before = 0.0;
    for (at, wait) in waits.iter().enumerate() {
        if (at + 1).is_multiple_of(every) || at + 1 == waits.len() {
            let x = wait.max(1.0).log10();
            points.extend([(x, before), (x, share(at + 1))]);
            before = share(at + 1);
        }
    }
    points.push((end, before));
    points
}
