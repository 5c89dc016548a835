//! The queue tree. A queue's maximum is at most its parent's; the guarantees of the children add up to at most the parent's guarantee and
//! maximum.

use std::fmt::Write as _;

use super::{Amounts, RESOURCES, Rng, quantities};

/// More than the capacity of any cluster.
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
    /// The maximum number of pods.
    pub max_pods: Option<usize>,
    properties: Vec<String>,
    pub delay_seconds: i64,
}

impl Tree {
    pub fn new(rng: &mut Rng, total: &Amounts) -> Self {
        let mut tree = Self { queues: Vec::new() };
        let levels = rng.pick(&[1, 1, 2, 2, 3, 4]) - 1;
        // YuniKorn accepts guarantees above the capacity of the cluster.
        let share = rng.pick(&[40, 60, 80, 100, 130]);
        let budget = total.map(|amount| amount * share / 100);
        tree.add(rng, None, "root".to_owned(), levels, &budget, &[NO_LIMIT; RESOURCES.len()]);
        tree
    }

    /// Adds a queue and its subtree. `budget` limits the guarantees of the subtree, `limit` is the lowest maximum of the ancestors.
    fn add(
        &mut self,
        rng: &mut Rng,
        parent: Option<usize>,
        name: String,
        levels: usize,
        budget: &Amounts,
        limit: &Amounts,
    ) -> usize {
        let index = self.queues.len();
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
            self.queues[parent].children.push(index);
        }
        if !is_leaf {
            let n = if parent.is_none() { rng.within(2, 3) } else { rng.pick(&[1, 2, 2, 3]) };
            let mut left = budget;
            for child in 0..n {
                let name = ["a", "b", "c"][child].to_owned();
                let share: Amounts = std::array::from_fn(|index| match child + 1 == n {
                    true => left[index],
                    false => rng.up_to(left[index] as usize + 1) as i64,
                });
                for (left, share) in left.iter_mut().zip(share) {
                    *left -= share;
                }
                self.add(rng, Some(index), name, levels.saturating_sub(1), &share, &limit);
            }
        }
        index
    }

    /// A queue and its ancestors.
    pub fn path(&self, from: usize) -> impl Iterator<Item = &Queue> {
        std::iter::successors(Some(&self.queues[from]), |queue| queue.parent.map(|parent| &self.queues[parent]))
    }

    pub fn leaves(&self) -> Vec<usize> {
        (0..self.queues.len()).filter(|&index| self.queues[index].children.is_empty()).collect()
    }

    /// Writes the queue and its subtree in YuniKorn's format.
    pub fn write(&self, text: &mut String, index: usize, indent: usize) {
        let queue = &self.queues[index];
        let amounts = |amounts: [Option<i64>; RESOURCES.len()]| {
            let written: Vec<String> =
                (0..RESOURCES.len()).filter_map(|index| amounts[index].map(|amount| written(index, amount))).collect();
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

fn written(index: usize, amount: i64) -> String {
    let mut one = [0; RESOURCES.len()];
    one[index] = amount.max(1);
    let text = quantities(&one, "vcore");
    let text = text.trim_end_matches(", ");
    if amount == 0 { format!("{}: \"0\"", text.split(':').next().unwrap_or_default()) } else { text.to_owned() }
}

impl Queue {
    /// Chooses guarantee and maximum, and lowers the budget and the limit of the subtree.
    fn limits(&mut self, rng: &mut Rng, is_leaf: bool, budget: &mut Amounts, limit: &mut Amounts) {
        let guaranteed = rng.chance(if is_leaf { 70 } else { 45 });
        let limited = rng.chance(30);
        for index in 0..RESOURCES.len() {
            if limited && budget[index] > 0 && rng.chance(60) {
                let max = (budget[index] + rng.within(0, 6) as i64).min(limit[index]).max(1);
                self.max[index] = Some(max);
                limit[index] = max;
            }
            budget[index] = budget[index].min(limit[index]);
            if guaranteed && budget[index] > 0 && rng.chance(75) {
                let least = if rng.chance(3) { 0 } else { 1 };
                let own = if rng.chance(50) { budget[index] } else { rng.within(least, budget[index] as usize) as i64 };
                self.guarantee[index] = Some(own);
                budget[index] = own;
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
