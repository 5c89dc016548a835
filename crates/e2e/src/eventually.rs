//! Waits for a condition.

use std::time::{Duration, Instant};

/// Calls `check` until it returns a value, and panics if it has not after a minute.
pub async fn eventually<T>(condition: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = check().await {
            return value;
        }
        assert!(Instant::now() < end, "not true after a minute: {condition}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
