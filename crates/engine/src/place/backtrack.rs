//! The search over all assignments, for members that constrain each other across nodes.

use std::collections::BTreeSet;

use super::NotPlaced;
use super::complete::{Seat, Solver};
use crate::ids::NodeId;

/// Seats for enough members in an order in which all filters pass, if there are any.
pub(super) fn search(solver: &mut Solver<'_, '_, '_>, nodes: &[Vec<NodeId>]) -> Result<Option<Vec<Seat>>, NotPlaced> {
    // The most constrained class first.
    let mut classes: Vec<usize> = (0..nodes.len()).collect();
    classes.sort_by_key(|&class| (nodes[class].len(), class));
    let is_unordered = solver.gang.interplay.is_unordered();
    let mut search = Backtrack {
        options: classes.iter().flat_map(|&class| nodes[class].iter().map(move |&node| (class, node))).collect(),
        classes,
        is_unordered,
        used: vec![0; nodes.len()],
        seats: Vec::new(),
        tried: BTreeSet::new(),
    };
    let mark = solver.what_if.mark();
    let found = search.extend(solver, 0);
    solver.what_if.back_to(mark);
    Ok(found?.then_some(search.seats))
}

struct Backtrack {
    /// The classes, the most constrained first.
    classes: Vec<usize>,
    /// All seats in the order of their classes.
    options: Vec<Seat>,
    /// Whether seats are taken in the order of `options`; if not, every order is tried.
    is_unordered: bool,
    /// By class: the number of taken seats.
    used: Vec<usize>,
    seats: Vec<Seat>,
    /// The sets of seats from which no further member led to enough of them.
    tried: BTreeSet<Vec<Seat>>,
}

impl Backtrack {
    /// Takes seats until they are enough. `first` is the first option that may be taken.
    fn extend(&mut self, solver: &mut Solver<'_, '_, '_>, first: usize) -> Result<bool, NotPlaced> {
        let needed = solver.preemptor.needed;
        if self.seats.len() >= needed {
            return Ok(true);
        }
        for index in first..self.options.len() {
            let (class, node) = self.options[index];
            if self.is_unordered && self.seats.len() + self.left_from(solver, class) < needed {
                return Ok(false);
            }
            let Some(&pod) = solver.gang.classes[class].pods.get(self.used[class]) else { continue };
            solver.spend(1)?;
            if !solver.fits(class, self.used[class], node) {
                continue;
            }
            let mut tried = self.seats.clone();
            tried.push((class, node));
            tried.sort_unstable();
            if !self.is_unordered && !self.tried.insert(tried) {
                continue;
            }
            let mark = solver.what_if.mark();
            solver.what_if.place(pod, node);
            self.seats.push((class, node));
            self.used[class] += 1;
            if self.extend(solver, if self.is_unordered { index } else { 0 })? {
                return Ok(true);
            }
            solver.what_if.back_to(mark);
            self.seats.pop();
            self.used[class] -= 1;
        }
        Ok(false)
    }

    /// The number of pods without a seat of this class and of the less constrained ones.
    fn left_from(&self, solver: &Solver<'_, '_, '_>, class: usize) -> usize {
        let from = self.classes.iter().skip_while(|&&other| other != class);
        from.map(|&class| solver.gang.classes[class].pods.len() - self.used[class]).sum()
    }
}
