//! Reads objects from files, folders and standard input, with a progress bar for large files.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::complete::export_all;
use indicatif::ProgressBar;
use reprieve_api::controlled::PodController;
use reprieve_api::read::{Document, documents};
use reprieve_api::test_file::PreemptionTest;
use reprieve_api::{InputError, ObjectSet, Sourced};

use crate::progress;

/// The error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// A file could not be written.
    #[error("{}: cannot write this file: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    /// The result could not be printed.
    #[error("standard output: cannot write the result: {0}")]
    Output(io::Error),
    /// The input is invalid.
    #[error("{0}")]
    Input(#[from] InputError),
    /// The cluster cannot be read, or the scheduler cannot continue.
    #[error("{0}")]
    Cluster(#[from] reprieve_cluster::Error),
    /// The arguments are invalid.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// The error of a result that cannot be encoded.
    pub fn unprintable(error: impl std::fmt::Display) -> Self {
        InputError::new(format!("the result cannot be printed: {error}")).into()
    }
}

/// The objects of the input, and its question.
#[derive(Debug, Default)]
pub struct Input {
    /// The objects.
    pub objects: ObjectSet,
    /// The PreemptionTest, if the input begins with one.
    pub test: Option<Sourced<PreemptionTest>>,
}

/// Reads files, all YAML and JSON files below folders, and `-` for standard input. A path without an object is an error, and so is input
/// without any object that a decision reads.
pub fn read(paths: &[PathBuf]) -> Result<Input, Error> {
    let mut input = Input::default();
    let mut first = true;
    each_document(paths, &format!("write the output of this command into it: {}", export_all()), |document| {
        let before = total(&input.objects);
        let test = document.read(&mut input.objects)?;
        let holds_object = test.is_some() || total(&input.objects) > before;
        match test {
            Some(test) if first => input.test = Some(test),
            Some(test) => {
                let problem = "only the first document of the input may be a PreemptionTest; name one such file, alone";
                return Err(InputError::new(problem).at(&test.source).into());
            }
            None => {}
        }
        first = false;
        Ok(holds_object)
    })?;
    if input.test.is_none() && input.objects.is_empty() && input.objects.unreadable.is_empty() {
        let (files, kinds) = (names(paths), skipped(&input.objects));
        let problem = format!("{files}: no object that a decision reads, only {kinds}");
        let problem = format!("{problem}; add the output of: {}", export_all());
        return Err(InputError::new(problem).into());
    }
    Ok(input)
}

/// Reads the objects of `--submit`.
pub fn read_submitted(path: &Path, namespace: Option<&str>) -> Result<(ObjectSet, Vec<Sourced<PodController>>), Error> {
    let (mut objects, mut controlled) = (ObjectSet::default(), Vec::new());
    let advice = "add a Pod, a PodGroup with its pods, a Job, a Deployment, a ReplicaSet or a StatefulSet";
    each_document(&[path.to_owned()], advice, |document| {
        let before = total(&objects) + controlled.len();
        document.read_submitted(&mut objects, &mut controlled, namespace)?;
        Ok(total(&objects) + controlled.len() > before)
    })?;
    Ok((objects, controlled))
}

/// The kinds that no decision reads, with the number of objects in the input.
pub fn skipped(objects: &ObjectSet) -> String {
    let kinds: Vec<String> = objects.skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    kinds.join(", ")
}

/// The names of the files, separated by commas.
pub fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| name(path)).collect::<Vec<_>>().join(", ")
}

/// The name of the file.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// The number of objects read so far, including those that no decision reads.
fn total(objects: &ObjectSet) -> usize {
    objects.len() + objects.unreadable.len() + objects.skipped.values().sum::<usize>()
}

/// The YAML and JSON files that a path stands for, by name; folders are walked.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::Io { path: path.to_owned(), error };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort_unstable();
    let mut found = Vec::new();
    for entry in entries {
        let is_object_file = entry.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if entry.is_dir() || is_object_file {
            found.extend(files(&entry)?);
        }
    }
    Ok(found)
}

/// The text of a file; it must be UTF-8.
pub fn text_of(path: &Path) -> Result<String, Error> {
    let failed = |error| Error::Io { path: path.to_owned(), error };
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
        bytes
    } else {
        fs::read(path).map_err(failed)?
    };
    String::from_utf8(bytes).map_err(|error| {
        let index = error.utf8_error().valid_up_to();
        InputError::new(format!("{}: byte {index} is not UTF-8; save the file as UTF-8", path.display())).into()
    })
}

/// Calls `take` with each document; it returns whether the document contains an object. A path without any object is an error that ends
/// with the advice.
fn each_document(
    paths: &[PathBuf],
    advice: &str,
    mut take: impl FnMut(&Document<'_>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut all = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            all.push((path, vec![path.clone()]));
            continue;
        }
        let found = files(path)?;
        if found.is_empty() {
            let problem = format!(
                "{}: no .yaml, .yml or .json file in this folder; name another folder or a file",
                path.display()
            );
            return Err(InputError::new(problem).into());
        }
        all.push((path, found));
    }
    for (path, found) in all {
        let mut holds_object = false;
        let mut why = "no file in this folder contains one";
        let is_folder = found.len() > 1 || found.first() != Some(path);
        for path in found {
            let text = text_of(&path)?;
            let bar = reading(text.len() as u64, &path);
            let documents = documents(&name(&path), &text);
            if !is_folder {
                why = without_object(&text, &documents);
            }
            for document in documents {
                holds_object |= take(&document)?;
                bar.inc(document.len() as u64);
            }
            bar.finish_and_clear();
        }
        if !holds_object {
            let problem = format!("{}: no object: {why}; {advice}", name(path));
            return Err(InputError::new(problem).into());
        }
    }
    Ok(())
}

/// Why a text contains no object.
fn without_object(text: &str, documents: &[Document<'_>]) -> &'static str {
    match documents {
        [] if text.trim().is_empty() => "the input is empty",
        [] => "the input has only comments",
        _ => "the list has no items",
    }
}

/// A progress bar for files of at least 1 MiB.
fn reading(bytes: u64, path: &Path) -> ProgressBar {
    if bytes < 1 << 20 {
        return ProgressBar::hidden();
    }
    let bar = progress::bar(bytes, "{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    bar.with_message(format!("reading {}", path.display()))
}
