//! The command line: parses the arguments, runs a command, and reports its error and exit status.

use std::io::ErrorKind;
use std::process::ExitCode;

use crate::input::Error;
use crate::{compare, demo, output, plan, problems, run, simulate, test};
use clap::{Parser, Subcommand};

/// Chooses which pods to evict so that a pending pod, group or workload can run, by the rules of a preemption policy, and explains every
/// choice. Evicts nothing unless the preemptor then fits. Policies Kubernetes and Kueue never evict only a part of a PodGroup or Workload that
/// must be evicted whole.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the victims, the placement and the reasons for one preemptor (read-only)
    ///
    /// Exit status: 0 fits without victims, 2 preempts, 3 waits, 4 unschedulable, 1 error. With --cycle: 2 if there are victims, else 0.
    Plan(plan::PlanArgs),
    /// Run PreemptionTest files: unit tests of a preemption policy
    ///
    /// Exit status: 0 all pass, 1 some fail or the result cannot be written, 2 invalid input.
    Test(test::TestArgs),
    /// Compare the decisions of all policies for one preemptor (read-only)
    ///
    /// Exit status: 0 success, 1 error.
    Compare(compare::CompareArgs),
    /// List the objects that decisions set aside because of a problem, and what to correct (read-only)
    ///
    /// Exit status: 0 no problems, 2 problems found, 1 error.
    Problems(problems::ProblemsArgs),
    /// Simulate a scenario or a trace in virtual time and compare policies
    ///
    /// Exit status: 0 success, 1 an invariant is violated or the result cannot be written, 2 invalid input.
    Simulate(simulate::SimulateArgs),
    /// Schedule the pods of a cluster whose schedulerName is one of the configured profiles
    ///
    /// Exit status: 0 stopped by a signal, 1 error.
    Run(run::RunArgs),
    /// Show one decision on a built-in cluster and a simulated day under two policies
    ///
    /// Exit status: 0 success, 1 error.
    Demo,
}

/// Runs the command of the process arguments.
pub fn main() -> ExitCode {
    let has_own_status = std::env::args().nth(1).is_some_and(|command| command == "test" || command == "simulate");
    let input_error_status = if has_own_status { 2 } else { 1 };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            return match (error.use_stderr(), printed) {
                (true, _) => ExitCode::from(input_error_status),
                (false, Ok(())) => ExitCode::SUCCESS,
                (false, Err(error)) => fail(&Error::Output(error), input_error_status),
            };
        }
    };
    let done = match &cli.command {
        Command::Plan(args) => plan::run(args),
        Command::Test(args) => test::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Problems(args) => problems::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Run(args) => run::run(args),
        Command::Demo => demo::run(),
    };
    done.map_or_else(|error| fail(&error, input_error_status), ExitCode::from)
}

/// Reports an error. An error of writing has status 1 under every command. Nothing is printed if the reader closed the pipe, as `head`
/// does.
fn fail(error: &Error, input_error_status: u8) -> ExitCode {
    if !matches!(error, Error::Output(error) if error.kind() == ErrorKind::BrokenPipe) {
        let style = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
        let text = error.to_string();
        // The text of an input error contains names from the input; other errors may have several lines.
        let text = if matches!(error, Error::Input(_)) { output::escaped(&text) } else { text.as_str().into() };
        output::note(&format!("{style}error{style:#}: {text}"));
    }
    let is_output_error = matches!(error, Error::Output(_) | Error::Write { .. });
    ExitCode::from(if is_output_error { 1 } else { input_error_status })
}
