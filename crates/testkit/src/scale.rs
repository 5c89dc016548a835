//! Large regular clusters, in the shapes that kube-scheduler's own benchmarks use (`default_preemption` and `workload_preemption`
//! of its `scheduler_perf`): nodes with 4 cpu, 32Gi and 110 pods, full of equal pods that are evenly spread. Each scenario
//! has a preemptor and the expected number of victims, so that a benchmark can check the decision before it times it.

mod build;
mod cohorts;
mod list;
mod queues;
mod quotas;

use std::sync::Arc;

use k8s_openapi::api::scheduling::v1beta1::{PodGroupSchedulingConstraints, TopologyConstraint};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::test_file::{PreemptorRef, Profile, TestSpec};
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{CycleEntry, CycleResult, SkipReason, run_cycle};
use reprieve_engine::snapshot::Unit;
use reprieve_engine::{Outcome, WorkloadId};
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::Question;

use build::{Cluster, ClusterWithPreemptor, Template, ZONE, budget, from_scenario, priority_class};
use cohorts::CohortsBuilder;
use list::List;

pub use cohorts::Cohorts;

/// The time of the decision.
const NOW: &str = "2026-01-08T00:00:00Z";
/// The priority of preempting gangs.
const HIGH: i32 = 8_888_888;
/// The number of victims for 100 members among scattered gangs. There is no formula for it.
const SCATTERED_VICTIMS: usize = 390;

/// A cluster, a preemptor, and the expected number of victims.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The objects of the cluster, including the preemptor.
    pub objects: ObjectSet,
    /// The preemptor.
    pub preemptor: PreemptorRef,
    /// The policy.
    pub profile: Profile,
    /// The expected number of evicted pods or workloads; `None` if the preemptor must be refused.
    pub victims: Option<usize>,
}

impl Scenario {
    /// The snapshot, and the question: policy, preemptor and time.
    pub fn load(&self) -> (Loaded, Question) {
        let loaded = load(&self.objects, OnInvalid::Reject).expect("the scenario's objects are valid");
        let question = self.question(&loaded);
        (loaded, question)
    }

    /// The question about a snapshot of this scenario.
    pub fn question(&self, loaded: &Loaded) -> Question {
        let preemptor = self.preemptor.clone();
        let profile = self.profile.clone();
        let spec = TestSpec { now: Some(NOW.to_owned()), profile, preemptor, expect: None };
        Question::new(&spec, loaded).expect("the scenario has its preemptor")
    }

    /// Decides once, and panics unless the preemptor is refused as expected, or exactly the expected number of pods is evicted and every pod of
    /// the preemptor is placed.
    pub fn check(&self, loaded: &mut Loaded, question: &Question) {
        let outcome = question.decide(loaded);
        let (Outcome::Preempt(plan), Some(expected)) = (&outcome, self.victims) else {
            let refused = matches!(outcome, Outcome::Unschedulable(_));
            assert!(refused && self.victims.is_none(), "expected to preempt {:?}, got {outcome:?}", self.victims);
            return;
        };
        let size = |unit: &Unit| if unit.workload.is_some() { 1 } else { unit.pods.len() };
        let victims: usize = plan.victims.iter().map(|&unit| size(loaded.snapshot.unit(unit))).sum();
        assert_eq!(victims, expected, "victims");
        let pending = self.objects.pods.iter().filter(|pod| pod.object.node_name.is_none());
        assert_eq!(plan.placement.len(), pending.count(), "members that have a place");
    }

    /// Decides one Kueue cycle.
    pub fn cycle(&self, loaded: &Loaded, question: &Question) -> Vec<CycleEntry> {
        let Policy::Kueue(policy) = &question.policy else {
            panic!("only Kueue has a cycle");
        };
        let pending: Vec<WorkloadId> = loaded.snapshot.workload_ids().collect();
        run_cycle(&loaded.snapshot, policy, &pending, question.now)
    }

