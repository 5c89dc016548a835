//! The same as a plugin of kubectl: `kubectl reprieve plan …`.

use std::process::ExitCode;

fn main() -> ExitCode {
    reprieve::command::main()
}
