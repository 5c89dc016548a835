//! One cluster under another policy's rules. Every policy has accounts with a guarantee and a ceiling; where a cluster has only one
//! kind of them, they are written in the words of the other: guarantee = nominal quota = min; ceiling = max = nominal quota +
//! borrowing limit. What a policy has beyond that (delays, fences, weights, flavors) is left at its default.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use serde_json::{Value, json};

use crate::groups::group_of;
use crate::koordinator::{ElasticQuota, JobGroup, QuotaSpec, quota_tree};
use crate::kueue::{
    AdmissionSpec, ClusterQueue, Cohort, CohortSpec, KueueWorkload, KueueWorkloadSpec, KueueWorkloadStatus, LocalQueue,
    LocalQueueSpec, PodSetAssignment, PodSetSpec, ResourceFlavor,
};
use crate::load::{Loaded, time};
use crate::objects::{FullName, Objects};
use crate::quantity::written;
use crate::quota;
use crate::request::requests;
use crate::source::{InputError, Source, Sourced};
use crate::yunikorn::{queue_of, queue_tree};

const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
const JOB: &str = "pod-group.scheduling.sigs.k8s.io";
const LOCAL_QUEUE: &str = "kueue.x-k8s.io/queue-name";
const FLAVOR: &str = "default";

/// An account, whatever its policy calls it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub name: String,
    pub parent: Option<usize>,
    pub guarantee: BTreeMap<String, i64>,
    pub ceiling: BTreeMap<String, i64>,
}

/// The accounts of a cluster and which of them each pod uses.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// Which policy's objects they come from.
    pub native: &'static str,
    accounts: Vec<Account>,
    of_pod: BTreeMap<FullName, usize>,
}

impl Accounts {
    /// `None` where the cluster has no accounts of any kind.
    pub fn of(objects: &Objects) -> Result<Option<Self>, InputError> {
        let (native, accounts) = if let Some(tree) = queue_tree(objects, &mut Vec::new())? {
            ("YuniKorn", tree.accounts())
        } else if let Some(tree) = quota_tree(objects)? {
            ("Koordinator", tree.accounts())
        } else if !objects.cluster_queues.is_empty() {
            ("Kueue", quota::accounts(objects)?)
        } else {
            return Ok(None);
        };
        let at = |name: &str| accounts.iter().position(|account| account.name == name);
        let of_pod = objects.pods.iter().filter_map(|pod| {
            let name = FullName::of(&pod.object.metadata);
            let label = |key: &str| pod.object.metadata.labels.as_ref()?.get(key).cloned();
            let account = match native {
                "YuniKorn" => queue_of(&pod.object),
                "Koordinator" => label(QUOTA),
                _ => label(LOCAL_QUEUE).and_then(|queue| cluster_queue_of(objects, &name.namespace, &queue)),
            };
            Some((name, at(&account?)?))
        });
        let of_pod = of_pod.collect();
        Ok(Some(Self { native, accounts, of_pod }))
    }

    /// The cluster in the words of a policy, and the preemptor's name there.
    pub fn under(&self, policy: &str, objects: &Objects, loaded: &Loaded) -> Objects {
        match policy {
            _ if policy == self.native => objects.clone(),
            "YuniKorn" => self.as_yunikorn(objects),
            "Koordinator" => self.as_koordinator(objects),
            "Kueue" => self.as_kueue(objects, loaded),
            _ => objects.clone(),
        }
    }

    fn children(&self, of: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        (0..self.accounts.len()).filter(move |&at| self.accounts[at].parent == of)
    }

    /// The account's name without the path, fit for every policy.
    fn plain(&self, at: usize) -> String {
        let name = self.accounts[at].name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        name.replace(['/', '_'], "-")
    }

    fn path(&self, at: usize) -> String {
        match self.accounts[at].parent {
            Some(parent) => format!("{}.{}", self.path(parent), self.plain(at)),
            None if self.plain(at) == "root" => "root".to_owned(),
            None => format!("root.{}", self.plain(at)),
        }
    }

