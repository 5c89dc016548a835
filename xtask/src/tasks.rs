//! The steps of `verify` and `fix`, and the functions with which all tasks run steps and programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::{browser, crds, docs, e2e, go, kinds, manifests, tidy};

/// A step of a task.
#[derive(Clone, Copy)]
pub struct Step {
    pub name: &'static str,
    pub run: fn() -> Result<(), String>,
}

/// The cargo features of the test build.
pub const TEST_FEATURES: &str = "reprieve-simulator/deliberate-bugs";

pub const VERIFY: &[Step] = &[
    Step { name: "formatting", run: || cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", run: tidy::check },
    Step {
        name: "lints",
        run: || {
            let features = "reprieve-e2e/control-plane";
            cargo(&[
                "clippy",
                "--locked",
                "--workspace",
                "--all-targets",
                "--features",
                features,
                "--",
                "-D",
                "warnings",
            ])
        },
    },
    Step { name: "browser", run: browser::check },
    Step { name: "tests", run: || cargo(&["test", "--locked", "--workspace", "--features", TEST_FEATURES]) },
    Step {
        name: "library",
        run: || {
            let deny = [("RUSTDOCFLAGS", OsString::from("-D warnings"))];
            cargo_with(&["doc", "--locked", "--workspace", "--no-deps"], &deny)
        },
    },
    Step { name: "custom resources", run: crds::check },
    Step { name: "documentation", run: || docs::check() },
    Step {
        name: "fault campaign",
        run: || cargo(&["run", "--locked", "--release", "-q", "--", "simulate", "--check", "--seeds", "50"]),
    },
    Step { name: "conformance", run: || cargo(&["run", "--locked", "--release", "-q", "--", "test", "conformance"]) },
    Step { name: "control plane", run: go::build },
    Step { name: "manifests", run: manifests::check },
    Step { name: "end to end", run: e2e::test },
];

pub const FIX: [Step; 6] = [
    Step {
        name: "lints",
        run: || cargo(&["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace", "--all-targets"]),
    },
    Step { name: "formatting", run: || cargo(&["fmt", "--all"]) },
    Step { name: "custom resources", run: crds::fix },
    Step { name: "kinds", run: kinds::fix },
    Step { name: "documentation", run: || docs::fix() },
    Step { name: "manifests", run: manifests::fix },
];

/// Runs the steps until one fails, and prints the result and duration of each.
pub fn run(steps: &[Step]) -> ExitCode {
    let mut durations: Vec<Duration> = Vec::new();
    let mut failure = None;
    for (index, step) in steps.iter().enumerate() {
        eprintln!("\n[{}/{}] {}", index + 1, steps.len(), step.name);
        let start = Instant::now();
        let result = (step.run)();
        durations.push(start.elapsed());
        if let Err(problem) = result {
            failure = Some(problem);
            break;
        }
    }
    eprintln!();
    for (index, step) in steps.iter().enumerate() {
        let state = match durations.get(index) {
            None => "not run".to_owned(),
            Some(time) if failure.is_some() && index + 1 == durations.len() => {
                format!("FAILED  {:7.1} s", time.as_secs_f64())
            }
            Some(time) => format!("ok      {:7.1} s", time.as_secs_f64()),
        };
        eprintln!("{:20} {state}", step.name);
    }
    match failure {
        None => {
            eprintln!("all steps passed");
            ExitCode::SUCCESS
        }
        Some(problem) => {
            eprintln!("{}: {problem}", steps[durations.len() - 1].name);
            ExitCode::FAILURE
        }
    }
}

/// Runs cargo in the root of the repository.
pub fn cargo(arguments: &[&str]) -> Result<(), String> {
    cargo_with(arguments, &[])
}

/// Runs cargo in the root of the repository, with these variables.
pub fn cargo_with(arguments: &[&str], variables: &[(&str, OsString)]) -> Result<(), String> {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().cloned()).current_dir(root());
    let command_line = format!("cargo {}", arguments.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command_line}` ended with {status}")),
        Err(error) => Err(format!("cannot run `{command_line}`: {error}")),
    }
}

/// Runs a program and returns its standard output; an error if its exit status is not 0.
pub fn output(command: &mut Command) -> Result<String, String> {
    let command_line = format!("{command:?}");
    let output = command.output().map_err(|error| format!("cannot run {command_line}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command_line} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder in the repository")
}

/// The folder of cargo's release builds.
pub fn release_folder() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("release"))
}

/// Cargo's target folder, which contains this program.
pub fn target_folder() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find the path of this program: {error}"))?;
    let target = own.parent().and_then(Path::parent).ok_or("this program is not in a target folder")?;
    Ok(target.to_owned())
}
