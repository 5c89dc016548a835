//! Kueue's queues in one tree of cohorts without free quota: every tenth queue lends all its quota, and the others have borrowed it. Each
//! workload uses one CPU; priorities and times differ.

use reprieve_api::object_set::ObjectSet;
use reprieve_api::source::Sourced;
use reprieve_api::test_file::{PreemptorRef, Profile};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Scenario;
use super::build::from_scenario;

const API: &str = "kueue.x-k8s.io/v1beta2";
const NAMESPACE: &str = "default";
/// The number of queues or child cohorts per cohort.
const BRANCHES: usize = 10;

/// The structure of the cohorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cohorts {
    /// All queues in one cohort.
    Flat,
    /// Ten queues per cohort, ten cohorts per parent, and so on: four levels for 1,000 queues.
    Tree,
}

/// Builds the objects, and counts the queues.
pub struct CohortsBuilder {
    objects: ObjectSet,
    cohorts: Cohorts,
    queues: usize,
}

impl CohortsBuilder {
    pub fn new(cohorts: Cohorts, queues: usize) -> Self {
        let mut objects = ObjectSet::default();
        objects.resource_flavors.push(object("ResourceFlavor", "flavor", json!({})));
        if cohorts == Cohorts::Tree {
            let (mut level, mut cohorts) = (0, queues.div_ceil(BRANCHES));
            while cohorts > 1 {
                for index in 0..cohorts {
                    let spec = json!({"parentName": cohort_name(level + 1, index / BRANCHES)});
                    objects.cohorts.push(object("Cohort", &cohort_name(level, index), spec));
                }
                (level, cohorts) = (level + 1, cohorts.div_ceil(BRANCHES));
            }
        }
        Self { objects, cohorts, queues: 0 }
    }

    /// Adds a queue with this quota of CPUs and returns its index.
    pub fn queue(&mut self, cpus: usize) -> usize {
        let index = self.queues;
        self.queues += 1;
        let cohort = match self.cohorts {
            Cohorts::Flat => cohort_name(0, 0),
            Cohorts::Tree => cohort_name(0, index / BRANCHES),
        };
        let quota = json!({"name": "flavor", "resources": [{"name": "cpu", "nominalQuota": cpus}]});
        let spec = json!({
            "cohortName": cohort,
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        });
        self.objects.cluster_queues.push(object("ClusterQueue", &queue_name(index), spec));
        self.objects.local_queues.push(read(json!({
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"namespace": NAMESPACE, "name": queue_name(index)},
            "spec": {"clusterQueue": queue_name(index)},
        })));
        index
    }

    /// Adds an admitted workload that uses one CPU.
    pub fn add_admitted(&mut self, queue: usize) {
        let index = self.objects.kueue_workloads.len();
        let since = format!("2026-01-07T{:02}:{:02}:00Z", index % 24, index / 24 % 60);
        let assignment =
            json!({"name": "main", "count": 1, "flavors": {"cpu": "flavor"}, "resourceUsage": {"cpu": "1"}});
        let mut workload = workload(&format!("held-{index:06}"), queue, (index * 7 % 10) as i32, 1);
        workload["status"] = json!({
            "admission": {"clusterQueue": queue_name(queue), "podSetAssignments": [assignment]},
            "conditions": [{
                "type": "QuotaReserved",
                "status": "True",
                "reason": "QuotaReserved",
                "message": "",
                "lastTransitionTime": since,
            }],
        });
        self.objects.kueue_workloads.push(read(workload));
    }

    /// Adds a pending workload that needs this many CPUs.
    pub fn add_pending(&mut self, queue: usize, cpus: usize) {
        let workload = workload(&format!("pending-{queue:04}"), queue, 5, cpus);
        self.objects.kueue_workloads.push(read(workload));
    }

    /// The scenario of the pending workload in the first queue with this expected number of victims.
    pub fn with_victims(self, fair_sharing: bool, victims: usize) -> Scenario {
        let (kind, namespace, name) = ("Workload".to_owned(), NAMESPACE.to_owned(), "pending-0000".to_owned());
        let mut profile = Profile { policy: "Kueue".to_owned(), ..Profile::default() };
        profile.args.insert("fairSharing".to_owned(), json!({"enable": fair_sharing}));
        let preemptor = PreemptorRef { kind, namespace, name };
        Scenario { objects: self.objects, preemptor, profile, victims: Some(victims) }
    }
}

fn workload(name: &str, queue: usize, priority: i32, cpus: usize) -> Value {
    let pod = json!({"containers": [{"name": "main", "resources": {"requests": {"cpu": cpus.to_string()}}}]});
    json!({
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"namespace": NAMESPACE, "name": name, "creationTimestamp": "2026-01-07T00:00:00Z"},
        "spec": {
            "queueName": queue_name(queue),
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
        },
    })
}

fn object<T: DeserializeOwned>(kind: &str, name: &str, spec: Value) -> Sourced<T> {
    read(json!({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}))
}

fn read<T: DeserializeOwned>(object: Value) -> Sourced<T> {
    from_scenario(serde_json::from_value(object).expect("the scenario's objects are sound"))
}

fn queue_name(index: usize) -> String {
    format!("queue-{index:04}")
}

fn cohort_name(level: usize, index: usize) -> String {
    format!("cohort-{level}-{index:03}")
}