    fn as_yunikorn(&self, objects: &Objects) -> Objects {
        let queues: Vec<Value> = self.children(None).map(|at| self.yunikorn_queue(at)).collect();
        let config = json!({ "partitions": [{ "name": "default", "queues": [{ "name": "root", "queues": queues }] }] });
        let config = ConfigMap {
            metadata: named("yunikorn-configs", Some("yunikorn")),
            data: Some(BTreeMap::from([("queues.yaml".to_owned(), config.to_string())])),
            ..ConfigMap::default()
        };
        let mut mapped = without_accounts(objects);
        mapped.config_maps.push(made(config));
        for pod in &mut mapped.pods {
            let name = FullName::of(&pod.object.metadata);
            let application = group_of(&pod.object).map_or_else(|| name.name.clone(), |group| group.name);
            let queue = self.of_pod.get(&name).map(|&at| self.path(at));
            let labels = pod.object.metadata.labels.get_or_insert_default();
            labels.entry("applicationId".to_owned()).or_insert(application);
            labels.extend(queue.map(|queue| ("queue".to_owned(), queue)));
        }
        mapped
    }

    fn yunikorn_queue(&self, at: usize) -> Value {
        let account = &self.accounts[at];
        let amounts = |amounts: &BTreeMap<String, i64>| -> Value {
            let name = |resource: &String| if resource == "cpu" { "vcore".to_owned() } else { resource.clone() };
            amounts.iter().map(|(resource, amount)| (name(resource), json!(written(resource, *amount)))).collect()
        };
        let children: Vec<Value> = self.children(Some(at)).map(|child| self.yunikorn_queue(child)).collect();
        let resources = json!({ "guaranteed": amounts(&account.guarantee), "max": amounts(&account.ceiling) });
        json!({ "name": self.plain(at), "parent": !children.is_empty(), "resources": resources, "queues": children })
    }

    fn as_koordinator(&self, objects: &Objects) -> Objects {
        let mut mapped = without_accounts(objects);
        for at in 0..self.accounts.len() {
            let account = &self.accounts[at];
            let mut metadata = named(&self.plain(at), Some("default"));
            if let Some(parent) = account.parent {
                let parent =
                    BTreeMap::from([("quota.scheduling.koordinator.sh/parent".to_owned(), self.plain(parent))]);
                metadata.labels = Some(parent);
            }
            let amounts = |amounts: &BTreeMap<String, i64>| -> BTreeMap<String, Value> {
                amounts.iter().map(|(resource, amount)| (resource.clone(), json!(written(resource, *amount)))).collect()
            };
            let spec = QuotaSpec { min: amounts(&account.guarantee), max: amounts(&account.ceiling) };
            mapped.elastic_quotas.push(made(ElasticQuota { metadata, spec, ..ElasticQuota::default() }));
        }
        let mut jobs: BTreeSet<FullName> = BTreeSet::new();
        for pod in &mut mapped.pods {
            let name = FullName::of(&pod.object.metadata);
            let quota = self.of_pod.get(&name).map(|&at| self.plain(at));
            let job = group_of(&pod.object);
            let labels = pod.object.metadata.labels.get_or_insert_default();
            labels.extend(quota.map(|quota| (QUOTA.to_owned(), quota)));
            if let Some(job) = job {
                labels.insert(JOB.to_owned(), job.name.clone());
                jobs.insert(job);
            }
        }
        for job in jobs {
            let metadata = named(&job.name, Some(&job.namespace));
            mapped.job_groups.push(made(JobGroup { metadata, ..JobGroup::default() }));
        }
        mapped
    }