    /// Decides a cycle, and panics unless it considers every head and only the first gets the victims that all of them choose.
    pub fn check_cycle(&self, loaded: &Loaded, question: &Question) {
        let considered = self.cycle(loaded, question);
        let pending = self.objects.kueue_workloads.iter().filter(|workload| workload.object.status.is_none());
        assert_eq!(considered.len(), pending.count(), "heads");
        for (index, head) in considered.iter().enumerate() {
            let is_expected = match &head.result {
                CycleResult::Decided(Outcome::Preempt(plan)) => index == 0 && Some(plan.victims.len()) == self.victims,
                CycleResult::Skipped(SkipReason::VictimTaken { by, .. }) => index > 0 && *by == considered[0].workload,
                CycleResult::Decided(_) | CycleResult::Skipped(_) => false,
            };
            assert!(is_expected, "head {index}: {:?}", head.result);
        }
    }

    /// The objects as `kubectl get -o json` prints them.
    pub fn json(&self) -> String {
        serde_json::to_string(&List::new(&self.objects)).expect("objects can be written")
    }

    /// The objects as `kubectl get -o yaml` prints them.
    pub fn yaml(&self) -> String {
        serde_saphyr::to_string(&List::new(&self.objects)).expect("objects can be written")
    }
}

/// A pod that needs a whole node, on equally full nodes: it needs 2,970m more than is free, so every pod of the node must be evicted.
pub fn pod(nodes: usize, pods_per_node: usize) -> Scenario {
    let low = Template::new(3000 / pods_per_node, 1000);
    let cluster = Cluster::new(nodes).spread(nodes * pods_per_node, |_| low.clone());
    cluster.preemptor_pod(3970).with_victims(pods_per_node)
}

/// A pod that needs a third of a node, where half of the pods have budgets and half of the budgets are exhausted.
pub fn pod_among_budgets(nodes: usize) -> Scenario {
    let app = |index: usize| index / 7 % 200;
    let low = |index| Template::new(300, 1000).label("app", &format!("app-{}", app(index)));
    let mut cluster = Cluster::new(nodes).spread(nodes * 10, low);
    for app in 0..100 {
        cluster.objects.budgets.push(from_scenario(budget(app, if app % 2 == 0 { 0 } else { 2 })));
    }
    cluster.preemptor_pod(1900).with_victims(3)
}

/// A pod that needs a third of a node, where every node has pods of ten priorities.
pub fn pod_among_priorities(nodes: usize) -> Scenario {
    let low = |index: usize| Template::new(300, 1000 * (index * 7 / nodes % 10) as i32 + (index % 13) as i32);
    Cluster::new(nodes).spread(nodes * 10, low).preemptor_pod(1900).with_victims(3)
}

/// A pod that needs a third of a node, where every third pod has a toleration by its priority class, without end or expired.
pub fn pod_among_tolerations(nodes: usize) -> Scenario {
    let class = |index: usize| ["plain", "tolerant", "plain", "patient", "plain", "plain"][index / nodes % 6];
    let low = |index: usize| Template::new(300, 1000).class(class(index));
    let mut cluster = Cluster::new(nodes).spread(nodes * 10, low);
    for (name, minimum, seconds) in
        [("plain", None, None), ("tolerant", Some(10_000_000), Some(-1)), ("patient", Some(10_000_000), Some(60))]
    {
        cluster.objects.priority_classes.push(from_scenario(priority_class(name, minimum, seconds)));
    }
    cluster.preemptor_pod(1900).with_victims(3)
}

/// A gang whose members need three victims each, on completely full nodes with equal pods.
pub fn gang(nodes: usize, members: usize) -> Scenario {
    let low = Template::new(400, 1000);
    Cluster::new(nodes)
        .spread(nodes * 10, |_| low.clone())
        .preemptor_gang(members, Template::new(1200, HIGH))
        .with_victims(3 * members)
}

/// A gang as in `gang`, where every node has pods of ten priorities.
pub fn gang_among_priorities(nodes: usize, members: usize) -> Scenario {
    let low = |index: usize| Template::new(400, 1000 * (index * 7 / nodes % 10) as i32);
    Cluster::new(nodes)
        .spread(nodes * 10, low)
        .preemptor_gang(members, Template::new(1200, HIGH))
        .with_victims(3 * members)
}

