//! The queues. A maximum is at most the one above; the guarantees of the children are together at most the parent's, and its maximum.

use std::fmt::Write as _;

use super::{Amounts, RESOURCES, Rng, quantities};

/// More than any cluster offers.
const NO_LIMIT: i64 = 1_000_000;

/// The queues, parents first; the first is the root.
pub(super) struct Tree {
    pub queues: Vec<Queue>,
}

pub(super) struct Queue {
    name: String,
    pub path: String,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    pub guarantee: [Option<i64>; RESOURCES.len()],
    pub max: [Option<i64>; RESOURCES.len()],
    /// How many pods it may have.
    pub max_pods: Option<usize>,
    properties: Vec<String>,
    pub delay_seconds: i64,
}

impl Tree {
    pub fn new(rng: &mut Rng, total: &Amounts) -> Self {
        let mut tree = Self { queues: Vec::new() };
        let levels = rng.pick(&[1, 1, 2, 2, 3, 4]) - 1;
        // Guarantees that exceed the cluster are lawful, and happen.
        let share = rng.pick(&[40, 60, 80, 100, 130]);
        let budget = total.map(|amount| amount * share / 100);
        tree.add(rng, None, "root".to_owned(), levels, &budget, &[NO_LIMIT; RESOURCES.len()]);
        tree
    }

    /// Adds a queue and all below it. `budget` is what it and those below may be guaranteed, `limit` the least maximum above.
    fn add(
        &mut self,
        rng: &mut Rng,
        parent: Option<usize>,
        name: String,
        levels: usize,
        budget: &Amounts,
        limit: &Amounts,
    ) -> usize {
        let at = self.queues.len();
        let path = parent.map_or_else(|| name.clone(), |parent| format!("{}.{name}", self.queues[parent].path));
        let is_leaf = parent.is_some() && (levels == 0 || rng.chance(45));
        let mut queue = Queue {
            name,
            path,
            parent,
            children: Vec::new(),
            guarantee: [None; RESOURCES.len()],
            max: [None; RESOURCES.len()],
            max_pods: None,
            properties: Vec::new(),
            delay_seconds: 30,
        };
        let (mut budget, mut limit) = (*budget, *limit);
        if parent.is_some() {
            queue.limits(rng, is_leaf, &mut budget, &mut limit);
            queue.properties(rng, is_leaf);
        }
        self.queues.push(queue);
        if let Some(parent) = parent {
            self.queues[parent].children.push(at);
        }
        if !is_leaf {
            let n = if parent.is_none() { rng.within(2, 3) } else { rng.pick(&[1, 2, 2, 3]) };
            let mut left = budget;
            for child in 0..n {
                let name = ["a", "b", "c"][child].to_owned();
                let share: Amounts = std::array::from_fn(|at| match child + 1 == n {
                    true => left[at],
                    false => rng.up_to(left[at] as usize + 1) as i64,
                });
                for (left, share) in left.iter_mut().zip(share) {
                    *left -= share;
                }
                self.add(rng, Some(at), name, levels.saturating_sub(1), &share, &limit);
            }
        }
        at
    }

    /// A queue and all above it.
    pub fn path(&self, from: usize) -> impl Iterator<Item = &Queue> {
        std::iter::successors(Some(&self.queues[from]), |queue| queue.parent.map(|parent| &self.queues[parent]))
    }

    pub fn leaves(&self) -> Vec<usize> {
        (0..self.queues.len()).filter(|&at| self.queues[at].children.is_empty()).collect()
    }

    /// The queue and all below it, as YuniKorn reads them.
    pub fn write(&self, text: &mut String, at: usize, indent: usize) {
        let queue = &self.queues[at];
        let amounts = |amounts: [Option<i64>; RESOURCES.len()]| {
            let written: Vec<String> =
                (0..RESOURCES.len()).filter_map(|at| amounts[at].map(|amount| written(at, amount))).collect();
            written.join(", ")
        };
        let (guarantee, mut max) = (amounts(queue.guarantee), amounts(queue.max));
        if let Some(n) = queue.max_pods {
            let _ = write!(max, "{}pods: \"{n}\"", if max.is_empty() { "" } else { ", " });
        }
        let mut fields = vec![format!("name: {}", queue.name)];
        let limits: Vec<String> = [("guaranteed", guarantee), ("max", max)]
            .into_iter()
            .filter(|(_, amounts)| !amounts.is_empty())
            .map(|(name, amounts)| format!("{name}: {{{amounts}}}"))
            .collect();
        if !limits.is_empty() {
            fields.push(format!("resources: {{{}}}", limits.join(", ")));
        }
        if !queue.properties.is_empty() {
            fields.push(format!("properties: {{{}}}", queue.properties.join(", ")));
        }
        if !queue.children.is_empty() {
            fields.push("queues:".to_owned());
        }
        for (number, field) in fields.iter().enumerate() {
            let _ = writeln!(text, "{:indent$}{} {field}", "", if number == 0 { "-" } else { " " });
        }
        for &child in &queue.children {
            self.write(text, child, indent + 2);
        }
    }
}

fn written(at: usize, amount: i64) -> String {
    let mut one = [0; RESOURCES.len()];
    one[at] = amount.max(1);
    let text = quantities(&one, "vcore");
    let text = text.trim_end_matches(", ");
    if amount == 0 { format!("{}: \"0\"", text.split(':').next().unwrap_or_default()) } else { text.to_owned() }
}

impl Queue {
    /// Chooses guarantee and maximum, and lowers what is left for those below.
    fn limits(&mut self, rng: &mut Rng, is_leaf: bool, budget: &mut Amounts, limit: &mut Amounts) {
        let guaranteed = rng.chance(if is_leaf { 70 } else { 45 });
        let limited = rng.chance(30);
        for at in 0..RESOURCES.len() {
            if limited && budget[at] > 0 && rng.chance(60) {
                let max = (budget[at] + rng.within(0, 6) as i64).min(limit[at]).max(1);
                self.max[at] = Some(max);
                limit[at] = max;
            }
            budget[at] = budget[at].min(limit[at]);
            if guaranteed && budget[at] > 0 && rng.chance(75) {
                let least = if rng.chance(3) { 0 } else { 1 };
                let own = if rng.chance(50) { budget[at] } else { rng.within(least, budget[at] as usize) as i64 };
                self.guarantee[at] = Some(own);
                budget[at] = own;
            }
        }
        if is_leaf && rng.chance(4) {
            self.max_pods = Some(rng.within(2, 6));
        }
    }

    fn properties(&mut self, rng: &mut Rng, is_leaf: bool) {
        match rng.up_to(30) {
            0 => self.properties.push("preemption.policy: disabled".to_owned()),
            1 | 2 => self.properties.push("preemption.policy: fence".to_owned()),
            3 => self.properties.push("preemption.policy: default".to_owned()),
            _ => {}
        }
        if rng.chance(15) {
            self.properties.push(format!("priority.offset: \"{}\"", rng.pick(&[-5, 1, 5, 10])));
        }
        if rng.chance(7) {
            self.properties.push("priority.policy: fence".to_owned());
        }
        if is_leaf && rng.chance(25) {
            let (written, seconds) = rng.pick(&[("1s", 1), ("10s", 10), ("1m", 60), ("2m30s", 150)]);
            self.properties.push(format!("preemption.delay: {written}"));
            self.delay_seconds = seconds;
        }
    }
}
