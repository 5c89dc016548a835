//! Waiting for what a test expects.

use std::time::{Duration, Instant};

/// Asks until there is an answer, and fails when there is none after a minute.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "after a minute it still does not hold that {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
