//! The browser in which the pages are tested. Where it is missing and Debian's packages can be installed, it is; elsewhere a person is
//! told what is missing.

use std::path::Path;
use std::process::Command;

/// By these names the tests look for one.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// There is one, or nothing else is tried.
pub fn check() -> Result<(), String> {
    if let Ok(own) = std::env::var("CHROMIUM") {
        return if answers(&own) { Ok(()) } else { Err(format!("CHROMIUM names {own}, which cannot be run")) };
    }
    if NAMES.into_iter().any(answers) {
        return Ok(());
    }
    let missing = "the tests of the pages need a browser: install chromium (on Debian: apt-get install chromium), \
                   or name one with CHROMIUM=PATH";
    if !Path::new("/etc/debian_version").exists() {
        return Err(missing.to_owned());
    }
    eprintln!("no browser is there; installing chromium");
    for arguments in [&["update"][..], &["install", "--yes", "--no-install-recommends", "chromium"]] {
        let shown = format!("apt-get {}", arguments.join(" "));
        let mut command = Command::new("apt-get");
        match command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{missing}; `{shown}` ended with {status}")),
            Err(error) => return Err(format!("{missing}; `{shown}` could not be run: {error}")),
        }
    }
    if answers("chromium") { Ok(()) } else { Err("chromium was installed and still cannot be run".to_owned()) }
}

fn answers(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}
