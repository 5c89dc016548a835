//! Objects of one tenant that cannot lawfully affect another change nothing for it: not its decisions and explanations, not the actions on its
//! objects.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use reprieve_api::kinds::Object;
use reprieve_simulator::hostile::{Harm, Hostile, Targets};

use crate::answers::{answer, difference};
use crate::life;
use crate::test_clusters::{TestCluster, cases, object_set, random};

/// The cache answers a cluster's question the same, while hostile objects come, change and go.
fn cache_is_undisturbed(cluster: &TestCluster, seed: u64) -> Result<(), String> {
    let mut cache = cluster.cache();
    for object in &cluster.objects {
        cache.upsert(object.clone());
    }
    cache.refresh();
    let expected = answer(cluster, cache.loaded_mut());
    let targets = Targets::of(&object_set(&cluster.objects));
    let mut hostile = Hostile::new(seed, &targets, Harm::None);
    let kinds = cluster.hostile_kinds();
    let mut put = Vec::new();
    for round in 0..8 {
        let object = hostile.object(&kinds);
        let text = object.as_ref().map(json).unwrap_or_default();
        let what = match object {
            Some(object) if round < 6 => {
                put.push(object.key());
                cache.upsert(object);
                text
            }
            _ => {
                let Some(key) = put.pop() else { continue };
                cache.remove(&key);
                format!("without {key}")
            }
        };
        cache.refresh();
        let found = answer(cluster, cache.loaded_mut());
        if found != expected {
            return Err(format!("after {what}\n{}", difference(&expected, &found)));
        }
    }
    Ok(())
}

/// The scheduler acts the same on the objects of a cluster, while hostile objects come, change and go.
fn scheduler_is_undisturbed(cluster: &TestCluster, seed: u64) -> Result<(), String> {
    let expected = life::run(cluster, &[]);
    let targets = Targets::of(&object_set(&cluster.objects));
    let mut hostile = Hostile::new(seed, &targets, Harm::None);
    let kinds = cluster.hostile_kinds();
    let batches: Vec<Vec<Object>> =
        (0..life::ROUNDS).map(|_| (0..3).filter_map(|_| hostile.object(&kinds)).collect()).collect();
    let found = life::run(cluster, &batches);
    if found == expected {
        return Ok(());
    }
    let objects: Vec<String> = batches.iter().flatten().map(json).collect();
    let (expected, found) = (expected.join("\n"), found.join("\n"));
    Err(format!("with\n{}\n{}", objects.join("\n"), difference(&expected, &found)))
}

pub fn json(object: &Object) -> String {
    format!("{:?} {}", object.kind(), serde_json::to_string(object).unwrap_or_default())
}

/// Runs a check in many clusters and reports all that fail, grouped by the first line of the problem.
pub fn holds_in(clusters: impl Iterator<Item = TestCluster>, check: impl Fn(&TestCluster, u64) -> Result<(), String>) {
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut n_clusters = 0;
    for (seed, cluster) in (0..).zip(clusters) {
        n_clusters += 1;
        let result = catch_unwind(AssertUnwindSafe(|| check(&cluster, seed))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("PANIC {}", text.unwrap_or_default()))
        });
        if let Err(problem) = result {
            let group = problem.lines().next().unwrap_or_default().chars().take(60).collect();
            let (count, _) =
                failures.entry(group).or_insert_with(|| (0, format!("{} {seed}: {problem}", cluster.name)));
            *count += 1;
        }
    }
    for (count, first) in failures.values().take(20) {
        println!("{count} times, first in {first}\n");
    }
    let failed: usize = failures.values().map(|(count, _)| count).sum();
    assert_eq!(failed, 0, "{failed} of {n_clusters} clusters are disturbed");
}

#[test]
fn cases_are_decided_the_same() {
    holds_in(cases().into_iter(), cache_is_undisturbed);
}

#[test]
fn random_clusters_are_decided_the_same() {
    holds_in(random(0..100), cache_is_undisturbed);
}

#[test]
fn cases_are_scheduled_the_same() {
    holds_in(cases().into_iter(), scheduler_is_undisturbed);
}

#[test]
fn random_clusters_are_scheduled_the_same() {
    holds_in(random(0..60), scheduler_is_undisturbed);
}
