//! The arguments of `reprieve simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    /// What a campaign is told.
    #[command(flatten)]
    pub campaign: CampaignArgs,
}

/// What `reprieve simulate --check` is told.
#[derive(Debug, Args)]
pub struct CampaignArgs {
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
