//! The invariants that must hold after every step, one file each. A check that cannot be made fails.

mod capacity;
mod every_pending_unit_is_tracked;
mod evictions_are_bounded;
mod gangs_are_evicted_whole;
mod gangs_start_with_min_count;
mod hostile_tenant_is_left_alone;
mod idle_means_nothing_fits;
mod job_matches_workload;
mod lawful;
mod no_double_eviction;
mod no_second_preemption;
mod queue_limits_hold;
mod quota;
mod victims_have_a_valid_plan;

use reprieve_engine::Timestamp;
use reprieve_scheduler::Step;

use self::every_pending_unit_is_tracked::EveryPendingUnitIsTracked;
use self::job_matches_workload::JobMatchesWorkload;
use self::no_double_eviction::NoDoubleEviction;
use self::no_second_preemption::NoSecondPreemption;
use crate::run::Run;
use crate::virtual_cluster::{RunConfig, VirtualCluster};

/// The result of a check; the error describes the violation.
type CheckResult = Result<(), String>;

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(problem()) }
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// The virtual time of the violation.
    pub at: Timestamp,
    /// The objects that violate it, and how.
    pub problem: String,
}

/// The invariants that compare the state with earlier states.
#[derive(Default)]
struct Invariants {
    no_double_eviction: NoDoubleEviction,
    no_second_preemption: NoSecondPreemption,
    tracked: EveryPendingUnitIsTracked,
    jobs: JobMatchesWorkload,
    /// The version of the API server at the last check.
    checked_version: u64,
}

impl Invariants {
    /// Checks a step of the scheduler before its actions are executed.
    fn at_step(&mut self, cluster: &VirtualCluster, step: &Step) -> Result<(), Violation> {
        named("gangs are evicted whole", cluster, gangs_are_evicted_whole::check(cluster, step))?;
        named("gangs start with their minimum", cluster, gangs_start_with_min_count::check(cluster, step))?;
        named("victims have a valid plan", cluster, victims_have_a_valid_plan::check(cluster, step))?;
        named("no double eviction", cluster, self.no_double_eviction.check(cluster, step))?;
        named("no second preemption", cluster, self.no_second_preemption.check(cluster, step))?;
        named("hostile tenant is left alone", cluster, hostile_tenant_is_left_alone::check(step))?;
        named("lawful victims", cluster, lawful::check(cluster, step))
    }

    /// Checks the cluster after all events of one point in time.
    fn at_time(&mut self, cluster: &VirtualCluster) -> Result<(), Violation> {
        let is_changed = std::mem::replace(&mut self.checked_version, cluster.api.version) != cluster.api.version;
        if is_changed {
            named("node capacity", cluster, capacity::check(cluster))?;
            named("queue limits", cluster, queue_limits_hold::check(cluster))?;
        }
        named("pending units are tracked", cluster, self.tracked.check(cluster))?;
        named("Jobs match workloads", cluster, self.jobs.check(cluster, is_changed))
    }
}

/// Checks the cluster at the end of the run.
fn at_end(cluster: &VirtualCluster) -> Result<(), Violation> {
    named("evictions are bounded", cluster, evictions_are_bounded::check(cluster))?;
    named("idle means nothing fits", cluster, idle_means_nothing_fits::check(cluster))
}

fn named(invariant: &'static str, cluster: &VirtualCluster, result: CheckResult) -> Result<(), Violation> {
    result.map_err(|problem| Violation { invariant, at: cluster.now(), problem })
}

/// Runs a configuration to its end and checks all invariants after every step.
pub fn check(setup: RunConfig) -> Result<Run, Violation> {
    let mut invariants = Invariants::default();
    let mut cluster = VirtualCluster::new(setup, Box::new(|| 0));
    loop {
        let mut result = Ok(());
        let continues = cluster.advance(|cluster, step| {
            if result.is_ok() {
                result = invariants.at_step(cluster, step);
            }
        });
        result?;
        if !continues {
            break;
        }
        invariants.at_time(&cluster)?;
    }
    at_end(&cluster)?;
    Ok(cluster.finish())
}
