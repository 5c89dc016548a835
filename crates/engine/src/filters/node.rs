//! What a node itself refuses, whoever runs there: cordon, taints, node selection. No preemption changes it.

use crate::filters::FilterFailure;
use crate::ids::NodeId;
use crate::labels::Requirement;
use crate::shape::{Effect, NameRequirement, NodeSelection, NodeTerm, Shape, Taint};
use crate::snapshot::{Node, Snapshot};

/// Why the node is closed to the shape, if it is.
pub(crate) fn filter_failure(snapshot: &Snapshot, shape: &Shape, node: NodeId) -> Option<FilterFailure> {
    let node = snapshot.node(node);
    if node.cordon.is_some_and(|taint| !bears(shape, &taint)) {
        return Some(FilterFailure::Cordon);
    }
    if let Some(taint) = untolerated(shape, node) {
        return Some(FilterFailure::Taint(taint));
    }
    (!selects(&shape.nodes, node, snapshot.numbers())).then_some(FilterFailure::NodeSelection)
}

/// The first taint that keeps the shape out.
pub(crate) fn untolerated(shape: &Shape, node: &Node) -> Option<Taint> {
    node.taints.iter().copied().find(|taint| taint.effect != Effect::PreferNoSchedule && !bears(shape, taint))
}

fn bears(shape: &Shape, taint: &Taint) -> bool {
    shape.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

/// Whether the selection allows the node.
pub(crate) fn selects(selection: &NodeSelection, node: &Node, numbers: &[Option<i64>]) -> bool {
    all_match(&selection.all, node, numbers)
        && selection.any.as_ref().is_none_or(|terms| terms.iter().any(|term| holds(term, node, numbers)))
}

/// A term that demands nothing holds nowhere, as in Kubernetes.
fn holds(term: &NodeTerm, node: &Node, numbers: &[Option<i64>]) -> bool {
    let demands = !(term.labels.is_empty() && term.names.is_empty());
    demands
        && all_match(&term.labels, node, numbers)
        && term.names.iter().all(|requirement| match requirement {
            NameRequirement::In(names) => names.contains(&node.name),
            NameRequirement::NotIn(names) => !names.contains(&node.name),
        })
}

fn all_match(requirements: &[Requirement], node: &Node, numbers: &[Option<i64>]) -> bool {
    requirements.iter().all(|requirement| requirement.matches(&node.labels, numbers))
}
