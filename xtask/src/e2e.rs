//! Runs the tests and programs of `crates/e2e`, which use `reprieve` on a real control plane.

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
    Step { name: "kube-scheduler", run: go::build_kube_scheduler },
    Step { name: "side by side", run: side_by_side },
];

pub const SOAK: [Step; 3] = [
    STEPS[0],
    STEPS[1],
    Step { name: "soak", run: || soak(&std::env::args().nth(3).unwrap_or_else(|| "30".to_owned()), &programs()?[1..]) },
];

/// Measures the release binary of `ship`.
fn side_by_side() -> Result<(), String> {
    let [control_plane, _] = programs()?;
    let reprieve = ("REPRIEVE", ship::path()?.into_os_string());
    // A release build of the harness takes little CPU time from the measured programs.
    harness(&["--bin", "side-by-side", "--release"], &[control_plane, reprieve])
}

/// Runs arrivals and preemptions for this many minutes.
pub fn soak(minutes: &str, variables: &[(&str, OsString)]) -> Result<(), String> {
    let [control_plane, _] = programs()?;
    let variables: Vec<_> = [control_plane].into_iter().chain(variables.iter().cloned()).collect();
    harness(&["--bin", "soak", "--", minutes], &variables)
}

/// Runs the tests; the programs they need are already built. The workspace and features are those of the other tests, so that cargo builds no
/// dependency twice.
pub fn test() -> Result<(), String> {
    let folder = root().join("crates/e2e/tests");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = files.flatten().filter_map(|file| stem(&file.path())).collect();
    names.sort_unstable();
    let features = format!("{TEST_FEATURES},reprieve-e2e/control-plane");
    let mut arguments = vec!["test", "--locked", "--workspace", "--features", &features];
    arguments.extend(names.iter().flat_map(|name| ["--test", name]));
    // Each test has a control plane of its own, which needs about one core.
    arguments.extend(["--", "--test-threads=2"]);
    cargo_with(&arguments, &programs()?)
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

/// Runs a program of the package; environment variables name the programs that it starts.
fn harness(arguments: &[&str], variables: &[(&str, OsString)]) -> Result<(), String> {
    let run = ["run", "--locked", "--package", "reprieve-e2e", "--features", "control-plane"];
    let arguments: Vec<&str> = run.iter().chain(arguments).copied().collect();
    cargo_with(&arguments, variables)
}
