//! The arguments of `reprieve simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use reprieve_report::gpu_hours::GpuResources;

/// The arguments of `reprieve simulate`.
// Fields: one for each option.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A Scenario file; it may also contain objects that exist at the start
    #[arg(value_name = "FILE", required_unless_present_any = ["trace", "check"])]
    pub file: Option<PathBuf>,
    /// A trace of a real cluster, instead of a scenario
    #[arg(long, value_name = "FILE", conflicts_with = "file", requires = "format")]
    pub trace: Option<PathBuf>,
    /// Format of the trace
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The nodes of the trace, in the format of openb [default for openb: openb_node_list_all_node.csv in the same folder]
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub nodes: Option<PathBuf>,
    /// Skip invalid lines of the trace and report their number
    #[arg(long, requires = "trace", alias = "skip-broken")]
    pub skip_invalid: bool,
    /// How many times as fast as in the trace the jobs arrive [default: 1]
    #[arg(long, value_name = "FACTOR", requires = "trace", value_parser = load)]
    pub load: Option<f64>,
    /// Resources that count as GPUs, separated by commas; * stands for any text
    #[arg(long, value_name = "RESOURCE", default_value_t = GpuResources::default())]
    pub gpu_resources: GpuResources,
    /// Policies to compare, separated by commas [default: those of the scenario, else Kubernetes, YuniKorn and Koordinator]
    #[arg(long, value_name = "POLICY", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// End of the simulation: a time (RFC 3339), or a duration after the start such as 24h
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Also write an HTML page with plots, a timeline of evictions and the explanation of every decision; it loads nothing from the
    /// network
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub report: Option<PathBuf>,
    /// The arguments of `--check`.
    #[command(flatten)]
    pub campaign: CampaignArgs,
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse().ok().filter(|load| (0.01..=1000.0).contains(load));
    load.ok_or_else(|| "write a number from 0.01 to 1000, for example 1.5".to_owned())
}

/// The arguments of `reprieve simulate --check`.
#[derive(Debug, Args)]
pub struct CampaignArgs {
    /// Run random clusters with injected faults and check all invariants after every step
    #[arg(long, conflicts_with_all = ["file", "trace", "until"])]
    pub check: bool,
    /// With --check: number of random clusters for each policy, with seeds from --seed on
    #[arg(long, requires = "check", default_value_t = 100)]
    pub seeds: u64,
    /// With --check: whether to inject faults
    #[arg(long, requires = "check", value_enum, default_value_t = WithFaults::Both)]
    pub faults: WithFaults,
    /// With --check: inject only these kinds of faults, as listed in the replay command of a violation
    #[arg(long, requires = "check", value_name = "KIND", value_delimiter = ',')]
    pub fault_kinds: Vec<String>,
    /// With --check: submit only these jobs of each cluster, by number, as listed in the replay command of a violation
    #[arg(long, requires = "check", value_name = "NUMBER", value_delimiter = ',')]
    pub only: Vec<usize>,
}

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Alibaba's cluster-trace-gpu-v2023
    Openb,
    /// CSV with the columns job,submit_s,gpus,duration_s
    Jobs,
}

/// The output format of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table
    Table,
    /// One JSON object
    Json,
    /// CSV with the columns policy,figure,value: a row for each number of the table
    Csv,
}

/// Whether faults are injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WithFaults {
    /// One run without faults and one with
    Both,
    /// No faults
    None,
    /// Faults in every run
    Some,
}
