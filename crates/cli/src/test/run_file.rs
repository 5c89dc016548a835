//! Runs one PreemptionTest file. Besides the expectation of the test, each run checks that the order of the objects does not matter, that
//! deciding does not change the snapshot, and that the independent checker accepts the decision.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::GlobMatcher;
use reprieve_api::answer::Answer;
use reprieve_api::read::documents;
use reprieve_api::test_file::{Expectation, PreemptionTest};
use reprieve_api::{InputError, ObjectSet, Sourced, VictimRef};
use reprieve_checker::{self as checker, Claim};
use reprieve_engine::choose::Plan;
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::{NodeId, Policy, node_plans};
use reprieve_loader::build::{OnInvalid, load_as};
use reprieve_loader::policy::policy;
use reprieve_loader::time::time;
use reprieve_loader::{LoadScope, Loaded, Question};
use reprieve_report::answer::answer;
use reprieve_report::decision::DecisionReport;
use reprieve_report::report::decide_and_report;
use serde::Serialize;

use crate::input;
use crate::render::{self, Detail};

/// The result of one file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// The name of the test.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// Whether it passed.
    pub result: TestResult,
    /// Differences from the expectation, or the reason why the test cannot run.
    pub problems: Vec<String>,
    /// The explained decision, if it differs from the expectation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<DecisionReport>>,
    /// The decision as a table.
    #[serde(skip)]
    pub table: String,
    /// The wall-clock time of the test.
    #[serde(skip)]
    pub took: Duration,
}

/// Whether a test passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TestResult {
    /// The decision is as expected.
    Passed,
    /// The decision differs from the expectation.
    Failed,
    /// The test could not run.
    BadInput,
}

/// The content of a file.
pub enum Found {
    /// No PreemptionTest.
    Nothing,
    /// A test that the filter excludes.
    OtherName,
    /// The result of the test.
    Case(Box<Case>),
}

/// Runs the test of a file, unless the filter excludes its name.
pub fn run_file(file: &Path, filter: Option<&GlobMatcher>) -> Found {
    let start = Instant::now();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let case = |name: &str, result, problems, decision: Option<Box<DecisionReport>>| {
        Found::Case(Box::new(Case {
            name: name.to_owned(),
            file: file.to_owned(),
            result,
            problems,
            table: decision.as_ref().map_or_else(String::new, |report| render::decision(report, Detail::Short)),
            decision,
            took: start.elapsed(),
        }))
    };
    let invalid = |name: &str, problem: String| case(name, TestResult::BadInput, vec![problem], None);
    let text = match input::text_of(file) {
        Ok(text) => text,
        Err(error) => return invalid(&stem, error.to_string()),
    };
    if !begins_with_test(file, &text) {
        return Found::Nothing;
    }
    let (test, objects) = match read(file, &text) {
        Ok(read) => read,
        Err(error) => return invalid(&stem, error.to_string()),
    };
    let name = test.object.metadata.name.clone();
    if filter.is_some_and(|filter| !filter.is_match(&name)) {
        return Found::OtherName;
    }
    match evaluate(&test.object, &objects) {
        Err(error) => {
            let located = if error.source.is_some() { error } else { error.at(&test.source) };
            invalid(&name, located.to_string())
        }
        Ok((problems, _)) if problems.is_empty() => case(&name, TestResult::Passed, problems, None),
        Ok((problems, report)) => case(&name, TestResult::Failed, problems, Some(report)),
    }
}

/// Whether the first document is a PreemptionTest, or cannot be parsed and mentions one. Other invalid files of a folder are ignored.
fn begins_with_test(file: &Path, text: &str) -> bool {
    match documents(&file.display().to_string(), text).first() {
        None => false,
        Some(first) => first.kind().map_or_else(|_| text.contains("PreemptionTest"), |kind| kind.is_test()),
    }
}

fn read(file: &Path, text: &str) -> Result<(Sourced<PreemptionTest>, ObjectSet), InputError> {
    let mut objects = ObjectSet::default();
    let mut found = None;
    for document in documents(&file.display().to_string(), text) {
        if let Some(test) = document.read(&mut objects)? {
            if found.is_some() {
                let problem = "a file may contain only one PreemptionTest; move this one into its own file";
                return Err(InputError::new(problem).at(&test.source));
            }
            found = Some(test);
        }
    }
    let test = found.ok_or_else(|| InputError::new(format!("{}: no PreemptionTest in the file", file.display())))?;
    Ok((test, objects))
}