/// A gang as in `gang`, whose members must be in one zone.
pub fn gang_in_a_zone(nodes: usize, members: usize) -> Scenario {
    let mut scenario = gang(nodes, members);
    let topology = TopologyConstraint { key: ZONE.to_owned() };
    let group = scenario.objects.pod_groups.last_mut().expect("the preemptor is a group");
    let constraints = PodGroupSchedulingConstraints { topology: Some(vec![topology]) };
    Arc::make_mut(&mut group.object).spec.scheduling_constraints = Some(constraints);
    scenario
}

/// `GangPreemptionBasic`: a gang with a member for every node, each of which evicts all ten pods of the node.
pub fn gang_clears_pods(nodes: usize) -> Scenario {
    let low = |index: usize| Template::new(40, 0).blue().port(8000 + index % 10);
    Cluster::new(nodes).fill(10, low).preemptor_gang(nodes, Template::new(3970, HIGH)).with_victims(10 * nodes)
}

/// `GangPreemptionPodGroups`: a gang with a member for every node evicts five gangs that also run on all nodes.
pub fn gang_clears_gangs(nodes: usize) -> Scenario {
    let low = |index: usize| Template::new(600, 1000).port(8000 + index / nodes).group(index / nodes);
    let cluster = Cluster::new(nodes).gangs(5, nodes).spread(5 * nodes, low);
    cluster.preemptor_gang(nodes, Template::new(3500, HIGH).port(9000)).with_victims(5 * nodes)
}

/// `GangPreemptionAffinity`: every node has an anchor pod that cannot be evicted, and each member must run on the node of one.
pub fn gang_with_affinity(nodes: usize) -> Scenario {
    let anchor = |_| Template::new(10, 9_999_999).blue().port(7000).kind("anchor");
    let low = |index: usize| Template::new(40, 0).blue().port(8000 + index % 10);
    let member = Template::new(3970, HIGH).memory(500).beside_blue();
    Cluster::new(nodes).spread(nodes, anchor).fill(10, low).preemptor_gang(nodes, member).with_victims(10 * nodes)
}

/// A gang of 100 against one gang of ten per node. The pods are spread in the order of their numbers, so that ten gangs share ten nodes.
pub fn gang_against_gangs(nodes: usize) -> Scenario {
    let low = |index: usize| Template::new(300, 1000).group(index / 10);
    let cluster = Cluster::new(nodes).gangs(nodes, 10).spread(10 * nodes, low);
    cluster.preemptor_gang(100, Template::new(3970, HIGH)).with_victims(1000)
}

/// A gang of 100 against gangs whose pods are far apart, such that no two gangs share all their nodes: the nth pods of all gangs are shifted
/// by 89 nodes against those before. A member evicts three gangs.
pub fn gang_against_scattered_gangs(nodes: usize) -> Scenario {
    let low = |index: usize| Template::new(400, 1000).group((index + index / nodes * 89) % nodes);
    let cluster = Cluster::new(nodes).gangs(nodes, 10).spread(10 * nodes, low);
    cluster.preemptor_gang(100, Template::new(1200, HIGH)).with_victims(SCATTERED_VICTIMS)
}

/// A pod against such gangs: each victim gang also runs on nine other nodes.
pub fn pod_against_gangs(nodes: usize) -> Scenario {
    let low = |index: usize| Template::new(300, 1000).group((index + index / nodes * 89) % nodes);
    Cluster::new(nodes).gangs(nodes, 10).spread(10 * nodes, low).preemptor_pod(3970).with_victims(100)
}

/// A pod of a queue below its guarantee, in a tree of five levels and `12 * width^3` leaves with pods on every node. The other leaves use twice
/// their guarantee, and the pod evicts two of their pods.
pub fn pod_among_queues(width: usize, nodes: usize, pods_per_node: usize) -> Scenario {
    pod_in_queue_tree(width, nodes, pods_per_node, 0, 2).with_victims(2)
}

