//! `reprieve simulate`: a scenario or a trace in virtual time under several policies, side by side.

mod check;
mod page;
mod show;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::SignedDuration;
use reprieve_objects::question::policy;
use reprieve_objects::source::InputError;
use reprieve_objects::test_file::Profile;
use reprieve_simulator::blueprint::Blueprint;
use reprieve_simulator::run::Run;
use reprieve_simulator::scenario::{Scenario, moment};
use reprieve_simulator::summary::{Summary, summary};
use reprieve_simulator::trace::{self, Broken, OnBroken, Text};
use reprieve_simulator::world::{Setup, World};

use crate::input::{self, Error};
use crate::render::span;
use crate::report::Explained;

pub use page::page;
pub use show::show;

/// The policies that are compared where nobody says which.
const POLICIES: [&str; 3] = ["Kubernetes", "YuniKorn", "Koordinator"];
/// Where openb's pods have their nodes.
const OPENB_NODES: &str = "openb_node_list_all_node.csv";

/// What `reprieve simulate` is told.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A Scenario, and the objects that are there from the start
    #[arg(value_name = "FILE", required_unless_present_any = ["trace", "check"])]
    pub file: Option<PathBuf>,
    /// A trace of a real cluster, in place of a scenario
    #[arg(long, value_name = "FILE", conflicts_with = "file", requires = "format")]
    pub trace: Option<PathBuf>,
    /// How the trace is written
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The nodes of a trace, as openb lists them; for openb the file openb_node_list_all_node.csv beside it where nothing is said
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub nodes: Option<PathBuf>,
    /// Passes over lines of a trace that cannot be understood, and counts them
    #[arg(long, requires = "trace")]
    pub skip_broken: bool,
    /// Under which policies; those of the scenario, or Kubernetes, YuniKorn and Koordinator, where nothing is said
    #[arg(long, value_name = "POLICY", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Where chance comes from
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// An earlier or later end: a time, or how long after the start
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// How the comparison is printed
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Also writes one HTML page with plots, who evicted whom, and why; it needs no network
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub report: Option<PathBuf>,
    /// Random clusters in which everything goes wrong, and every invariant checked after every step
    #[arg(long, conflicts_with_all = ["file", "trace", "until"])]
    pub check: bool,
    /// How many random clusters for each policy, from --seed on
    #[arg(long, requires = "check", default_value_t = 100)]
    pub seeds: u64,
    /// Whether things go wrong in them
    #[arg(long, requires = "check", value_enum, default_value_t = WithFaults::Both)]
    pub faults: WithFaults,
    /// Only these kinds of faults, as a replay of a violation names them
    #[arg(long, requires = "check", value_name = "KIND", value_delimiter = ',')]
    pub fault_kinds: Vec<String>,
    /// Only these submissions of each cluster, by number, as a replay of a violation names them
    #[arg(long, requires = "check", value_name = "NUMBER", value_delimiter = ',')]
    pub only: Vec<usize>,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Alibaba's cluster-trace-gpu-v2023
    Openb,
    /// A list of training jobs: job,submit_s,gpus,duration_s
    Jobs,
}

/// How the comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table
    Table,
    /// One JSON object
    Json,
    /// A line for each figure: policy,figure,value
    Csv,
}

/// Whether things go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WithFaults {
    /// Once without and once with
    Both,
    /// Never
    None,
    /// Always
    Some,
}

/// What came of one policy.
pub struct Simulated {
    /// All that happened.
    pub run: Run,
    /// By the number of the preemption: why somebody had to yield, where that was asked for.
    pub explained: BTreeMap<usize, Explained>,
    /// What it comes to.
    pub summary: Summary,
    /// How long all of it took.
    pub took: Duration,
}

/// Prints the comparison, or what the campaign found.
pub fn run(args: &SimulateArgs) -> Result<u8, Error> {
    if args.check {
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

/// Lets a blueprint run under each of the policies; decisions are explained where somebody will read it.
pub fn simulate(blueprint: &Blueprint, profiles: &[Profile], explains: bool) -> Result<Vec<Simulated>, Error> {
    let mut setups = Vec::new();
    for profile in profiles {
        let setup = Setup { explains, ..blueprint.setup(policy(profile)?)? };
        setups.push((label(profile, profiles), setup));
    }
    let bar = bar(1000 * setups.len() as u64, "{msg} {wide_bar} {percent}% {eta}");
    let start = blueprint.start;
    let mut simulated = Vec::new();
    for (at, (label, setup)) in setups.into_iter().enumerate() {
        let began = Instant::now();
        let nanos = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut world = World::new(setup, Box::new(nanos));
        let mut moments = 0_u64;
        let mut explained = BTreeMap::new();
        while world.pass(|_, _| ()) {
            explained.extend(world.take_reports().into_iter().map(|(at, report)| (at, Explained::of(&report))));
            moments += 1;
            if moments.is_multiple_of(1024) {
                bar.set_position(1000 * at as u64 + world.progress());
                let passed = SignedDuration::from_micros(world.now().0 - start.0);
                bar.set_message(format!("{label}, {} passed", span(passed)));
            }
        }
        let run = world.finish();
        let summary = summary(&label, &run, &blueprint.queues);
        simulated.push(Simulated { run, explained, summary, took: began.elapsed() });
    }
    bar.finish_and_clear();
    Ok(simulated)
}

/// A bar, where somebody is watching.
pub(crate) fn bar(length: u64, template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
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

fn read(args: &SimulateArgs) -> Result<(Blueprint, Vec<Profile>, Broken), Error> {
    if let Some(path) = &args.file {
        let scenario = Scenario::read(&name(path), &input::text_of(path)?)?;
        return Ok((scenario.blueprint(args.seed), scenario.profiles().to_vec(), Broken::default()));
    }
    let path = args.trace.as_ref().expect("a file or a trace is required");
    let text = input::text_of(path)?;
    let file = name(path);
    let list = Text { file: &file, text: &text };
    let on_broken = if args.skip_broken { OnBroken::Skip } else { OnBroken::Stop };
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

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
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
