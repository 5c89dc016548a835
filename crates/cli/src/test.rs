//! `reprieve test`: runs PreemptionTest files.

mod junit;
mod run_file;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use globset::{Glob, GlobMatcher};

use self::run_file::{Case, Found, TestResult, run_file};
use crate::input::{self, Error};
use crate::output;

/// What `reprieve test` is told.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Files and folders with PreemptionTests; folders are walked, files of another kind passed over
    #[arg(value_name = "PATH", default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Run only the tests whose name matches
    #[arg(long, value_name = "GLOB")]
    pub run: Option<String>,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Stop at the first test that fails
    #[arg(long)]
    pub fail_fast: bool,
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// What failed, and a count
    Table,
    /// One JSON object
    Json,
    /// A JUnit file
    Junit,
}

/// Runs the tests; 0 all pass, 1 some fail, 2 bad input.
pub fn run(args: &TestArgs) -> Result<u8, Error> {
    let wanted = args.run.as_deref().map(glob).transpose()?;
    let mut cases = Vec::new();
    let mut found = 0;
    'all: for path in &args.paths {
        for file in input::files(path)? {
            match run_file(&file, wanted.as_ref()) {
                Found::Nothing => {}
                Found::OtherName => found += 1,
                Found::Case(case) => {
                    found += 1;
                    let stop = args.fail_fast && case.verdict != TestResult::Passed;
                    cases.push(*case);
                    if stop {
                        break 'all;
                    }
                }
            }
        }
    }
    if cases.is_empty() {
        let places: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        let places = places.join(", ");
        let problem = match (found, &args.run) {
            (0, _) | (_, None) => format!("there is no PreemptionTest file in {places}"),
            (found, Some(glob)) => format!("none of the {found} tests in {places} is called {glob}"),
        };
        return Err(Error::Usage(problem));
    }
    print(args.output, &cases)?;
    let any = |verdict| cases.iter().any(|case| case.verdict == verdict);
    Ok(if any(TestResult::BadInput) { 2 } else { u8::from(any(TestResult::Failed)) })
}

fn glob(pattern: &str) -> Result<GlobMatcher, Error> {
    let glob = Glob::new(pattern).map_err(|error| Error::Usage(format!("--run: {error}")))?;
    Ok(glob.compile_matcher())
}

fn print(output: Output, cases: &[Case]) -> Result<(), Error> {
    match output {
        Output::Table => print_table(cases),
        Output::Json => {
            let of = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
            let result = serde_json::json!({
                "apiVersion": "reprieve.dev/v1alpha1",
                "kind": "TestResult",
                "passed": of(TestResult::Passed),
                "failed": of(TestResult::Failed),
                "badInput": of(TestResult::BadInput),
                "tests": cases,
            });
            output::line(&format!("{result:#}"))
        }
        Output::Junit => output::print(&junit::report(cases)?),
    }
}

fn print_table(cases: &[Case]) -> Result<(), Error> {
    let style = |colour: anstyle::AnsiColor| anstyle::Style::new().bold().fg_color(Some(colour.into()));
    let (red, green) = (style(anstyle::AnsiColor::Red), style(anstyle::AnsiColor::Green));
    for case in cases.iter().filter(|case| case.verdict != TestResult::Passed) {
        let word = if case.verdict == TestResult::Failed { "FAIL" } else { "BAD INPUT" };
        output::line(&format!("{red}{word}{red:#}  {}  ({})", case.name, case.file.display()))?;
        for problem in &case.problems {
            output::line(&format!("  {problem}"))?;
        }
        for line in case.table.lines() {
            output::line(&format!("    {line}"))?;
        }
        output::line("")?;
    }
    let of = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
    let (passed, failed, bad) = (of(TestResult::Passed), of(TestResult::Failed), of(TestResult::BadInput));
    let colour = if failed + bad == 0 { green } else { red };
    let bad = if bad > 0 { format!(", {bad} could not be read") } else { String::new() };
    output::line(&format!("{colour}{passed} passed, {failed} failed{colour:#}{bad}"))
}
