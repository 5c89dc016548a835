//! `reprieve` on a real control plane: the tests of `crates/e2e`.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::go;
use crate::steps::{Step, TEST_FEATURES, cargo, cargo_with, release_folder, root};

pub const STEPS: [Step; 3] = [
    Step { name: "control plane", run: go::build },
    Step { name: "reprieve", run: || cargo(&["build", "--locked", "--release", "--package", "reprieve"]) },
    Step { name: "end to end", run: test },
];

pub const BENCH: [Step; 4] = [
    STEPS[0],
    Step { name: "kube-scheduler", run: go::build_peer },
    STEPS[1],
    Step { name: "side by side", run: || with_programs(&["run", "--locked", "--release", "--bin", "side-by-side"]) },
];

pub const SOAK: [Step; 3] = [STEPS[0], STEPS[1], Step { name: "soak", run: soak }];

/// For as many minutes as the command line says, or thirty.
fn soak() -> Result<(), String> {
    let minutes = std::env::args().nth(3).unwrap_or_else(|| "30".to_owned());
    with_programs(&["run", "--locked", "--release", "--bin", "soak", "--", &minutes])
}

/// Runs the tests. What they need is there. The whole workspace is named, as by those who test the rest, so that nothing on which they
/// depend is built twice.
pub fn test() -> Result<(), String> {
    let folder = root().join("crates/e2e/tests");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = files.flatten().filter_map(|file| stem(&file.path())).collect();
    names.sort_unstable();
    let features = format!("{TEST_FEATURES},reprieve-e2e/control-plane");
    let mut words = vec!["test", "--locked", "--workspace", "--features", &features];
    words.extend(names.iter().flat_map(|name| ["--test", name]));
    // Each test has a control plane of its own, which takes a core.
    words.extend(["--", "--test-threads=2"]);
    cargo_with(&words, &programs()?)
}

fn stem(path: &Path) -> Option<String> {
    (path.extension()? == "rs").then(|| path.file_stem()?.to_str().map(str::to_owned))?
}

fn programs() -> Result<[(&'static str, OsString); 2], String> {
    Ok([
        ("REPRIEVE_CONTROL_PLANE", go::folder()?.into_os_string()),
        ("REPRIEVE", release_folder()?.join("reprieve").into_os_string()),
    ])
}

/// Runs a command of cargo on the package, which finds its programs by the environment.
fn with_programs(words: &[&str]) -> Result<(), String> {
    let package = ["--package", "reprieve-e2e", "--features", "control-plane"];
    let words: Vec<&str> = words[..2].iter().chain(&package).chain(&words[2..]).copied().collect();
    cargo_with(&words, &programs()?)
}
