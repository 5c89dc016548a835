//! Nodes and their free capacity.

use serde_json::json;

use super::Builder;

/// The requests of a pod or the capacity of a node: halves of a CPU, halves of a GiB of memory, devices, and pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub cpu: usize,
    pub memory: usize,
    pub devices: usize,
    pub pods: usize,
}

impl Amounts {
    pub fn fits_in(self, room: Self) -> bool {
        self.cpu <= room.cpu && self.memory <= room.memory && self.devices <= room.devices && self.pods <= room.pods
    }

    pub fn minus(self, taken: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(taken.cpu),
            memory: self.memory.saturating_sub(taken.memory),
            devices: self.devices.saturating_sub(taken.devices),
            pods: self.pods.saturating_sub(taken.pods),
        }
    }
}

/// A host port: number, protocol, address.
pub(super) type Port = (u16, &'static str, &'static str);

/// A node, as the builder tracks it.
pub(super) struct Node {
    pub name: String,
    pub has: Amounts,
    pub free: Amounts,
    /// The host ports in use.
    pub ports: Vec<Port>,
}

impl Node {
    /// Whether the host port is free.
    pub fn has_port_free(&self, (number, protocol, address): Port) -> bool {
        let everywhere = |address: &str| address.is_empty() || address == "0.0.0.0";
        let clashes = |taken: &Port| {
            let same_address = taken.2 == address || everywhere(taken.2) || everywhere(address);
            taken.0 == number && taken.1 == protocol && same_address
        };
        !self.ports.iter().any(clashes)
    }
}

impl Builder {
    pub(super) fn nodes(&mut self) {
        let n_nodes = self.rng.within(2, 6);
        let few_pods = self.rng.chance(12);
        let devices = self.rng.chance(25);
        for index in 0..n_nodes {
            let name = format!("node-{}", index + 1);
            let has = Amounts {
                cpu: *self.rng.pick(&[4, 4, 6, 8]),
                memory: *self.rng.pick(&[4, 8, 8]),
                devices: if devices { self.rng.up_to(3) } else { 0 },
                pods: if few_pods { self.rng.within(2, 4) } else { 32 },
            };
            let object = self.node(&name, has);
            self.objects.push(object);
            self.nodes.push(Node { name, has, free: has, ports: Vec::new() });
        }
    }

    fn node(&mut self, name: &str, has: Amounts) -> serde_json::Value {
        let mut labels = json!({ "kubernetes.io/hostname": name, "disk": *self.rng.pick(&["ssd", "hdd"]) });
        if self.rng.chance(90) {
            labels["topology.kubernetes.io/zone"] = json!(self.rng.pick(&["zone-a", "zone-b", "zone-c"]));
        }
        if self.rng.chance(50) {
            labels["generation"] = json!(self.rng.pick(&["1", "2", "10"]));
        }
        let mut allocatable = json!({
            "cpu": self.cpu(has.cpu),
            "memory": self.memory(has.memory),
            "pods": has.pods.to_string(),
        });
        if has.devices > 0 {
            allocatable["example.com/device"] = json!(has.devices.to_string());
        }
        let mut node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": name, "labels": labels },
            "status": { "allocatable": allocatable },
        });
        if self.features.taints {
            if self.rng.chance(12) {
                node["spec"]["unschedulable"] = json!(true);
            }
            if self.rng.chance(35) {
                let effect = *self.rng.pick(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
                let mut taint = json!({ "key": *self.rng.pick(&["dedicated", "flaky"]), "effect": effect });
                if self.rng.chance(60) {
                    taint["value"] = json!(self.rng.pick(&["x", "z"]));
                }
                node["spec"]["taints"] = json!([taint]);
            }
        }
        node
    }

    /// Halves of a CPU, in one of the notations of Kubernetes.
    pub(super) fn cpu(&mut self, halves: usize) -> String {
        if halves.is_multiple_of(2) && self.rng.chance(70) {
            (halves / 2).to_string()
        } else if self.rng.chance(85) {
            format!("{}m", halves * 500)
        } else {
            format!("{}.{}", halves / 2, if halves.is_multiple_of(2) { 0 } else { 5 })
        }
    }

    /// Halves of a GiB, in one of the notations of Kubernetes.
    pub(super) fn memory(&mut self, halves: usize) -> String {
        if halves.is_multiple_of(2) && self.rng.chance(80) {
            format!("{}Gi", halves / 2)
        } else {
            format!("{}Mi", halves * 512)
        }
    }
}
