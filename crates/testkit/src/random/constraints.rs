//! Scheduling constraints of pods: node selectors, tolerations, ports, affinity and spread.

use serde_json::{Value, json};

use super::Builder;
use super::pods::Template;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

impl Builder {
    /// Constraints of a running pod. Of these, only ports and anti-affinity affect a preemptor.
    pub(super) fn add_few_constraints(&mut self, template: &mut Template) {
        if self.features.ports && self.rng.chance(30) {
            self.add_port(template);
        }
        if self.features.affinity {
            if self.rng.chance(30) {
                self.add_anti_affinity(&mut template.spec);
            }
            if self.rng.chance(5) {
                self.add_affinity(&mut template.spec);
            }
        }
        if self.features.spread && self.rng.chance(10) {
            self.add_spread(template);
        }
    }

    /// Constraints of the preemptor.
    pub(super) fn add_many_constraints(&mut self, template: &mut Template) {
        if self.features.ports && self.rng.chance(75) {
            self.add_port(template);
        }
        if self.features.affinity {
            if self.rng.chance(50) {
                self.add_anti_affinity(&mut template.spec);
            }
            if self.rng.chance(30) {
                self.add_affinity(&mut template.spec);
            }
        }
        if self.features.spread && self.rng.chance(80) {
            self.add_spread(template);
        }
        if self.features.taints {
            self.add_node_constraints(&mut template.spec);
        }
    }

    fn add_port(&mut self, template: &mut Template) {
        let number = *self.rng.pick(&[80, 80, 443]);
        let protocol = if self.rng.chance(25) { *self.rng.pick(&["TCP", "UDP"]) } else { "" };
        let address = if self.rng.chance(30) { *self.rng.pick(&["0.0.0.0", "10.0.0.1", "10.0.0.2"]) } else { "" };
        let mut port = json!({ "containerPort": number });
        if self.rng.chance(10) {
            template.spec["hostNetwork"] = json!(true);
        } else {
            port["hostPort"] = json!(number);
        }
        if !protocol.is_empty() {
            port["protocol"] = json!(protocol);
        }
        if !address.is_empty() {
            port["hostIP"] = json!(address);
        }
        template.spec["containers"][0]["ports"] = json!([port]);
        template.port = Some((number, if protocol.is_empty() { "TCP" } else { protocol }, address));
    }

    fn add_anti_affinity(&mut self, spec: &mut Value) {
        let terms: Vec<Value> = (0..self.rng.within(1, 2)).map(|_| self.term()).collect();
        spec["affinity"]["podAntiAffinity"] = json!({ REQUIRED: terms });
    }

    fn add_affinity(&mut self, spec: &mut Value) {
        let n_terms = if self.rng.chance(20) { 2 } else { 1 };
        let terms: Vec<Value> = (0..n_terms).map(|_| self.term()).collect();
        spec["affinity"]["podAffinity"] = json!({ REQUIRED: terms });
    }

    fn term(&mut self) -> Value {
        let mut term = json!({ "topologyKey": self.topology() });
        if let Some(selector) = self.selector() {
            term["labelSelector"] = selector;
        }
        if self.rng.chance(12) {
            term["namespaces"] = json!([*self.rng.pick(&["default", "other"])]);
        }
        if self.rng.chance(12) {
            let teams =
                [json!({}), json!({ "matchLabels": { "team": "red" } }), json!({ "matchLabels": { "team": "blue" } })];
            term["namespaceSelector"] = self.rng.pick(&teams).clone();
        }
        term
    }

