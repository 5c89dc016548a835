//! The filters that depend on the node alone: cordon, taints, node selection. No preemption changes their result.

use crate::filters::FilterFailure;
use crate::ids::NodeId;
use crate::labels::Requirement;
use crate::shape::{Effect, NameRequirement, NodeSelection, NodeTerm, Shape, Taint};
use crate::snapshot::{Node, Snapshot};

/// The reason why the node does not accept pods of the shape.
pub(crate) fn filter_failure(snapshot: &Snapshot, shape: &Shape, node: NodeId) -> Option<FilterFailure> {
    let node = snapshot.node(node);
    if node.cordon.is_some_and(|taint| !tolerates(shape, &taint)) {
        return Some(FilterFailure::Cordon);
    }
    if let Some(taint) = untolerated(shape, node) {
        return Some(FilterFailure::Taint(taint));
    }
    (!selects(&shape.nodes, node, snapshot.numbers())).then_some(FilterFailure::NodeSelection)
}

/// The first taint that the shape does not tolerate.
pub(crate) fn untolerated(shape: &Shape, node: &Node) -> Option<Taint> {
    node.taints.iter().copied().find(|taint| taint.effect != Effect::PreferNoSchedule && !tolerates(shape, taint))
}

fn tolerates(shape: &Shape, taint: &Taint) -> bool {
    shape.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

/// Whether the selection allows the node.
pub(crate) fn selects(selection: &NodeSelection, node: &Node, numbers: &[Option<i64>]) -> bool {
    all_match(&selection.all, node, numbers)
        && selection.any.as_ref().is_none_or(|terms| terms.iter().any(|term| term_matches(term, node, numbers)))
}

/// A term without requirements matches no node, as in Kubernetes.
fn term_matches(term: &NodeTerm, node: &Node, numbers: &[Option<i64>]) -> bool {
    let is_empty = term.labels.is_empty() && term.names.is_empty();
    !is_empty
        && all_match(&term.labels, node, numbers)
        && term.names.iter().all(|requirement| match requirement {
            NameRequirement::In(names) => names.contains(&node.name),
            NameRequirement::NotIn(names) => !names.contains(&node.name),
        })
}

fn all_match(requirements: &[Requirement], node: &Node, numbers: &[Option<i64>]) -> bool {
    requirements.iter().all(|requirement| requirement.matches(&node.labels, numbers))
}
