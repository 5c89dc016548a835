//! Random clusters, each from a seed, in which everything goes wrong.

use k8s_openapi::api::core::v1::{ConfigMap, Node, NodeStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::Object;
use reprieve_api::koordinator::{ElasticQuota, QuotaSpec};
use reprieve_api::kueue::{
    ClusterQueue, ClusterQueueSpec, FlavorQuotas, FlavorSpec, LocalQueue, LocalQueueSpec, PreemptionSpec,
    ResourceFlavor, ResourceGroupSpec, ResourceQuota,
};
use reprieve_api::meta::FullName;
use reprieve_api::pod::{Container, Pod, PodSpec};
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::{FairSharing, Kueue, Placing, Strategy};
use serde_json::json;

use crate::chance::Chance;
use crate::faults::Faults;
use crate::submission::{Form, Submission};
use crate::world::Setup;

/// The policies that a campaign goes through.
pub const POLICIES: &[&str] =
    &["Kubernetes", "YuniKorn", "Koordinator", "Koordinator (soft)", "Kueue", "Kueue (fair)", "Kueue (joint)"];

/// The flavors of nodes under policy Kueue.
const FLAVORS: [&str; 2] = ["new", "old"];
const FAIR: FairSharing =
    FairSharing { first: Strategy::LessThanOrEqualToFinalShare, second: Some(Strategy::LessThanInitialShare) };
const START: Timestamp = Timestamp(1_767_229_200_000_000);
const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;

/// A random cluster under one of [`POLICIES`].
pub fn setup(seed: u64, policy: &str, faults: Faults) -> Setup {
    let mut chance = Chance::new(seed);
    let policy = match policy {
        "YuniKorn" => Policy::YuniKorn,
        "Koordinator" => Policy::Koordinator(Koordinator { deletes_victims: true, ..Koordinator::default() }),
        "Kueue" => Policy::Kueue(Kueue::default()),
        "Kueue (fair)" => Policy::Kueue(Kueue { fair_sharing: Some(FAIR), ..Kueue::default() }),
        "Kueue (joint)" => Policy::Kueue(Kueue { placement: Placing::Joint, ..Kueue::default() }),
        "Koordinator (soft)" => Policy::Koordinator(Koordinator::default()),
        _ => Policy::Kubernetes(Kubernetes::default()),
    };
    let gpus = chance.pick(&[2, 4, 8]);
    let nodes = chance.within(2, 6);
    let mut objects: Vec<Object> = (0..nodes).map(|at| node(&format!("node-{at}"), gpus)).collect();
    if let Policy::Kueue(_) = policy {
        let queues = cluster_queues(&mut chance, &mut objects, gpus);
        objects.extend(queues);
    } else {
        objects.extend(queues(&mut chance, &policy, nodes * gpus));
    }
    let n = chance.within(8, 30);
    let submissions = (0..n).map(|at| submission(&mut chance, at, gpus, &policy)).collect();
    Setup {
        policy,
        objects,
        submissions,
        start: START,
        end: START.plus_micros(24 * HOUR),
        faults,
        soft_eviction_micros: 20 * SECOND,
        sample_micros: 0,
        explains: false,
        seed,
        #[cfg(feature = "deliberate-bugs")]
        bug: None,
    }
}

fn node(name: &str, gpus: i64) -> Object {
    let amounts = [("cpu", "64".to_owned()), ("nvidia.com/gpu", gpus.to_string()), ("pods", "20".to_owned())];
    let allocatable = amounts.map(|(resource, amount)| (resource.to_owned(), Quantity(amount))).into_iter().collect();
    Object::from(Node {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: None,
        status: Some(NodeStatus { allocatable: Some(allocatable), ..NodeStatus::default() }),
    })
}

/// Two teams that share the cluster, in the words of the policy.
fn queues(chance: &mut Chance, policy: &Policy, gpus: i64) -> Vec<Object> {
    let half = (gpus / 2).max(1);
    let least = [chance.within(half / 2, half), chance.within(0, half)];
    let most = [chance.within(half, gpus), chance.within(half, gpus)];
    match policy {
        Policy::YuniKorn => {
            let fenced = chance.happens(300_000);
            let team = |at: usize| {
                json!({
                    "name": (["a", "b"][at]),
                    "resources": {
                        "guaranteed": {"nvidia.com/gpu": least[at]},
                        "max": {"nvidia.com/gpu": most[at]},
                    },
                    "properties": {
                        "preemption.delay": "10s",
                        "preemption.policy": if fenced && at == 0 { "fence" } else { "default" },
                    },
                })
            };
            let queues = json!({"partitions": [{"name": "default", "queues": [{
                "name": "root", "submitacl": "*", "queues": [team(0), team(1)],
            }]}]});
            let data = [("queues.yaml".to_owned(), queues.to_string())].into_iter().collect();
            vec![Object::from(ConfigMap {
                metadata: ObjectMeta { name: Some("yunikorn-configs".to_owned()), ..ObjectMeta::default() },
                data: Some(data),
                ..ConfigMap::default()
            })]
        }
        Policy::Koordinator(_) => [0, 1].map(|at| quota(["a", "b"][at], least[at], most[at])).into(),
        Policy::Kubernetes(_) | Policy::Kueue(_) => Vec::new(),
    }
}

/// Two ClusterQueues of one cohort that share the nodes, of one flavor or two, and take back what they lent.
fn cluster_queues(chance: &mut Chance, nodes: &mut [Object], gpus: i64) -> Vec<Object> {
    // 1. Nodes of one flavor or of two.
    let n_flavors = if nodes.len() > 3 && chance.happens(500_000) { 2 } else { 1 };
    let mut capacity = vec![0; n_flavors];
    for (at, node) in nodes.iter_mut().enumerate() {
        let flavor = at % n_flavors;
        capacity[flavor] += gpus;
        let labels = node.metadata_mut().labels.get_or_insert_default();
        labels.insert("flavor".to_owned(), FLAVORS[flavor].to_owned());
    }
    let mut objects: Vec<Object> = FLAVORS[..n_flavors].iter().map(|name| Object::from(flavor(name))).collect();
    // 2. Two queues that share the whole capacity.
    let limited = chance.happens(500_000);
    let strict = chance.happens(300_000);
    let of_a: Vec<i64> = capacity.iter().map(|gpus| chance.within(0, *gpus)).collect();
    for queue in ["a", "b"] {
        let flavors = capacity.iter().zip(&of_a).zip(FLAVORS).map(|((gpus, of_a), flavor)| {
            let nominal = if queue == "a" { *of_a } else { gpus - of_a };
            flavor_quotas(flavor, nominal, limited.then_some(gpus / 2))
        });
        objects.push(Object::from(cluster_queue(queue, flavors.collect(), strict)));
        objects.push(Object::from(local_queue(queue)));
    }
    objects
}

fn flavor(name: &str) -> ResourceFlavor {
    ResourceFlavor {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: FlavorSpec { node_labels: [("flavor".to_owned(), name.to_owned())].into(), ..FlavorSpec::default() },
        ..ResourceFlavor::default()
    }
}

/// GPUs of a flavor, perhaps with a limit to what may be borrowed, and more cpu than there is.
fn flavor_quotas(flavor: &str, gpus: i64, borrowing_limit: Option<i64>) -> FlavorQuotas {
    let quota = |name: &str, nominal: i64, limit: Option<i64>| ResourceQuota {
        name: name.to_owned(),
        nominal_quota: json!(nominal),
        borrowing_limit: limit.map(|limit| json!(limit)),
        ..ResourceQuota::default()
    };
    let resources = vec![quota("nvidia.com/gpu", gpus, borrowing_limit), quota("cpu", 1000, None)];
    FlavorQuotas { name: flavor.to_owned(), resources }
}

fn cluster_queue(name: &str, flavors: Vec<FlavorQuotas>, strict: bool) -> ClusterQueue {
    ClusterQueue {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: ClusterQueueSpec {
            cohort_name: Some("all".to_owned()),
            resource_groups: vec![ResourceGroupSpec {
                covered_resources: vec!["nvidia.com/gpu".to_owned(), "cpu".to_owned()],
                flavors,
            }],
            queueing_strategy: Some(if strict { "StrictFIFO" } else { "BestEffortFIFO" }.to_owned()),
            preemption: PreemptionSpec {
                within_cluster_queue: Some("LowerPriority".to_owned()),
                reclaim_within_cohort: Some("Any".to_owned()),
                ..PreemptionSpec::default()
            },
            ..ClusterQueueSpec::default()
        },
        ..ClusterQueue::default()
    }
}

fn local_queue(name: &str) -> LocalQueue {
    LocalQueue {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: LocalQueueSpec { cluster_queue: name.to_owned(), ..LocalQueueSpec::default() },
        ..LocalQueue::default()
    }
}

fn quota(name: &str, min: i64, max: i64) -> Object {
    let amount = |amount: i64| [("nvidia.com/gpu".to_owned(), json!(amount))].into_iter().collect();
    Object::from(ElasticQuota {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: QuotaSpec { min: amount(min), max: amount(max) },
        ..ElasticQuota::default()
    })
}

fn submission(chance: &mut Chance, at: i64, gpus: i64, policy: &Policy) -> Submission {
    let priority = i32::try_from(chance.within(0, 3) * 10).expect("it is small");
    let each = chance.pick(&[1, 1, 1, 2, gpus.min(4)]).min(gpus);
    let gang = chance.happens(500_000);
    let pods = usize::try_from(if gang { chance.within(2, 6) } else { chance.within(1, 3) }).expect("it is small");
    let whole = chance.happens(700_000);
    let min = if chance.happens(800_000) { pods } else { pods - 1 };
    let queue = chance.pick(&["a", "b"]);
    let label = match policy {
        Policy::YuniKorn => Some(("queue", format!("root.{queue}"))),
        Policy::Koordinator(_) => Some(("quota.scheduling.koordinator.sh/name", queue.to_owned())),
        Policy::Kueue(_) => Some(("kueue.x-k8s.io/queue-name", queue.to_owned())),
        Policy::Kubernetes(_) => None,
    };
    let running = chance.within(1, 120) * MINUTE;
    Submission {
        name: FullName::new("default", &format!("job-{at:02}")),
        at: START.plus_micros(chance.within(0, 3 * HOUR)),
        pods,
        form: if gang { Form::Gang { min, whole } } else { Form::Single },
        template: template(priority, each, label).into(),
        running_micros: Some(running),
        checkpoint_micros: chance.happens(500_000).then_some(10 * MINUTE),
        startup_micros: chance.within(1, 20) * SECOND,
        stop_micros: chance.within(1, 30) * SECOND,
    }
}

fn template(priority: i32, gpus: i64, label: Option<(&str, String)>) -> Pod {
    let requests =
        [("cpu".to_owned(), Quantity("1".to_owned())), ("nvidia.com/gpu".to_owned(), Quantity(gpus.to_string()))];
    let container = Container {
        name: "main".to_owned(),
        resources: Some(ResourceRequirements {
            requests: Some(requests.into_iter().collect()),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    };
    let labels = label.map(|(key, value)| [(key.to_owned(), value)].into_iter().collect());
    let spec = PodSpec { containers: vec![container], priority: Some(priority), ..PodSpec::default() };
    Pod::new(ObjectMeta { labels, ..ObjectMeta::default() }, spec)
}
