//! Decides one question several times, always from the same state, because a decision undoes its changes. For tools that count instructions
//! or take samples:
//!
//! ```text
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*repeat::measured*' repeat NAME TIMES
//! ```

use std::hint::black_box;

use reprieve_engine::Outcome;
use reprieve_loader::build::Loaded;
use reprieve_loader::policy::Question;
use reprieve_testkit::goals::benchmark;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let benchmark = args.first().and_then(|name| benchmark(name));
    let times = args.get(1).and_then(|times| times.parse().ok());
    let (Some(benchmark), Some(times)) = (benchmark, times) else {
        eprintln!("usage: repeat NAME TIMES, with the name of a benchmark in crates/testkit/src/goals.rs");
        std::process::exit(2);
    };
    let scenario = (benchmark.build)();
    let (mut loaded, question) = scenario.load();
    // Panics if the decision is not the expected one.
    scenario.check(&mut loaded, &question);
    for _ in 0..times {
        black_box(measured(&mut loaded, &question));
    }
}

/// Never inlined, so that tools can select this function.
#[inline(never)]
fn measured(loaded: &mut Loaded, question: &Question) -> Outcome {
    question.decide(loaded)
}
