//! Where the programs are that make up a control plane, and `reprieve` itself.

use std::env;
use std::path::{Path, PathBuf};

/// A program that `cargo xtask e2e` built.
pub fn program(name: &str) -> PathBuf {
    let folder = env::var_os("REPRIEVE_CONTROL_PLANE").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| target().join("control-plane/bin"));
    found(folder.join(name), "`cargo xtask e2e` builds it")
}

/// The `reprieve` that is tested: what REPRIEVE names, or what was built beside the tests.
pub fn reprieve() -> PathBuf {
    let own = env::var_os("REPRIEVE").map(PathBuf::from);
    found(own.unwrap_or_else(|| profile().join("reprieve")), "`cargo build -p reprieve` builds it")
}

/// Where the logs of failed tests stay.
pub fn logs() -> PathBuf {
    target().join("e2e-logs")
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate is in crates/e2e")
}

fn found(path: PathBuf, how: &str) -> PathBuf {
    assert!(path.exists(), "{} is missing; {how}", path.display());
    path
}

/// Cargo's folder for what is built, of which this program is in `PROFILE/deps`.
fn target() -> PathBuf {
    profile().parent().expect("a profile is in a folder").to_owned()
}

fn profile() -> PathBuf {
    let own = env::current_exe().expect("a program knows where it is");
    let folder = own.parent().expect("a program is in a folder");
    if folder.ends_with("deps") { folder.parent().expect("deps is in a folder").to_owned() } else { folder.to_owned() }
}
