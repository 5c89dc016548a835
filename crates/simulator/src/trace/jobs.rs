//! Lists of training jobs, `job,submit_s,gpus,duration_s`: the form of Microsoft's Philly trace that scheduler simulators share.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use reprieve_api::{InputError, NamespacedName, Object};
use reprieve_loader::QueueSpec;

use super::openb::{GPU, name, node, node_list};
use super::{OnInvalidLine, Row, SECOND, START, SkippedLines, Text, simulation_input};
use crate::input::{SimulationInput, template};
use crate::rng::Rng;
use crate::run::Gang;
use crate::scenario::node_objects;
use crate::submission::Submission;

const JOBS: &str = "job,submit_s,gpus,duration_s";
/// The GPUs of a synthetic node.
const GPUS_PER_NODE: i64 = 8;
/// A job has at most one pod per GPU.
const MAX_GPUS: i64 = 100_000;
const TEAMS: [&str; 2] = ["team-a", "team-b"];
const CHECKPOINT: i64 = 1_800 * SECOND;

struct JobLine {
    name: String,
    submitted: i64,
    gpus: i64,
    runs_seconds: i64,
}

/// The input of the simulation, and the skipped lines. Priorities and teams are drawn from the seed.
pub fn jobs(
    list: Text<'_>,
    nodes: Option<Text<'_>>,
    on_invalid: OnInvalidLine,
    seed: u64,
) -> Result<(SimulationInput, SkippedLines), InputError> {
    let (lines, mut skipped) = list.lines("job", JOBS, on_invalid, job_line, |job| &job.name)?;
    let mut assumptions = assumptions();
    let (objects, gpus): (Vec<Object>, i64) = match nodes {
        Some(nodes) => {
            let (nodes, skipped_nodes) = node_list(nodes, on_invalid)?;
            skipped.lines += skipped_nodes.lines;
            skipped.first = skipped.first.or(skipped_nodes.first);
            (nodes.iter().map(node).collect(), nodes.iter().map(|node| node.gpus).sum())
        }
        None => {
            let count = nodes_for(&lines);
            assumptions.push(format!(
                "nodes: {count} with {GPUS_PER_NODE} GPUs each, so that the jobs as recorded request 90 % of them on average"
            ));
            let allocatable = [("cpu", "96"), ("memory", "768Gi"), (GPU, "8")];
            (node_objects("gpu", count, &allocatable), i64::from(count) * GPUS_PER_NODE)
        }
    };
    let mut rng = Rng::new(seed);
    let submissions = lines.iter().map(|line| submission(line, &mut rng)).collect();
    let last = lines.iter().map(|job| job.submitted + job.runs_seconds).max().unwrap_or(0);
    let queue = |name: &str| QueueSpec {
        name: name.to_owned(),
        guarantee: BTreeMap::from([(GPU.to_owned(), gpus / 2)]),
        ..QueueSpec::default()
    };
    let queues = TEAMS.into_iter().map(queue).collect();
    // Twice the time that the jobs would take without waiting, and a day: enough for a backlog to be worked off.
    let input = simulation_input(list, objects, queues, submissions, assumptions, last * 2 + 86_400);
    Ok((SimulationInput { seed, ..input }, skipped))
}

/// The synthetic data.
fn assumptions() -> Vec<String> {
    let [a, b] = TEAMS;
    vec![
        "priorities: drawn at random (10 % 200, 30 % 100, 60 % 0)".to_owned(),
        format!(
            "gangs: a job of more than {GPUS_PER_NODE} GPUs has pods of equal size, at most {GPUS_PER_NODE} GPUs each, that run only together; policies Kubernetes and Kueue also evict them only together"
        ),
        "checkpoints: every 30m; a pod takes 30s to terminate".to_owned(),
        format!(
            "queues: each job is assigned to {a} or {b} at random, and each queue is guaranteed half of the GPUs; policy Kubernetes has no queues"
        ),
    ]
}

fn job_line(row: &Row) -> Result<JobLine, String> {
    let gpus = row.number(2, "gpus", 1)?;
    if gpus > MAX_GPUS {
        return Err(format!("gpus: {gpus} is more than any job has; write at most {MAX_GPUS}"));
    }
    Ok(JobLine {
        name: name(row, 0, "job")?,
        submitted: row.number(1, "submit_s", 0)?,
        gpus,
        runs_seconds: row.number(3, "duration_s", 1)?,
    })
}

/// The number of nodes of which the jobs request 90 % while they arrive, and at least as many as the largest job needs.
fn nodes_for(jobs: &[JobLine]) -> u32 {
    let requested: i128 = jobs.iter().map(|job| i128::from(job.gpus) * i128::from(job.runs_seconds)).sum();
    let first = jobs.iter().map(|job| job.submitted).min().unwrap_or(0);
    let last = jobs.iter().map(|job| job.submitted).max().unwrap_or(0);
    let span = i128::from((last - first).max(1));
    let by_load = requested * 10 / (span * 9 * i128::from(GPUS_PER_NODE));
    let largest = jobs.iter().map(|job| i128::from(shape(job.gpus).0)).max().unwrap_or(1);
    u32::try_from(by_load.max(largest).clamp(1, 20_000)).unwrap_or(1)
}

/// The number of pods of a job, and the GPUs of each: the largest divisor of `gpus` that fits on a node.
fn shape(gpus: i64) -> (i64, i64) {
    let each = (1..=GPUS_PER_NODE.min(gpus)).rev().find(|each| gpus % each == 0).unwrap_or(1);
    (gpus / each, each)
}

fn submission(job: &JobLine, rng: &mut Rng) -> (Submission, Option<String>) {
    let priority = rng.pick(&[200, 100, 100, 100, 0, 0, 0, 0, 0, 0]);
    let team = rng.pick(&TEAMS);
    let (pods, each) = shape(job.gpus);
    let pods = usize::try_from(pods).unwrap_or(1);
    let requests =
        [("cpu".to_owned(), Quantity("1".to_owned())), (GPU.to_owned(), Quantity(each.to_string()))].into_iter();
    let submission = Submission {
        name: NamespacedName::new("default", &job.name),
        at: START.plus_micros(job.submitted * SECOND),
        pods,
        gang: (pods > 1).then_some(Gang { min: pods, whole: true }),
        template: template(priority, requests).into(),
        running_micros: Some(job.runs_seconds * SECOND),
        checkpoint_micros: Some(CHECKPOINT),
        startup_micros: 0,
        stop_micros: 30 * SECOND,
    };
    (submission, Some(team.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_divided_into_equal_pods() {
        for (gpus, pods_and_each) in [(1, (1, 1)), (7, (1, 7)), (8, (1, 8)), (16, (2, 8)), (20, (4, 5)), (11, (11, 1))]
        {
            assert_eq!(shape(gpus), pods_and_each, "{gpus}");
        }
    }
}
