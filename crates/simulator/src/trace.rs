//! Reads published traces of real clusters. Data that a trace lacks is synthetic, and listed as assumptions.

mod jobs;
mod openb;

use std::collections::BTreeSet;
use std::fmt;

use csv::{ReaderBuilder, StringRecord, Trim};
use reprieve_api::{InputError, Object};
use reprieve_engine::Timestamp;
use reprieve_report::gpu_hours::GpuResources;
use reprieve_translate::queue_tree::NeutralQueues;

use crate::faults::Faults;
use crate::input::SimulationInput;
use crate::submission::Submission;

pub use jobs::jobs;
pub use openb::openb;

/// The virtual start of a trace; traces have no dates.
const START: Timestamp = Timestamp(1_767_225_600_000_000);
const SECOND: i64 = 1_000_000;
/// The largest number in a trace; larger ones would overflow in microseconds.
const MAX_SECONDS: i64 = 100_000_000_000;

/// A line of a CSV file, with its number.
struct Row {
    line: u64,
    record: StringRecord,
}

/// The invalid lines that were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// The number of lines.
    pub lines: usize,
    /// The error of the first line.
    pub first: Option<InputError>,
}

/// The name and content of a file.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    /// The name of the file.
    pub file: &'t str,
    /// The content of the file.
    pub text: &'t str,
}

/// What to do with an invalid line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalidLine {
    /// Return an error.
    Stop,
    /// Skip and count the line.
    Skip,
}

/// The input of a simulation without faults that ends after these seconds.
fn simulation_input(
    list: Text<'_>,
    objects: Vec<Object>,
    queues: NeutralQueues,
    mut submissions: Vec<(Submission, Option<String>)>,
    assumptions: Vec<String>,
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
        gpus: GpuResources::default(),
        load: Some(1.0),
        assumptions,
        seed: 0,
    }
}

impl Text<'_> {
    /// The parsed lines; an error if there are none, or if two have the same name.
    fn lines<T>(
        self,
        what: &str,
        header: &str,
        on_invalid: OnInvalidLine,
        parse: impl Fn(&Row) -> Result<T, String>,
        name: impl Fn(&T) -> &str,
    ) -> Result<(Vec<T>, SkippedLines), InputError> {
        let (rows, mut skipped) = self.rows(header, on_invalid)?;
        let mut parsed = Vec::with_capacity(rows.len());
        for row in rows {
            match parse(&row) {
                Ok(line) => parsed.push(line),
                Err(problem) => skipped.add(self.wrong(row.line, problem), on_invalid)?,
            }
        }
        if parsed.is_empty() {
            return Err(InputError::new(format!("{}: has no line that can be used", self.file)));
        }
        let mut names = BTreeSet::new();
        match parsed.iter().map(name).find(|name| !names.insert(*name)) {
            Some(twice) => {
                Err(InputError::new(format!("{}: {what} {twice:?} occurs twice; give each a unique name", self.file)))
            }
            None => Ok((parsed, skipped)),
        }
    }

    fn rows(self, header: &str, on_invalid: OnInvalidLine) -> Result<(Vec<Row>, SkippedLines), InputError> {
        let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(self.text.as_bytes());
        if !reader.headers().map_err(|error| self.wrong(1, error))?.iter().eq(header.split(',')) {
            let problem = format!("the columns are not {header}; this is another format, or the first line is missing");
            return Err(self.wrong(1, problem));
        }
        let mut skipped = SkippedLines::default();
        let mut rows = Vec::new();
        let mut record = StringRecord::new();
        loop {
            let line = reader.position().line();
            match reader.read_record(&mut record) {
                Ok(false) => return Ok((rows, skipped)),
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
                    skipped.add(self.wrong(line, problem), on_invalid)?;
                }
            }
        }
    }

    fn wrong(self, line: u64, problem: impl fmt::Display) -> InputError {
        InputError::new(format!("{}: line {line}: {problem}", self.file))
    }
}

impl SkippedLines {
    fn add(&mut self, error: InputError, on_invalid: OnInvalidLine) -> Result<(), InputError> {
        match on_invalid {
            OnInvalidLine::Stop => {
                Err(InputError { problem: format!("{}; --skip-invalid skips the line", error.problem), ..error })
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
    fn text(&self, index: usize) -> &str {
        self.record.get(index).unwrap_or_default()
    }

    /// A whole number of at least `min`.
    fn number(&self, index: usize, column: &str, min: i64) -> Result<i64, String> {
        let text = self.text(index);
        let number = text.parse().ok().filter(|number| (min..=MAX_SECONDS).contains(number));
        number.ok_or_else(|| format!("{column}: {text:?} is not a whole number from {min}"))
    }
}
