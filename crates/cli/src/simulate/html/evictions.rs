//! The plot of evictions over time: a bar for each interval.

use jiff::SignedDuration;
use maud::Markup;
use reprieve_report::plural::count;

use super::super::policy_run::PolicyRun;
use super::axis::{Axis, step_of};
use super::chart::Chart;
use super::over_time::since_start;
use crate::render::format_duration;

/// The two parts of a bar for the legend, indexed by whether the eviction is second-order; the index also selects the colour.
pub const KINDS: [&str; 2] = ["first-order", "second-order (caused by a returning victim)"];

/// The largest number of bars of a plot.
const MAX_BARS: f64 = 48.0;

/// A plot for each policy.
pub fn evictions(results: &[PolicyRun], time: &Axis) -> Vec<Markup> {
    let step = step_of(time.to, MAX_BARS);
    let counts: Vec<Vec<[usize; 2]>> = results.iter().map(|result| counts_by_interval(result, time, step)).collect();
    let max = counts.iter().flatten().map(|kinds| kinds.iter().sum::<usize>()).max().unwrap_or(0);
    let length = format_duration(SignedDuration::from_secs(step));
    let axis = Axis::count(max as f64, &format!("pods evicted per {length}"));
    let draw = |(result, counts): (&PolicyRun, Vec<[usize; 2]>)| {
        let mut chart = Chart::new(format!("{}: pods evicted over time", result.summary.policy), time, &axis, " pods");
        for (index, kinds) in counts.into_iter().enumerate() {
            let from = index as i64 * step;
            let mut low = 0;
            for (kind, evicted) in kinds.into_iter().enumerate().filter(|(_, evicted)| *evicted > 0) {
                let [begins, ends] = [from, from + step].map(|at| format_duration(SignedDuration::from_secs(at)));
                let pods = count(evicted, "pod", "pods");
                let tooltip = format!("{pods} evicted, {}, between {begins} and {ends}", KINDS[kind]);
                let interval = (from as f64, (from + step) as f64);
                chart.bar(kind, interval, (low as f64, (low + evicted) as f64), &tooltip);
                low += evicted;
            }
        }
        chart.finish()
    };
    results.iter().zip(counts).map(draw).collect()
}

/// The evictions of each interval of `step` seconds, first-order and second-order.
fn counts_by_interval(result: &PolicyRun, time: &Axis, step: i64) -> Vec<[usize; 2]> {
    let mut counts = vec![[0; 2]; (time.to / step as f64).floor() as usize + 1];
    for eviction in &result.run.evictions {
        let index = (since_start(&result.run, eviction.at).max(0.0) / step as f64) as usize;
        if let Some(kinds) = counts.get_mut(index) {
            kinds[usize::from(eviction.second_order)] += 1;
        }
    }
    counts
}
