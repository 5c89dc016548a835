//! Random clusters for `reprieve simulate --check`: nodes, queues, jobs and injected faults, all drawn from a seed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use reprieve_api::{NamespacedName, Object};
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::{FairSharing, Kueue, PlacementMode, Strategy};
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_engine::{Policy, Timestamp};
use reprieve_loader::{Amounts, QueueSpec};
use reprieve_report::gpu_hours::GpuResources;
use reprieve_translate::kueue_objects::{cluster_queue, flavor, flavor_quotas, local_queue, resource_groups};
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_koordinator::elastic_quotas;
use reprieve_translate::to_yunikorn::config_map;
use serde_json::json;

use crate::faults::Faults;
use crate::input::{self, template};
use crate::rng::Rng;
use crate::run::Gang;
use crate::submission::Submission;
use crate::virtual_cluster::RunConfig;

/// The policies of a campaign.
pub const POLICIES: &[&str] =
    &["Kubernetes", "YuniKorn", "Koordinator", "Koordinator (soft)", "Kueue", "Kueue (fair)", "Kueue (joint)"];

const GPU: &str = "nvidia.com/gpu";
const TEAMS: [&str; 2] = ["a", "b"];
/// Nominal quota in thousandths of a cpu, more than any node has, without a borrowing limit.
const AMPLE_CPU: (i64, Option<i64>) = (1_000_000, None);
/// The flavors of nodes under policy Kueue.
const FLAVORS: [&str; 2] = ["new", "old"];
const FAIR: FairSharing =
    FairSharing { first: Strategy::LessThanOrEqualToFinalShare, second: Some(Strategy::LessThanInitialShare) };
const START: Timestamp = Timestamp(1_767_229_200_000_000);
const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;

