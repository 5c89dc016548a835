//! The table of the crates and their permitted dependencies.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;

use crate::tasks::{output, root};

/// A crate: its folder in `crates`, whether it is part of the product, and the crates it may depend on.
pub struct Crate {
    pub folder: &'static str,
    pub shipped: bool,
    depends_on: &'static [&'static str],
}

/// Crates whose tests, too, may use no other crate than those in the table: the checker shares no code with what it checks.
const INDEPENDENT: &[&str] = &["checker"];

/// All crates. Development dependencies are restricted only in [`INDEPENDENT`] crates.
pub const CRATES: [Crate; 12] = [
    shipped("api", &[]),
    shipped("engine", &[]),
    shipped("loader", &["api", "engine"]),
    shipped("report", &["api", "engine", "loader"]),
    shipped("translate", &["api", "engine", "loader"]),
    shipped("scheduler", &["api", "engine", "loader", "report"]),
    shipped("simulator", &["api", "engine", "loader", "report", "translate", "scheduler", "checker"]),
    shipped("cluster", &["api", "engine", "loader", "report", "scheduler"]),
    shipped("checker", &["api"]),
    shipped("cli", &["api", "engine", "loader", "report", "translate", "scheduler", "simulator", "cluster", "checker"]),
    Crate { folder: "testkit", shipped: false, depends_on: &["api", "engine", "loader", "report", "translate"] },
    Crate { folder: "e2e", shipped: false, depends_on: &[] },
];

const fn shipped(folder: &'static str, depends_on: &'static [&'static str]) -> Crate {
    Crate { folder, shipped: true, depends_on }
}

/// Dependencies and crates that are missing in the table, and crates that exist only in the table.
pub fn violations() -> Result<Vec<String>, String> {
    let found = dependencies()?;
    let mut violations = differences(&found);
    for entry in CRATES.iter().filter(|entry| !found.contains_key(entry.folder)) {
        violations.push(format!("crates/{} does not exist, but it is in the table of crates", entry.folder));
    }
    Ok(violations)
}

/// Dependencies and crates that are missing in the table.
fn differences(found: &Dependencies) -> Vec<String> {
    let mut violations = Vec::new();
    for (folder, depends_on) in found {
        let Some(entry) = CRATES.iter().find(|entry| entry.folder == folder) else {
            violations.push(format!("crates/{folder} is not in the table of crates"));
            continue;
        };
        for (dependency, is_for_tests) in depends_on {
            let is_restricted = !is_for_tests || INDEPENDENT.contains(&entry.folder);
            if is_restricted && !entry.depends_on.contains(&dependency.as_str()) {
                violations.push(format!("{folder} must not depend on {dependency}"));
            }
        }
    }
    violations
}

/// By folder: the crates of the workspace that a crate depends on, and whether only its tests do.
type Dependencies = BTreeMap<String, Vec<(String, bool)>>;

fn dependencies() -> Result<Dependencies, String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        manifest_path: String,
        dependencies: Vec<Dependency>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        /// `dev`, `build`, or none for a normal dependency.
        kind: Option<String>,
        path: Option<String>,
    }

    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let text = output(
        Command::new(cargo).args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root()),
    )?;
    let metadata: Metadata = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let folder = root().join("crates");
    let name = |path: &str| {
        let inside = std::path::Path::new(path).strip_prefix(&folder).ok()?;
        Some(inside.components().next()?.as_os_str().to_string_lossy().into_owned())
    };
    let mut found = BTreeMap::new();
    for package in metadata.packages {
        let Some(folder) = name(&package.manifest_path) else { continue };
        let inside = package.dependencies.iter().filter_map(|dependency| {
            let is_for_tests = dependency.kind.as_deref() == Some("dev");
            Some((name(dependency.path.as_ref()?)?, is_for_tests))
        });
        found.insert(folder, inside.collect());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dependencies_of_tests_are_not_restricted() {
        for (folder, dependency, is_for_tests, is_allowed) in [
            ("engine", "api", false, false),
            ("scheduler", "simulator", true, true),
            ("checker", "api", false, true),
            ("checker", "api", true, true),
            ("checker", "loader", true, false),
            ("unknown", "api", true, false),
        ] {
            let found = Dependencies::from([(folder.to_owned(), vec![(dependency.to_owned(), is_for_tests)])]);
            assert_eq!(differences(&found).is_empty(), is_allowed, "{folder} {dependency} {is_for_tests}");
        }
    }
}
