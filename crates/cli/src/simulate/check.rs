//! `reprieve simulate --check`: runs random clusters with injected faults and checks all invariants after every step. A violation is
//! minimized and reported with the command that replays it.

use std::fmt::Write as _;

use indicatif::ProgressBar;
use reprieve_simulator::campaign::{POLICIES, setup};
use reprieve_simulator::faults::Faults;
use reprieve_simulator::invariants::{Violation, check};
use reprieve_simulator::shrink::{MinimizedFailure, shrink};
use serde::Serialize;
use serde_json::{Value, json};

use super::args::{Output, SimulateArgs, WithFaults};
use crate::input::Error;
use crate::render::table;
use crate::{output, progress};

/// The number of runs to minimize a violation.
const MAX_SHRINK_RUNS: usize = 300;

/// The totals of all runs under one policy.
#[derive(Default, Serialize)]
struct CampaignResult {
    policy: &'static str,
    faulty: bool,
    seeds: u64,
    steps: u64,
    faults: u64,
    preemptions: u64,
    evictions: u64,
    violated: Vec<Violated>,
}

/// A minimized violation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Violated {
    seed: u64,
    invariant: &'static str,
    at_micros: i64,
    problem: String,
    /// The command that replays the violation.
    replay: String,
}

/// Prints the totals and the violations; the exit status is 1 if there is a violation.
pub fn run(args: &SimulateArgs) -> Result<u8, Error> {
    if args.output == Output::Csv {
        return Err(Error::Usage("--check: -o csv is not available; write -o table or -o json".to_owned()));
    }
    let policies = policies(&args.policy)?;
    let some = some_faults(&args.campaign.fault_kinds)?;
    let faults: &[Option<Faults>] = match args.campaign.faults {
        WithFaults::Both => &[None, Some(some)],
        WithFaults::None => &[None],
        WithFaults::Some => &[Some(some)],
    };
    let progress = progress::bar(
        args.campaign.seeds * (policies.len() * faults.len()) as u64,
        "{msg} {wide_bar} {pos}/{len} {eta}",
    );
    let mut all = Vec::new();
    for policy in policies {
        for &faults in faults {
            progress.set_message(policy);
            all.push(campaign(policy, faults, args, &progress));
        }
    }
    progress.finish_and_clear();
    match args.output {
        Output::Json => {
            let result = json!({"apiVersion": "reprieve.dev/v1alpha1", "kind": "Campaign", "results": all});
            output::line(&format!("{result:#}"))?;
        }
        Output::Table | Output::Csv => output::print(&as_table(&all))?,
    }
    Ok(u8::from(all.iter().any(|result| !result.violated.is_empty())))
}

fn campaign(
    policy: &'static str,
    faults: Option<Faults>,
    args: &SimulateArgs,
    progress: &ProgressBar,
) -> CampaignResult {
    let mut result =
        CampaignResult { policy, faulty: faults.is_some(), seeds: args.campaign.seeds, ..CampaignResult::default() };
    for seed in args.seed..args.seed.saturating_add(args.campaign.seeds) {
        let mut setup = setup(seed, policy, faults.unwrap_or_default());
        let kept: Vec<usize> = match args.campaign.only.as_slice() {
            [] => (0..setup.submissions.len()).collect(),
            only => only.iter().copied().filter(|index| *index < setup.submissions.len()).collect(),
        };
        setup.submissions = kept.iter().map(|&index| setup.submissions[index].clone()).collect();
        match check(setup.clone()) {
            Ok(run) => {
                result.steps += run.counts.steps;
                result.faults += run.counts.faults;
                result.preemptions += run.preemptions.len() as u64;
                result.evictions += run.evictions.len() as u64;
            }
            Err(violation) => {
                let shrunk = shrink(setup, kept, violation, MAX_SHRINK_RUNS);
                let replay = replay(policy, seed, &shrunk);
                let Violation { invariant, at, problem } = shrunk.violation;
                result.violated.push(Violated { seed, invariant, at_micros: at.0, problem, replay });
            }
        }
        progress.inc(1);
    }
    result
}

