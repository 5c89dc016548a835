//! Logs: a line for people, or a JSON object a line. `REPRIEVE_LOG` says how much.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Begins to log, once in a process. What the client of the API has to say of failures is said by whoever asked.
pub fn begin(format: LogFormat) {
    let filter = EnvFilter::try_from_env("REPRIEVE_LOG").unwrap_or_else(|_| EnvFilter::new("info,kube=off"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let begun = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
    };
    // Whoever began before goes on as it was.
    let _ = begun;
}
