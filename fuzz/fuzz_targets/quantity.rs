//! Any text as a quantity: nothing panics.

#![no_main]

#[path = "../../crates/testkit/tests/isolation/answers.rs"]
mod answers;
#[path = "../../crates/testkit/tests/isolation/operations.rs"]
#[allow(dead_code)]
mod operations;
#[path = "../../crates/testkit/tests/isolation/test_clusters.rs"]
#[allow(dead_code)]
mod test_clusters;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| operations::quantity(text));
