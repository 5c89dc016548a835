//! `reprieve test`: runs PreemptionTest files.

mod junit;
mod run_file;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use globset::{Glob, GlobMatcher};

use self::run_file::{Case, Found, TestResult, run_file};
use crate::input::{self, Error};
use crate::output;

/// The arguments of `reprieve test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Files and folders with PreemptionTests; folders are searched recursively, files of other kinds are ignored
    #[arg(value_name = "PATH", default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Run only tests whose name matches
    #[arg(long, value_name = "GLOB")]
    pub run: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Stop at the first failed test
    #[arg(long)]
    pub fail_fast: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The failed tests and a count
    Table,
    /// One JSON object
    Json,
    /// JUnit XML
    Junit,
}

/// Runs the tests and returns the exit status: 0 all pass, 1 some fail, 2 invalid input.
pub fn run(args: &TestArgs) -> Result<u8, Error> {
    let filter = args.run.as_deref().map(glob).transpose()?;
    let mut cases = Vec::new();
    let mut found = 0;
    'all: for path in &args.paths {
        for file in input::files(path)? {
            match run_file(&file, filter.as_ref()) {
                Found::Nothing => {}
                Found::OtherName => found += 1,
                Found::Case(case) => {
                    found += 1;
                    let stop = args.fail_fast && case.result != TestResult::Passed;
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
            (0, _) | (_, None) => format!("no PreemptionTest file in {places}"),
            (found, Some(glob)) => format!("--run {glob}: matches none of the {found} tests in {places}"),
        };
        return Err(Error::Usage(problem));
    }
    print(args.output, &cases)?;
    Ok(match count(&cases, TestResult::BadInput) {
        0 => u8::from(count(&cases, TestResult::Failed) > 0),
        _ => 2,
    })
}

fn count(cases: &[Case], result: TestResult) -> usize {
    cases.iter().filter(|case| case.result == result).count()
}

fn glob(pattern: &str) -> Result<GlobMatcher, Error> {
    let glob = Glob::new(pattern).map_err(|error| Error::Usage(format!("--run {pattern}: {error}")))?;
    Ok(glob.compile_matcher())
}

fn print(output: Output, cases: &[Case]) -> Result<(), Error> {
    match output {
        Output::Table => print_table(cases),
        Output::Json => {
            let result = serde_json::json!({
                "apiVersion": "reprieve.dev/v1alpha1",
                "kind": "TestResult",
                "passed": count(cases, TestResult::Passed),
                "failed": count(cases, TestResult::Failed),
                "badInput": count(cases, TestResult::BadInput),
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
    for case in cases.iter().filter(|case| case.result != TestResult::Passed) {
        let title = if case.result == TestResult::Failed { "FAIL" } else { "BAD INPUT" };
        output::line(&format!("{red}{title}{red:#}  {}  ({})", output::escaped(&case.name), case.file.display()))?;
        for problem in &case.problems {
            output::line(&format!("  {}", output::escaped(problem)))?;
        }
        for line in case.table.lines() {
            output::line(&format!("    {line}"))?;
        }
        output::line("")?;
    }
    let (passed, failed) = (count(cases, TestResult::Passed), count(cases, TestResult::Failed));
    let invalid = cases.len() - passed - failed;
    let colour = if passed == cases.len() { green } else { red };
    let invalid = if invalid > 0 { format!(", {invalid} with bad input") } else { String::new() };
    output::line(&format!("{colour}{passed} passed, {failed} failed{colour:#}{invalid}"))
}
