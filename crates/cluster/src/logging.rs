//! Logs to standard error, as text or as one JSON object per line. The variable `REPRIEVE_LOG` sets the level.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFormat;

/// Starts logging, once per process. The messages of the client library are off because its callers log every failure.
pub fn init(format: LogFormat) {
    let configured = std::env::var("REPRIEVE_LOG").ok().and_then(|text| text.trim_end_matches(',').parse().ok());
    let default = || Targets::new().with_default(LevelFilter::INFO).with_target("kube", LevelFilter::OFF);
    let registry = tracing_subscriber::registry().with(configured.unwrap_or_else(default));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // Fails if logging is already started, which then stays as it is.
    let _ = match format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
        LogFormat::Text => {
            registry.with(layer.with_ansi(std::io::stderr().is_terminal()).with_target(false)).try_init()
        }
    };
}
