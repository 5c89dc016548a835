//! The campaign: random clusters in which everything goes wrong, and nothing that must hold is violated.

use std::fmt::Write as _;

use reprieve_simulator::campaign::{POLICIES, setup};
use reprieve_simulator::faults::Faults;
use reprieve_simulator::invariants::{Violation, check};

use super::{Output, SimulateArgs, WithFaults, bar};
use crate::input::Error;
use crate::output;
use crate::render::table;

/// What a policy came through.
struct Tried {
    policy: &'static str,
    faulty: bool,
    seeds: u64,
    steps: u64,
    faults: u64,
    preemptions: u64,
    evictions: u64,
    violated: Vec<(u64, Violation)>,
}

/// Prints what was tried and what was violated.
pub fn run(args: &SimulateArgs) -> Result<u8, Error> {
    if args.output == Output::Csv {
        return Err(Error::Usage("--check: prints -o table or json".to_owned()));
    }
    let policies = policies(&args.policy)?;
    let faulty: &[bool] = match args.faults {
        WithFaults::Both => &[false, true],
        WithFaults::None => &[false],
        WithFaults::Some => &[true],
    };
    let progress = bar(args.seeds * (policies.len() * faulty.len()) as u64, "{msg} {wide_bar} {pos}/{len} {eta}");
    let mut all = Vec::new();
    for policy in policies {
        for &faulty in faulty {
            progress.set_message(policy);
            all.push(tried(policy, faulty, args, &progress));
        }
    }
    progress.finish_and_clear();
    match args.output {
        Output::Json => output::line(&format!("{:#}", as_json(&all))),
        Output::Table | Output::Csv => output::print(&as_table(&all)),
    }
    Ok(u8::from(all.iter().any(|tried| !tried.violated.is_empty())))
}

fn tried(policy: &'static str, faulty: bool, args: &SimulateArgs, progress: &indicatif::ProgressBar) -> Tried {
    let faults = if faulty { Faults::SOME } else { Faults::default() };
    let mut tried = Tried {
        policy,
        faulty,
        seeds: args.seeds,
        steps: 0,
        faults: 0,
        preemptions: 0,
        evictions: 0,
        violated: Vec::new(),
    };
    for seed in args.seed..args.seed.saturating_add(args.seeds) {
        match check(setup(seed, policy, faults)) {
            Ok(run) => {
                tried.steps += run.counts.steps;
                tried.faults += run.counts.faults;
                tried.preemptions += run.preemptions.len() as u64;
                tried.evictions += run.evictions.len() as u64;
            }
            Err(violation) => tried.violated.push((seed, violation)),
        }
        progress.inc(1);
    }
    tried
}

fn policies(names: &[String]) -> Result<Vec<&'static str>, Error> {
    if names.is_empty() {
        return Ok(POLICIES.to_vec());
    }
    let known = |name: &String| {
        let found = POLICIES.iter().find(|policy| policy.eq_ignore_ascii_case(name)).copied();
        found.ok_or_else(|| Error::Usage(format!("--policy {name}: write one of {}", POLICIES.join(", "))))
    };
    names.iter().map(known).collect()
}

fn replay(tried: &Tried, seed: u64) -> String {
    let faults = if tried.faulty { "some" } else { "none" };
    format!("reprieve simulate --check --policy '{}' --seed {seed} --seeds 1 --faults {faults}", tried.policy)
}

fn as_table(all: &[Tried]) -> String {
    let rows = all.iter().map(|tried| {
        let numbers = [tried.seeds, tried.steps, tried.faults, tried.preemptions, tried.evictions];
        let mut row = vec![tried.policy.to_owned(), if tried.faulty { "yes" } else { "no" }.to_owned()];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(tried.violated.len().to_string());
        row
    });
    let header = ["POLICY", "FAULTS", "SEEDS", "STEPS", "FAULTS MET", "PREEMPTIONS", "EVICTIONS", "VIOLATED"];
    let mut text = table(header, rows, None);
    text.push('\n');
    for tried in all {
        for (seed, violation) in &tried.violated {
            let Violation { invariant, problem, .. } = violation;
            let _ = write!(text, "\nviolated: {invariant}, seed {seed}: {problem}\n  {}\n", replay(tried, *seed));
        }
    }
    text
}

fn as_json(all: &[Tried]) -> serde_json::Value {
    let one = |tried: &Tried| {
        let violated = tried.violated.iter().map(|(seed, violation)| {
            serde_json::json!({
                "seed": seed,
                "invariant": violation.invariant,
                "atMicros": violation.at.0,
                "problem": violation.problem,
                "replay": replay(tried, *seed),
            })
        });
        serde_json::json!({
            "policy": tried.policy,
            "faulty": tried.faulty,
            "seeds": tried.seeds,
            "steps": tried.steps,
            "faults": tried.faults,
            "preemptions": tried.preemptions,
            "evictions": tried.evictions,
            "violated": violated.collect::<Vec<_>>(),
        })
    };
    serde_json::json!({
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "Campaign",
        "tried": all.iter().map(one).collect::<Vec<_>>(),
    })
}
