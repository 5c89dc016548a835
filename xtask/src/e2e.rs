//! `reprieve` on a real control plane: the tests of `crates/e2e`.

use crate::go;
use crate::steps::{Step, cargo, cargo_with, release_folder};

pub const STEPS: [Step; 3] = [
    Step { name: "control plane", run: go::build },
    Step { name: "reprieve", run: || cargo(&["build", "--locked", "--release", "--package", "reprieve"]) },
    Step { name: "end to end", run: test },
];

/// Runs the tests. What they need is there.
pub fn test() -> Result<(), String> {
    let programs = [
        ("REPRIEVE_CONTROL_PLANE", go::folder()?.into_os_string()),
        ("REPRIEVE", release_folder()?.join("reprieve").into_os_string()),
    ];
    cargo_with(&["test", "--locked", "--package", "reprieve-e2e", "--features", "control-plane"], &programs)
}
