//! The binary `reprieve`.

use std::process::ExitCode;

fn main() -> ExitCode {
    reprieve::command::main()
}
