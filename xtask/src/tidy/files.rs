//! Lists the source files of the crates, and limits the length of a file.

use std::fs;
use std::path::{Path, PathBuf};

use super::crates::CRATES;
use super::relative;

/// A longer file has more than one purpose.
const MAX_LINES: usize = 600;

/// Files of shipped crates that are too long, counted with their tests.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for folder in crate_folders(root)? {
        if CRATES.iter().any(|entry| !entry.shipped && folder.ends_with(entry.folder)) {
            continue;
        }
        for file in sources(&folder.join("src"))? {
            let lines = read(&file)?.lines().count();
            if lines > MAX_LINES {
                violations.push(format!("{} has {lines} lines, more than {MAX_LINES}", relative(&file)));
            }
        }
    }
    Ok(violations)
}

/// The folders in `crates`, sorted.
pub fn crate_folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(entries(&root.join("crates"))?.into_iter().filter(|path| path.join("Cargo.toml").exists()).collect())
}

/// All Rust files in a folder and below, sorted.
pub fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The text of a file.
pub fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", relative(file)))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let problem = |error| format!("{}: {error}", relative(folder));
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        paths.push(entry.map_err(problem)?.path());
    }
    paths.sort();
    Ok(paths)
}
