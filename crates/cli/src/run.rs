//! `reprieve run`: the scheduler of a cluster.

use std::path::PathBuf;

use clap::Args;
use reprieve_cluster::config::Configuration;

use crate::args::ClusterArgs;
use crate::input::Error;

/// The arguments of `reprieve run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Configuration file (kind Configuration)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Decide, log and record events, but do not bind, evict or change any object
    #[arg(long)]
    pub dry_run: bool,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Runs the scheduler until the process receives a signal.
pub fn run(args: &RunArgs) -> Result<u8, Error> {
    let config = Configuration::read(&args.config)?;
    reprieve_cluster::run::run(&config, &args.cluster.cluster(), args.dry_run)?;
    Ok(0)
}
