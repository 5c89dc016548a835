//! `reprieve simulate`: a scenario or a trace in virtual time under several policies, side by side.

mod args;
mod check;
mod page;
mod show;
mod simulated;

use reprieve_api::source::InputError;
use reprieve_api::test_file::Profile;
use reprieve_loader::policy::policy;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::scenario::{Scenario, moment};
use reprieve_simulator::trace::{self, OnInvalidLine, SkippedLines, Text};

use self::args::Format;
use crate::input::{self, Error, name};

pub use self::args::{Output, SimulateArgs};
pub use self::page::page;
pub use self::show::show;
pub use self::simulated::simulate;

/// The policies that are compared where nobody says which.
const POLICIES: [&str; 3] = ["Kubernetes", "YuniKorn", "Koordinator"];
/// Where openb's pods have their nodes.
const OPENB_NODES: &str = "openb_node_list_all_node.csv";

/// Prints the comparison, or what the campaign found.
pub fn run(args: &SimulateArgs) -> Result<u8, Error> {
    if args.campaign.check {
        return check::run(args);
    }
    let (mut blueprint, profiles, broken) = read(args)?;
    if let Some(until) = &args.until {
        let end =
            moment(until, blueprint.start).map_err(|problem| Error::Usage(format!("--until {until}: {problem}")))?;
        if end <= blueprint.start {
            return Err(Error::Usage(format!(
                "--until {until}: is not after the start; write a later time, as in 24h"
            )));
        }
        blueprint.end = end;
    }
    let chosen = chosen(&args.policy, &profiles)?;
    let simulated = simulate(&blueprint, &chosen, args.report.is_some())?;
    if let Some(path) = &args.report {
        let page = page::page(&blueprint, &broken, &simulated, &page::command(std::env::args().skip(1)));
        std::fs::write(path, page).map_err(|error| Error::Write { path: path.clone(), error })?;
    }
    show(&blueprint, &broken, &simulated, args.output)?;
    Ok(0)
}

fn read(args: &SimulateArgs) -> Result<(SimulationInput, Vec<Profile>, SkippedLines), Error> {
    if let Some(path) = &args.file {
        let scenario = Scenario::read(&name(path), &input::text_of(path)?)?;
        return Ok((scenario.input(args.seed), scenario.profiles().to_vec(), SkippedLines::default()));
    }
    let path = args.trace.as_ref().expect("a file or a trace is required");
    let text = input::text_of(path)?;
    let file = name(path);
    let list = Text { file: &file, text: &text };
    let on_broken = if args.skip_broken { OnInvalidLine::Skip } else { OnInvalidLine::Stop };
    let beside = path.with_file_name(OPENB_NODES);
    let nodes = match args.format {
        Some(Format::Openb) => Some(args.nodes.as_ref().unwrap_or(&beside)),
        _ => args.nodes.as_ref(),
    };
    let nodes = nodes.map(|path| Ok::<_, Error>((name(path), input::text_of(path)?))).transpose()?;
    let nodes = nodes.as_ref().map(|(file, text)| Text { file, text });
    let (blueprint, broken) = match (args.format, nodes) {
        (Some(Format::Openb), Some(nodes)) => trace::openb(list, nodes, on_broken)?,
        _ => trace::jobs(list, nodes, on_broken, args.seed)?,
    };
    Ok((blueprint, Vec::new(), broken))
}

/// The policies by name, with the settings that the scenario has for them.
fn chosen(names: &[String], profiles: &[Profile]) -> Result<Vec<Profile>, Error> {
    let plain = Profile::of_policy;
    let chosen: Vec<Profile> = if names.is_empty() {
        match profiles {
            [] => POLICIES.map(plain).into(),
            profiles => profiles.to_vec(),
        }
    } else {
        let with_settings = |name: &String| {
            let alike = profiles.iter().filter(|profile| profile.policy.eq_ignore_ascii_case(name));
            let alike: Vec<Profile> = alike.cloned().collect();
            if alike.is_empty() { vec![plain(name)] } else { alike }
        };
        names.iter().flat_map(with_settings).collect()
    };
    for profile in &chosen {
        policy(profile).map_err(|error| InputError { field: Some("--policy".to_owned()), ..error })?;
    }
    Ok(chosen)
}
