//! Converts between the engine's timestamps, points in time and RFC 3339.

use jiff::Timestamp as Time;
use reprieve_api::InputError;
use reprieve_engine::Timestamp;

/// Returns the engine's timestamp of a point in time.
pub fn timestamp(time: Time) -> Timestamp {
    Timestamp(time.as_microsecond())
}

/// Returns the point in time of an engine's timestamp, if it is in the range of RFC 3339.
pub fn time(timestamp: Timestamp) -> Option<Time> {
    Time::from_microsecond(timestamp.0).ok()
}

/// Parses a time in RFC 3339.
pub fn parse_time(text: &str) -> Result<Time, InputError> {
    text.parse().map_err(|_| {
        InputError::new(format!("{text:?} is not a time; write it as RFC 3339, for example 2026-01-01T01:00:00Z"))
    })
}
