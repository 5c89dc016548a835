//! The kubectl plugin: `kubectl reprieve plan …` runs the `reprieve` program in the same folder with the same arguments.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let reprieve = match std::env::current_exe() {
        Ok(own) => own.with_file_name("reprieve"),
        Err(_) => "reprieve".into(),
    };
    let error = Command::new(&reprieve).args(std::env::args_os().skip(1)).exec();
    eprintln!("error: {}: {error}; install reprieve into the same folder", reprieve.display());
    ExitCode::FAILURE
}
