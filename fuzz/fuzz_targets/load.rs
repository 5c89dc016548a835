//! Any bytes: reading, loading and deciding ends with an answer or an error, never with a panic.

#![no_main]

#[path = "../../crates/cli/tests/ask/mod.rs"]
mod ask;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        ask::ask(text);
    }
});
