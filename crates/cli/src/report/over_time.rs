//! How full the cluster was and how many pods waited, from the samples of each run.

use maud::Markup;
use reprieve_simulator::run::{Run, Sample};

use super::axis::{Axis, resource_words, seconds};
use super::chart::Chart;
use super::simulated::PolicyRunPage;

/// How much of the resource was in use, for each policy.
pub fn utilisation(runs: &[PolicyRunPage<'_>], time: &Axis) -> Vec<Markup> {
    let title = runs.first().map(|one| format!("{} in use (%)", resource_words(&one.run.resource)));
    let axis = Axis::percent(&title.unwrap_or_default());
    runs.iter()
        .map(|one| {
            let of = |sample: &Sample| 100.0 * sample.used as f64 / (one.run.capacity as f64).max(1.0);
            drawn(one, "in use", time, &axis, "%", of)
        })
        .collect()
}

/// How many pods waited, for each policy.
pub fn pending(runs: &[PolicyRunPage<'_>], time: &Axis) -> Vec<Markup> {
    let most = runs.iter().flat_map(|one| &one.run.samples).map(|sample| sample.pending).max();
    let axis = Axis::count(most.unwrap_or(0) as f64, "pods that wait");
    runs.iter().map(|one| drawn(one, "waiting", time, &axis, " pods", |sample| sample.pending as f64)).collect()
}

fn drawn(one: &PolicyRunPage<'_>, name: &str, x: &Axis, y: &Axis, unit: &str, of: impl Fn(&Sample) -> f64) -> Markup {
    let mut chart = Chart::new(format!("{}: {} over time", one.policy, y.title), x, y, unit);
    let points: Vec<(f64, f64)> = moments(one.run).map(|(at, sample)| (at, of(sample))).collect();
    chart.line(0, name, &points);
    chart.finish()
}

/// Samples, and when they were taken; nothing changes from the last one to the end.
pub fn moments(run: &Run) -> impl Iterator<Item = (f64, &Sample)> {
    let samples = run.samples.iter().map(|sample| (since_start(run, sample.at), sample));
    samples.chain(run.samples.last().map(|last| (since_start(run, run.ended), last)))
}

/// Seconds from a run's beginning.
pub fn since_start(run: &Run, at: i64) -> f64 {
    seconds(at - run.began)
}
