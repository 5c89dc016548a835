//! Moments, as the engine counts them and as people write them.

use jiff::Timestamp as Time;
use reprieve_api::InputError;
use reprieve_engine::Timestamp;

/// A moment as the engine counts it.
pub fn timestamp(time: Time) -> Timestamp {
    Timestamp(time.as_microsecond())
}

/// A moment as people write it.
pub fn time(timestamp: Timestamp) -> Option<Time> {
    Time::from_microsecond(timestamp.0).ok()
}

/// A moment in RFC 3339.
pub fn parse_time(text: &str) -> Result<Time, InputError> {
    text.parse().map_err(|_| InputError::new(format!("{text:?} is not a time; write it as in 2026-01-01T01:00:00Z")))
}
