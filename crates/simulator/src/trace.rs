//! Traces of real clusters, as they are published. What they lack is made up, and said.

mod jobs;
mod openb;

use std::collections::BTreeSet;
use std::fmt;

use csv::{ReaderBuilder, StringRecord, Trim};
use reprieve_api::kinds::Object;
use reprieve_api::source::InputError;
use reprieve_engine::Timestamp;
use reprieve_translate::queue_tree::NeutralQueues;

use crate::faults::Faults;
use crate::input::SimulationInput;
use crate::submission::Submission;

pub use jobs::jobs;
pub use openb::openb;

/// When traces begin: they have no dates.
const START: Timestamp = Timestamp(1_767_225_600_000_000);
const SECOND: i64 = 1_000_000;
/// Longer than any trace; more would not add up in microseconds.
const MOST_SECONDS: i64 = 100_000_000_000;

/// A line, with its number.
struct Row {
    line: u64,
    record: StringRecord,
}

/// Lines that were passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// How many.
    pub lines: usize,
    /// The first of them.
    pub first: Option<InputError>,
}

/// A file: what it is called and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    /// Its name.
    pub file: &'t str,
    /// What it says.
    pub text: &'t str,
}

/// What to do with a line that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalidLine {
    /// It is an error.
    Stop,
    /// It is counted and passed over.
    Skip,
}

/// A blueprint of these submissions, in their order, in which nothing goes wrong; it ends after so many seconds.
fn simulation_input(
    list: Text<'_>,
    objects: Vec<Object>,
    queues: NeutralQueues,
    mut submissions: Vec<(Submission, Option<String>)>,
    made_up: Vec<String>,
    seconds: i64,
) -> SimulationInput {
    submissions.sort_by(|(a, _), (b, _)| (a.at, &a.name).cmp(&(b.at, &b.name)));
    SimulationInput {
        name: list.file.to_owned(),
        objects,
        queues,
        submissions,
        start: START,
        end: START.plus_micros(seconds * SECOND),
        faults: Faults::default(),
        soft_eviction_micros: 20 * SECOND,
        made_up,
        seed: 0,
    }
}

impl Text<'_> {
    /// What the lines say, each understood on its own: at least one, and no two of the same name.
    fn lines<T>(
        self,
        what: &str,
        header: &str,
        on_broken: OnInvalidLine,
        understand: impl Fn(&Row) -> Result<T, String>,
        name: impl Fn(&T) -> &str,
    ) -> Result<(Vec<T>, SkippedLines), InputError> {
        let (rows, mut broken) = self.rows(header, on_broken)?;
        let mut understood = Vec::with_capacity(rows.len());
        for row in rows {
            match understand(&row) {
                Ok(one) => understood.push(one),
                Err(problem) => broken.add(self.wrong(row.line, problem), on_broken)?,
            }
        }
        if understood.is_empty() {
            return Err(InputError::new(format!("{}: has no line that can be used", self.file)));
        }
        let mut names = BTreeSet::new();
        match understood.iter().map(name).find(|name| !names.insert(*name)) {
            Some(twice) => Err(InputError::new(format!("{}: {what} {twice:?} is there twice", self.file))),
            None => Ok((understood, broken)),
        }
    }

    fn rows(self, header: &str, on_broken: OnInvalidLine) -> Result<(Vec<Row>, SkippedLines), InputError> {
        let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(self.text.as_bytes());
        if !reader.headers().map_err(|error| self.wrong(1, error))?.iter().eq(header.split(',')) {
            let problem = format!("the columns are not {header}; this is another format, or the first line is missing");
            return Err(self.wrong(1, problem));
        }
        let mut broken = SkippedLines::default();
        let mut rows = Vec::new();
        let mut record = StringRecord::new();
        loop {
            let line = reader.position().line();
            match reader.read_record(&mut record) {
                Ok(false) => return Ok((rows, broken)),
                Ok(true) => {
                    let line = record.position().map_or(line, csv::Position::line);
                    rows.push(Row { line, record: record.clone() });
                }
                Err(error) => {
                    let line = error.position().map_or(line, csv::Position::line);
                    let problem = match error.kind() {
                        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                            format!("has {len} columns; write {expected_len}: {header}")
                        }
                        _ => error.to_string(),
                    };
                    broken.add(self.wrong(line, problem), on_broken)?;
                }
            }
        }
    }

    fn wrong(self, line: u64, problem: impl fmt::Display) -> InputError {
        InputError::new(format!("{}: line {line}: {problem}", self.file))
    }
}

impl SkippedLines {
    fn add(&mut self, error: InputError, on_broken: OnInvalidLine) -> Result<(), InputError> {
        match on_broken {
            OnInvalidLine::Stop => {
                Err(InputError { problem: format!("{}; --skip-broken goes on without it", error.problem), ..error })
            }
            OnInvalidLine::Skip => {
                self.lines += 1;
                self.first.get_or_insert(error);
                Ok(())
            }
        }
    }
}

impl Row {
    fn text(&self, at: usize) -> &str {
        self.record.get(at).unwrap_or_default()
    }

    /// A whole number, from `least`.
    fn number(&self, at: usize, column: &str, least: i64) -> Result<i64, String> {
        let text = self.text(at);
        let number = text.parse().ok().filter(|number| (least..=MOST_SECONDS).contains(number));
        number.ok_or_else(|| format!("{column}: {text:?} is not a whole number from {least}"))
    }
}
