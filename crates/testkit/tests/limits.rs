//! A limit without a request is a request: the decision is the same whether containers have their resources under limits or under requests.

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_loader::build::{OnInvalid, load};
use reprieve_loader::policy::Question;
use reprieve_testkit::random::{self, Options};
use reprieve_testkit::{random_cohorts, random_jobs, random_queues};
use serde_json::{Map, Value};

const SEEDS: u64 = 300;

#[test]
fn pods_and_groups() {
    limits_decide_equally(|seed| random::cluster(seed, &Options::everything()).to_json());
}

#[test]
fn queues() {
    limits_decide_equally(random_queues::cluster);
}

#[test]
fn jobs() {
    limits_decide_equally(|seed| random_jobs::cluster(seed, &random_jobs::Options::EVERYTHING));
}

#[test]
fn workloads() {
    let sort = |seed: u64| random_cohorts::Kind::ALL[usize::try_from(seed % 3).unwrap_or_default()];
    limits_decide_equally(|seed| random_cohorts::cluster(sort(seed), seed));
}

fn limits_decide_equally(cluster: impl Fn(u64) -> String) {
    let (mut with_limits, mut wrong_without) = (0, 0);
    for seed in 0..SEEDS {
        let objects: Vec<Value> = cluster(seed)
            .split("---\n")
            .map(|document| serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("seed {seed}: {error}")))
            .collect();
        let rewritten = |rewrite: fn(&mut Map<String, Value>)| {
            let mut objects = objects.clone();
            objects.iter_mut().for_each(|object| each_container(object, &mut |resources| rewrite(resources)));
            objects
        };
        let as_requests = rewritten(|resources| {
            let limits = resources.remove("limits").and_then(|limits| limits.as_object().cloned());
            let requests = resources.entry("requests").or_insert_with(|| Value::Object(Map::new()));
            requests.as_object_mut().expect("a list").extend(limits.into_iter().flatten());
        });
        let without = rewritten(|resources| drop(resources.remove("limits")));
        with_limits += u64::from(objects != as_requests);
        let answer = answer(&objects);
        assert_eq!(answer, self::answer(&as_requests), "seed {seed}");
        wrong_without += u64::from(answer != self::answer(&without));
    }
    assert!(with_limits > SEEDS / 2, "only {with_limits} of {SEEDS} have limits alone");
    assert!(wrong_without > SEEDS / 20, "in only {wrong_without} of {SEEDS} the limits make a difference");
}

/// The resources of every container, of pods and of templates.
fn each_container(value: &mut Value, rewrite: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "containers" || key == "initContainers" {
                    let containers = value.as_array_mut().into_iter().flatten();
                    let resources = containers.filter_map(|container| container.get_mut("resources")?.as_object_mut());
                    resources.for_each(&mut *rewrite);
                } else {
                    each_container(value, rewrite);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_container(item, rewrite)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn answer(objects: &[Value]) -> String {
    let text: Vec<String> = objects.iter().map(|object| format!("{object}\n")).collect();
    let (mut objects, mut test) = (ObjectSet::default(), None);
    for document in documents("random", &text.join("---\n")) {
        test = test.or(document.read(&mut objects).expect("it can be read"));
    }
    let mut loaded = load(&objects, OnInvalid::Reject).expect("it can be loaded");
    let question =
        Question::new(&test.expect("it begins with a test").object.spec, &loaded).expect("it asks something");
    format!("{:?}", reprieve_report::answer::answer(&question, &mut loaded))
}
