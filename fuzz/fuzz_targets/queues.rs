//! Any text as the queues of policy YuniKorn: nothing panics.

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
use reprieve_engine::policy::Policy;
use worlds::World;

static WORLD: LazyLock<Option<World>> =
    LazyLock::new(|| worlds::cases().into_iter().find(|world| world.policy == Policy::YuniKorn));

fuzz_target!(|text: &str| {
    if let Some(world) = &*WORLD {
        operations::queues(world, text);
    }
});
