//! The plot of the capacity that each queue uses over time, stacked.

use std::collections::BTreeMap;

use maud::Markup;

use super::super::policy_run::PolicyRun;
use super::axis::{Axis, resource_name};
use super::chart::{COLOURS, Chart};
use super::over_time::samples;

/// The queues with their colours, the largest first; all queues beyond the number of colours share one.
pub struct Queues {
    colours: BTreeMap<String, usize>,
    /// The name of each colour.
    pub names: Vec<String>,
}

impl Queues {
    /// `None` if no job has a queue.
    pub fn of(results: &[PolicyRun]) -> Option<Self> {
        let mut used: BTreeMap<&str, i64> = BTreeMap::new();
        for (queue, amount) in results.iter().flat_map(|result| &result.run.samples).flat_map(|sample| &sample.by_queue)
        {
            *used.entry(queue).or_default() += amount;
        }
        if used.keys().all(|queue| queue.is_empty()) {
            return None;
        }
        let mut queues: Vec<(&str, i64)> = used.into_iter().collect();
        queues.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let colours = queues.iter().enumerate().map(|(index, (queue, _))| ((*queue).to_owned(), index.min(COLOURS)));
        let shown = queues.iter().take(COLOURS);
        let name = |queue: &str| if queue.is_empty() { "no queue".to_owned() } else { queue.to_owned() };
        let mut names: Vec<String> = shown.map(|(queue, _)| name(queue)).collect();
        if queues.len() > COLOURS {
            names.push(format!("{} more", queues.len() - COLOURS));
        }
        Some(Self { colours: colours.collect(), names })
    }

    /// The shares of the queues: a plot for each policy.
    pub fn shares(&self, results: &[PolicyRun], time: &Axis) -> Vec<Markup> {
        let title = results.first().map(|result| format!("share of all {} (%)", resource_name(&result.run.resource)));
        let axis = Axis::percent(&title.unwrap_or_default());
        results.iter().map(|result| self.plot(result, time, &axis)).collect()
    }

    fn plot(&self, result: &PolicyRun, time: &Axis, axis: &Axis) -> Markup {
        let mut layers: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); self.names.len()];
        for (at, sample) in samples(&result.run) {
            let mut used = vec![0; self.names.len()];
            for (queue, amount) in &sample.by_queue {
                used[self.colours[queue]] += amount;
            }
            let mut below = 0.0;
            for (layer, used) in layers.iter_mut().zip(used) {
                let above = below + 100.0 * used as f64 / (result.run.capacity as f64).max(1.0);
                layer.push((at, below, above));
                below = above;
            }
        }
        let mut chart =
            Chart::new(format!("{}: shares of the queues over time", result.summary.policy), time, axis, "%");
        for (colour, (layer, name)) in layers.iter().zip(&self.names).enumerate() {
            chart.area(colour, name, layer);
        }
        chart.finish()
    }
}