    /// Every gang, and every pod of none, is a workload.
    fn as_kueue(&self, objects: &Objects, loaded: &Loaded) -> Objects {
        let mut mapped = without_accounts(objects);
        mapped
            .resource_flavors
            .push(made(ResourceFlavor { metadata: named(FLAVOR, None), ..ResourceFlavor::default() }));
        mapped.cohorts.push(made(Cohort { metadata: named("cluster", None), ..Cohort::default() }));
        for at in 0..self.accounts.len() {
            if self.children(Some(at)).next().is_some() {
                let parent = self.accounts[at].parent.map_or_else(|| "cluster".to_owned(), |parent| self.plain(parent));
                let spec = CohortSpec { parent_name: Some(parent), ..CohortSpec::default() };
                mapped.cohorts.push(made(Cohort { metadata: named(&self.plain(at), None), spec, ..Cohort::default() }));
            } else {
                mapped.cluster_queues.push(made(self.cluster_queue(at, objects)));
            }
        }
        let namespaces: BTreeSet<&String> = self.of_pod.keys().map(|pod| &pod.namespace).collect();
        for namespace in namespaces {
            for at in 0..self.accounts.len() {
                let spec = LocalQueueSpec { cluster_queue: self.plain(at) };
                let metadata = named(&self.plain(at), Some(namespace));
                mapped.local_queues.push(made(LocalQueue { metadata, spec, ..LocalQueue::default() }));
            }
        }
        mapped.kueue_workloads = self.workloads(objects, loaded);
        mapped
    }

    fn cluster_queue(&self, at: usize, objects: &Objects) -> ClusterQueue {
        let account = &self.accounts[at];
        let asked = objects.pods.iter().filter_map(|pod| requests(&pod.object).ok()).flat_map(BTreeMap::into_keys);
        let resources: BTreeSet<String> =
            asked.chain(account.guarantee.keys().cloned()).chain(account.ceiling.keys().cloned()).collect();
        let quota: Vec<Value> = resources
            .iter()
            .map(|resource| {
                let nominal = account.guarantee.get(resource).copied().unwrap_or(0);
                let mut quota = json!({ "name": resource, "nominalQuota": written(resource, nominal) });
                if let Some(ceiling) = account.ceiling.get(resource) {
                    quota["borrowingLimit"] = json!(written(resource, (ceiling - nominal).max(0)));
                }
                quota
            })
            .collect();
        let parent = account.parent.map_or_else(|| "cluster".to_owned(), |parent| self.plain(parent));
        let spec = json!({
            "cohortName": parent,
            "resourceGroups": [{ "coveredResources": resources, "flavors": [{ "name": FLAVOR, "resources": quota }] }],
            "preemption": { "withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any" },
        });
        let spec = serde_json::from_value(spec).expect("it is written as it is read");
        ClusterQueue { metadata: named(&self.plain(at), None), spec, ..ClusterQueue::default() }
    }

