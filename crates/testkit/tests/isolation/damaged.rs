//! Seeded runs of the fuzz targets: the operations of [`crate::operations`] with random bytes and with damaged texts.
//!
//! `FUZZ_ROUNDS=N` makes N times as many runs, with other seeds after the first round.

use std::panic::{AssertUnwindSafe, catch_unwind};

use reprieve_api::kinds::Object;
use reprieve_engine::policy::Policy;
use reprieve_simulator::hostile::words;
use reprieve_testkit::random::Rng;

use crate::operations;
use crate::test_clusters::{TestCluster, cases, random};

fn rounds() -> u64 {
    std::env::var("FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Runs seeds; a panic names the seed.
fn run(seeds: u64, check: impl Fn(&mut Rng)) {
    for seed in 0..seeds * rounds() {
        if catch_unwind(AssertUnwindSafe(|| check(&mut Rng::new(seed)))).is_err() {
            panic!("seed {seed}");
        }
    }
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    (0..rng.within(20, 300)).map(|_| rng.up_to(256) as u8).collect()
}

/// Every tenth case, and some random clusters.
fn some_clusters() -> Vec<TestCluster> {
    cases().into_iter().step_by(10).chain(random(0..5)).collect()
}

/// Changes that leave most of the text as it is.
fn damaged(text: &str, rng: &mut Rng) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..rng.within(1, 4) {
        let at = rng.up_to(characters.len() + 1);
        let end = (at + rng.within(1, 6)).min(characters.len());
        match rng.up_to(5) {
            0 => _ = characters.drain(at..end),
            1 => {
                let copy: Vec<char> = characters[at..end].to_vec();
                characters.splice(at..at, copy);
            }
            2 => _ = characters.splice(at..end, rng.pick(words::TEXTS).chars().take(20)),
            3 => _ = characters.splice(at..at, rng.pick(words::AMOUNTS).chars()),
            _ => {
                characters.insert(at, *rng.pick(&['\n', ' ', ':', '-', '{', '[', '"', '&', '*', '9', '.', '\u{202e}']))
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn cache_survives_any_operations() {
    let clusters = some_clusters();
    run(400, |rng| operations::cache(&clusters, &bytes(rng)));
}

#[test]
fn scheduler_survives_any_events() {
    let clusters = some_clusters();
    run(400, |rng| operations::scheduler(&clusters, &bytes(rng)));
}

#[test]
fn queues_survive_any_text() {
    let clusters: Vec<TestCluster> =
        cases().into_iter().filter(|cluster| matches!(cluster.policy, Policy::YuniKorn(_))).collect();
    let text_of = |cluster: &TestCluster| {
        let mut maps = cluster.objects.iter().filter_map(|object| match object {
            Object::ConfigMap(map) => map.data.as_ref()?.get("queues.yaml").cloned(),
            _ => None,
        });
        maps.next_back()
    };
    let corpus: Vec<(&TestCluster, String)> =
        clusters.iter().filter_map(|cluster| Some((cluster, text_of(cluster)?))).collect();
    assert!(corpus.len() > 20, "the cases have queues");
    run(600, |rng| {
        let (cluster, text) = rng.pick(&corpus);
        let text = if rng.chance(20) { rng.pick::<&str>(words::QUEUE_CONFIGS) } else { text.as_str() };
        operations::queues(cluster, &damaged(text, rng));
    });
}

#[test]
fn quantities_survive_any_text() {
    run(20_000, |rng| {
        let text: &str = rng.pick::<&str>(words::AMOUNTS);
        operations::quantity(&damaged(text, rng));
    });
}
