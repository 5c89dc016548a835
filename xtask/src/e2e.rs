//! `reprieve` on a real control plane: the tests of `crates/e2e`.

use crate::go;
use crate::steps::{Step, cargo, cargo_with, release_folder};

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

/// Runs the tests. What they need is there.
pub fn test() -> Result<(), String> {
    // Each test has a control plane of its own, which takes a core.
    with_programs(&["test", "--locked", "--", "--test-threads=2"])
}

/// Runs a command of cargo on the package, which finds its programs by the environment.
fn with_programs(words: &[&str]) -> Result<(), String> {
    let programs = [
        ("REPRIEVE_CONTROL_PLANE", go::folder()?.into_os_string()),
        ("REPRIEVE", release_folder()?.join("reprieve").into_os_string()),
    ];
    let package = ["--package", "reprieve-e2e", "--features", "control-plane"];
    let words: Vec<&str> = words[..2].iter().chain(&package).chain(&words[2..]).copied().collect();
    cargo_with(&words, &programs)
}
