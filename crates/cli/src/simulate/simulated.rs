//! Lets a blueprint run under each of several policies.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use reprieve_api::test_file::Profile;
use reprieve_loader::policy::policy;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::run::Run;
use reprieve_simulator::summary::{Summary, summary};
use reprieve_simulator::virtual_cluster::{RunConfig, VirtualCluster};

use crate::input::Error;
use crate::progress;
use crate::render::format_duration;
use crate::report::FoldedExplanation;

/// What came of one policy.
pub struct PolicyRun {
    /// All that happened.
    pub run: Run,
    /// The explanations of preemptions, by the number of the preemption; empty where none were requested.
    pub explained: BTreeMap<usize, FoldedExplanation>,
    /// What it comes to.
    pub summary: Summary,
    /// How long all of it took.
    pub took: Duration,
}

/// Lets a blueprint run under each of the policies; decisions are explained where somebody will read it.
pub fn simulate(blueprint: &SimulationInput, profiles: &[Profile], explains: bool) -> Result<Vec<PolicyRun>, Error> {
    let mut setups = Vec::new();
    for profile in profiles {
        let setup = RunConfig { explains, ..blueprint.setup(policy(profile)?)? };
        setups.push((label(profile, profiles), setup));
    }
    let bar = progress::bar(1000 * setups.len() as u64, "{msg} {wide_bar} {percent}% {eta}");
    let start = blueprint.start;
    let mut simulated = Vec::new();
    for (at, (label, setup)) in setups.into_iter().enumerate() {
        let began = Instant::now();
        let nanos = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut world = VirtualCluster::new(setup, Box::new(nanos));
        let mut moments = 0_u64;
        let mut explained = BTreeMap::new();
        while world.advance(|_, _| ()) {
            explained.extend(world.take_reports().into_iter().map(|(at, report)| (at, FoldedExplanation::of(&report))));
            moments += 1;
            if moments.is_multiple_of(1024) {
                bar.set_position(1000 * at as u64 + world.progress());
                let passed = SignedDuration::from_micros(world.now().0 - start.0);
                bar.set_message(format!("{label}, {} passed", format_duration(passed)));
            }
        }
        let run = world.finish();
        let summary = summary(&label, &run, &blueprint.queues);
        simulated.push(PolicyRun { run, explained, summary, took: began.elapsed() });
    }
    bar.finish_and_clear();
    Ok(simulated)
}

/// A policy's name; with its settings where another one has the same name.
fn label(profile: &Profile, all: &[Profile]) -> String {
    let alike = all.iter().filter(|other| other.policy.eq_ignore_ascii_case(&profile.policy)).count();
    let settings: Vec<String> = profile.args.iter().map(|(key, value)| format!("{key}={value}")).collect();
    match alike > 1 && !settings.is_empty() {
        true => format!("{} {}", profile.policy, settings.join(" ")),
        false => profile.policy.clone(),
    }
}
