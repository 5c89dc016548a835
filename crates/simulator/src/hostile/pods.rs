//! Hostile pods.

use serde_json::{Value, json};

use super::{Harm, Hostile, NODE, SCHEDULER, TENANT, words};

/// Why a pod cannot lawfully affect pods of other tenants.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// It runs on the tenant's node.
    Bound,
    /// It has ended.
    Finished,
    /// It waits for another scheduler.
    OtherScheduler,
    /// It waits behind a scheduling gate.
    Gated,
    /// It waits for a node that does not exist.
    WithoutNode,
    /// It may be anything.
    Free,
}

impl Hostile<'_> {
    pub(super) fn pod(&mut self) -> Value {
        let is_free = self.harm == Harm::Any && self.chance(40);
        let form = match is_free {
            true => Form::Free,
            false => *self.one(&[
                Form::Bound,
                Form::Bound,
                Form::Bound,
                Form::Finished,
                Form::OtherScheduler,
                Form::Gated,
                Form::WithoutNode,
            ]),
        };
        let mut pod = json!({"metadata": self.metadata(), "spec": self.pod_spec(), "status": self.pod_status()});
        let name = pod["metadata"]["name"].clone();
        for _ in 0..self.up_to(4) {
            self.corrupt_field(&mut pod);
        }
        self.shape(form, name, &mut pod);
        pod
    }

    fn pod_spec(&mut self) -> Value {
        let mut spec = json!({
            "schedulerName": SCHEDULER,
            "priority": self.number(),
            "containers": [{"name": "c", "resources": {"requests": self.amounts(), "limits": self.amounts()}}],
        });
        for (field, percent) in [
            ("priorityClassName", 30),
            ("preemptionPolicy", 20),
            ("schedulingGroup", 30),
            ("tolerations", 20),
            ("affinity", 20),
            ("topologySpreadConstraints", 15),
            ("initContainers", 15),
            ("overhead", 10),
            ("resources", 10),
            ("resourceClaims", 10),
            ("volumes", 10),
            ("hostPorts", 10),
        ] {
            if self.chance(percent) {
                self.add_field(&mut spec, field);
            }
        }
        spec
    }

    fn add_field(&mut self, spec: &mut Value, field: &str) {
        let word = self.word(words::ENUM_WORDS);
        let text = self.word(words::TEXTS);
        let value = match field {
            "priorityClassName" => json!(self.class()),
            "preemptionPolicy" => json!(word),
            "schedulingGroup" => json!({"podGroupName": self.target().name}),
            "tolerations" => {
                json!([{"key": text, "operator": word, "effect": word, "tolerationSeconds": self.number()}])
            }
            "affinity" => self.affinity(),
            "topologySpreadConstraints" => json!([{
                "maxSkew": self.number(),
                "topologyKey": text,
                "whenUnsatisfiable": self.word(&["DoNotSchedule", "ScheduleAnyway", "Nonsense"]),
                "labelSelector": {"matchLabels": {"a": text}},
                "minDomains": self.number(),
            }]),
            "initContainers" => {
                json!([{"name": "i", "restartPolicy": word, "resources": {"requests": self.amounts()}}])
            }
            "overhead" => self.amounts(),
            "resources" => json!({"requests": self.amounts()}),
            "resourceClaims" => json!([{"name": text, "resourceClaimName": text}]),
            "volumes" => json!([{"name": "v", "persistentVolumeClaim": {"claimName": text}}]),
            _ => {
                spec["containers"][0]["ports"] =
                    json!([{"containerPort": 80, "hostPort": self.number(), "protocol": word}]);
                return;
            }
        };
        spec[field] = value;
    }

    fn affinity(&mut self) -> Value {
        let operator = self.word(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Nonsense"]);
        let text = self.word(words::TEXTS);
        let term = json!({
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": operator, "values": [text]}]},
            "topologyKey": self.word(&["kubernetes.io/hostname", "", "no-such-key"]),
            "namespaces": [self.word(&["default", TENANT])],
        });
        let node = json!({"matchExpressions": [{"key": "zone", "operator": operator, "values": [text]}]});
        let by_name = json!({"matchFields": [{"key": "metadata.name", "operator": operator, "values": [NODE]}]});
        let node = if self.chance(50) { node } else { by_name };
        json!({
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node]}},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        })
    }

    /// The status, which the tenant cannot write: only what kubelets and controllers write.
    fn pod_status(&mut self) -> Value {
        json!({"phase": self.word(&["Pending", "Running", "Unknown"]), "startTime": self.time()})
    }

    /// Gives the pod the fields of its form, whatever they were.
    fn shape(&mut self, form: Form, name: Value, pod: &mut Value) {
        for field in ["metadata", "spec", "status"] {
            if !pod[field].is_object() {
                pod[field] = json!({});
            }
        }
        pod["metadata"]["namespace"] = json!(TENANT);
        pod["metadata"]["name"] = name;
        let spec = &mut pod["spec"];
        match form {
            Form::Bound => {
                spec["nodeName"] = json!(NODE);
                if !spec["schedulerName"].is_string() || self.chance(30) {
                    spec["schedulerName"] = json!(self.word(&["other", SCHEDULER]));
                }
            }
            Form::Finished => {
                spec["nodeName"] = json!(self.node_name());
                pod["status"]["phase"] = json!(self.word(&["Succeeded", "Failed"]));
            }
            Form::OtherScheduler => {
                spec["schedulerName"] = json!("other");
                if self.chance(50) {
                    pod["status"]["nominatedNodeName"] = json!(self.node_name());
                }
            }
            Form::Gated => {
                spec["schedulerName"] = json!(SCHEDULER);
                spec["schedulingGates"] = json!([{"name": "example.com/never"}]);
            }
            Form::WithoutNode => {
                spec["schedulerName"] = json!(SCHEDULER);
                spec["nodeSelector"] = json!({"no-such-label": "no-such-value"});
            }
            Form::Free => {
                if self.chance(50) {
                    spec["nodeName"] = json!(self.node_name());
                }
            }
        }
        if self.harm == Harm::None {
            self.leave_queues(form, pod);
            // The API server sets the time: the pod is younger than those of other tenants.
            pod["metadata"]["creationTimestamp"] = json!(self.word(&["2026-01-01T02:00:00Z", "9999-12-31T23:59:59Z"]));
        }
    }

    /// A bound pod uses quota of the queue that it names, as any tenant may; without a queue it uses none.
    fn leave_queues(&mut self, form: Form, pod: &mut Value) {
        if !matches!(form, Form::Bound) {
            return;
        }
        if let Some(labels) = pod.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.retain(|key, _| !key.contains("queue") && !key.starts_with("quota.scheduling.koordinator.sh/name"));
        }
    }

    fn node_name(&mut self) -> String {
        if self.chance(60) && !self.targets.nodes.is_empty() {
            return self.one(&self.targets.nodes).clone();
        }
        self.word(&[NODE, "no-such-node", ""]).to_owned()
    }
}
