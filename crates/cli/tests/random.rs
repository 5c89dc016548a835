//! The independent checker accepts the decisions on random clusters of every kind. A failing seed becomes a conformance case.

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::source::InputError;
use reprieve_checker::{Claim, Settings, check};
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::{DEFAULT_NOW, Question, policy};
use reprieve_loader::time::parse_time;
use reprieve_report::answer::answer;
use reprieve_testkit::random::{Options, cluster};

const SEEDS: u64 = 2_000;

#[test]
fn resources() {
    every_decision_is_accepted(&Options::resources());
}

#[test]
fn pods() {
    every_decision_is_accepted(&Options::pods());
}

#[test]
fn groups() {
    every_decision_is_accepted(&Options::groups());
}

#[test]
fn tolerations() {
    every_decision_is_accepted(&Options::tolerations());
}

#[test]
fn cascades() {
    every_decision_is_accepted(&Options::cascades());
}

#[test]
fn everything() {
    every_decision_is_accepted(&Options::everything());
}

fn every_decision_is_accepted(options: &Options) {
    let mut problems = Vec::new();
    for seed in 0..SEEDS {
        let found = findings(&cluster(seed, options).to_json()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        problems.extend(found.into_iter().map(|finding| format!("seed {seed}: {finding}")));
    }
    assert!(problems.is_empty(), "{} findings, the first of which are\n{}", problems.len(), first_of(&problems));
}

fn first_of(problems: &[String]) -> String {
    problems[..problems.len().min(10)].join("\n")
}

/// What the checker says of what is decided.
fn findings(text: &str) -> Result<Vec<String>, InputError> {
    let mut objects = ObjectSet::default();
    let mut test = None;
    for document in documents("random", text) {
        test = test.or(document.read(&mut objects)?);
    }
    let spec = test.expect("the first document is the test").object.spec.clone();
    let policy = policy(&spec.profile)?;
    let mut loaded = load_for(&objects, OnInvalid::Reject, &policy)?;
    let answer = answer(&Question::new(&spec, &loaded)?, &mut loaded);
    let claim = Claim {
        objects: &objects,
        now: parse_time(spec.now.as_deref().unwrap_or(DEFAULT_NOW))?,
        preemptor: &spec.preemptor,
        settings: Settings::of(&spec.profile),
        scheduler_name: None,
        answer: &answer,
    };
    Ok(check(&claim).iter().map(|finding| format!("{finding}; claimed {answer:?}")).collect())
}