/// The default rates of all kinds of faults, or of these kinds only.
fn some_faults(kinds: &[String]) -> Result<Faults, Error> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(Faults::SOME) else { return Ok(Faults::SOME) };
    if let Some(unknown) = kinds.iter().find(|kind| !all.contains_key(*kind)) {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        return Err(Error::Usage(format!("--fault-kinds {unknown}: unknown kind; write some of {}", known.join(", "))));
    }
    all.retain(|kind, _| kinds.is_empty() || kinds.contains(kind));
    Ok(serde_json::from_value(Value::Object(all)).unwrap_or(Faults::SOME))
}

fn policies(names: &[String]) -> Result<Vec<&'static str>, Error> {
    if names.is_empty() {
        return Ok(POLICIES.to_vec());
    }
    let known = |name: &String| {
        let found = POLICIES.iter().find(|policy| policy.eq_ignore_ascii_case(name)).copied();
        found.ok_or_else(|| {
            Error::Usage(format!("--policy {name}: unknown policy; write one of {}", POLICIES.join(", ")))
        })
    };
    names.iter().map(known).collect()
}

/// The command that replays the violation with as few faults and submissions as possible.
fn replay(policy: &str, seed: u64, shrunk: &MinimizedFailure) -> String {
    let mut command = format!("reprieve simulate --check --policy '{policy}' --seed {seed} --seeds 1");
    let Ok(Value::Object(mut faults)) = serde_json::to_value(shrunk.setup.faults) else { return command };
    faults.retain(|_, per_million| per_million.as_u64() > Some(0));
    let kinds: Vec<&str> = faults.keys().map(String::as_str).collect();
    let _ = match kinds.is_empty() {
        true => write!(command, " --faults none"),
        false => write!(command, " --faults some --fault-kinds {}", kinds.join(",")),
    };
    let kept: Vec<String> = shrunk.kept.iter().map(usize::to_string).collect();
    let _ = write!(command, " --only {}", kept.join(","));
    command
}

fn as_table(all: &[CampaignResult]) -> String {
    let rows = all.iter().map(|result| {
        let numbers = [result.seeds, result.steps, result.faults, result.preemptions, result.evictions];
        let mut row = vec![result.policy.to_owned(), if result.faulty { "yes" } else { "no" }.to_owned()];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(result.violated.len().to_string());
        row
    });
    let header = ["POLICY", "FAULTS", "SEEDS", "STEPS", "INJECTED FAULTS", "PREEMPTIONS", "EVICTIONS", "VIOLATIONS"];
    let mut text = table(header, rows, None);
    text.push('\n');
    for Violated { seed, invariant, problem, replay, .. } in all.iter().flat_map(|result| &result.violated) {
        let _ = write!(text, "\nviolation of {invariant}, seed {seed}: {problem}\n  replay: {replay}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use reprieve_engine::Timestamp;

    use super::*;

    #[test]
    fn replay_has_only_the_needed_faults_and_submissions() {
        let faults = Faults { restarts: 5_000, slow_victims: 1, ..Faults::default() };
        let violation = Violation { invariant: "capacity", at: Timestamp(0), problem: "too much".to_owned() };
        let mut shrunk = MinimizedFailure { setup: setup(7, "Kubernetes", faults), kept: vec![0, 3], violation };
        let command = "reprieve simulate --check --policy 'Kubernetes' --seed 7 --seeds 1";
        let with_faults = format!("{command} --faults some --fault-kinds restarts,slowVictims --only 0,3");
        assert_eq!(replay("Kubernetes", 7, &shrunk), with_faults);
        shrunk.setup.faults = Faults::default();
        assert_eq!(replay("Kubernetes", 7, &shrunk), format!("{command} --faults none --only 0,3"));
        let kinds = some_faults(&["restarts".to_owned()]).unwrap();
        assert_eq!(kinds, Faults { restarts: Faults::SOME.restarts, ..Faults::default() });
        assert!(some_faults(&["rain".to_owned()]).unwrap_err().to_string().contains("lostEvents"));
    }
}
