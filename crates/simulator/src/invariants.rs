//! What must hold after every step, one file each. A check that could not be made fails.

mod capacity;
mod every_pending_unit_is_tracked;
mod evictions_are_bounded;
mod gangs_are_evicted_whole;
mod gangs_start_with_min_count;
mod idle_means_nothing_fits;
mod job_matches_workload;
mod lawful;
mod no_double_eviction;
mod no_second_preemption;
mod queue_limits_hold;
mod quota;
mod victims_have_a_standing_plan;

use reprieve_engine::Timestamp;
use reprieve_scheduler::Step;

use self::every_pending_unit_is_tracked::EveryPendingUnitIsTracked;
use self::job_matches_workload::JobMatchesWorkload;
use self::no_double_eviction::NoDoubleEviction;
use self::no_second_preemption::NoSecondPreemption;
use crate::run::Run;
use crate::virtual_cluster::{RunConfig, VirtualCluster};

/// Whether an invariant holds; an error says what is wrong.
type Held = Result<(), String>;

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: &'static str,
    /// When.
    pub at: Timestamp,
    /// What is wrong.
    pub problem: String,
}

/// The invariants, and what those remember that compare what is with what was.
#[derive(Default)]
struct Invariants {
    evicted_once: NoDoubleEviction,
    one_round: NoSecondPreemption,
    accounted: EveryPendingUnitIsTracked,
    in_step: JobMatchesWorkload,
    /// The version of the API that was looked at last.
    looked: u64,
}

impl Invariants {
    /// Looks at a step of the scheduler, before its actions are carried out.
    fn at_step(&mut self, world: &VirtualCluster, step: &Step) -> Result<(), Violation> {
        named("whole gangs", world, gangs_are_evicted_whole::check(world, step))?;
        named("minimum", world, gangs_start_with_min_count::check(world, step))?;
        named("standing plan", world, victims_have_a_standing_plan::check(world, step))?;
        named("evicted once", world, self.evicted_once.check(world, step))?;
        named("one round", world, self.one_round.check(world, step))?;
        named("lawful victims", world, lawful::check(world, step))
    }

    /// Looks at the world after a moment has passed.
    fn at_moment(&mut self, world: &VirtualCluster) -> Result<(), Violation> {
        let is_changed = std::mem::replace(&mut self.looked, world.api.version) != world.api.version;
        if is_changed {
            named("capacity", world, capacity::check(world))?;
            named("ceilings", world, queue_limits_hold::check(world))?;
        }
        named("accounted for", world, self.accounted.check(world))?;
        named("in step", world, self.in_step.check(world, is_changed))
    }
}

/// Looks at the world in the end.
fn at_end(world: &VirtualCluster) -> Result<(), Violation> {
    named("bounded evictions", world, evictions_are_bounded::check(world))?;
    named("rest", world, idle_means_nothing_fits::check(world))
}

fn named(invariant: &'static str, world: &VirtualCluster, held: Held) -> Result<(), Violation> {
    held.map_err(|problem| Violation { invariant, at: world.now(), problem })
}

/// Runs a setup to its end, and checks every invariant after every step.
pub fn check(setup: RunConfig) -> Result<Run, Violation> {
    let mut invariants = Invariants::default();
    let mut world = VirtualCluster::new(setup, Box::new(|| 0));
    loop {
        let mut held = Ok(());
        let goes_on = world.advance(|world, step| {
            if held.is_ok() {
                held = invariants.at_step(world, step);
            }
        });
        held?;
        if !goes_on {
            break;
        }
        invariants.at_moment(&world)?;
    }
    at_end(&world)?;
    Ok(world.finish())
}
