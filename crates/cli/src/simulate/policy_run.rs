//! Runs one simulation under each of several policies.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use reprieve_api::Profile;
use reprieve_loader::policy::policy;
use reprieve_report::decision::DecisionReport;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::run::Run;
use reprieve_simulator::summary::{Summary, summary};
use reprieve_simulator::virtual_cluster::{RunConfig, VirtualCluster};

use crate::input::Error;
use crate::progress;
use crate::render::{Detail, Rows, format_duration, parts};

/// The result of a simulation under one policy.
pub struct PolicyRun {
    /// The record of the run.
    pub run: Run,
    /// The explanations of preemptions, by the index of the preemption; empty if they were not requested.
    pub explained: BTreeMap<usize, FoldedExplanation>,
    /// The statistics of the run, with the name of the policy.
    pub summary: Summary,
    /// The wall-clock time of the run.
    pub took: Duration,
}

/// The explanation of a preemption with long lists folded: the full lists of a large cluster would not fit into memory.
pub struct FoldedExplanation {
    /// The decision in one sentence, and the violated budgets.
    pub summary: String,
    /// The tables of reasons.
    pub parts: Vec<Rows>,
}

impl FoldedExplanation {
    fn of(report: &DecisionReport) -> Self {
        let explanation = &report.explanation;
        let violated = explanation.budgets.iter().map(|budget| budget.sentence("the plan"));
        let summary: Vec<String> = std::iter::once(explanation.summary.clone()).chain(violated).collect();
        Self { summary: summary.join("; "), parts: parts(report, Detail::Short) }
    }
}

/// Runs the simulation under each of the policies; `explains` keeps the explanation of every preemption.
pub fn simulate(input: &SimulationInput, profiles: &[Profile], explains: bool) -> Result<Vec<PolicyRun>, Error> {
    let mut setups = Vec::new();
    for profile in profiles {
        let setup = RunConfig { explains, ..input.setup(policy(profile)?)? };
        setups.push((label(profile, profiles), setup));
    }
    let bar = progress::bar(1000 * setups.len() as u64, "{msg} {wide_bar} {percent}% {eta}");
    let mut results = Vec::new();
    for (index, (label, setup)) in setups.into_iter().enumerate() {
        let began = Instant::now();
        let nanos = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut cluster = VirtualCluster::new(setup, Box::new(nanos));
        let (mut steps, mut explained) = (0_u64, BTreeMap::new());
        while cluster.advance(|_, _| ()) {
            let reports = cluster.take_reports().into_iter();
            explained.extend(reports.map(|(preemption, report)| (preemption, FoldedExplanation::of(&report))));
            steps += 1;
            if steps.is_multiple_of(1024) {
                bar.set_position(1000 * index as u64 + cluster.progress());
                let passed = SignedDuration::from_micros(cluster.now().0 - input.start.0);
                bar.set_message(format!("{label}, {} simulated", format_duration(passed)));
            }
        }
        let run = cluster.finish();
        let summary = summary(&label, &run, &input.queues);
        results.push(PolicyRun { run, explained, summary, took: began.elapsed() });
    }
    bar.finish_and_clear();
    Ok(results)
}

/// The name of the policy, with its settings if another profile has the same policy.
fn label(profile: &Profile, all: &[Profile]) -> String {
    let same_policy = all.iter().filter(|other| other.policy.eq_ignore_ascii_case(&profile.policy)).count();
    let settings: Vec<String> = profile.args.iter().map(|(key, value)| format!("{key}={value}")).collect();
    match same_policy > 1 && !settings.is_empty() {
        true => format!("{} {}", profile.policy, settings.join(" ")),
        false => profile.policy.clone(),
    }
}
