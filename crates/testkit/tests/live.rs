//! A snapshot cache after many changes gives the same decisions as a snapshot that is built from the final objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::TestSpec;
use reprieve_engine::policy::Policy;
use reprieve_loader::LoadScope;
use reprieve_loader::build::{Loaded, OnInvalid, load_as};
use reprieve_loader::cache::SnapshotCache;
use reprieve_loader::policy::{Question, policy};
use reprieve_report::answer::answer;
use reprieve_report::cycle::cycle_report;
use reprieve_report::report::decide_and_report;
use reprieve_testkit::random::{self, Options};
use reprieve_testkit::random_queues::Rng;
use reprieve_testkit::{random_cohorts, random_jobs, random_queues};

const SEEDS: u64 = 400;
/// The scheduler of pods without a schedulerName.
const SCHEDULER: &str = "default-scheduler";

#[test]
fn pods_and_groups() {
    cache_follows(|seed| random::cluster(seed, &Options::everything()).to_json());
}

#[test]
fn queues() {
    cache_follows(random_queues::cluster);
}

#[test]
fn jobs() {
    cache_follows(|seed| random_jobs::cluster(seed, &random_jobs::Options::EVERYTHING));
}

#[test]
fn workloads() {
    let sort = |seed: u64| random_cohorts::Kind::ALL[usize::try_from(seed % 3).unwrap_or_default()];
    cache_follows(|seed| random_cohorts::cluster(sort(seed), seed));
}

fn cache_follows(cluster: impl Fn(u64) -> String) {
    let mut in_place = 0;
    for seed in 0..SEEDS {
        let (spec, objects) = read(&cluster(seed));
        in_place += u64::from(answers_equally(seed, &spec, objects));
    }
    assert!(in_place > SEEDS / 10, "only {in_place} of {SEEDS} took their pods in place");
}

/// Whether the cache did so without rebuilding its tables at the end.
fn answers_equally(seed: u64, spec: &TestSpec, objects: ObjectSet) -> bool {
    let policy = policy(&spec.profile).expect("the profile is sound");
    let scope = LoadScope { scheduler_name: Some(SCHEDULER.to_owned()), ..LoadScope::default() };
    let made = load_as(&objects, OnInvalid::Quarantine, &policy, &scope);
    let mut made = made.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let question = Question::new(spec, &made).expect("it has a preemptor");
    let expected = (answer(&question, &mut made), cycle(&question, &made), spared(&question, &mut made));

    let mut rng = Rng::new(seed);
    let moves = |object: &Object| {
        matches!(object.kind(), Kind::Pod | Kind::PodGroup | Kind::KoordinatorPodGroup | Kind::KueueWorkload)
    };
    let (mut moving, fixed): (Vec<Object>, Vec<Object>) = objects.iter().partition(moves);
    rng.shuffle(&mut moving);
    let mut live = SnapshotCache::default().for_scheduler(SCHEDULER, &policy);
    // The tables contain all namespaces and resources before they are changed in place.
    for object in fixed.into_iter().chain(moving.iter().cloned()) {
        live.upsert(object);
    }
    live.refresh();
    for object in &moving {
        if rng.chance(50) {
            live.remove(&object.key());
        }
    }
    live.refresh();
    for object in &moving {
        for another in [changed(object, &mut rng), renamed(object, &mut rng)] {
            live.upsert(another);
        }
    }
    for object in &moving {
        live.upsert(object.clone());
        live.remove(&renamed(object, &mut Rng::new(0)).key());
    }
    let in_place = !live.is_stale();
    live.refresh();
    let question = Question::new(spec, live.loaded()).expect("it has a preemptor");
    let loaded = live.loaded_mut();
    let answer = (answer(&question, loaded), cycle(&question, loaded), spared(&question, loaded));
    assert_eq!(answer, expected, "seed {seed}");
    in_place
}

/// The results of all heads, under policy Kueue.
fn cycle(question: &Question, loaded: &Loaded) -> Option<String> {
    let Policy::Kueue(policy) = &question.policy else { return None };
    serde_json::to_string(&cycle_report(loaded, policy, question.now).heads).ok()
}

/// Each running unit that is not a victim, with the reason.
fn spared(question: &Question, loaded: &mut Loaded) -> BTreeSet<String> {
    let entries = decide_and_report(question, loaded).explanation.spared.into_iter();
    entries
        .map(|entry| format!("{:?} {:?} {} {}", entry.unit.workload, entry.unit.pods, entry.law, entry.decisive))
        .collect()
}

/// The object in another state.
fn changed(object: &Object, rng: &mut Rng) -> Object {
    let mut object = object.clone();
    if let Object::Pod(pod) = &mut object {
        let pod = Arc::make_mut(pod);
        if rng.chance(50) {
            pod.node_name = None;
        }
        if let Some(status) = pod.status.as_mut().filter(|_| rng.chance(50)) {
            (status.nominated_node_name, status.start_time) = (None, None);
        }
    }
    if let Object::KueueWorkload(workload) = &mut object
        && rng.chance(50)
    {
        Arc::make_mut(workload).status = None;
    }
    object
}

/// Another object of the kind, in the same group.
fn renamed(object: &Object, rng: &mut Rng) -> Object {
    let object = &mut changed(object, rng);
    let name = object.metadata().name.clone().unwrap_or_default();
    object.metadata_mut().name = Some(format!("{}-again", &name[..name.len() / 2]));
    object.clone()
}

fn read(text: &str) -> (TestSpec, ObjectSet) {
    let mut objects = ObjectSet::default();
    let mut test = None;
    for document in documents("random", text) {
        let read = document.read(&mut objects).unwrap_or_else(|error| panic!("{error}\n{text}"));
        test = test.or(read);
    }
    (test.expect("the first document is the test").object.spec.clone(), objects)
}
