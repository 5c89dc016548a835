//! What the runs show besides their statistics: gangs that block each other, and a trace that never fills the cluster.

use jiff::SignedDuration;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::summary::{StuckGang, Summary};

use super::policy_run::PolicyRun;
use super::statistics::unit;
use crate::render::format_duration;

/// Below this share of the capacity a trace does not fill the cluster.
const FULL: f64 = 0.95;

/// The notes below the comparison.
pub fn notes(input: &SimulationInput, results: &[PolicyRun]) -> Vec<String> {
    let stuck = results.iter().filter_map(|result| stuck(&result.summary));
    stuck.chain(never_full(input, results)).collect()
}

fn stuck(summary: &Summary) -> Option<String> {
    let (first, others) = summary.stuck.split_first()?;
    let StuckGang { job, pods, needed, holds, since_seconds } = first;
    let since = format_duration(SignedDuration::from_secs(*since_seconds));
    let units = format!("{}s", unit(&summary.resource));
    let more = match others {
        [] => String::new(),
        others => {
            let holds: f64 = others.iter().map(|gang| gang.holds).sum();
            format!("; so do {} more, with {holds} {units}", others.len())
        }
    };
    Some(format!(
        "{} is stuck at the end: gang {job} holds {holds} {units} since {since} after the start and cannot run, because only {pods} of the \
         {needed} pods that it needs have a node{more}",
        summary.policy
    ))
}

/// A note about a trace that leaves resources free at all times.
fn never_full(input: &SimulationInput, results: &[PolicyRun]) -> Option<String> {
    let load = input.load?;
    let peak = |result: &PolicyRun| result.run.peak as f64 / (result.run.capacity as f64).max(1.0);
    let peak = results.iter().map(peak).fold(0.0, f64::max);
    let units = format!("{}s", unit(&results.first()?.summary.resource));
    (peak > 0.0 && peak < FULL).then(|| {
        let enough = (load / peak * 10.0).ceil() / 10.0;
        format!(
            "the trace never fills the cluster: at most {:.0}% of its {units} are in use at any time, so that the policies hardly differ; \
             --load {enough} lets the jobs arrive {enough} times as fast as in the trace",
            peak * 100.0
        )
    })
}
