//! `reprieve` on a real control plane: the tests of `crates/e2e`.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::tasks::{Step, TEST_FEATURES, cargo, cargo_with, release_folder, root};
use crate::{go, ship};

pub const STEPS: [Step; 3] = [
    Step { name: "control plane", run: go::build },
    Step { name: "reprieve", run: || cargo(&["build", "--locked", "--release", "--package", "reprieve"]) },
    Step { name: "end to end", run: test },
];

pub const BENCH: [Step; 6] = [
    ship::STEPS[0],
    ship::STEPS[1],
    ship::STEPS[2],
    ship::STEPS[3],
    Step { name: "kube-scheduler", run: go::build_peer },
    Step { name: "side by side", run: side_by_side },
];

pub const SOAK: [Step; 3] = [
    STEPS[0],
    STEPS[1],
    Step { name: "soak", run: || soak(&std::env::args().nth(3).unwrap_or_else(|| "30".to_owned()), &programs()?[1..]) },
];

/// As it is shipped: so it is measured.
fn side_by_side() -> Result<(), String> {
    let [control_plane, _] = programs()?;
    let reprieve = ("REPRIEVE", ship::path()?.into_os_string());
    // Whoever measures is to take little of the machine.
    harness(&["--bin", "side-by-side", "--release"], &[control_plane, reprieve])
}

/// Arrivals and preemptions for so many minutes.
pub fn soak(minutes: &str, variables: &[(&str, OsString)]) -> Result<(), String> {
    let [control_plane, _] = programs()?;
    let variables: Vec<_> = [control_plane].into_iter().chain(variables.iter().cloned()).collect();
    harness(&["--bin", "soak", "--", minutes], &variables)
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

/// Runs a program of the package, which finds those that it needs by the environment.
fn harness(words: &[&str], variables: &[(&str, OsString)]) -> Result<(), String> {
    let run = ["run", "--locked", "--package", "reprieve-e2e", "--features", "control-plane"];
    let words: Vec<&str> = run.iter().chain(words).copied().collect();
    cargo_with(&words, variables)
}
