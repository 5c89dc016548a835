//! The same as a plugin of kubectl: `kubectl reprieve plan …`. It hands everything to the `reprieve` that lies beside it.

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
