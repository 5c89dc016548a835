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

/// All crates. Development dependencies are not restricted.
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
    let mut violations = Vec::new();
    for (folder, depends_on) in &found {
        let Some(entry) = CRATES.iter().find(|entry| entry.folder == folder) else {
            violations.push(format!("crates/{folder} is not in the table of crates"));
            continue;
        };
        for dependency in depends_on.iter().filter(|name| !entry.depends_on.contains(&name.as_str())) {
            violations.push(format!("{folder} must not depend on {dependency}"));
        }
    }
    for entry in CRATES.iter().filter(|entry| !found.contains_key(entry.folder)) {
        violations.push(format!("crates/{} does not exist, but it is in the table of crates", entry.folder));
    }
    Ok(violations)
}

/// The crates of the workspace that each crate depends on, by folder.
fn dependencies() -> Result<BTreeMap<String, Vec<String>>, String> {
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
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        let inside = normal.filter_map(|dependency| name(dependency.path.as_ref()?));
        found.insert(folder, inside.collect());
    }
    Ok(found)
}
