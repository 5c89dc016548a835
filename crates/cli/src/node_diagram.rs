//! A text diagram of the nodes: a row for each node, a cell for each unit of one resource, a letter for each owner.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use reprieve_engine::{NodeId, PodId};
use reprieve_loader::Loaded;

const COLOURS: [AnsiColor; 6] =
    [AnsiColor::Blue, AnsiColor::Magenta, AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Red];

/// A diagram of one resource.
pub struct NodeDiagram<'a> {
    loaded: &'a Loaded,
    resource: usize,
    /// Owners by name; an owner is a group, or the pods whose names differ only in their last part.
    owners: BTreeMap<String, DiagramOwner>,
}

struct DiagramOwner {
    letter: char,
    style: Style,
    priority: i32,
}

impl<'a> NodeDiagram<'a> {
    /// `None` if no node has the resource.
    pub fn new(loaded: &'a Loaded, resource: &str) -> Option<Self> {
        let resource = loaded.snapshot.resource_ids().find(|&id| loaded.names.resource(id) == resource)?.index();
        let mut diagram = Self { loaded, resource, owners: BTreeMap::new() };
        let mut owners: BTreeMap<String, i32> = BTreeMap::new();
        for pod in loaded.names.pod_ids() {
            owners.insert(diagram.owner(pod), loaded.snapshot.pod(pod).priority.0);
        }
        for (index, (owner, priority)) in owners.into_iter().enumerate() {
            let letter = char::from(b'A' + (index % 26) as u8);
            let style = Style::new().fg_color(Some(COLOURS[index % COLOURS.len()].into())).bold();
            diagram.owners.insert(owner, DiagramOwner { letter, style, priority });
        }
        Some(diagram)
    }

    fn owner(&self, pod: PodId) -> String {
        match self.loaded.snapshot.pod(pod).group {
            Some(group) => self.loaded.names.group(group).to_string(),
            None => {
                let name = self.loaded.names.pod(pod).to_string();
                name.rsplit_once('-').map_or(name.clone(), |(owner, _)| owner.to_owned())
            }
        }
    }

    /// The rows of nodes, without the evicted pods and with the placed ones.
    pub fn rows(&self, evicted: &[PodId], placed: &[(PodId, NodeId)]) -> Vec<String> {
        let snapshot = &self.loaded.snapshot;
        let width = snapshot.node_ids().map(|node| self.loaded.names.node(node).len()).max().unwrap_or_default();
        snapshot
            .node_ids()
            .map(|node| {
                let kept = snapshot.pods_on(node).filter(|pod| !evicted.contains(pod));
                let added = placed.iter().filter(|(_, target)| *target == node).map(|(pod, _)| *pod);
                let mut cells = String::new();
                let mut free = snapshot.allocatable(node)[self.resource];
                for pod in kept.chain(added) {
                    let amount = snapshot.requests(snapshot.pod(pod).shape)[self.resource];
                    let DiagramOwner { letter, style, .. } = &self.owners[&self.owner(pod)];
                    let _ = write!(cells, "{style}{}{style:#}", letter.to_string().repeat(amount as usize));
                    free -= amount;
                }
                let dots = "·".repeat(free.max(0) as usize);
                format!("{:width$}  [{cells}{dots}]", self.loaded.names.node(node))
            })
            .collect()
    }

    /// The owner and the priority of each letter.
    pub fn legend(&self) -> Vec<String> {
        let line = |(name, DiagramOwner { letter, style, priority }): (&String, &DiagramOwner)| {
            format!("{style}{letter}{style:#} {name} (priority {priority})")
        };
        self.owners.iter().map(line).collect()
    }
}