    /// A selector, usually of a few pods, sometimes of all pods; sometimes none.
    pub(super) fn selector(&mut self) -> Option<Value> {
        let app = *self.rng.pick(&["a", "b", "c"]);
        match self.rng.up_to(20) {
            0 => None,
            1 => Some(json!({})),
            2 => Some(json!({ "matchLabels": { "track": "stable" } })),
            3 => Some(json!({ "matchLabels": { "app": app, "track": "stable" } })),
            4 => Some(json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["a", app] }] })),
            5 => Some(json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": [app] }] })),
            6 => Some(json!({ "matchExpressions": [{ "key": "track", "operator": "Exists" }] })),
            7 => Some(json!({ "matchExpressions": [{ "key": "track", "operator": "DoesNotExist" }] })),
            _ => Some(json!({ "matchLabels": { "app": app } })),
        }
    }

    fn topology(&mut self) -> &'static str {
        if self.rng.chance(60) { HOSTNAME } else { ZONE }
    }

    fn add_spread(&mut self, template: &mut Template) {
        let n_constraints = if self.rng.chance(25) { 2 } else { 1 };
        let mut constraints = Vec::new();
        for index in 0..n_constraints {
            let topology = if n_constraints == 1 { self.topology() } else { [HOSTNAME, ZONE][index] };
            let unmet = if self.rng.chance(92) { "DoNotSchedule" } else { "ScheduleAnyway" };
            let skew = *self.rng.pick(&[1, 1, 1, 2]);
            let mut constraint = json!({ "maxSkew": skew, "topologyKey": topology, "whenUnsatisfiable": unmet });
            let selector = match template.labels.get("app") {
                Some(app) if self.rng.chance(75) => Some(json!({ "matchLabels": { "app": app } })),
                _ => self.selector(),
            };
            if let Some(selector) = selector {
                constraint["labelSelector"] = selector;
            }
            if self.rng.chance(12) && unmet == "DoNotSchedule" {
                constraint["minDomains"] = json!(self.rng.within(2, 4));
            }
            if self.rng.chance(15) {
                constraint["matchLabelKeys"] = json!(["track"]);
            }
            if self.rng.chance(15) {
                constraint["nodeAffinityPolicy"] = json!(self.rng.pick(&["Honor", "Ignore"]));
            }
            if self.rng.chance(15) {
                constraint["nodeTaintsPolicy"] = json!(self.rng.pick(&["Honor", "Ignore"]));
            }
            constraints.push(constraint);
        }
        template.spec["topologySpreadConstraints"] = json!(constraints);
    }

    fn add_node_constraints(&mut self, spec: &mut Value) {
        if self.rng.chance(40) {
            let tolerations = [
                json!({ "operator": "Exists" }),
                json!({ "key": "dedicated", "operator": "Exists" }),
                json!({ "key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule" }),
                json!({ "key": "flaky", "value": "z" }),
                json!({ "key": "flaky" }),
                json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }),
            ];
            spec["tolerations"] = json!([self.rng.pick(&tolerations)]);
        }
        if self.rng.chance(15) {
            spec["nodeSelector"] = json!({ "disk": *self.rng.pick(&["ssd", "hdd"]) });
        }
        if self.rng.chance(25) {
            let terms: Vec<Value> = (0..self.rng.within(1, 2)).map(|_| self.node_term()).collect();
            spec["affinity"]["nodeAffinity"] = json!({ REQUIRED: { "nodeSelectorTerms": terms } });
        }
    }

    fn node_term(&mut self) -> Value {
        let labels = |key: &str, operator: &str, values: Value| {
            let mut expression = json!({ "key": key, "operator": operator });
            if values != json!([]) {
                expression["values"] = values;
            }
            json!({ "matchExpressions": [expression] })
        };
        match self.rng.up_to(8) {
            0 => labels("disk", "In", json!(["ssd"])),
            1 => labels("generation", "Gt", json!(["1"])),
            2 => labels("generation", "Lt", json!(["10"])),
            3 => labels("generation", "Exists", json!([])),
            4 => labels("generation", "DoesNotExist", json!([])),
            5 => labels(ZONE, "NotIn", json!(["zone-a"])),
            6 => json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["node-1"] }] }),
            _ => json!({ "matchFields": [{ "key": "metadata.name", "operator": "NotIn", "values": ["node-2"] }] }),
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
