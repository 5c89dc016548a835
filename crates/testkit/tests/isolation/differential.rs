//! A cache after any sequence of events equals a cache that gets only the final objects: the same decision and explanation for every pending
//! unit, and the same objects set aside.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::ObjectKey;
use reprieve_api::kinds::{Kind, Object};
use reprieve_simulator::hostile::{Harm, Hostile, Targets};
use reprieve_testkit::random::Rng;

use crate::answers::{difference, everything};
use crate::interference::{holds_in, json};
use crate::test_clusters::{TestCluster, cases, object_set, random};

/// The number of events in a sequence.
const EVENTS: usize = 30;

fn cache_follows(cluster: &TestCluster, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let targets = Targets::of(&object_set(&cluster.objects));
    let mut hostile = Hostile::new(seed, &targets, Harm::Any);
    let kinds: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| cluster.reads(*kind)).collect();
    let mut cache = cluster.cache();
    let mut objects: BTreeMap<ObjectKey, Object> = BTreeMap::new();
    let mut honest = cluster.objects.clone();
    rng.shuffle(&mut honest);
    let mut last = String::new();
    for object in honest {
        objects.insert(object.key(), object.clone());
        cache.upsert(object);
    }
    for _ in 0..EVENTS {
        if rng.chance(60) {
            cache.refresh();
        }
        match next_event(cluster, &objects, &mut hostile, &kinds, &mut rng) {
            Ok(object) => {
                last = json(&object);
                objects.insert(object.key(), object.clone());
                cache.upsert(object);
            }
            Err(key) => {
                last = format!("without {key}");
                objects.remove(&key);
                cache.remove(&key);
            }
        }
    }
    cache.refresh();
    let mut fresh = cluster.cache();
    for object in objects.values() {
        fresh.upsert(object.clone());
    }
    fresh.refresh();
    let (expected, found) = (everything(cluster, &mut fresh), everything(cluster, &mut cache));
    if found == expected { Ok(()) } else { Err(format!("after {last}\n{}", difference(&expected, &found))) }
}

/// An object in a new state, or the key of one that is deleted.
fn next_event(
    cluster: &TestCluster,
    objects: &BTreeMap<ObjectKey, Object>,
    hostile: &mut Hostile<'_>,
    kinds: &[Kind],
    rng: &mut Rng,
) -> Result<Object, ObjectKey> {
    let known = || objects.values();
    let any = |rng: &mut Rng| known().nth(rng.up_to(objects.len().max(1))).cloned();
    match rng.up_to(10) {
        0..=3 => {
            if let Some(object) = hostile.object(kinds) {
                return Ok(object);
            }
        }
        4 | 5 => {
            if let Some(object) = any(rng) {
                return Err(object.key());
            }
        }
        6..=8 => {
            if let Some(object) = any(rng) {
                return Ok(changed(object, rng));
            }
        }
        _ => {}
    }
    Ok(rng.pick(&cluster.objects).clone())
}

/// The object in another state: a pod is bound elsewhere, relabelled, terminating or ended; another object has other labels or no status.
fn changed(mut object: Object, rng: &mut Rng) -> Object {
    match &mut object {
        Object::Pod(pod) => {
            let pod = Arc::make_mut(pod);
            match rng.up_to(6) {
                0 => pod.node_name = None,
                1 => pod.metadata.labels = None,
                2 => pod.status = None,
                3 => pod.metadata.deletion_timestamp = pod.metadata.creation_timestamp.clone(),
                4 => pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned()),
                _ => pod.spec_mut().priority = Some(rng.up_to(100) as i32),
            }
        }
        Object::KueueWorkload(workload) => {
            let workload = Arc::make_mut(workload);
            match rng.up_to(3) {
                0 => workload.status = None,
                1 => workload.spec.priority = Some(rng.up_to(100) as i32),
                _ => workload.spec.queue_name = "no-such-queue".to_owned(),
            }
        }
        other => other.metadata_mut().labels = rng.chance(50).then(|| [("a".to_owned(), "b".to_owned())].into()),
    }
    object
}

#[test]
fn cache_follows_events_in_cases() {
    holds_in(cases().into_iter(), cache_follows);
}

#[test]
fn cache_follows_events_in_random_clusters() {
    holds_in(random(1_000..1_100), cache_follows);
}
