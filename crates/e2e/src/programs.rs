//! Finds the programs of the control plane and `reprieve`.

use std::env;
use std::path::{Path, PathBuf};

/// The path of a program that `cargo xtask e2e` builds.
pub fn program(name: &str) -> PathBuf {
    let folder = env::var_os("REPRIEVE_CONTROL_PLANE").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| target().join("control-plane/bin"));
    existing(folder.join(name), "`cargo xtask e2e` builds it")
}

/// The tested `reprieve`: the path in the variable REPRIEVE, or the build next to the tests.
pub fn reprieve() -> PathBuf {
    let own = env::var_os("REPRIEVE").map(PathBuf::from);
    existing(own.unwrap_or_else(|| profile().join("reprieve")), "`cargo build -p reprieve` builds it")
}

/// The folder for the logs of failed tests.
pub fn logs() -> PathBuf {
    target().join("e2e-logs")
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate is in crates/e2e")
}

fn existing(path: PathBuf, how: &str) -> PathBuf {
    assert!(path.exists(), "{} is missing; {how}", path.display());
    path
}

/// Cargo's target folder; this program is in `PROFILE/deps` below it.
fn target() -> PathBuf {
    profile().parent().expect("a profile is in a folder").to_owned()
}

fn profile() -> PathBuf {
    let own = env::current_exe().expect("the path of this program");
    let folder = own.parent().expect("a program is in a folder");
    if folder.ends_with("deps") { folder.parent().expect("deps is in a folder").to_owned() } else { folder.to_owned() }
}
