//! Who stands where: the bound pods, less those that are taken, and the preemptor's pods that are placed so far.

use crate::cluster::Cluster;

/// Which pods are on which node.
#[derive(Clone)]
pub struct Occupancy {
    node_of: Vec<Option<usize>>,
    /// By node: its pods.
    pub on: Vec<Vec<usize>>,
}

impl Occupancy {
    /// Everybody in place.
    pub fn of(cluster: &Cluster<'_>) -> Self {
        let nobody = Self { node_of: vec![None; cluster.pods.len()], on: vec![Vec::new(); cluster.nodes.len()] };
        let all: Vec<usize> = (0..cluster.pods.len()).collect();
        nobody.with_back(cluster, &all)
    }

    /// All pods that stand somewhere, and where.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize)> {
        self.on.iter().enumerate().flat_map(|(node, pods)| pods.iter().map(move |&pod| (pod, node)))
    }

    /// Puts a pod on a node.
    pub fn put(&mut self, pod: usize, node: usize) {
        self.take(pod);
        self.node_of[pod] = Some(node);
        self.on[node].push(pod);
    }

    /// Takes a pod away.
    pub fn take(&mut self, pod: usize) {
        if let Some(node) = self.node_of[pod].take() {
            self.on[node].retain(|&other| other != pod);
        }
    }

    /// The same, with these pods gone.
    pub fn without(&self, pods: &[usize]) -> Self {
        let mut standing = self.clone();
        pods.iter().for_each(|&pod| standing.take(pod));
        standing
    }

    /// The same, with these pods back on the nodes that they are bound to.
    pub fn with_back(&self, cluster: &Cluster<'_>, pods: &[usize]) -> Self {
        let mut standing = self.clone();
        for &pod in pods {
            if let Some(node) = cluster.pods[pod].node {
                standing.put(pod, node);
            }
        }
        standing
    }
}