/// A pod in the same tree, whose queue is above its guarantee.
pub fn pod_refused_by_queue(width: usize, nodes: usize, pods_per_node: usize) -> Scenario {
    pod_in_queue_tree(width, nodes, pods_per_node, 1, 2).refused()
}

/// A pod in the same tree, whose queue is below its guarantee while no other queue is above its own: the search tries every node.
pub fn pod_among_queues_without_victims(width: usize, nodes: usize, pods_per_node: usize) -> Scenario {
    pod_in_queue_tree(width, nodes, pods_per_node, 0, 1).refused()
}

/// A pod of the leaf with index `preemptor_leaf`, in a cluster in which the other leaves use `usage` times their guarantee.
fn pod_in_queue_tree(
    width: usize,
    nodes: usize,
    pods_per_node: usize,
    preemptor_leaf: usize,
    usage: usize,
) -> ClusterWithPreemptor {
    let leaves = queues::leaves(width);
    let pods = nodes * pods_per_node;
    let milli_cpu = 4000 / pods_per_node;
    // The first leaf has no pod, so it is below its guarantee.
    let leaf = |index: usize| &leaves[1 + index % (leaves.len() - 1)];
    let low = |index: usize| Template::new(milli_cpu, 1000).queue(leaf(index), &format!("app-{}", index / 7));
    let each = pods.div_ceil(leaves.len() - 1) * milli_cpu;
    let mut cluster = Cluster::new(nodes).spread(pods, low);
    cluster.objects.config_maps.push(from_scenario(queues::config(width, each / usage)));
    cluster.preemptor_pod_in_queue(2 * milli_cpu, &leaves[preemptor_leaf])
}

/// A job whose pods need two victims each, in a full quota, whose other pods must all be evicted, too. The first half of the nodes has pods of
/// higher priority; the members are placed on the other half.
pub fn job_among_quotas(leaves: usize, nodes: usize, members: usize) -> Scenario {
    job_in_quotas(leaves, nodes, members, false)
}

/// A job as in `job_among_quotas`, where all quotas have one parent that is full as well, so that each reprieved pod counts there.
pub fn job_below_a_full_quota(leaves: usize, nodes: usize, members: usize) -> Scenario {
    job_in_quotas(leaves, nodes, members, true)
}

fn job_in_quotas(leaves: usize, nodes: usize, members: usize, one_root: bool) -> Scenario {
    let (pods, milli_cpu) = (20 * nodes, 200);
    let priority = |index: usize| if index % nodes < nodes / 2 { 2000 } else { 1000 };
    let low = |index: usize| {
        let job = format!("job-{}", index / 10);
        let low = Template::new(milli_cpu, priority(index)).label(quotas::NAME, &quotas::leaf(index % leaves));
        low.label(quotas::JOB, &job).label(quotas::PREEMPTIBLE, "true")
    };
    let requested = 2 * milli_cpu * members;
    let mut cluster = Cluster::new(nodes).spread(pods, low);
    let root = one_root.then_some(pods * milli_cpu);
    let quotas = quotas::quotas(leaves, requested.max(pods * milli_cpu / leaves), requested, root);
    cluster.objects.elastic_quotas = quotas.into_iter().map(from_scenario).collect();
    let member = Template::new(2 * milli_cpu, HIGH).label(quotas::NAME, &quotas::leaf(0));
    cluster.preemptor_job(members, member.label(quotas::PREEMPTIBLE, "false")).with_victims(2 * members + pods / leaves)
}

/// A workload whose queue has lent all its quota reclaims half of it.
pub fn workload_reclaims(cohorts: Cohorts, queues: usize, workloads: usize) -> Scenario {
    workload_in_cohorts(cohorts, queues, workloads, 5).with_victims(false, 5)
}

/// With fair sharing, in one cohort: a workload that needs more than the quota of its queue preempts those of queues that borrow more.
pub fn workload_shares(queues: usize, workloads: usize) -> Scenario {
    let cpus = workloads / queues + 1;
    workload_in_cohorts(Cohorts::Flat, queues, workloads, cpus).with_victims(true, cpus)
}

