//! The pods on each node: the bound pods, without those that are removed, and with the preemptor's pods that are placed.

use crate::cluster::Cluster;

/// The pods on each node.
#[derive(Clone)]
pub struct Occupancy<'a> {
    pub cluster: &'a Cluster<'a>,
    node_of: Vec<Option<usize>>,
    /// By node: its pods.
    pub on: Vec<Vec<usize>>,
}

impl<'a> Occupancy<'a> {
    /// All bound pods in place.
    pub fn of(cluster: &'a Cluster<'a>) -> Self {
        let empty =
            Self { cluster, node_of: vec![None; cluster.pods.len()], on: vec![Vec::new(); cluster.nodes.len()] };
        let all: Vec<usize> = (0..cluster.pods.len()).collect();
        empty.with(&all)
    }

    /// All pods on nodes, with their nodes.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize)> {
        self.on.iter().enumerate().flat_map(|(node, pods)| pods.iter().map(move |&pod| (pod, node)))
    }

    /// Places a pod on a node.
    pub fn put(&mut self, pod: usize, node: usize) {
        self.take(pod);
        self.node_of[pod] = Some(node);
        self.on[node].push(pod);
    }

    /// Removes a pod.
    pub fn take(&mut self, pod: usize) {
        if let Some(node) = self.node_of[pod].take() {
            self.on[node].retain(|&other| other != pod);
        }
    }

    /// A copy without these pods.
    pub fn without(&self, pods: &[usize]) -> Self {
        let mut occupancy = self.clone();
        pods.iter().for_each(|&pod| occupancy.take(pod));
        occupancy
    }

    /// A copy with these pods on the nodes that they are bound to.
    pub fn with(&self, pods: &[usize]) -> Self {
        let mut occupancy = self.clone();
        for &pod in pods {
            if let Some(node) = self.cluster.pods[pod].node {
                occupancy.put(pod, node);
            }
        }
        occupancy
    }
}