    fn workloads(&self, objects: &Objects, loaded: &Loaded) -> Vec<Sourced<KueueWorkload>> {
        let mut members: BTreeMap<FullName, Vec<FullName>> = BTreeMap::new();
        for pod in &objects.pods {
            let name = FullName::of(&pod.object.metadata);
            let unit = group_of(&pod.object).unwrap_or_else(|| name.clone());
            if loaded.names.pod_id(&name).is_some() && self.of_pod.contains_key(&name) {
                members.entry(unit).or_default().push(name);
            }
        }
        let templates: BTreeMap<FullName, _> =
            objects.pods.iter().map(|pod| (FullName::of(&pod.object.metadata), &pod.object)).collect();
        let workload = |(unit, pods): (FullName, Vec<FullName>)| {
            let account = self.of_pod[&pods[0]];
            let ids: Vec<_> = pods.iter().filter_map(|pod| loaded.names.pod_id(pod)).collect();
            let bound = ids.iter().any(|&id| loaded.snapshot.home(id).is_some());
            let sets = pods.iter().enumerate().map(|(at, pod)| {
                let spec = templates[pod].spec.clone();
                let template = k8s_openapi::api::core::v1::PodTemplateSpec { spec, ..Default::default() };
                PodSetSpec { name: format!("set-{at}"), count: 1, min_count: None, template }
            });
            let since = ids.iter().map(|&id| loaded.snapshot.pod(id).start).min().and_then(time);
            let admission = bound.then(|| AdmissionSpec {
                cluster_queue: self.plain(account),
                pod_set_assignments: pods.iter().filter_map(|pod| assignment(templates[pod])).collect(),
            });
            let reserved = Condition {
                type_: "QuotaReserved".to_owned(),
                status: "True".to_owned(),
                last_transition_time: Time(since.unwrap_or_default()),
                message: String::new(),
                observed_generation: None,
                reason: "QuotaReserved".to_owned(),
            };
            let status =
                KueueWorkloadStatus { conditions: admission.iter().map(|_| reserved.clone()).collect(), admission };
            let priority = ids.first().map(|&id| loaded.snapshot.pod(id).priority.0);
            let mut metadata = named(&unit.name, Some(&unit.namespace));
            metadata.creation_timestamp = templates[&pods[0]].metadata.creation_timestamp.clone();
            made(KueueWorkload {
                metadata,
                spec: KueueWorkloadSpec {
                    queue_name: self.plain(account),
                    priority,
                    pod_sets: sets.collect(),
                    ..KueueWorkloadSpec::default()
                },
                status: Some(status),
                ..KueueWorkload::default()
            })
        };
        members.into_iter().map(workload).collect()
    }
}

fn assignment(pod: &k8s_openapi::api::core::v1::Pod) -> Option<PodSetAssignment> {
    let requests = requests(pod).ok()?;
    Some(PodSetAssignment {
        name: pod.metadata.name.clone().unwrap_or_default(),
        flavors: requests.keys().map(|resource| (resource.clone(), FLAVOR.to_owned())).collect(),
        resource_usage: requests
            .iter()
            .map(|(resource, amount)| (resource.clone(), json!(written(resource, *amount))))
            .collect(),
        count: Some(1),
    })
}

fn cluster_queue_of(objects: &Objects, namespace: &str, queue: &str) -> Option<String> {
    let local = FullName::new(namespace, queue);
    let found = objects.local_queues.iter().find(|one| FullName::of(&one.object.metadata) == local)?;
    Some(found.object.spec.cluster_queue.clone())
}

fn without_accounts(objects: &Objects) -> Objects {
    Objects {
        config_maps: Vec::new(),
        elastic_quotas: Vec::new(),
        job_groups: Vec::new(),
        resource_flavors: Vec::new(),
        cluster_queues: Vec::new(),
        cohorts: Vec::new(),
        local_queues: Vec::new(),
        kueue_workloads: Vec::new(),
        ..objects.clone()
    }
}

fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: namespace.map(str::to_owned), ..ObjectMeta::default() }
}

/// An object that came from no file.
fn made<T>(object: T) -> Sourced<T> {
    Sourced { object, source: Source { file: "the mapping between policies".into(), document: 1, item: None } }
}

/// The same objects as if no priority class tolerated anybody or opted out.
pub fn without_tolerations(objects: &Objects) -> Objects {
    let mut objects = objects.clone();
    for class in &mut objects.priority_classes {
        if let Some(annotations) = &mut class.object.metadata.annotations {
            annotations.retain(|key, _| !is_toleration(key));
        }
    }
    objects
}

/// Whether any priority class tolerates anybody or opted out.
pub fn has_tolerations(objects: &Objects) -> bool {
    let annotations = objects.priority_classes.iter().filter_map(|class| class.object.metadata.annotations.as_ref());
    annotations.flat_map(BTreeMap::keys).any(|key| is_toleration(key))
}

fn is_toleration(key: &str) -> bool {
    key.starts_with("preemption-toleration.scheduling.x-k8s.io/") || key == "yunikorn.apache.org/allow-preemption"
}