/// The problems of the decision, and the decision.
fn evaluate(test: &PreemptionTest, objects: &ObjectSet) -> Result<(Vec<String>, Box<DecisionReport>), InputError> {
    let Some(expect) = &test.spec.expect else {
        let problem = "is missing; add the expected outcome (reprieve plan -o test writes it)";
        return Err(InputError::new(problem).field("spec.expect"));
    };
    let policy = policy(&test.spec.profile)?;
    let scope = LoadScope::of_profile(&test.spec.profile)?;
    let mut loaded = load_as(objects, OnInvalid::Quarantine, &policy, &scope)?;
    let question = Question::new(&test.spec, &loaded)?;
    let before = loaded.snapshot.clone();
    let report = decide_and_report(&question, &mut loaded);
    let mut problems = differences(expect, &report.answer);
    problems.extend(candidate_differences(expect, &question, &mut loaded));
    if loaded.snapshot != before {
        problems.push("the decision changed the snapshot".to_owned());
    }
    for round in 1..=2 {
        let mut other = load_as(&objects.shuffled(round), OnInvalid::Quarantine, &policy, &scope)?;
        let question = Question::new(&test.spec, &other)?;
        let answer = answer(&question, &mut other);
        if answer != report.answer {
            problems.push(format!(
                "the decision depends on the order of the objects; in another order: {}",
                short(&answer)
            ));
        }
    }
    // The checker reads the objects by itself and has no rule for those that are set aside.
    if let Policy::Kubernetes(_) = &question.policy
        && loaded.quarantined.is_empty()
    {
        let claim = Claim {
            objects,
            now: time(question.now).unwrap_or_default(),
            preemptor: &test.spec.preemptor,
            settings: checker::Settings::of(&test.spec.profile),
            scheduler_name: scope.scheduler_name.as_deref(),
            answer: &report.answer,
        };
        problems.extend(
            checker::check(&claim)
                .iter()
                .map(|problem| format!("the independent checker rejects the decision: {problem}")),
        );
    }
    Ok((problems, Box::new(report)))
}

/// The differences between the expectation and the decision.
fn differences(expect: &Expectation, answer: &Answer) -> Vec<String> {
    let mut problems = Vec::new();
    if expect.outcome != answer.outcome {
        problems.push(format!("outcome: expected {:?}, decided {:?}", expect.outcome, answer.outcome));
    }
    let sets = expect.any_of.clone().or_else(|| expect.victims.clone().map(|victims| vec![victims]));
    if let Some(sets) = sets
        && !sets.iter().any(|set| same_victims(set, &answer.victims))
    {
        let expected: Vec<String> = sets.iter().map(|set| list(set)).collect();
        problems.push(format!("victims: expected {}, decided {}", expected.join(" or "), list(&answer.victims)));
    }
    for (pod, node) in expect.nominated.iter().flatten() {
        let decided = answer.nominated.get(pod).map_or("no node", String::as_str);
        if decided != node {
            problems.push(format!("nominated: expected {pod} on {node}, decided {decided}"));
        }
    }
    problems
}

/// Reasons are compared only if the expectation has one.
fn same_victims(expected: &[VictimRef], decided: &[VictimRef]) -> bool {
    let key = |victim: &VictimRef| (victim.pod.clone(), victim.workload.clone());
    let decided: BTreeMap<_, _> = decided.iter().map(|victim| (key(victim), &victim.reason)).collect();
    let matches = |victim: &VictimRef| {
        decided.get(&key(victim)).is_some_and(|reason| victim.reason.is_none() || **reason == victim.reason)
    };
    expected.len() == decided.len() && expected.iter().all(matches)
}

fn candidate_differences(expect: &Expectation, question: &Question, loaded: &mut Loaded) -> Vec<String> {
    let (Some(expected), PreemptorId::Pod(pod)) = (&expect.candidates, question.preemptor) else {
        return Vec::new();
    };
    let plans = node_plans(&mut loaded.snapshot, &question.policy, pod, question.now);
    let sorted = |node: &str, names: &mut dyn Iterator<Item = String>| {
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        (node.to_owned(), names)
    };
    let victims = |(node, plan): (NodeId, Plan)| {
        let pods = plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods);
        sorted(loaded.names.node(node), &mut pods.map(|&pod| loaded.names.pod(pod).to_string()))
    };
    let decided: BTreeMap<String, Vec<String>> = plans.into_iter().map(victims).collect();
    let expected: BTreeMap<String, Vec<String>> =
        expected.iter().map(|(node, names)| sorted(node, &mut names.iter().cloned())).collect();
    if expected == decided {
        return Vec::new();
    }
    vec![format!("candidates: expected {expected:?}, decided {decided:?}")]
}

fn list(victims: &[VictimRef]) -> String {
    let name = |victim: &VictimRef| victim.pod.clone().or_else(|| victim.workload.clone()).unwrap_or_default();
    let names: Vec<String> = victims.iter().map(name).collect();
    if names.is_empty() { "no victims".to_owned() } else { names.join(", ") }
}

fn short(answer: &Answer) -> String {
    format!("{:?}, {}", answer.outcome, list(&answer.victims))
}
