//! What cannot be is refused before anything is run, with the field and what would be right.

use std::collections::BTreeSet;

use reprieve_api::kinds::Kind;
use reprieve_api::source::InputError;
use reprieve_loader::requests;

use super::{Amounts, Arrivals, JobSpec, Scenario, quantities};

/// More nodes than any cluster has.
const MOST_NODES: u32 = 100_000;
/// Jobs a second; more is a mistake.
const MOST_PER_HOUR: f64 = 3_600_000.0;
/// What a sort of job may come to, on average.
const MOST_JOBS: f64 = 1_000_000.0;

type Checked = Result<(), InputError>;

impl Scenario {
    pub(super) fn check(&self) -> Checked {
        self.check_nodes()?;
        self.check_names()?;
        self.check_queues()?;
        for (at, job) in self.spec.jobs.iter().enumerate() {
            self.check_job(job).map_err(|error| within(error, &format!("spec.jobs[{at}]")))?;
        }
        Ok(())
    }

    fn check_nodes(&self) -> Checked {
        for (at, template) in self.spec.nodes.iter().enumerate() {
            let place = format!("spec.nodes[{at}]");
            let count = template.count;
            let problem =
                format!("{count} is not a number of nodes; write 1 to {MOST_NODES}, or leave the template out");
            refuse_if(!(1..=MOST_NODES).contains(&count), &format!("{place}.count"), problem)?;
            check_amounts(&template.allocatable).map_err(|error| within(error, &format!("{place}.allocatable")))?;
        }
        let raw = self.objects.iter().any(|object| object.kind() == Kind::Node);
        let problem = "there are no nodes; add a template, as in {name: gpu, count: 4, allocatable: {cpu: 64, nvidia.com/gpu: 8}}";
        refuse_if(self.spec.nodes.is_empty() && !raw, "spec.nodes", problem)
    }

    /// Names become names of objects, and no two are the same.
    fn check_names(&self) -> Checked {
        let nodes = self.spec.nodes.iter().map(|node| ("nodes", &node.name));
        let classes = self.spec.priority_classes.iter().map(|class| ("priorityClasses", &class.name));
        let queues = self.spec.queues.iter().map(|queue| ("queues", &queue.name));
        let jobs = self.spec.jobs.iter().map(|job| ("jobs", &job.name));
        let mut taken = BTreeSet::new();
        for (list, name) in nodes.chain(classes).chain(queues).chain(jobs) {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let is_name = (1..=40).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('-');
            let problem = format!("{name:?} is not a name; write 1 to 40 lowercase letters, digits or -");
            refuse_if(!is_name, &format!("spec.{list}"), problem)?;
            let problem = format!("{name:?} is there twice; give each a name of its own");
            refuse_if(!taken.insert((list, name)), &format!("spec.{list}"), problem)?;
        }
        Ok(())
    }

    fn check_queues(&self) -> Checked {
        let queues = &self.spec.queues;
        for (at, queue) in queues.iter().enumerate() {
            let place = format!("spec.queues[{at}]");
            check_amounts(&queue.guarantee).map_err(|error| within(error, &format!("{place}.guarantee")))?;
            check_amounts(&queue.ceiling).map_err(|error| within(error, &format!("{place}.ceiling")))?;
            let mut way = vec![&queue.name];
            let mut above = queue.parent.as_ref();
            while let Some(parent) = above {
                let Some(found) = queues.iter().find(|queue| queue.name == *parent) else {
                    let problem = format!("queue {parent:?} is not in spec.queues; add it, or name another");
                    return wrong(&format!("{place}.parent"), problem);
                };
                let problem = format!("queue {parent:?} is above itself; break the cycle");
                refuse_if(way.contains(&parent), &format!("{place}.parent"), problem)?;
                way.push(parent);
                above = found.parent.as_ref();
            }
        }
        Ok(())
    }

