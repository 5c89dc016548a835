//! Benchmarks every decision with criterion, which compares it with the last run. The goals are in `reprieve_testkit::goals`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use reprieve_loader::build::{OnInvalid, load};
use reprieve_testkit::goals::{CYCLES, DECISIONS, EXPLAINED, GROWTH, TREES, benchmark};
use reprieve_testkit::scale;

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    targets = decisions, cycles, explanations, snapshots
}
criterion_main!(benches);

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    for benchmark in DECISIONS.iter().chain(GROWTH).chain(TREES.as_flattened()) {
        let scenario = (benchmark.build)();
        let (mut loaded, question) = scenario.load();
        scenario.check(&mut loaded, &question);
        group.bench_function(benchmark.name, |bencher| bencher.iter_with_large_drop(|| question.decide(&mut loaded)));
    }
    group.finish();
}

fn cycles(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cycle");
    group.sample_size(10);
    for benchmark in CYCLES {
        let scenario = (benchmark.build)();
        let (loaded, question) = scenario.load();
        scenario.check_cycle(&loaded, &question);
        group.bench_function(benchmark.name, |bencher| {
            bencher.iter_with_large_drop(|| scenario.cycle(&loaded, &question));
        });
    }
    group.finish();
}

fn explanations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("explain");
    group.sample_size(10);
    for name in EXPLAINED {
        let scenario = (benchmark(name).expect("it is in the list").build)();
        let (mut loaded, question) = scenario.load();
        scenario.check(&mut loaded, &question);
        group.bench_function(*name, |bencher| {
            bencher.iter_with_large_drop(|| question.decide_and_explain(&mut loaded));
        });
    }
    group.finish();
}

fn snapshots(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10);
    let scenario = scale::pod(1000, 10);
    group.bench_function("load-objects-1000x10", |bencher| {
        let load = |objects: &_| load(objects, OnInvalid::Reject).expect("the scenario's objects are sound");
        bencher.iter_batched(|| &scenario.objects, |objects| black_box(load(objects)), BatchSize::PerIteration);
    });
    group.finish();
}
