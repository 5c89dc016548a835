//! Bytes choose operations on a snapshot cache: nothing panics.

#![no_main]

#[path = "../../crates/testkit/tests/isolation/answers.rs"]
mod answers;
#[path = "../../crates/testkit/tests/isolation/operations.rs"]
#[allow(dead_code)]
mod operations;
#[path = "../../crates/testkit/tests/isolation/worlds.rs"]
#[allow(dead_code)]
mod worlds;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use worlds::World;

static WORLDS: LazyLock<Vec<World>> = LazyLock::new(worlds::cases);

fuzz_target!(|bytes: &[u8]| operations::cache(&WORLDS, bytes));
