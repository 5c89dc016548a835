//! The command line: what `reprieve` can be told, and what comes of it.

use std::io::ErrorKind;
use std::process::ExitCode;

use crate::input::Error;
use crate::{compare, demo, output, plan, run, simulate, test};
use clap::{Parser, Subcommand};

/// Decides who must yield so that an urgent job can run: the smallest, cheapest, lawful set, never half a gang, and nothing at all
/// unless the whole preemptor fits. It says why.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Who is preempted if this is submitted now, and why; changes nothing
    ///
    /// Exit status: 0 fits without victims, 2 would preempt, 3 would wait, 4 unschedulable, 1 error; with --cycle 2 where anybody
    /// would be preempted, else 0.
    Plan(plan::PlanArgs),
    /// Runs PreemptionTest files: unit tests for a preemption policy
    ///
    /// Exit status: 0 all pass, 1 some fail or the result cannot be written, 2 bad input.
    Test(test::TestArgs),
    /// Every policy's verdict on one cluster and one preemptor, side by side
    ///
    /// Exit status: 0 done, 1 error.
    Compare(compare::CompareArgs),
    /// Lets a scenario or a trace run in virtual time under several policies, and compares them
    ///
    /// Exit status: 0 done, 1 an invariant was violated or the result cannot be written, 2 bad input.
    Simulate(simulate::SimulateArgs),
    /// The scheduler of a real cluster: of all pods that name one of its profiles
    ///
    /// Exit status: 0 stopped by a signal, 1 error.
    Run(run::RunArgs),
    /// An urgent gang arrives in a built-in cluster, and a day of such decisions under two policies
    ///
    /// Exit status: 0 done, 1 error.
    Demo,
}

/// Does what the command line says.
pub fn main() -> ExitCode {
    let checks = std::env::args().nth(1).is_some_and(|command| command == "test" || command == "simulate");
    let bad_input = if checks { 2 } else { 1 };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            return match (error.use_stderr(), printed) {
                (true, _) => ExitCode::from(bad_input),
                (false, Ok(())) => ExitCode::SUCCESS,
                (false, Err(error)) => fail(&Error::Output(error), bad_input),
            };
        }
    };
    let done = match &cli.command {
        Command::Plan(args) => plan::run(args),
        Command::Test(args) => test::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Run(args) => run::run(args),
        Command::Demo => demo::run(),
    };
    done.map_or_else(|error| fail(&error, bad_input), ExitCode::from)
}

/// Reports an error. One that concerns writing has status 1 under every command; a reader that closed the pipe, as `head` does, knows
/// why, so nothing is printed then.
fn fail(error: &Error, bad_input: u8) -> ExitCode {
    if !matches!(error, Error::Output(error) if error.kind() == ErrorKind::BrokenPipe) {
        let style = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
        let text = error.to_string();
        // The text of an input error has names from the input; others may have several lines.
        let text = if matches!(error, Error::Input(_)) { output::escaped(&text) } else { text.as_str().into() };
        output::note(&format!("{style}error{style:#}: {text}"));
    }
    let writing = matches!(error, Error::Output(_) | Error::Write { .. });
    ExitCode::from(if writing { 1 } else { bad_input })
}
