//! Whose work filled the cluster: the queues' shares, one upon the other.

use std::collections::BTreeMap;

use maud::Markup;

use super::axis::{Axis, resource_words};
use super::chart::{COLOURS, Chart};
use super::over_time::moments;
use super::simulated::PolicyRunPage;

/// The queues, those that used most first; what is beyond the colours is one more.
pub struct Queues {
    colours: BTreeMap<String, usize>,
    /// What each colour stands for.
    pub names: Vec<String>,
}

impl Queues {
    /// `None` where no job has a queue.
    pub fn of(runs: &[PolicyRunPage<'_>]) -> Option<Self> {
        let mut used: BTreeMap<&str, i64> = BTreeMap::new();
        for (queue, amount) in runs.iter().flat_map(|one| &one.run.samples).flat_map(|sample| &sample.by_queue) {
            *used.entry(queue).or_default() += amount;
        }
        if used.keys().all(|queue| queue.is_empty()) {
            return None;
        }
        let mut queues: Vec<(&str, i64)> = used.into_iter().collect();
        queues.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let colours = queues.iter().enumerate().map(|(at, (queue, _))| ((*queue).to_owned(), at.min(COLOURS)));
        let shown = queues.iter().take(COLOURS);
        let name = |queue: &str| if queue.is_empty() { "no queue".to_owned() } else { queue.to_owned() };
        let mut names: Vec<String> = shown.map(|(queue, _)| name(queue)).collect();
        if queues.len() > COLOURS {
            names.push(format!("{} more", queues.len() - COLOURS));
        }
        Some(Self { colours: colours.collect(), names })
    }

    /// Their shares, for each policy.
    pub fn shares(&self, runs: &[PolicyRunPage<'_>], time: &Axis) -> Vec<Markup> {
        let title = runs.first().map(|one| format!("share of all {} (%)", resource_words(&one.run.resource)));
        let axis = Axis::percent(&title.unwrap_or_default());
        runs.iter().map(|one| self.drawn(one, time, &axis)).collect()
    }

    fn drawn(&self, one: &PolicyRunPage<'_>, time: &Axis, axis: &Axis) -> Markup {
        let mut layers: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); self.names.len()];
        for (at, sample) in moments(one.run) {
            let mut used = vec![0; self.names.len()];
            for (queue, amount) in &sample.by_queue {
                used[self.colours[queue]] += amount;
            }
            let mut below = 0.0;
            for (layer, used) in layers.iter_mut().zip(used) {
                let above = below + 100.0 * used as f64 / (one.run.capacity as f64).max(1.0);
                layer.push((at, below, above));
                below = above;
            }
        }
        let mut chart = Chart::new(format!("{}: shares of the queues over time", one.policy), time, axis, "%");
        for (colour, (layer, name)) in layers.iter().zip(&self.names).enumerate() {
            chart.area(colour, name, layer);
        }
        chart.finish()
    }
}
