//! A result that cannot be written is an error with status 1 under every command, so that an incomplete result is never mistaken for a decision.

#![cfg(target_os = "linux")] // /dev/full fails every write

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const CASE: &str = "conformance/kubernetes-pod/lowest-of-three-is-enough.yaml";
const SCENARIO: &str = "docs/examples/scenarios/training-job.yaml";

fn reprieve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.args(arguments).current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

fn full() -> File {
    File::options().write(true).open("/dev/full").expect("the device is there")
}

fn failed(output: &Output, arguments: &[&str], parts: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{arguments:?}: {part:?} is missing in {stderr}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_every_command() {
    for arguments in [
        ["plan", "-f", CASE].as_slice(),
        &["plan", "-f", CASE, "-o", "json"],
        &["plan", "-f", CASE, "-o", "yaml"],
        &["plan", "-f", CASE, "-o", "name"],
        &["plan", "-f", CASE, "-o", "test"],
        &["plan", "--cycle", "-f", "docs/examples/kueue-cycle.yaml"],
        &["compare", "-f", CASE],
        &["compare", "-f", CASE, "-o", "json"],
        &["compare", "-f", CASE, "-o", "html"],
        &["test", CASE],
        &["test", CASE, "-o", "json"],
        &["test", CASE, "-o", "junit"],
        &["simulate", SCENARIO, "--until", "1h"],
        &["simulate", SCENARIO, "--until", "1h", "-o", "csv"],
        &["simulate", "--check", "--seeds", "1", "--policy", "Kubernetes"],
        &["demo"],
        &["--help"],
        &["plan", "--help"],
        &["--version"],
    ] {
        let output = reprieve(arguments).stdout(full()).output().expect("reprieve runs");
        failed(&output, arguments, &["standard output", "No space left on device"]);
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_that_names_its_file() {
    for file in ["/dev/full", "/nonexistent/report.html"] {
        let arguments = ["simulate", SCENARIO, "--until", "1h", "--report", file];
        failed(&reprieve(&arguments).output().expect("reprieve runs"), &arguments, &[file]);
    }
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    for arguments in [["plan", "-f", CASE].as_slice(), &["test", CASE], &["compare", "-f", CASE]] {
        let mut child = reprieve(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        failed(&output, arguments, &[]);
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn an_error_that_cannot_be_printed_is_still_an_error() {
    let output = reprieve(&["plan", "-f", "missing.yaml", "--for", "pod/x"]).stderr(full()).output();
    assert_eq!(output.expect("reprieve runs").status.code(), Some(1));
}
