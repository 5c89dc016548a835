//! Logs: a line for people, or a JSON object a line. `REPRIEVE_LOG` says how much.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFormat;

/// Begins to log, once in a process. What the client of the API has to say of failures is said by whoever asked.
pub fn begin(format: LogFormat) {
    let said = std::env::var("REPRIEVE_LOG").ok().and_then(|text| text.trim_end_matches(',').parse().ok());
    let usual = || Targets::new().with_default(LevelFilter::INFO).with_target("kube", LevelFilter::OFF);
    let registry = tracing_subscriber::registry().with(said.unwrap_or_else(usual));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let begun = match format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
        LogFormat::Text => {
            registry.with(layer.with_ansi(std::io::stderr().is_terminal()).with_target(false)).try_init()
        }
    };
    // Whoever began before goes on as it was.
    let _ = begun;
}
