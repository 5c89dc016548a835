//! Validates a scenario before it runs. An error names the field, the problem and a correct value.

use std::collections::BTreeSet;

use reprieve_api::{InputError, Kind};
use reprieve_loader::requests;

use super::{Amounts, Arrivals, JobSpec, Scenario, quantities};

const MAX_NODES: u32 = 100_000;
/// 1000 jobs per second.
const MAX_PER_HOUR: f64 = 3_600_000.0;
/// The expected number of jobs of one template.
const MAX_JOBS: f64 = 1_000_000.0;

type Checked = Result<(), InputError>;

impl Scenario {
    pub(super) fn check(&self) -> Checked {
        self.check_nodes()?;
        self.check_names()?;
        self.check_queues()?;
        for (index, job) in self.spec.jobs.iter().enumerate() {
            self.check_job(job).map_err(|error| within(error, &format!("spec.jobs[{index}]")))?;
        }
        Ok(())
    }

    fn check_nodes(&self) -> Checked {
        for (index, template) in self.spec.nodes.iter().enumerate() {
            let path = format!("spec.nodes[{index}]");
            let count = template.count;
            let problem =
                format!("{count} is not a number of nodes; write 1 to {MAX_NODES}, or leave the template out");
            reject_if(!(1..=MAX_NODES).contains(&count), &format!("{path}.count"), problem)?;
            check_amounts(&template.allocatable).map_err(|error| within(error, &format!("{path}.allocatable")))?;
        }
        let has_nodes = self.objects.iter().any(|object| object.kind() == Kind::Node);
        let problem = "there are no nodes; add a template, as in {name: gpu, count: 4, allocatable: {cpu: 64, nvidia.com/gpu: 8}}";
        reject_if(self.spec.nodes.is_empty() && !has_nodes, "spec.nodes", problem)
    }

    /// Names are unique within a list and valid as names of Kubernetes objects.
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
            reject_if(!is_name, &format!("spec.{list}"), problem)?;
            let problem = format!("{name:?} is used twice; give each a unique name");
            reject_if(!taken.insert((list, name)), &format!("spec.{list}"), problem)?;
        }
        Ok(())
    }

    fn check_queues(&self) -> Checked {
        let queues = &self.spec.queues;
        for (index, queue) in queues.iter().enumerate() {
            let path = format!("spec.queues[{index}]");
            check_amounts(&queue.guarantee).map_err(|error| within(error, &format!("{path}.guarantee")))?;
            check_amounts(&queue.ceiling).map_err(|error| within(error, &format!("{path}.ceiling")))?;
            let mut path_up = vec![&queue.name];
            let mut above = queue.parent.as_ref();
            while let Some(parent) = above {
                let Some(found) = queues.iter().find(|queue| queue.name == *parent) else {
                    let problem = format!("queue {parent:?} is not in spec.queues; add it, or name another");
                    return wrong(&format!("{path}.parent"), problem);
                };
                let problem = format!("queue {parent:?} is above itself; break the cycle");
                reject_if(path_up.contains(&parent), &format!("{path}.parent"), problem)?;
                path_up.push(parent);
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
                format!("{min} of {pods} pods is not possible; write 1 to the number of pods, or leave it out for all");
            reject_if(min < 1 || min > usize::try_from(pods).unwrap_or(0), "gang.min", problem)?;
        }
        let problem = "0s is not a running time; write at least 1s, or leave it out for a service that never ends";
        reject_if(job.runs.is_some_and(|runs| runs.0.low == 0), "runs", problem)?;
        let problem = "0s is not an interval; write at least 1s, or leave it out for a job without checkpoints";
        reject_if(job.checkpoint.is_some_and(|span| span.0 == 0), "checkpoint", problem)?;
        let problem = "both priority and priorityClass are given; write one of them";
        reject_if(job.priority.is_some() && job.priority_class.is_some(), "priority", problem)?;
        if let Some(class) = &job.priority_class {
            let problem = format!("class {class:?} is not in spec.priorityClasses; add it, or write a priority");
            reject_if(self.class(class).is_none(), "priorityClass", problem)?;
        }
        if let Some(name) = &job.queue {
            let queues = &self.spec.queues;
            let has_queue_objects = self.objects.iter().any(|object| object.kind().defines_queues());
            let is_known = has_queue_objects || queues.iter().any(|queue| queue.name == *name);
            let problem = format!("queue {name:?} is not in spec.queues; add it, or name another");
            reject_if(!is_known, "queue", problem)?;
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
                    "{rate} is not a rate; write a number of jobs above 0 and up to {MAX_PER_HOUR:.0}, as in 0.5 or 12"
                );
                reject_if(!(rate.is_finite() && *rate > 0.0 && *rate <= MAX_PER_HOUR), "perHour", problem)?;
                let until = arrivals.until.map_or(length, |span| span.0);
                let from = arrivals.from.map_or(0, |span| span.0);
                let problem = "nothing arrives: it ends before it begins, or begins after the end of the scenario";
                reject_if(until <= from || from >= length, "until", problem)?;
                let jobs = (until.min(length) - from) as f64 / 3.6e9 * rate;
                let problem = format!(
                    "{rate} makes {jobs:.0} jobs; write a lower rate or an earlier end, for at most {MAX_JOBS:.0}"
                );
                reject_if(jobs > MAX_JOBS, "perHour", problem)
            }
            (None, Some(at)) => {
                let has_range = arrivals.from.is_some() || arrivals.until.is_some();
                reject_if(has_range, "at", "from and until are for perHour; leave them out")?;
                reject_if(at.is_empty(), "at", "nothing arrives; write when, as in [0s, 30m]")?;
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

fn reject_if(is_wrong: bool, field: &str, problem: impl Into<String>) -> Checked {
    if is_wrong { wrong(field, problem) } else { Ok(()) }
}

fn wrong(field: &str, problem: impl Into<String>) -> Checked {
    Err(InputError::new(problem).field(field))
}

fn within(error: InputError, path: &str) -> InputError {
    let field = match error.field.as_deref() {
        None | Some("") => path.to_owned(),
        Some(field) => format!("{path}.{field}"),
    };
    error.field(field)
}
