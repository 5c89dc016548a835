//! Draws the jobs of a scenario from a seed: arrivals, sizes and durations.

use std::sync::Arc;

use reprieve_api::{NamespacedName, Pod};
use reprieve_engine::Timestamp;

use super::span::{Between, Spans};
use super::{Class, JobSpec, Scenario, quantities};
use crate::input::template;
use crate::rng::Rng;
use crate::run::Gang;
use crate::submission::Submission;

const SECOND: i64 = 1_000_000;

/// All jobs with their queues, in the order of arrival.
pub(super) fn submissions(scenario: &Scenario, seed: u64) -> Vec<(Submission, Option<String>)> {
    let mut all = Vec::new();
    for (index, job) in scenario.spec.jobs.iter().enumerate() {
        // Each template has its own generator: adding a template does not change the jobs of the others.
        let mut rng = Rng::new(seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let times = arrivals(scenario, job, &mut rng);
        let template = Arc::new(pod_template(scenario, job));
        let width = times.len().saturating_sub(1).max(1).to_string().len();
        for (n, at) in times.iter().enumerate() {
            let name = NamespacedName::new("default", &format!("{}-{n:0width$}", job.name));
            all.push((submission(job, &template, name, *at, &mut rng), job.queue.clone()));
        }
    }
    all.sort_by(|(a, _), (b, _)| (a.at, &a.name).cmp(&(b.at, &b.name)));
    all
}

fn arrivals(scenario: &Scenario, job: &JobSpec, rng: &mut Rng) -> Vec<Timestamp> {
    let (start, end, arrivals) = (scenario.start, scenario.end, &job.arrivals);
    if let Some(times) = &arrivals.at {
        return times.iter().map(|span| start.plus_micros(span.0)).collect();
    }
    let rate = arrivals.per_hour.expect("checked: a job without a list of times has a rate");
    let mean_micros = (3.6e9 / rate) as i64;
    let until = arrivals.until.map_or(end, |span| start.plus_micros(span.0).min(end));
    let mut at = start.plus_micros(arrivals.from.map_or(0, |span| span.0));
    let mut times = Vec::new();
    loop {
        at = at.plus_micros(rng.exponential(mean_micros).max(1));
        if at >= until {
            return times;
        }
        times.push(at);
    }
}

fn pod_template(scenario: &Scenario, job: &JobSpec) -> Pod {
    let class = job.priority_class.as_ref().and_then(|class| scenario.class(class));
    let priority = class.map(|class| class.value).or(job.priority);
    let mut template = template(priority.unwrap_or(0), quantities(&job.requests).into_iter());
    template.metadata.labels = Some(job.labels.clone());
    let spec = template.spec_mut();
    spec.priority_class_name.clone_from(&job.priority_class);
    spec.preemption_policy = class.and_then(|class| class.preemption_policy.clone());
    spec.node_selector = (!job.node_selector.is_empty()).then(|| job.node_selector.clone());
    template
}

fn submission(job: &JobSpec, template: &Arc<Pod>, name: NamespacedName, at: Timestamp, rng: &mut Rng) -> Submission {
    let pods = usize::try_from(job.pods.0.draw(rng)).unwrap_or(1);
    let drawn = |spans: Option<Spans>, low: i64, high: i64, rng: &mut Rng| {
        spans.map_or(Between { low, high }, |spans| spans.0).draw(rng)
    };
    Submission {
        name,
        at,
        pods,
        gang: job.gang.map(|gang| Gang { min: gang.min.unwrap_or(pods), whole: gang.whole }),
        template: Arc::clone(template),
        running_micros: job.runs.map(|runs| runs.0.draw(rng)),
        checkpoint_micros: job.checkpoint.map(|span| span.0),
        startup_micros: drawn(job.startup, 5 * SECOND, 15 * SECOND, rng),
        stop_micros: drawn(job.stop, SECOND, 30 * SECOND, rng),
    }
}

impl Scenario {
    pub(super) fn class(&self, name: &str) -> Option<&Class> {
        self.spec.priority_classes.iter().find(|class| class.name == name)
    }
}
