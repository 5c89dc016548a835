//! Pending pods: the preemptor, and other pods with a nomination.

use serde_json::{Value, json};

use super::Builder;
use super::nodes::Amounts;

impl Builder {
    /// Adds the preemptor and returns the reference to it.
    pub(super) fn preemptor(&mut self) -> Value {
        let (kind, namespace, name) = if self.features.gang_preemptor {
            ("PodGroup", self.urgent_gang(), "urgent")
        } else if self.features.resize && self.rng.chance(60) {
            ("Pod", self.growing_pod(), "urgent")
        } else {
            ("Pod", self.urgent_pod(), "urgent")
        };
        json!({ "kind": kind, "namespace": namespace, "name": name })
    }

    /// A pod that usually fits on no node now, and usually would fit on an empty one.
    fn urgent_pod(&mut self) -> &'static str {
        let requested = self.urgent_requests(1);
        let mut template = self.template_of(requested);
        self.add_many_constraints(&mut template);
        let mut pod = self.pod("urgent", &template, self.priority);
        if self.rng.chance(2) {
            pod["spec"]["preemptionPolicy"] = json!("Never");
        }
        self.nominate(&mut pod, 100);
        self.objects.push(pod);
        template.namespace
    }

    /// Requests above the free capacity of every node, such that `share` pods fit on an empty node.
    pub(super) fn urgent_requests(&mut self, share: usize) -> Amounts {
        let most_free = self.nodes.iter().map(|node| node.free.cpu).max().unwrap_or_default();
        let mut host = self.nodes[self.rng.up_to(self.nodes.len())].has;
        if host.cpu <= most_free && self.rng.chance(80) {
            host = self.nodes.iter().map(|node| node.has).max_by_key(|has| has.cpu).unwrap_or(host);
        }
        let most = (host.cpu / share).max(1);
        let least = if self.rng.chance(92) { (most_free / share + 1).min(most) } else { 0 };
        Amounts {
            cpu: if self.rng.chance(2) { 9 } else { self.rng.within(least, most) },
            memory: if self.rng.chance(35) { self.rng.within(0, host.memory / share) } else { 0 },
            devices: usize::from(host.devices > 0 && self.rng.chance(40)),
            pods: 1,
        }
    }

    /// A running pod that requests more than it is allocated.
    fn growing_pod(&mut self) -> &'static str {
        let Some(node) = (0..self.nodes.len()).max_by_key(|&index| (self.nodes[index].has.cpu, index)) else {
            unreachable!("there are at least two nodes")
        };
        let has = Amounts { cpu: 1, memory: 1, devices: 0, pods: 1 };
        let wants = Amounts { cpu: self.rng.within(1, self.nodes[node].has.cpu), memory: self.rng.within(1, 3), ..has };
        let (given, wanted) = (self.requests(has), self.requests(wants));
        let namespace = self.namespace();
        let conditions = json!([
            { "type": "PodScheduled", "status": "True" },
            { "type": "PodResizePending", "status": "True", "reason": "Deferred" },
        ]);
        let status = json!({ "name": "c", "allocatedResources": given, "resources": { "requests": given } });
        self.objects.push(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "namespace": namespace, "name": "urgent", "labels": { "app": "a" } },
            "spec": {
                "nodeName": self.nodes[node].name,
                "priority": self.priority,
                "containers": [{ "name": "c", "resources": { "requests": wanted } }],
            },
            "status": {
                "phase": "Running",
                "startTime": "2026-01-01T00:30:00Z",
                "conditions": conditions,
                "containerStatuses": [status],
            },
        }));
        namespace
    }

    /// Writes the preemptor's earlier nomination to one of its pods, with a probability of `percent`.
    pub(super) fn nominate(&mut self, pod: &mut Value, percent: u64) {
        if let Some(node) = self.nominated
            && self.rng.chance(percent)
        {
            pod["status"]["nominatedNodeName"] = json!(self.nodes[node].name);
        }
    }

    /// Adds other pending pods, most of them with a nomination.
    pub(super) fn nominees(&mut self) {
        for index in 0..self.rng.within(0, 3) {
            let template = self.template();
            let lower = *self.rng.pick(&self.levels);
            let priority = *self.rng.pick(&[self.priority, self.priority + 10, self.priority - 1, lower]);
            let mut pod = self.pod(&format!("waiting-{}", index + 1), &template, priority);
            if self.rng.chance(85) {
                pod["status"]["nominatedNodeName"] = json!(self.nodes[self.rng.up_to(self.nodes.len())].name);
            }
            self.objects.push(pod);
        }
    }
}
