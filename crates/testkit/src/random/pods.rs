//! The pods of a random cluster: their resources, labels, priority classes and start times. Arguments of `chance` are per cent.

use serde_json::{Value, json};

use super::Builder;
use super::nodes::{Amounts, Port};

/// The common part of equal pods.
pub(super) struct Template {
    pub requested: Amounts,
    pub namespace: &'static str,
    pub labels: Value,
    pub port: Option<Port>,
    pub spec: Value,
}

impl Builder {
    /// Adds a priority class for each level; sometimes one is the global default.
    pub(super) fn classes(&mut self) {
        for level in self.levels.clone() {
            let mut class = json!({
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": { "name": class_name(level) },
                "value": level,
            });
            if self.features.tolerations {
                self.tolerate(&mut class, level);
            }
            if self.features.opt_out && self.rng.chance(25) {
                let word = *self.rng.pick(&["false", "false", "true"]);
                class["metadata"]["annotations"]["yunikorn.apache.org/allow-preemption"] = json!(word);
            }
            if self.global_default.is_none() && self.rng.chance(5) {
                class["globalDefault"] = json!(true);
                self.global_default = Some(level);
            }
            self.objects.push(class);
        }
    }

    /// Adds toleration annotations, some of which are invalid on purpose (`1_000`, `600s`).
    fn tolerate(&mut self, class: &mut Value, level: i32) {
        const PREFIX: &str = "preemption-toleration.scheduling.x-k8s.io";
        if self.rng.chance(75) {
            let minimum = match self.rng.up_to(10) {
                0 => "1_000".to_owned(),
                1 => format!("+{}", self.priority.max(0) + 5),
                2 => (level - 1).to_string(),
                3 | 4 => self.priority.to_string(),
                _ => (self.priority + 1).to_string(),
            };
            class["metadata"]["annotations"][format!("{PREFIX}/minimum-preemptable-priority")] = json!(minimum);
        }
        if self.rng.chance(80) {
            let seconds =
                *self.rng.pick(&["-1", "0", "60", "600", "1200", "1800", "3000", "600s", "1000000000", "0600"]);
            class["metadata"]["annotations"][format!("{PREFIX}/toleration-seconds")] = json!(seconds);
        }
    }

    /// Adds running pods without a group, until there are enough or no more fit.
    pub(super) fn running(&mut self) {
        let most = if self.rng.chance(20) { 8 } else { 17 };
        let wanted = self.rng.within(2 * self.nodes.len(), most.max(3 * self.nodes.len())).min(17);
        let mut misses = 0;
        while self.n_pods < wanted && misses < 8 {
            let template = self.template();
            let copies = if self.rng.chance(25) { 2 } else { 1 };
            let priority = *self.rng.pick(&self.levels);
            for _ in 0..copies {
                match self.room_for(&template) {
                    Some(node) => {
                        let name = format!("pod-{:02}", self.n_pods + 1);
                        let mut pod = self.pod(&name, &template, priority);
                        self.bind(&mut pod, node, &template);
                        self.objects.push(pod);
                    }
                    None => misses += 1,
                }
            }
        }
        if self.rng.chance(5) {
            let template = self.template();
            let mut done = self.pod("done", &template, 0);
            done["spec"]["nodeName"] = json!(self.nodes[0].name);
            done["status"] = json!({ "phase": *self.rng.pick(&["Succeeded", "Failed"]) });
            self.objects.push(done);
        }
    }

    /// A node with free capacity, rarely one without. No host port is used twice on a node: kube-scheduler counts such ports wrongly.
    pub(super) fn room_for(&mut self, template: &Template) -> Option<usize> {
        let n_nodes = self.nodes.len();
        let (first, overcommits) = (self.rng.up_to(n_nodes), self.rng.chance(2));
        let has_room = |&index: &usize| {
            let node = &self.nodes[index];
            (overcommits || template.requested.fits_in(node.free))
                && template.port.is_none_or(|port| node.has_port_free(port))
        };
        (first..first + n_nodes).map(|index| index % n_nodes).find(has_room)
    }

