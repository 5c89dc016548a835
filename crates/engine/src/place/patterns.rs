//! The search over nodes one after the other, for members that constrain each other only on the same node. A *pattern* is a number of pods of
//! each class that fit on a node together. Only patterns and partial assignments that no other one exceeds are kept.

use std::collections::BTreeMap;

use super::NotPlaced;
use super::complete::{Seat, Solver};
use crate::ids::NodeId;

/// By class: a number of pods.
type Counts = Vec<usize>;

/// A partial assignment.
struct State {
    /// The pods without a node.
    left: Counts,
    /// The state before the last node, and what is placed on that node.
    from: Option<(usize, NodeId, Counts)>,
}

/// Seats for enough members, if any assignment is enough.
pub(super) fn search(solver: &mut Solver<'_, '_, '_>, nodes: &[Vec<NodeId>]) -> Result<Option<Vec<Seat>>, NotPlaced> {
    let nodes = patterns_of_nodes(solver, nodes)?;
    let needed = solver.preemptor.needed;
    // By node: how many pods fit on it and the nodes after it at most.
    let mut room_from: Vec<usize> = vec![0; nodes.len() + 1];
    for (index, (_, patterns)) in nodes.iter().enumerate().rev() {
        let room = patterns.iter().map(|pattern| pattern.iter().sum::<usize>()).max().unwrap_or(0);
        room_from[index] = room_from[index + 1] + room;
    }
    let all: Counts = solver.gang.classes.iter().map(|class| class.pods.len()).collect();
    let n_members: usize = all.iter().sum();
    let placed = |left: &Counts| n_members - left.iter().sum::<usize>();
    let mut states = vec![State { left: all, from: None }];
    let mut open = vec![0];
    for (index, (node, patterns)) in nodes.iter().enumerate() {
        let mut next: Vec<usize> = Vec::new();
        for &state in &open {
            for pattern in patterns {
                let left = &states[state].left;
                let taken: Counts = left.iter().zip(pattern).map(|(&left, &most)| left.min(most)).collect();
                let left: Counts = left.iter().zip(&taken).map(|(left, taken)| left - taken).collect();
                if placed(&left) + room_from[index + 1] < needed {
                    continue;
                }
                solver.spend(1 + next.len())?;
                if next.iter().any(|&other| exceeds(&left, &states[other].left)) {
                    continue;
                }
                next.retain(|&other| !exceeds(&states[other].left, &left));
                next.push(states.len());
                let is_enough = placed(&left) >= needed;
                states.push(State { left, from: Some((state, *node, taken)) });
                if is_enough {
                    return Ok(Some(seats(&states)));
                }
            }
        }
        open = next;
    }
    Ok(None)
}

/// Whether at least as many pods of each class are left as of the other.
fn exceeds(left: &Counts, other: &Counts) -> bool {
    left.iter().zip(other).all(|(left, other)| left >= other)
}

/// The seats of the last state.
fn seats(states: &[State]) -> Vec<Seat> {
    let mut seats = Vec::new();
    let mut state = states.last();
    while let Some((before, node, taken)) = state.and_then(|state| state.from.as_ref()) {
        for (class, &count) in taken.iter().enumerate() {
            seats.extend(std::iter::repeat_n((class, *node), count));
        }
        state = states.get(*before);
    }
    seats
}

/// The nodes on which a member fits, the cheapest first, and the patterns of each.
fn patterns_of_nodes(
    solver: &mut Solver<'_, '_, '_>,
    nodes: &[Vec<NodeId>],
) -> Result<Vec<(NodeId, Vec<Counts>)>, NotPlaced> {
    let mut accepted: BTreeMap<NodeId, (usize, Vec<usize>)> = BTreeMap::new();
    for (class, nodes) in nodes.iter().enumerate() {
        for (position, &node) in nodes.iter().enumerate() {
            let (first, classes) = accepted.entry(node).or_insert((position, Vec::new()));
            *first = position.min(*first);
            classes.push(class);
        }
    }
    let mut ordered: Vec<(usize, NodeId)> = accepted.iter().map(|(&node, &(first, _))| (first, node)).collect();
    ordered.sort_unstable();
    // Without inter-pod constraints, nodes with the same free resources that accept the same classes have the same patterns.
    let shares = solver.what_if.inter_pod().is_empty();
    let mut known: BTreeMap<(Vec<usize>, Vec<i64>), Vec<Counts>> = BTreeMap::new();
    let mut found = Vec::new();
    for (_, node) in ordered {
        let classes = &accepted[&node].1;
        let key = (classes.clone(), solver.free(node));
        let patterns = match known.get(&key).filter(|_| shares) {
            Some(patterns) => patterns.clone(),
            None => {
                let mut patterns = Vec::new();
                let mut counts = vec![0; nodes.len()];
                extend(solver, node, classes, &mut counts, &mut patterns)?;
                known.insert(key, patterns.clone());
                patterns
            }
        };
        if patterns.iter().flatten().any(|&count| count > 0) {
            found.push((node, patterns));
        }
    }
    Ok(found)
}

/// Adds the patterns that contain `counts` and differ from it only in these classes.
fn extend(
    solver: &mut Solver<'_, '_, '_>,
    node: NodeId,
    classes: &[usize],
    counts: &mut Counts,
    patterns: &mut Vec<Counts>,
) -> Result<(), NotPlaced> {
    let Some((&class, others)) = classes.split_first() else {
        solver.spend(1 + patterns.len())?;
        if !patterns.iter().any(|pattern| exceeds(pattern, counts)) {
            patterns.push(counts.clone());
        }
        return Ok(());
    };
    let start = solver.what_if.mark();
    let mut marks = vec![start];
    loop {
        solver.spend(1)?;
        let used = marks.len() - 1;
        if !solver.fits(class, used, node) {
            break;
        }
        solver.what_if.place(solver.gang.classes[class].pods[used], node);
        marks.push(solver.what_if.mark());
    }
    for (count, mark) in marks.into_iter().enumerate().rev() {
        solver.what_if.back_to(mark);
        counts[class] = count;
        let result = extend(solver, node, others, counts, patterns);
        if result.is_err() {
            solver.what_if.back_to(start);
            return result;
        }
    }
    counts[class] = 0;
    solver.what_if.back_to(start);
    Ok(())
}
