//! The scenarios of the documentation, each run to its end, and each with its point.

use std::collections::BTreeSet;

use reprieve_loader::policy::policy;
use reprieve_simulator::invariants::check;
use reprieve_simulator::run::{JobRecord, Run};
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::summary::{Summary, summary};

const HOUR: i64 = 3_600_000_000;

fn story(text: &str) -> (Run, Summary) {
    let scenario = Scenario::read("story", text).unwrap();
    let blueprint = scenario.blueprint(0);
    let profile = &scenario.profiles()[0];
    let setup = blueprint.setup(policy(profile).unwrap()).unwrap();
    let run = check(setup).unwrap_or_else(|violation| panic!("{violation:?}"));
    let summary = summary(&profile.policy, &run, &blueprint.queues);
    (run, summary)
}

fn job<'r>(run: &'r Run, name: &str) -> &'r JobRecord {
    run.jobs.iter().find(|job| job.name == format!("default/{name}")).unwrap()
}

macro_rules! story {
    ($name:literal) => {
        story(include_str!(concat!("../../../docs/examples/scenarios/", $name, ".yaml")))
    };
}

#[test]
fn a_training_job_is_not_preempted_in_part() {
    let (run, summary) = story!("training-job");
    let [small, large] = run.preemptions.as_slice() else { panic!("{:?}", run.preemptions) };
    assert!(small.victims.iter().all(|victim| victim.name.starts_with("batch")), "{small:?}");
    assert_eq!(small.victims.len(), 4);
    let training: Vec<_> = large.victims.iter().filter(|victim| victim.name.starts_with("training")).collect();
    assert_eq!(training.len(), 2, "{large:?}");
    assert_eq!(job(&run, "training-0").evictions, 2);
    assert!(job(&run, "training-0").lost_micros < HOUR, "less than half an hour for each of its pods");
    assert_eq!((summary.partial_gangs, summary.finished), (0, 4));
}

#[test]
fn a_replica_is_taken_whole_and_the_other_goes_on_serving() {
    let (run, summary) = story!("multihost-inference");
    let taken: BTreeSet<&str> = run.evictions.iter().map(|eviction| eviction.job.as_str()).collect();
    assert_eq!((taken.len(), run.evictions.len(), summary.partial_gangs), (1, 4, 0));
    assert!(job(&run, "incident-0").finished.is_some());
    assert_eq!(run.samples.last().unwrap().pending, 0, "the replica came back when there was room");
}

#[test]
fn in_degraded_mode_one_worker_is_taken_and_the_others_serve() {
    let (run, _) = story!("degraded-mode");
    assert_eq!(run.evictions.len(), 1);
    let last = run.samples.last().unwrap();
    assert_eq!((last.running, last.pending), (4, 1), "three workers, the incident, and a worker that waits");
}

#[test]
fn replica_sets_do_not_make_preemption_go_in_circles() {
    let (run, summary) = story!("yunikorn-replicasets");
    assert_eq!((summary.evictions, summary.second_order_evictions), (8, 0));
    let fairness = summary.fairness.unwrap();
    assert!((0.96..0.98).contains(&fairness), "one hour alone, five with equal shares: {fairness}");
    let last = run.samples.last().unwrap();
    let shares: Vec<(&str, i64)> = last.by_queue.iter().map(|(queue, used)| (queue.as_str(), *used)).collect();
    assert_eq!(shares, [("team-a", 40_000), ("team-b", 40_000)]);
}

#[test]
fn slow_victims_are_waited_for() {
    let (run, summary) = story!("koordinator-slow-deletions");
    let launch = job(&run, "launch-0");
    let waited = launch.started.unwrap() - launch.submitted;
    assert!((HOUR / 12..HOUR / 4).contains(&waited), "{waited}");
    assert_eq!((summary.evictions, summary.second_order_evictions), (16, 0));
}

#[test]
fn what_was_lent_is_taken_back_and_its_borrower_runs_again() {
    let (run, summary) = story!("kueue-reclaim");
    assert_eq!(run.evictions.len(), 1);
    assert_eq!(run.evictions[0].job, "default/vision-3", "the youngest of those who borrowed");
    let speech = job(&run, "speech-0");
    assert!(speech.started.unwrap() - speech.submitted < HOUR / 60, "it starts within a minute");
    assert_eq!((summary.finished, summary.second_order_evictions), (5, 0));
    assert!(job(&run, "vision-3").finished > speech.finished, "the borrower runs again when there is room");
}
