//! The plain manifests in `deploy/manifests` are what Helm makes of the chart with the values as they come; a file that is not current fails.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::go;
use crate::tasks::{output, root};

/// Helm leaves the namespace to whoever installs.
const HEAD: &str = "\
# Written from deploy/chart by `cargo xtask fix`. kubectl apply -f deploy/manifests/reprieve.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: reprieve-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
";

/// Whether the file is as it would be written.
pub fn check() -> Result<(), String> {
    if rendered()? == fs::read_to_string(file()).unwrap_or_default() {
        return Ok(());
    }
    Err(format!("{} is not what the chart says; `cargo xtask fix` writes it anew", file().display()))
}

/// Writes the file.
pub fn fix() -> Result<(), String> {
    fs::write(file(), rendered()?).map_err(|error| format!("{}: {error}", file().display()))
}

fn file() -> PathBuf {
    root().join("deploy/manifests/reprieve.yaml")
}

fn rendered() -> Result<String, String> {
    let words = ["template", "reprieve", "deploy/chart/reprieve", "--namespace", "reprieve-system"];
    Ok(format!("{HEAD}{}", output(Command::new(go::helm()?).args(words).current_dir(root()))?))
}
