//! When pods were evicted: a bar for each stretch of time.

use jiff::SignedDuration;
use maud::Markup;
use reprieve_report::plural::count;

use super::axis::{Axis, step_of};
use super::chart::Chart;
use super::over_time::since_start;
use super::simulated::PolicyRunPage;
use crate::render::format_duration;

/// What the two colours of a bar are.
pub const KINDS: [&str; 2] = ["for somebody new", "for a victim that came back"];

/// How many pods were evicted, for each policy.
pub fn evictions(runs: &[PolicyRunPage<'_>], time: &Axis) -> Vec<Markup> {
    let step = step_of(time.to, 48.0);
    let counted: Vec<Vec<[usize; 2]>> = runs.iter().map(|one| counted(one, time, step)).collect();
    let most = counted.iter().flatten().map(|kinds| kinds.iter().sum::<usize>()).max().unwrap_or(0);
    let length = format_duration(SignedDuration::from_secs(step));
    let axis = Axis::count(most as f64, &format!("pods evicted in {length}"));
    let draw = |(one, counted): (&PolicyRunPage<'_>, Vec<[usize; 2]>)| {
        let mut chart = Chart::new(format!("{}: pods evicted over time", one.policy), time, &axis, " pods");
        for (at, kinds) in counted.into_iter().enumerate() {
            let from = at as i64 * step;
            let mut low = 0;
            for (kind, evicted) in kinds.into_iter().enumerate().filter(|(_, evicted)| *evicted > 0) {
                let begins = format_duration(SignedDuration::from_secs(from));
                let says = format!("{} {}, in {length} from {begins} on", count(evicted, "pod", "pods"), KINDS[kind]);
                let across = (from as f64, (from + step) as f64);
                chart.bar(kind, across, (low as f64, (low + evicted) as f64), &says);
                low += evicted;
            }
        }
        chart.finish()
    };
    runs.iter().zip(counted).map(draw).collect()
}

fn counted(one: &PolicyRunPage<'_>, time: &Axis, step: i64) -> Vec<[usize; 2]> {
    let mut counted = vec![[0; 2]; (time.to / step as f64).floor() as usize + 1];
    for eviction in &one.run.evictions {
        let at = (since_start(one.run, eviction.at).max(0.0) / step as f64) as usize;
        if let Some(kinds) = counted.get_mut(at) {
            kinds[usize::from(eviction.second_order)] += 1;
        }
    }
    counted
}
