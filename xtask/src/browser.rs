//! Finds the browser for the tests of the HTML pages. If none exists, it is installed on Debian; elsewhere the step fails and names what to
//! install.

use std::path::Path;
use std::process::Command;

/// The names under which the tests search for a browser.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Fails if there is no browser and none can be installed.
pub fn check() -> Result<(), String> {
    if let Ok(own) = std::env::var("CHROMIUM") {
        return if can_run(&own) { Ok(()) } else { Err(format!("CHROMIUM names {own}, which cannot be run")) };
    }
    if NAMES.into_iter().any(can_run) {
        return Ok(());
    }
    let missing = "the tests of the pages need a browser: install chromium (on Debian: apt-get install chromium), \
                   or name one with CHROMIUM=PATH";
    if !Path::new("/etc/debian_version").exists() {
        return Err(missing.to_owned());
    }
    eprintln!("no browser found; installing chromium");
    for arguments in [&["update"][..], &["install", "--yes", "--no-install-recommends", "chromium"]] {
        let command_line = format!("apt-get {}", arguments.join(" "));
        let mut command = Command::new("apt-get");
        match command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{missing}; `{command_line}` ended with {status}")),
            Err(error) => return Err(format!("{missing}; cannot run `{command_line}`: {error}")),
        }
    }
    if can_run("chromium") { Ok(()) } else { Err("chromium is installed but cannot be run".to_owned()) }
}

fn can_run(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}