/// With fair sharing: a workload that reclaims quota which its queue has lent.
pub fn workload_reclaims_by_share(cohorts: Cohorts, queues: usize, workloads: usize) -> Scenario {
    workload_in_cohorts(cohorts, queues, workloads, 10).with_victims(true, 10)
}

fn workload_in_cohorts(cohorts: Cohorts, queues: usize, workloads: usize, cpus: usize) -> CohortsBuilder {
    const LENDS: usize = 10;
    let mut cluster = CohortsBuilder::new(cohorts, queues);
    for _ in 0..queues {
        cluster.queue(workloads / queues);
    }
    let borrowers: Vec<usize> = (0..queues).filter(|queue| queue % LENDS != 0).collect();
    for index in 0..workloads {
        cluster.add_admitted(borrowers[index % borrowers.len()]);
    }
    cluster.add_pending(0, cpus);
    cluster
}

/// A cycle in which every head reclaims quota that its queue has lent to a few queues without quota.
pub fn heads_that_reclaim(queues: usize, fair_sharing: bool) -> Scenario {
    let mut cluster = CohortsBuilder::new(Cohorts::Flat, queues);
    for index in 0..queues {
        cluster.queue(10);
        (0..5).for_each(|_| cluster.add_admitted(index));
        cluster.add_pending(index, 5);
    }
    for _ in 0..queues / 10 {
        let borrower = cluster.queue(0);
        (0..50).for_each(|_| cluster.add_admitted(borrower));
    }
    cluster.with_victims(fair_sharing, 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprieve_api::read::documents;

    fn read(text: &str) -> ObjectSet {
        let mut objects = ObjectSet::default();
        for document in documents("scenario", text) {
            document.read(&mut objects).expect("the scenario can be read");
        }
        objects
    }

    #[test]
    fn every_scenario_has_the_expected_victims() {
        for scenario in [
            pod(20, 10),
            pod(20, 20),
            pod_among_budgets(20),
            pod_among_priorities(20),
            pod_among_tolerations(20),
            gang(20, 10),
            gang_among_priorities(20, 10),
            gang_in_a_zone(100, 10),
            gang_clears_pods(10),
            gang_clears_gangs(10),
            gang_with_affinity(10),
            gang_against_gangs(200),
            gang_against_scattered_gangs(1000),
            pod_against_gangs(1000),
            pod_among_queues(2, 100, 20),
            pod_refused_by_queue(2, 100, 20),
            pod_among_queues_without_victims(2, 100, 20),
            job_among_quotas(20, 100, 50),
            job_below_a_full_quota(20, 100, 50),
            workload_reclaims(Cohorts::Flat, 100, 1000),
            workload_reclaims(Cohorts::Tree, 100, 1000),
            workload_shares(200, 2000),
            workload_reclaims_by_share(Cohorts::Flat, 100, 1000),
            workload_reclaims_by_share(Cohorts::Tree, 100, 1000),
        ] {
            let (mut loaded, question) = scenario.load();
            scenario.check(&mut loaded, &question);
        }
    }

    #[test]
    fn cycle_considers_every_head_and_the_first_gets_the_victims() {
        for fair_sharing in [false, true] {
            let scenario = heads_that_reclaim(20, fair_sharing);
            let (loaded, question) = scenario.load();
            scenario.check_cycle(&loaded, &question);
        }
    }

    #[test]
    fn yaml_and_json_load_to_the_same_snapshot() {
        for scenario in [
            pod_among_budgets(10),
            pod_among_tolerations(10),
            gang_clears_gangs(5),
            gang_with_affinity(5),
            pod_among_queues(1, 10, 20),
            job_below_a_full_quota(4, 10, 5),
            workload_reclaims(Cohorts::Tree, 20, 200),
        ] {
            let snapshot = scenario.load().0.snapshot;
            for text in [scenario.json(), scenario.yaml()] {
                let objects = read(&text);
                assert_eq!(objects.len(), scenario.objects.len());
                assert_eq!(load(&objects, OnInvalid::Reject).unwrap().snapshot, snapshot);
            }
        }
    }
}
