//! `reprieve simulate`: runs a scenario or a trace in virtual time under several policies and compares them.

mod args;
mod check;
pub mod html;
mod notes;
pub mod policy_run;
mod show;
mod statistics;

use reprieve_api::{InputError, Profile};
use reprieve_loader::policy::policy;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::scenario::{Scenario, parse_time_or_offset};
use reprieve_simulator::trace::{self, OnInvalidLine, SkippedLines, Text};

use self::args::Format;
use crate::input::{self, Error, name};

pub use self::args::{Output, SimulateArgs};
pub use self::policy_run::simulate;
pub use self::show::show;

/// The policies that are compared by default.
const DEFAULT_POLICIES: [&str; 3] = ["Kubernetes", "YuniKorn", "Koordinator"];
/// The node list of the openb trace, in the folder of its pod list.
const OPENB_NODES: &str = "openb_node_list_all_node.csv";

/// Prints the comparison, or with `--check` the result of the campaign.
pub fn run(args: &SimulateArgs) -> Result<u8, Error> {
    if args.campaign.check {
        return check::run(args);
    }
    let (mut input, profiles, skipped) = read(args)?;
    input.gpus = args.gpu_resources.clone();
    if let Some(load) = args.load {
        input = input.with_load(load);
    }
    if let Some(until) = &args.until {
        let wrong = |problem: String| Error::Usage(format!("--until {until}: {problem}"));
        input.end = parse_time_or_offset(until, input.start).map_err(wrong)?;
        if input.end <= input.start {
            return Err(wrong("is not after the start; write a later time, for example 24h".to_owned()));
        }
    }
    let results = simulate(&input, &chosen(&args.policy, &profiles)?, args.report.is_some())?;
    if let Some(path) = &args.report {
        let page = html::page(&input, &skipped, &results, &html::command(std::env::args().skip(1)));
        std::fs::write(path, page).map_err(|error| Error::Write { path: path.clone(), error })?;
    }
    show(&input, &skipped, &results, args.output)?;
    Ok(0)
}

fn read(args: &SimulateArgs) -> Result<(SimulationInput, Vec<Profile>, SkippedLines), Error> {
    if let Some(path) = &args.file {
        let scenario = Scenario::read(&name(path), &input::text_of(path)?)?;
        return Ok((scenario.input(args.seed), scenario.profiles().to_vec(), SkippedLines::default()));
    }
    let path = args.trace.as_ref().expect("clap requires a file or a trace");
    let text = input::text_of(path)?;
    let file = name(path);
    let list = Text { file: &file, text: &text };
    let on_invalid = if args.skip_invalid { OnInvalidLine::Skip } else { OnInvalidLine::Stop };
    let default_nodes = path.with_file_name(OPENB_NODES);
    let nodes = match args.format {
        Some(Format::Openb) => Some(args.nodes.as_ref().unwrap_or(&default_nodes)),
        _ => args.nodes.as_ref(),
    };
    let nodes = nodes.map(|path| Ok::<_, Error>((name(path), input::text_of(path)?))).transpose()?;
    let nodes = nodes.as_ref().map(|(file, text)| Text { file, text });
    let (input, skipped) = match (args.format, nodes) {
        (Some(Format::Openb), Some(nodes)) => trace::openb(list, nodes, on_invalid)?,
        _ => trace::jobs(list, nodes, on_invalid, args.seed)?,
    };
    Ok((input, Vec::new(), skipped))
}

/// The policies with the settings that the scenario has for them.
fn chosen(names: &[String], profiles: &[Profile]) -> Result<Vec<Profile>, Error> {
    let chosen: Vec<Profile> = if names.is_empty() {
        match profiles {
            [] => DEFAULT_POLICIES.map(Profile::of_policy).into(),
            profiles => profiles.to_vec(),
        }
    } else {
        let with_settings = |name: &String| {
            let same_policy = profiles.iter().filter(|profile| profile.policy.eq_ignore_ascii_case(name));
            let found: Vec<Profile> = same_policy.cloned().collect();
            if found.is_empty() { vec![Profile::of_policy(name)] } else { found }
        };
        names.iter().flat_map(with_settings).collect()
    };
    for profile in &chosen {
        policy(profile).map_err(|error| InputError { field: Some("--policy".to_owned()), ..error })?;
    }
    Ok(chosen)
}
