//! The plots of utilization and of pending pods over time, from the samples of each run.

use maud::Markup;
use reprieve_simulator::run::{Run, Sample};

use super::super::policy_run::PolicyRun;
use super::axis::{Axis, resource_name, seconds};
use super::chart::Chart;

/// The share of the resource in use: a plot for each policy.
pub fn utilization(results: &[PolicyRun], time: &Axis) -> Vec<Markup> {
    let title = results.first().map(|result| format!("{} in use (%)", resource_name(&result.run.resource)));
    let axis = Axis::percent(&title.unwrap_or_default());
    results
        .iter()
        .map(|result| {
            let of = |sample: &Sample| 100.0 * sample.used as f64 / (result.run.capacity as f64).max(1.0);
            plot(result, "in use", time, &axis, "%", of)
        })
        .collect()
}

/// The number of pending pods: a plot for each policy.
pub fn pending(results: &[PolicyRun], time: &Axis) -> Vec<Markup> {
    let max = results.iter().flat_map(|result| &result.run.samples).map(|sample| sample.pending).max();
    let axis = Axis::count(max.unwrap_or(0) as f64, "pending pods");
    results.iter().map(|result| plot(result, "pending", time, &axis, " pods", |sample| sample.pending as f64)).collect()
}

fn plot(result: &PolicyRun, name: &str, x: &Axis, y: &Axis, unit: &str, of: impl Fn(&Sample) -> f64) -> Markup {
    let mut chart = Chart::new(format!("{}: {} over time", result.summary.policy, y.title), x, y, unit);
    let points: Vec<(f64, f64)> = samples(&result.run).map(|(at, sample)| (at, of(sample))).collect();
    chart.line(0, name, &points);
    chart.finish()
}

/// The samples with their time in seconds; the last one holds until the end of the run.
pub fn samples(run: &Run) -> impl Iterator<Item = (f64, &Sample)> {
    let all = run.samples.iter().map(|sample| (since_start(run, sample.at), sample));
    all.chain(run.samples.last().map(|last| (since_start(run, run.ended), last)))
}

/// Seconds since the start of a run.
pub fn since_start(run: &Run, at: i64) -> f64 {
    seconds(at - run.began)
}
