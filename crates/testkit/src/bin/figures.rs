//! Times every decision and prints one line for each: name, kind, goal, median, fastest, and the time of kube-scheduler or Kueue with a note,
//! separated by tabs, times in nanoseconds. `cargo xtask bench` prints them as a table.
//!
//!     figures [--quick] [NAME...]

use std::hint::black_box;
use std::time::{Duration, Instant};

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::Question;
use reprieve_testkit::goals::{
    Benchmark, CYCLES, DECISIONS, EXPLAINED, GROWTH, GROWTH_GOAL, LOAD_JSON_GOAL, LOAD_YAML_GOAL, TREE_GOAL, TREES,
};
use reprieve_testkit::scale::{self, Scenario};

fn main() {
    let (flags, names): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let quick = flags.iter().any(|flag| flag == "--quick");
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let time_limit = Duration::from_millis(if quick { 200 } else { 3000 });
    for benchmark in DECISIONS.iter().filter(|benchmark| is_wanted(benchmark.name)) {
        decision(benchmark, time_limit);
    }
    for benchmark in CYCLES.iter().filter(|benchmark| is_wanted(benchmark.name)) {
        cycle(benchmark, time_limit);
    }
    if is_wanted("growth") {
        compared(GROWTH, GROWTH_GOAL, time_limit);
    }
    if is_wanted("trees") {
        TREES.iter().for_each(|pair| compared(pair, TREE_GOAL, time_limit));
    }
    if is_wanted("load") {
        loading(if quick { 1 } else { 5 });
    }
}

fn decision(benchmark: &Benchmark, time_limit: Duration) {
    let scenario = (benchmark.build)();
    let (mut loaded, question) = scenario.load();
    scenario.check(&mut loaded, &question);
    let times = Times::of(repeated(time_limit, || question.decide(&mut loaded)));
    let peer = benchmark.peer.map(|peer| (peer.median, peer.note));
    line(benchmark.name, "decision", benchmark.goal, &times, peer);
    if EXPLAINED.contains(&benchmark.name) {
        let times = Times::of(repeated(time_limit, || question.decide_and_explain(&mut loaded)));
        line(&format!("explain-{}", benchmark.name), "time", None, &times, None);
    }
}

fn cycle(benchmark: &Benchmark, time_limit: Duration) {
    let scenario = (benchmark.build)();
    let (loaded, question) = scenario.load();
    scenario.check_cycle(&loaded, &question);
    let times = Times::of(repeated(time_limit, || scenario.cycle(&loaded, &question)));
    line(benchmark.name, "time", benchmark.goal, &times, None);
}

/// Times the benchmarks alternately in several rounds, so that a disturbance does not affect only one of them. `goal` is the maximum ratio of each
/// time to the one before it.
fn compared(benchmarks: &[Benchmark], goal: f64, time_limit: Duration) {
    const ROUNDS: usize = 5;
    let mut cases: Vec<(Loaded, Question)> = benchmarks
        .iter()
        .map(|benchmark| {
            let scenario = (benchmark.build)();
            let (mut loaded, question) = scenario.load();
            scenario.check(&mut loaded, &question);
            (loaded, question)
        })
        .collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for ((loaded, question), times) in cases.iter_mut().zip(&mut times) {
            times.extend(repeated(time_limit / ROUNDS as u32, || question.decide(loaded)));
        }
    }
    let times: Vec<Times> = times.into_iter().map(Times::of).collect();
    for (benchmark, times) in benchmarks.iter().zip(&times) {
        line(benchmark.name, "time", None, times, None);
    }
    for (pair, sizes) in times.windows(2).zip(benchmarks.windows(2)) {
        let ratio = pair[1].median.as_secs_f64() / pair[0].median.as_secs_f64();
        println!("{} to {}\tratio\t{goal}\t{ratio:.2}\t\t\t", sizes[0].name, sizes[1].name);
    }
}

fn loading(times: usize) {
    let scenario = scale::pod(5000, 20);
    let texts = [
        ("load-json-5000x20", LOAD_JSON_GOAL, scenario.json()),
        ("load-yaml-5000x20", LOAD_YAML_GOAL, scenario.yaml()),
    ];
    for (name, goal, text) in texts {
        line(name, "time", Some(goal), &load_times(&scenario, times, || load_text(&text)), None);
    }
    // The part that is not parsing.
    let load = || load(&scenario.objects, OnInvalid::Reject).expect("the scenario's objects are sound");
    line("load-objects-5000x20", "time", None, &load_times(&scenario, times, load), None);
}

/// The loaded objects are checked after the clock stops.
fn load_times(scenario: &Scenario, times: usize, load: impl Fn() -> Loaded) -> Times {
    let time = |_| {
        let watch = Watch::start();
        let mut loaded = load();
        let time = watch.stop();
        let question = scenario.question(&loaded);
        scenario.check(&mut loaded, &question);
        time
    };
    Times::of((0..times).map(time).collect())
}

fn load_text(text: &str) -> Loaded {
    let mut objects = ObjectSet::default();
    for document in documents("scenario", text) {
        document.read(&mut objects).expect("the scenario can be read");
    }
    load(&objects, OnInvalid::Reject).expect("the scenario's objects are sound")
}

/// Runs as often as `time_limit` permits, and at least five times. The result of a run is dropped after the clock stops.
fn repeated<T>(time_limit: Duration, mut run: impl FnMut() -> T) -> Vec<Duration> {
    black_box(run());
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || began.elapsed() < time_limit {
        let start = Instant::now();
        let result = black_box(run());
        times.push(start.elapsed());
        drop(result);
    }
    times
}

/// A clock for runs of several seconds. It counts only the CPU time of this thread where the system reports it, because other programs may run
/// meanwhile.
struct Watch {
    start: Instant,
    on_processor: Option<Duration>,
}

impl Watch {
    fn start() -> Self {
        Self { start: Instant::now(), on_processor: time_on_processor() }
    }

    fn stop(&self) -> Duration {
        let on_processor = time_on_processor().zip(self.on_processor).map(|(now, then)| now - then);
        on_processor.unwrap_or_else(|| self.start.elapsed())
    }
}

fn time_on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// The results of several runs. If the fastest is far from the median, other programs disturbed the measurement.
struct Times {
    median: Duration,
    fastest: Duration,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { median: times[times.len() / 2], fastest: times[0] }
    }
}

fn line(name: &str, kind: &str, goal: Option<Duration>, times: &Times, peer: Option<(Duration, &str)>) {
    let nanos = |time: Duration| time.as_nanos().to_string();
    let (median, fastest) = (nanos(times.median), nanos(times.fastest));
    let (peer, note) = peer.map_or_else(Default::default, |(peer, note)| (nanos(peer), note));
    println!("{name}\t{kind}\t{}\t{median}\t{fastest}\t{peer}\t{note}", goal.map(nanos).unwrap_or_default());
}