/// A random cluster under one of [`POLICIES`].
pub fn setup(seed: u64, policy: &str, faults: Faults) -> RunConfig {
    let mut rng = Rng::new(seed);
    let policy = match policy {
        "YuniKorn" => Policy::YuniKorn(YuniKorn::default()),
        "Koordinator" => Policy::Koordinator(Koordinator { deletes_victims: true, ..Koordinator::default() }),
        "Kueue" => Policy::Kueue(Kueue::default()),
        "Kueue (fair)" => Policy::Kueue(Kueue { fair_sharing: Some(FAIR), ..Kueue::default() }),
        "Kueue (joint)" => Policy::Kueue(Kueue { placement: PlacementMode::Joint, ..Kueue::default() }),
        "Koordinator (soft)" => Policy::Koordinator(Koordinator::default()),
        _ => Policy::Kubernetes(Kubernetes::default()),
    };
    let gpus = rng.pick(&[2, 4, 8]);
    let nodes = rng.range(2, 6);
    let mut objects: Vec<Object> = (0..nodes).map(|index| node(&format!("node-{index}"), gpus)).collect();
    if let Policy::Kueue(_) = policy {
        let queues = cluster_queues(&mut rng, &mut objects, gpus);
        objects.extend(queues);
    } else {
        objects.extend(queues(&mut rng, &policy, nodes * gpus));
    }
    let n = rng.range(8, 30);
    let submissions = (0..n).map(|index| submission(&mut rng, index, gpus, &policy)).collect();
    RunConfig {
        gpus: GpuResources::default(),
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
    let amounts = [("cpu", "64".to_owned()), (GPU, gpus.to_string()), ("pods", "20".to_owned())];
    let allocatable = amounts.map(|(resource, amount)| (resource.to_owned(), Quantity(amount))).into_iter().collect();
    input::node(name, BTreeMap::new(), &[], allocatable)
}

/// The queues of two teams that share the cluster, as objects of the policy.
fn queues(rng: &mut Rng, policy: &Policy, gpus: i64) -> Vec<Object> {
    let half = (gpus / 2).max(1);
    let guarantees = [rng.range(half / 2, half), rng.range(0, half)];
    let limits = [rng.range(half, gpus), rng.range(half, gpus)];
    let amount = |gpus: i64| Amounts::from([(GPU.to_owned(), gpus)]);
    let team = |index: usize| QueueSpec {
        name: TEAMS[index].to_owned(),
        guarantee: amount(guarantees[index]),
        limit: amount(limits[index]),
        ..QueueSpec::default()
    };
    let teams: NeutralQueues = (0..TEAMS.len()).map(team).collect();
    match policy {
        Policy::YuniKorn(_) => {
            let fenced = rng.happens(300_000);
            let properties = |team: &str| {
                let policy = if fenced && team == TEAMS[0] { "fence" } else { "default" };
                json!({ "preemption.delay": "10s", "preemption.policy": policy })
            };
            vec![Object::from(config_map(&teams, properties))]
        }
        Policy::Koordinator(_) => elastic_quotas(&teams).map(Object::from).collect(),
        Policy::Kubernetes(_) | Policy::Kueue(_) => Vec::new(),
    }
}

/// Two ClusterQueues of one cohort that share the nodes, of one or two flavors, and reclaim what they lend.
fn cluster_queues(rng: &mut Rng, nodes: &mut [Object], gpus: i64) -> Vec<Object> {
    // 1. Label the nodes with one flavor or two.
    let n_flavors = if nodes.len() > 3 && rng.happens(500_000) { 2 } else { 1 };
    let mut capacity = vec![0; n_flavors];
    for (index, node) in nodes.iter_mut().enumerate() {
        let flavor = index % n_flavors;
        capacity[flavor] += gpus;
        let labels = node.metadata_mut().labels.get_or_insert_default();
        labels.insert("flavor".to_owned(), FLAVORS[flavor].to_owned());
    }
    let mut objects: Vec<Object> = FLAVORS[..n_flavors]
        .iter()
        .map(|&name| Object::from(flavor(name, [("flavor".to_owned(), name.to_owned())].into())))
        .collect();
    // 2. Divide the capacity between two queues.
    let limited = rng.happens(500_000);
    let strict = rng.happens(300_000);
    let of_a: Vec<i64> = capacity.iter().map(|gpus| rng.range(0, *gpus)).collect();
    for queue in TEAMS {
        let flavors = capacity.iter().zip(&of_a).zip(FLAVORS).map(|((gpus, of_a), flavor)| {
            let nominal = if queue == TEAMS[0] { *of_a } else { gpus - of_a };
            flavor_quotas(flavor, [GPU, "cpu"], |resource| match resource {
                GPU => (nominal, limited.then_some(gpus / 2)),
                _ => AMPLE_CPU,
            })
        });
        let mut cluster_queue = cluster_queue(queue, "all", resource_groups(flavors.collect()));
        cluster_queue.spec.queueing_strategy = Some(if strict { "StrictFIFO" } else { "BestEffortFIFO" }.to_owned());
        objects.extend([Object::from(cluster_queue), Object::from(local_queue(queue, "default"))]);
    }
    objects
}

fn submission(rng: &mut Rng, index: i64, gpus: i64, policy: &Policy) -> Submission {
    let priority = i32::try_from(rng.range(0, 3) * 10).expect("a small number");
    let each = rng.pick(&[1, 1, 1, 2, gpus.min(4)]).min(gpus);
    let gang = rng.happens(500_000);
    let pods = usize::try_from(if gang { rng.range(2, 6) } else { rng.range(1, 3) }).expect("a small number");
    let whole = rng.happens(700_000);
    let min = if rng.happens(800_000) { pods } else { pods - 1 };
    let queue = rng.pick(&TEAMS);
    let requests = [("cpu", 1), (GPU, each)].map(|(resource, n)| (resource.to_owned(), Quantity(n.to_string())));
    let mut template = template(priority, requests.into_iter());
    template.metadata.labels = NeutralQueues::default().label(queue, policy).map(|label| [label].into());
    let running = rng.range(1, 120) * MINUTE;
    Submission {
        name: NamespacedName::new("default", &format!("job-{index:02}")),
        at: START.plus_micros(rng.range(0, 3 * HOUR)),
        pods,
        gang: gang.then_some(Gang { min, whole }),
        template: template.into(),
        running_micros: Some(running),
        checkpoint_micros: rng.happens(500_000).then_some(10 * MINUTE),
        startup_micros: rng.range(1, 20) * SECOND,
        stop_micros: rng.range(1, 30) * SECOND,
    }
}
