//! What must hold after every step, one file each. A check that could not be made fails.

mod accounted;
mod bounded;
mod capacity;
mod ceilings;
mod evicted_once;
mod in_step;
mod lawful;
mod minimum;
mod one_round;
mod quota;
mod rest;
mod standing;
mod whole_gangs;

use reprieve_engine::Timestamp;
use reprieve_scheduler::Step;

use self::accounted::Accounted;
use self::evicted_once::EvictedOnce;
use self::in_step::InStep;
use self::one_round::OneRound;
use crate::run::Run;
use crate::world::{Setup, World};

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
    evicted_once: EvictedOnce,
    one_round: OneRound,
    accounted: Accounted,
    in_step: InStep,
    /// The version of the API that was looked at last.
    looked: u64,
}

impl Invariants {
    /// Looks at a step of the scheduler, before its actions are carried out.
    fn at_step(&mut self, world: &World, step: &Step) -> Result<(), Violation> {
        named("whole gangs", world, whole_gangs::check(world, step))?;
        named("minimum", world, minimum::check(world, step))?;
        named("standing plan", world, standing::check(world, step))?;
        named("evicted once", world, self.evicted_once.check(world, step))?;
        named("one round", world, self.one_round.check(world, step))?;
        named("lawful victims", world, lawful::check(world, step))
    }

    /// Looks at the world after a moment has passed.
    fn at_moment(&mut self, world: &World) -> Result<(), Violation> {
        let is_changed = std::mem::replace(&mut self.looked, world.api.version) != world.api.version;
        if is_changed {
            named("capacity", world, capacity::check(world))?;
            named("ceilings", world, ceilings::check(world))?;
        }
        named("accounted for", world, self.accounted.check(world))?;
        named("in step", world, self.in_step.check(world, is_changed))
    }
}

/// Looks at the world in the end.
fn at_end(world: &World) -> Result<(), Violation> {
    named("bounded evictions", world, bounded::check(world))?;
    named("rest", world, rest::check(world))
}

fn named(invariant: &'static str, world: &World, held: Held) -> Result<(), Violation> {
    held.map_err(|problem| Violation { invariant, at: world.now(), problem })
}

/// Runs a setup to its end, and checks every invariant after every step.
pub fn check(setup: Setup) -> Result<Run, Violation> {
    let mut invariants = Invariants::default();
    let mut world = World::new(setup, Box::new(|| 0));
    loop {
        let mut held = Ok(());
        let goes_on = world.pass(|world, step| {
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
