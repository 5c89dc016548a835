//! Scenario files: an error names the field, the problem and a correct value.

use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_simulator::run::Gang;
use reprieve_simulator::scenario::Scenario;

const HEAD: &str = "apiVersion: reprieve.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n";
const NODES: &str = "  nodes: [{name: node, count: 2, allocatable: {cpu: 4}}]\n";

fn error(spec: &str) -> String {
    Scenario::read("s.yaml", &format!("{HEAD}{spec}")).unwrap_err().to_string()
}

#[test]
fn an_invalid_field_is_rejected_by_name() {
    let job = |fields: &str| format!("  end: 1h\n{NODES}  jobs: [{{name: j, requests: {{cpu: 1}}, {fields}}}]\n");
    for (spec, place, fix) in [
        (format!("  end: 1h\n{NODES}  colour: red\n"), "spec", "unknown field `colour`"),
        ("  end: 1h\n".to_owned(), "spec.nodes", "add a template"),
        (
            "  end: 1h\n  nodes: [{name: node, count: 0, allocatable: {}}]\n".to_owned(),
            "spec.nodes[0].count",
            "write 1 to",
        ),
        (format!("  end: 2025-01-01T00:00:00Z\n{NODES}"), "spec.end", "not after the start"),
        (format!("  end: 0s\n{NODES}"), "spec.end", "not after the start"),
        (format!("  end: soon\n{NODES}"), "spec.end", "12h"),
        (format!("  start: monday\n  end: 1h\n{NODES}"), "spec.start", "not a time"),
        (job("arrivals: {perHour: -1}"), "spec.jobs[0].arrivals.perHour", "not a rate"),
        (job("arrivals: {perHour: 0}"), "spec.jobs[0].arrivals.perHour", "not a rate"),
        (job("arrivals: {perHour: 3600000}"), "spec.jobs[0].arrivals.perHour", "lower rate"),
        (job("arrivals: {}"), "spec.jobs[0].arrivals", "either perHour"),
        (job("arrivals: {perHour: 1, at: [0s]}"), "spec.jobs[0].arrivals", "either perHour"),
        (job("arrivals: {perHour: 1, from: 2h}"), "spec.jobs[0].arrivals.until", "nothing arrives"),
        (job("arrivals: {at: [2h]}"), "spec.jobs[0].arrivals.at", "after the end"),
        (job("arrivals: {at: []}"), "spec.jobs[0].arrivals.at", "nothing arrives"),
        (job("arrivals: {at: [0s]}, runs: 5"), "spec.jobs[0].runs", "30s"),
        (job("arrivals: {at: [0s]}, runs: 2h..1h"), "spec.jobs[0].runs", "smaller value first"),
        (job("arrivals: {at: [0s]}, pods: 2, gang: {min: 3}"), "spec.jobs[0].gang.min", "3 of 2 pods"),
        (job("arrivals: {at: [0s]}, queue: a"), "spec.jobs[0].queue", "spec.queues"),
        (job("arrivals: {at: [0s]}, priorityClass: a"), "spec.jobs[0].priorityClass", "spec.priorityClasses"),
        (job("arrivals: {at: [0s]}, checkpoint: 0s"), "spec.jobs[0].checkpoint", "at least 1s"),
        (format!("  end: 1h\n{NODES}  queues: [{{name: a, parent: a}}]\n"), "spec.queues[0].parent", "above itself"),
        (
            format!("  end: 1h\n{NODES}  queues: [{{name: a, guarantee: {{cpu: many}}}}]\n"),
            "spec.queues[0].guarantee",
            "many",
        ),
        (format!("  end: 1h\n{NODES}  faults: {{lostEvents: -1}}\n"), "spec.faults.lostEvents", "out of range"),
        (format!("  end: 1h\n{NODES}  queues: [{{name: A}}]\n"), "spec.queues", "lowercase"),
        (
            format!(
                "  end: 1h\n{NODES}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: []}}\n"
            ),
            "document 2",
            "spec.jobs",
        ),
    ] {
        let error = error(&spec);
        assert!(error.starts_with("s.yaml: document"), "{error}");
        assert!(error.contains(place), "{place}: {error}");
        assert!(error.contains(fix), "{fix}: {error}");
    }
}

#[test]
fn other_kinds_are_rejected() {
    let error = Scenario::read("f", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n").unwrap_err().to_string();
    assert!(error.contains("kind: \"Pod\" is not a scenario"), "{error}");
    assert!(Scenario::read("f", "# nothing\n").unwrap_err().to_string().contains("is empty"));
}

#[test]
fn jobs_arrive_by_rate_or_by_list_and_depend_only_on_the_seed() {
    let text = format!(
        "{HEAD}  end: 1000h\n{NODES}  jobs:\n\
         \x20 - {{name: often, requests: {{cpu: 1}}, arrivals: {{perHour: 2, from: 100h, until: 600h}}, runs: 1m..1h, pods: 1..4}}\n\
         \x20 - {{name: once, requests: {{cpu: 1}}, arrivals: {{at: [90m]}}, pods: 3, gang: {{min: 2}}, checkpoint: 5m}}\n"
    );
    let scenario = Scenario::read("s.yaml", &text).unwrap();
    let input = scenario.input(1);
    let (once, often): (Vec<_>, Vec<_>) =
        input.submissions.iter().map(|(job, _)| job).partition(|job| job.name.name.starts_with("once"));
    assert!((900..1100).contains(&often.len()), "{}", often.len());
    assert!(often.iter().all(|job| (1..=4).contains(&job.pods)));
    let hours = |job: &&reprieve_simulator::submission::Submission| (job.at.0 - input.start.0) / 3_600_000_000;
    assert!(often.iter().all(|job| (100..600).contains(&hours(job))));
    let [once] = once.as_slice() else { panic!() };
    assert_eq!(once.gang, Some(Gang { min: 2, whole: true }));
    assert_eq!((hours(once), once.running_micros, once.checkpoint_micros), (1, None, Some(300_000_000)));
    let names = |seed| format!("{:?}", scenario.input(seed).submissions);
    assert_eq!(names(1), names(1));
    assert_ne!(names(1), names(2));
}

#[test]
fn a_queue_that_is_invalid_under_a_policy_is_rejected() {
    let queues = "  queues: [{name: a, guarantee: {cpu: 4}, ceiling: {cpu: 2}}]\n";
    let scenario = Scenario::read("s.yaml", &format!("{HEAD}  end: 1h\n{NODES}{queues}")).unwrap();
    let input = scenario.input(0);
    assert!(input.setup(Policy::YuniKorn(YuniKorn::default())).is_err());
    assert!(input.setup(Policy::Koordinator(Default::default())).is_err());
    assert!(input.setup(Policy::Kubernetes(Kubernetes::default())).is_ok());
}
