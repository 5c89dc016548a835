//! Generates `deploy/manifests` from the chart with its default values. `fix` writes the file; `check` fails if it is not current.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::go;
use crate::tasks::{output, root};

/// A chart does not contain its namespace.
const HEAD: &str = "\
# Written from deploy/chart by `cargo xtask fix`. kubectl apply -f deploy/manifests/reprieve.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: reprieve-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
";

/// Fails if the file is not current.
pub fn check() -> Result<(), String> {
    if rendered()? == fs::read_to_string(file()).unwrap_or_default() {
        return Ok(());
    }
    Err(format!("{} is not current; run `cargo xtask fix`", file().display()))
}

/// Writes the file.
pub fn fix() -> Result<(), String> {
    fs::write(file(), rendered()?).map_err(|error| format!("{}: {error}", file().display()))
}

fn file() -> PathBuf {
    root().join("deploy/manifests/reprieve.yaml")
}

fn rendered() -> Result<String, String> {
    let arguments = ["template", "reprieve", "deploy/chart/reprieve", "--namespace", "reprieve-system"];
    Ok(format!("{HEAD}{}", output(Command::new(go::helm()?).args(arguments).current_dir(root()))?))
}