    pub(super) fn template(&mut self) -> Template {
        let requested = Amounts {
            cpu: *self.rng.pick(&[0, 1, 1, 2, 2, 2, 3, 4]),
            memory: *self.rng.pick(&[0, 0, 1, 1, 2, 3]),
            devices: usize::from(self.nodes.iter().any(|node| node.has.devices > 0) && self.rng.chance(30)),
            pods: 1,
        };
        let mut template = self.template_of(requested);
        self.add_few_constraints(&mut template);
        template
    }

    pub(super) fn template_of(&mut self, requested: Amounts) -> Template {
        let mut labels = json!({});
        if self.rng.chance(88) {
            labels["app"] = json!(self.rng.pick(&["a", "b", "c"]));
        }
        if self.rng.chance(30) {
            labels["track"] = json!(self.rng.pick(&["stable", "canary"]));
        }
        let spec = self.containers(requested);
        Template { requested, namespace: self.namespace(), labels, port: None, spec }
    }

    /// Containers that together request these amounts.
    fn containers(&mut self, requested: Amounts) -> Value {
        let whole = self.requests(requested);
        let one = |name: &str, requests: Value| json!({ "name": name, "resources": { "requests": requests } });
        let Amounts { cpu, memory, devices, .. } = requested;
        let half = Amounts { cpu: cpu / 2, memory: memory / 2, devices, pods: 0 };
        match self.rng.up_to(24) {
            0 => {
                let (first, second) = (self.requests(half), self.requests(requested.minus(half)));
                json!({ "containers": [one("c", first), one("d", second)] })
            }
            1 => {
                let running = self.requests(half);
                json!({ "containers": [one("c", running)], "initContainers": [one("init", whole)] })
            }
            2 => {
                let (sidecar, running) = (self.requests(half), self.requests(requested.minus(half)));
                let mut sidecar = one("sidecar", sidecar);
                sidecar["restartPolicy"] = json!("Always");
                json!({ "containers": [one("c", running)], "initContainers": [sidecar] })
            }
            3 => {
                let half = Amounts { devices: 0, ..half };
                let (overhead, running) = (self.requests(half), self.requests(requested.minus(half)));
                json!({ "containers": [one("c", running)], "overhead": overhead })
            }
            4 if devices == 0 => {
                let running = self.requests(half);
                json!({ "containers": [one("c", running)], "resources": { "requests": whole } })
            }
            5 if devices == 0 && memory == 0 => {
                let third = json!({ "cpu": format!("{}u", cpu * 500_000 / 3) }); // not a multiple of a thousandth
                json!({ "containers": [one("c", third.clone()), one("d", third.clone()), one("e", third)] })
            }
            _ => json!({ "containers": [one("c", whole)] }),
        }
    }

    pub(super) fn requests(&mut self, requested: Amounts) -> Value {
        let mut requests = json!({});
        if requested.cpu > 0 {
            requests["cpu"] = json!(self.cpu(requested.cpu));
        }
        if requested.memory > 0 {
            requests["memory"] = json!(self.memory(requested.memory));
        }
        if requested.devices > 0 {
            requests["example.com/device"] = json!(requested.devices.to_string());
        }
        requests
    }

