//! Hostile objects of all kinds but pods.

use reprieve_api::Kind;
use serde_json::{Value, json};

use super::{Hostile, words};

impl Hostile<'_> {
    /// An object of a kind other than Pod. Every field is one that the project reads.
    // Long: one arm for each kind.
    pub(super) fn template(&mut self, kind: Kind) -> Value {
        let mut object = match kind {
            Kind::LimitRange => {
                json!({"spec": {"limits": [{
                    "type": self.word(&["Container", "Pod", "Nonsense"]),
                    "default": self.amounts(),
                    "defaultRequest": self.amounts(),
                    "max": self.amounts(),
                }]}})
            }
            Kind::PodDisruptionBudget => self.budget(),
            Kind::ConfigMap => json!({"data": {"queues.yaml": self.word(words::QUEUE_CONFIGS)}}),
            Kind::ElasticQuota => json!({"spec": {"min": self.amounts(), "max": self.amounts()}}),
            Kind::KoordinatorPodGroup => json!({"spec": {"minMember": self.number()}}),
            Kind::LocalQueue => {
                json!({"spec": {"clusterQueue": self.queue(), "stopPolicy": self.word(words::ENUM_WORDS)}})
            }
            Kind::KueueWorkload => self.workload(),
            Kind::Workload => json!({"spec": {
                "priorityClassName": self.class(),
                "preemptionPriorityClassName": self.class(),
                "podGroups": [{
                    "name": self.name(),
                    "policy": {"gang": {"minCount": self.number(), "preemptionMode": self.word(&["Pod", "PodGroup"])}},
                }],
            }}),
            Kind::PodGroup => self.group(),
            Kind::Job => self.job(),
            Kind::OwnerJob => self.owner_job(),
            Kind::RayCluster => json!({"spec": {"enableInTreeAutoscaling": self.chance(50)}}),
            // Only the metadata is read.
            Kind::StatefulSet | Kind::JobSet | Kind::LeaderWorkerSet | Kind::MpiJob | Kind::TrainJob => json!({}),
            Kind::Node => json!({
                "spec": {
                    "unschedulable": self.chance(10),
                    "taints": [{"key": self.word(words::TEXTS), "effect": self.word(words::ENUM_WORDS)}],
                },
                "status": {"allocatable": self.amounts()},
            }),
            Kind::PriorityClass | Kind::WorkloadPriorityClass => json!({
                "value": self.number(),
                "globalDefault": self.chance(20),
                "preemptionPolicy": self.word(words::ENUM_WORDS),
            }),
            Kind::RuntimeClass => json!({"handler": "a", "overhead": {"podFixed": self.amounts()}}),
            Kind::ResourceFlavor => json!({"spec": {
                "nodeLabels": {"zone": self.word(words::TEXTS)},
                "nodeTaints": [{"key": "a", "effect": self.word(words::ENUM_WORDS)}],
                "tolerations": [{"key": "a", "operator": self.word(words::ENUM_WORDS)}],
            }}),
            Kind::Cohort => json!({"spec": {"parentName": self.queue(), "resourceGroups": [self.resource_group()]}}),
            Kind::ClusterQueue => json!({"spec": {
                "cohortName": self.queue(),
                "queueingStrategy": self.word(words::ENUM_WORDS),
                "namespaceSelector": self.selector(),
                "resourceGroups": [self.resource_group()],
                "preemption": {
                    "withinClusterQueue": self.word(words::ENUM_WORDS),
                    "reclaimWithinCohort": self.word(words::ENUM_WORDS),
                },
                "fairSharing": {"weight": self.amount()},
            }}),
            Kind::DaemonSet => json!({"spec": {"selector": self.selector(), "template": self.pod_template()}}),
            // Only the metadata is read.
            Kind::Namespace => json!({}),
            // `pods.rs` creates pods.
            Kind::Pod => json!({}),
        };
        object["metadata"] = self.metadata();
        if kind == Kind::ConfigMap && self.chance(80) {
            object["metadata"]["name"] = json!("yunikorn-configs");
        }
        object
    }

    /// A small or an impossible number.
    pub(super) fn number(&mut self) -> i64 {
        if self.chance(60) { self.up_to(4) as i64 } else { *self.one(words::NUMBERS) }
    }

    pub(super) fn class(&mut self) -> String {
        if self.chance(50) && !self.targets.classes.is_empty() {
            return self.one(&self.targets.classes).clone();
        }
        self.word(&["system-node-critical", "no-such-class", "", "\u{202e}"]).to_owned()
    }

    fn selector(&mut self) -> Value {
        match self.up_to(5) {
            0 => json!({}),
            1 => json!({"matchLabels": {"app": "a"}}),
            2 => json!({"matchExpressions": [{"key": "a", "operator": self.word(words::ENUM_WORDS), "values": []}]}),
            3 => json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
            _ => Value::Null,
        }
    }

    fn resource_group(&mut self) -> Value {
        let resource = self.word(words::RESOURCES);
        let flavor = self.queue();
        let (nominal, limit) = (self.amount(), self.amount());
        json!({
            "coveredResources": [resource],
            "flavors": [{
                "name": flavor,
                "resources": [{"name": resource, "nominalQuota": nominal, "borrowingLimit": limit}],
            }],
        })
    }

    fn budget(&mut self) -> Value {
        let disrupted = self.target().name;
        json!({
            "spec": {"selector": self.selector(), "minAvailable": self.number()},
            "status": {
                "disruptionsAllowed": self.one(&[0, 1, -1, 2_147_483_647]),
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
                "disruptedPods": {disrupted: self.time()},
            },
        })
    }

    fn group(&mut self) -> Value {
        let policy = match self.up_to(4) {
            0 => json!({"basic": {}}),
            1 => json!({}),
            _ => json!({"gang": {"minCount": self.number()}}),
        };
        let mode = self.word(&["all", "single", "nonsense"]);
        let mut group = json!({"spec": {
            "schedulingPolicy": policy,
            "disruptionMode": {mode: {}},
            "priority": self.number(),
            "priorityClassName": self.class(),
        }});
        if self.chance(20) {
            group["spec"]["schedulingConstraints"] = json!({"topology": [{"key": self.word(words::TEXTS)}]});
        }
        group
    }

    fn pod_template(&mut self) -> Value {
        json!({
            "metadata": {"labels": self.labels(), "annotations": self.annotations()},
            "spec": {
                "priority": self.number(),
                "priorityClassName": self.class(),
                "containers": [{"name": "c", "resources": {"requests": self.amounts()}}],
            },
        })
    }

    fn workload(&mut self) -> Value {
        let mut workload = json!({"spec": {
            "queueName": self.queue(),
            "priority": self.number(),
            "active": self.chance(80),
            "onPreemption": self.word(words::ENUM_WORDS),
            "podSets": [{"name": "main", "count": self.number(), "template": self.pod_template()}],
            "preemption": {"disruptionCostMilestones": [{"seconds": self.number(), "cost": self.number()}]},
        }});
        if self.chance(20) {
            workload["spec"]["priorityClassRef"] =
                json!({"group": "kueue.x-k8s.io", "kind": self.word(words::ENUM_WORDS), "name": self.class()});
        }
        if self.chance(30) {
            workload["status"] = json!({
                "admission": {
                    "clusterQueue": self.queue(),
                    "podSetAssignments": [{
                        "name": self.word(&["main", "other"]),
                        "count": self.number(),
                        "flavors": {"cpu": self.queue()},
                        "resourceUsage": self.amounts(),
                    }],
                },
                "conditions": [{
                    "type": self.word(&["QuotaReserved", "Evicted", "Finished", "Preempted"]),
                    "status": "True",
                    "reason": "a",
                    "message": self.mark(),
                    "lastTransitionTime": self.time(),
                }],
            });
        }
        workload
    }

    fn job(&mut self) -> Value {
        json!({"spec": {
            "suspend": self.chance(70),
            "parallelism": self.number(),
            "completions": self.number(),
            "template": self.pod_template(),
        }})
    }

    fn owner_job(&mut self) -> Value {
        let size = self.number();
        json!({"spec": {
            "completionMode": self.word(&["Indexed", "NonIndexed", "Nonsense"]),
            "parallelism": size,
            "completions": if self.chance(80) { size } else { self.number() },
            "backoffLimitPerIndex": if self.chance(20) { json!(self.number()) } else { Value::Null },
            "scheduling": if self.chance(20) { json!({}) } else { Value::Null },
            "template": {"spec": {"subdomain": self.word(words::TEXTS)}},
        }})
    }

    /// Takes from an object what could lawfully affect other tenants: quota of a queue that they use.
    pub(super) fn disarm(&mut self, kind: Kind, object: &mut Value) {
        match kind {
            // A LocalQueue of a ClusterQueue that others use takes part in their quota; only administrators may create one.
            Kind::LocalQueue => object["spec"] = json!({"clusterQueue": "no-such-queue"}),
            Kind::ElasticQuota => {
                if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
                    labels.retain(|key, _| !key.starts_with("quota.scheduling.koordinator.sh/parent"));
                }
            }
            // Tenants cannot write the status.
            Kind::KueueWorkload => {
                if let Some(workload) = object.as_object_mut() {
                    workload.remove("status");
                }
            }
            // A DaemonSet without pods has no effect, and other tenants' pods cannot belong to it.
            Kind::DaemonSet => {}
            // They affect only pods of their own namespace, or are ignored.
            Kind::Pod
            | Kind::LimitRange
            | Kind::PodDisruptionBudget
            | Kind::ConfigMap
            | Kind::KoordinatorPodGroup
            | Kind::Workload
            | Kind::PodGroup
            | Kind::StatefulSet
            | Kind::OwnerJob
            | Kind::JobSet
            | Kind::LeaderWorkerSet
            | Kind::MpiJob
            | Kind::RayCluster
            | Kind::TrainJob
            | Kind::Job => {}
            // Tenants cannot write objects without a namespace.
            Kind::Node
            | Kind::Namespace
            | Kind::PriorityClass
            | Kind::RuntimeClass
            | Kind::ResourceFlavor
            | Kind::Cohort
            | Kind::ClusterQueue
            | Kind::WorkloadPriorityClass => {}
        }
    }
}
