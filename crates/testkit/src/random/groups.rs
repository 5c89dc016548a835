//! Groups of pods: running groups, and a group as the preemptor.

use serde_json::{Value, json};

use super::Builder;

impl Builder {
    /// Adds running groups, some of which are evicted whole.
    pub(super) fn gangs(&mut self) {
        for name in ["gang-a", "gang-b", "gang-c"].into_iter().take(self.rng.within(1, 3)) {
            let template = self.template();
            let priority = *self.rng.pick(&self.levels);
            let n_members = self.rng.within(2, 4);
            if self.rng.chance(92) {
                let group = self.running_group(template.namespace, name, priority, n_members);
                self.objects.push(group);
            }
            let mixed = self.features.mixed_priorities && self.rng.chance(50);
            for _ in 0..n_members {
                let own_priority = if mixed { *self.rng.pick(&self.levels) } else { priority };
                if let Some(node) = self.room_for(&template) {
                    let pod_name = format!("pod-{:02}", self.n_pods + 1);
                    let mut pod = self.pod(&pod_name, &template, own_priority);
                    pod["spec"]["schedulingGroup"] = json!({ "podGroupName": name });
                    self.bind(&mut pod, node, &template);
                    self.objects.push(pod);
                }
            }
        }
    }

    fn running_group(&mut self, namespace: &str, name: &str, priority: i32, n_members: usize) -> Value {
        let min_count = self.rng.within(1, n_members);
        let policy =
            if self.rng.chance(80) { json!({ "gang": { "minCount": min_count } }) } else { json!({ "basic": {} }) };
        let mut group = pod_group(namespace, name, priority, policy);
        match self.rng.up_to(10) {
            0..=6 => group["spec"]["disruptionMode"] = json!({ "all": {} }),
            7 => group["spec"]["disruptionMode"] = json!({ "single": {} }),
            _ => {}
        }
        if self.features.preemption_priority && self.rng.chance(40) {
            let class = format!("level-{}", self.rng.pick(&[10, 100]));
            group["metadata"]["annotations"] = json!({ "reprieve.dev/preemption-priority-class": class });
        }
        group
    }

    /// Adds a group as the preemptor; some of its members may already run.
    pub(super) fn urgent_gang(&mut self) -> &'static str {
        let n_members = self.rng.within(2, 5);
        let share = *self.rng.pick(&[1, 2, 2, 3]);
        let requested = self.urgent_requests(share);
        let mut template = self.template_of(requested);
        self.add_many_constraints(&mut template);
        let needed = if self.rng.chance(70) { n_members } else { self.rng.within(1, n_members) };
        let policy =
            if self.rng.chance(88) { json!({ "gang": { "minCount": needed } }) } else { json!({ "basic": {} }) };
        let mut group = pod_group(template.namespace, "urgent", self.priority, policy);
        let never = self.rng.chance(2);
        if never {
            group["spec"]["preemptionPolicy"] = json!("Never");
        }
        if self.rng.chance(25) {
            let key = *self.rng.pick(&[
                "topology.kubernetes.io/zone",
                "topology.kubernetes.io/zone",
                "kubernetes.io/hostname",
            ]);
            group["spec"]["schedulingConstraints"] = json!({ "topology": [{ "key": key }] });
        }
        if self.rng.chance(20) {
            group["spec"]["disruptionMode"] = json!({ "all": {} });
        }
        self.objects.push(group);
        let n_running = if self.rng.chance(12) { 1 } else { 0 };
        for index in 0..n_members {
            if index == 1 && self.rng.chance(20) {
                let requested = self.urgent_requests(share);
                template.spec["containers"] = self.template_of(requested).spec["containers"].clone();
                template.requested = requested;
                template.port = None;
            }
            let mut pod = self.pod(&format!("urgent-{}", index + 1), &template, self.priority);
            pod["spec"]["schedulingGroup"] = json!({ "podGroupName": "urgent" });
            if never {
                pod["spec"]["preemptionPolicy"] = json!("Never");
            }
            let has_port_free = |node: &usize| template.port.is_none_or(|port| self.nodes[*node].has_port_free(port));
            match (0..self.nodes.len()).find(has_port_free) {
                Some(node) if index < n_running => self.bind(&mut pod, node, &template),
                _ => self.nominate(&mut pod, 60),
            }
            self.objects.push(pod);
        }
        template.namespace
    }
}

fn pod_group(namespace: &str, name: &str, priority: i32, policy: Value) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "schedulingPolicy": policy, "priority": priority },
    })
}