    /// A pending pod.
    pub(super) fn pod(&mut self, name: &str, template: &Template, priority: i32) -> Value {
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "namespace": template.namespace, "name": name },
            "spec": template.spec,
            "status": { "phase": "Pending" },
        });
        if template.labels != json!({}) {
            pod["metadata"]["labels"] = template.labels.clone();
        }
        let has_class = self.levels.contains(&priority);
        let names_class = has_class && self.rng.chance(if self.features.tolerations { 85 } else { 25 });
        if names_class {
            pod["spec"]["priorityClassName"] = json!(class_name(priority));
        }
        let implied = names_class || self.global_default.unwrap_or(0) == priority;
        if !implied || self.rng.chance(80) {
            pod["spec"]["priority"] = json!(priority);
        }
        if self.features.tolerations && self.rng.chance(2) {
            pod["spec"]["priorityClassName"] = json!("undefined");
            pod["spec"]["priority"] = json!(priority);
        }
        if self.features.opt_out && self.rng.chance(8) {
            let word = *self.rng.pick(&["false", "true"]);
            pod["metadata"]["annotations"]["yunikorn.apache.org/allow-preemption"] = json!(word);
        }
        pod
    }

    /// Binds a pod to the node and marks it as running.
    pub(super) fn bind(&mut self, pod: &mut Value, node: usize, template: &Template) {
        self.n_pods += 1;
        self.nodes[node].free = self.nodes[node].free.minus(template.requested);
        self.nodes[node].ports.extend(template.port);
        pod["spec"]["nodeName"] = json!(self.nodes[node].name);
        let started = self.rng.within(60, 3_500);
        let started = if self.rng.chance(12) { 1_200 * (started / 1_200) } else { started };
        let mut conditions = Vec::new();
        if self.rng.chance(if self.features.tolerations { 90 } else { 20 }) {
            let scheduled = clock(started - self.rng.up_to(60).min(started));
            conditions.push(json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled }));
        }
        if self.rng.chance(95) {
            pod["status"]["phase"] = json!("Running");
            if self.rng.chance(97) {
                pod["status"]["startTime"] = json!(clock(started));
            }
        }
        if self.features.terminating && self.rng.chance(if self.nominated == Some(node) { 50 } else { 15 }) {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:20Z");
            if self.rng.chance(70) {
                let reason = *self.rng.pick(&[
                    "PreemptionByScheduler",
                    "PreemptionByScheduler",
                    "PreemptionByScheduler",
                    "EvictionByEvictionAPI",
                ]);
                let status = if self.rng.chance(92) { "True" } else { "False" };
                conditions.push(json!({ "type": "DisruptionTarget", "status": status, "reason": reason }));
            }
        }
        if self.features.resize && self.rng.chance(25) {
            self.resize(pod, template.requested, &mut conditions);
        }
        if !conditions.is_empty() {
            pod["status"]["conditions"] = json!(conditions);
        }
    }
}

impl Builder {
    /// Sets allocated resources that differ from the requests.
    fn resize(&mut self, pod: &mut Value, requested: Amounts, conditions: &mut Vec<Value>) {
        let mut other = |most: usize| Amounts { cpu: self.rng.up_to(most + 2), memory: self.rng.up_to(3), ..requested };
        let (allocated, actual) = (other(requested.cpu), other(requested.cpu));
        let mut status = json!({ "name": "c" });
        if self.rng.chance(80) {
            status["allocatedResources"] = self.requests(allocated);
        }
        if self.rng.chance(80) {
            status["resources"] = json!({ "requests": self.requests(actual) });
        }
        pod["status"]["containerStatuses"] = json!([status]);
        if self.rng.chance(25) {
            pod["status"]["allocatedResources"] = self.requests(actual);
            pod["status"]["resources"] = json!({ "requests": self.requests(allocated) });
        }
        if self.rng.chance(60) {
            let reason = *self.rng.pick(&["Deferred", "Infeasible"]);
            conditions.push(json!({ "type": "PodResizePending", "status": "True", "reason": reason }));
        }
    }
}

fn class_name(level: i32) -> String {
    if level < 0 { format!("minus-{}", level.unsigned_abs()) } else { format!("level-{level}") }
}

/// The time this many seconds after midnight. The question is asked at 01:00.
fn clock(seconds: usize) -> String {
    format!("2026-01-01T00:{:02}:{:02}Z", seconds / 60, seconds % 60)
}
