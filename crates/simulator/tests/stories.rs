//! The scenarios of the documentation, each with the result that it demonstrates.

use std::collections::BTreeSet;

use reprieve_loader::policy::policy;
use reprieve_simulator::invariants::check;
use reprieve_simulator::run::{JobRecord, Run};
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::summary::{Summary, summary};

const HOUR: i64 = 3_600_000_000;

fn run_scenario(text: &str) -> (Run, Summary) {
    let scenario = Scenario::read("scenario", text).unwrap();
    let input = scenario.input(0);
    let profile = &scenario.profiles()[0];
    let setup = input.setup(policy(profile).unwrap()).unwrap();
    let run = check(setup).unwrap_or_else(|violation| panic!("{violation:?}"));
    let summary = summary(&profile.policy, &run, &input.queues);
    (run, summary)
}

fn job<'r>(run: &'r Run, name: &str) -> &'r JobRecord {
    run.jobs.iter().find(|job| job.name == format!("default/{name}")).unwrap()
}

macro_rules! story {
    ($name:literal) => {
        run_scenario(include_str!(concat!("../../../docs/examples/scenarios/", $name, ".yaml")))
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
    assert!(job(&run, "training-0").lost_micros < HOUR, "less than 30 minutes for each pod");
    assert_eq!((summary.partial_gangs, summary.finished), (0, 4));
}

#[test]
fn one_replica_is_evicted_whole_and_the_other_keeps_running() {
    let (run, summary) = story!("multihost-inference");
    let taken: BTreeSet<&str> = run.evictions.iter().map(|eviction| eviction.job.as_str()).collect();
    assert_eq!((taken.len(), run.evictions.len(), summary.partial_gangs), (1, 4, 0));
    assert!(job(&run, "incident-0").finished.is_some());
    assert_eq!(run.samples.last().unwrap().pending, 0, "the replica runs again");
}

#[test]
fn what_a_returning_victim_evicts_is_foreseen() {
    let (run, summary) = story!("returning-victim");
    let evicted: Vec<&str> = run.evictions.iter().map(|eviction| eviction.job.as_str()).collect();
    assert_eq!(evicted, ["default/low-0", "default/w-0"]);
    assert_eq!((summary.foreseen_second_order_evictions, summary.unforeseen_second_order_evictions), (1, 0));
}

#[test]
fn in_degraded_mode_one_worker_is_evicted_and_the_others_keep_running() {
    let (run, _) = story!("degraded-mode");
    assert_eq!(run.evictions.len(), 1);
    let last = run.samples.last().unwrap();
    assert_eq!((last.running, last.pending), (4, 1), "three workers and the incident run, one worker is pending");
}

#[test]
fn replica_sets_do_not_cause_a_preemption_cycle() {
    let (run, summary) = story!("yunikorn-replicasets");
    assert_eq!((summary.evictions, summary.second_order_evictions), (8, 0));
    let fairness = summary.fairness.unwrap();
    assert!((0.96..0.98).contains(&fairness), "one hour alone, five hours with equal shares: {fairness}");
    let last = run.samples.last().unwrap();
    let shares: Vec<(&str, i64)> = last.by_queue.iter().map(|(queue, used)| (queue.as_str(), *used)).collect();
    assert_eq!(shares, [("team-a", 40_000), ("team-b", 40_000)]);
}

#[test]
fn the_preemptor_waits_for_slow_victims() {
    let (run, summary) = story!("koordinator-slow-deletions");
    let launch = job(&run, "launch-0");
    let waited = launch.started.unwrap() - launch.submitted;
    assert!((HOUR / 12..HOUR / 4).contains(&waited), "{waited}");
    assert_eq!((summary.evictions, summary.second_order_evictions), (16, 0));
}

#[test]
fn lent_quota_is_reclaimed_and_the_borrower_runs_again() {
    let (run, summary) = story!("kueue-reclaim");
    assert_eq!(run.evictions.len(), 1);
    assert_eq!(run.evictions[0].job, "default/vision-3", "the youngest borrower");
    let speech = job(&run, "speech-0");
    assert!(speech.started.unwrap() - speech.submitted < HOUR / 60, "it starts within 60 s");
    assert_eq!((summary.finished, summary.second_order_evictions), (5, 0));
    assert!(job(&run, "vision-3").finished > speech.finished, "the borrower runs again afterwards");
}
