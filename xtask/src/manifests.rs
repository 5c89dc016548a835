//! Generates `deploy/manifests` from the chart with its default values, and the admission policies, which are off by default. `fix` writes
//! the files; `check` fails if one is not current.

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

/// The first line of the file with the admission policies.
const POLICIES_HEAD: &str =
    "# Written from deploy/chart by `cargo xtask fix`. kubectl apply -f deploy/manifests/admission-policies.yaml\n";

/// Fails if a file is not current.
pub fn check() -> Result<(), String> {
    for (file, text) in rendered()? {
        if text != fs::read_to_string(&file).unwrap_or_default() {
            return Err(format!("{} is not current; run `cargo xtask fix`", file.display()));
        }
    }
    Ok(())
}

/// Writes the files.
pub fn fix() -> Result<(), String> {
    for (file, text) in rendered()? {
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// Each file with its text.
fn rendered() -> Result<[(PathBuf, String); 2], String> {
    let policies = ["--set=admissionPolicies.enabled=true", "--show-only=templates/admission-policies.yaml"];
    let file = |name: &str| root().join("deploy/manifests").join(name);
    Ok([
        (file("reprieve.yaml"), format!("{HEAD}{}", template(&[])?)),
        (file("admission-policies.yaml"), format!("{POLICIES_HEAD}{}", template(&policies)?)),
    ])
}

fn template(more: &[&str]) -> Result<String, String> {
    let arguments = ["template", "reprieve", "deploy/chart/reprieve", "--namespace", "reprieve-system"];
    output(Command::new(go::helm()?).args(arguments).args(more).current_dir(root()))
}