    fn check_job(&self, job: &JobSpec) -> Checked {
        self.check_arrivals(&job.arrivals).map_err(|error| within(error, "arrivals"))?;
        check_amounts(&job.requests).map_err(|error| within(error, "requests"))?;
        if let Some(min) = job.gang.and_then(|gang| gang.min) {
            let pods = job.pods.0.low;
            let problem =
                format!("{min} of {pods} pods cannot be; write 1 to the number of pods, or leave it out for all");
            refuse_if(min < 1 || min > usize::try_from(pods).unwrap_or(0), "gang.min", problem)?;
        }
        let problem = "a job that runs for no time; write at least 1s, or leave it out for a service that never ends";
        refuse_if(job.runs.is_some_and(|runs| runs.0.low == 0), "runs", problem)?;
        let problem = "0s saves for ever; write at least 1s, or leave it out for a job that saves nothing";
        refuse_if(job.checkpoint.is_some_and(|span| span.0 == 0), "checkpoint", problem)?;
        let problem = "both priority and priorityClass are given; write one of them";
        refuse_if(job.priority.is_some() && job.priority_class.is_some(), "priority", problem)?;
        if let Some(class) = &job.priority_class {
            let problem = format!("class {class:?} is not in spec.priorityClasses; add it, or write a priority");
            refuse_if(self.class(class).is_none(), "priorityClass", problem)?;
        }
        if let Some(name) = &job.queue {
            let queues = &self.spec.queues;
            let raw = [Kind::ConfigMap, Kind::ElasticQuota, Kind::ClusterQueue];
            let has_raw = self.objects.iter().any(|object| raw.contains(&object.kind()));
            let is_known = has_raw || queues.iter().any(|queue| queue.name == *name);
            let problem = format!("queue {name:?} is not in spec.queues; add it, or name another");
            refuse_if(!is_known, "queue", problem)?;
            if let Some(below) = queues.iter().find(|queue| queue.parent.as_ref() == Some(name)) {
                let problem = format!("queue {name:?} has queues below it; name one of those, as in {:?}", below.name);
                return wrong("queue", problem);
            }
        }
        Ok(())
    }

    fn check_arrivals(&self, arrivals: &Arrivals) -> Checked {
        let length = self.end.0 - self.start.0;
        match (&arrivals.per_hour, &arrivals.at) {
            (Some(rate), None) => {
                let problem = format!(
                    "{rate} is not a rate; write a number of jobs above 0 and up to {MOST_PER_HOUR:.0}, as in 0.5 or 12"
                );
                refuse_if(!(rate.is_finite() && *rate > 0.0 && *rate <= MOST_PER_HOUR), "perHour", problem)?;
                let until = arrivals.until.map_or(length, |span| span.0);
                let from = arrivals.from.map_or(0, |span| span.0);
                let problem = "nothing arrives: it ends before it begins, or begins after the end of the scenario";
                refuse_if(until <= from || from >= length, "until", problem)?;
                let jobs = (until.min(length) - from) as f64 / 3.6e9 * rate;
                let problem = format!(
                    "{rate} makes {jobs:.0} jobs; write a lower rate or an earlier end, for at most {MOST_JOBS:.0}"
                );
                refuse_if(jobs > MOST_JOBS, "perHour", problem)
            }
            (None, Some(at)) => {
                let has_range = arrivals.from.is_some() || arrivals.until.is_some();
                refuse_if(has_range, "at", "from and until are for perHour; leave them out")?;
                refuse_if(at.is_empty(), "at", "nothing arrives; write when, as in [0s, 30m]")?;
                at.iter().filter(|span| span.0 >= length).try_for_each(|span| {
                    let seconds = span.0 / 1_000_000;
                    wrong("at", format!("{seconds}s is after the end; write an earlier time or a later end"))
                })
            }
            _ => wrong("", "write either perHour, as in {perHour: 12}, or at, as in {at: [0s, 30m]}"),
        }
    }
}

fn check_amounts(amounts: &Amounts) -> Checked {
    if let Some((resource, value)) = amounts.iter().find(|(_, value)| !value.is_number() && !value.is_string()) {
        return wrong(resource, format!("{value} is not a quantity; write it as in 8, 500m or 64Gi"));
    }
    requests::amounts(&quantities(amounts), "").map(drop).map_err(|error| {
        let field = error.field.as_deref().unwrap_or_default().trim_start_matches('.').to_owned();
        InputError { field: Some(field), ..error }
    })
}

fn refuse_if(is_wrong: bool, field: &str, problem: impl Into<String>) -> Checked {
    if is_wrong { wrong(field, problem) } else { Ok(()) }
}

fn wrong(field: &str, problem: impl Into<String>) -> Checked {
    Err(InputError::new(problem).field(field))
}

fn within(error: InputError, place: &str) -> InputError {
    let field = match error.field.as_deref() {
        None | Some("") => place.to_owned(),
        Some(field) => format!("{place}.{field}"),
    };
    error.field(field)
}
