//! `reprieve run`: the scheduler of a real cluster.

use std::path::PathBuf;

use clap::Args;
use reprieve_cluster::config::Configuration;

use crate::args::ClusterArgs;
use crate::input::Error;

/// What `reprieve run` is told.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration, of kind Configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Decides, logs and records events, and touches nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Schedules until a signal comes.
pub fn run(args: &RunArgs) -> Result<u8, Error> {
    let config = Configuration::read(&args.config)?;
    reprieve_cluster::run::run(&config, &args.cluster.cluster(), args.dry_run)?;
    Ok(0)
}
