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

use std::fmt;

use reprieve_engine::Timestamp;
use reprieve_scheduler::Step;

use crate::run::Run;
use crate::world::{Setup, World};

/// Something that must hold.
trait Invariant {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Looks at a step of the scheduler, before its actions are carried out.
    fn at_step(&mut self, _world: &World, _step: &Step) -> Result<(), String> {
        Ok(())
    }
    /// Looks at the world after a moment has passed.
    fn at_moment(&mut self, _world: &World) -> Result<(), String> {
        Ok(())
    }
    /// Looks at the world in the end.
    fn at_end(&mut self, _world: &World) -> Result<(), String> {
        Ok(())
    }
}

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

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.problem)
    }
}

/// Runs a setup to its end, and checks every invariant after every step.
pub fn check(setup: Setup) -> Result<Run, Violation> {
    let mut invariants: Vec<Box<dyn Invariant>> = vec![
        Box::new(capacity::Capacity::default()),
        Box::new(ceilings::Ceilings::default()),
        Box::new(whole_gangs::WholeGangs),
        Box::new(minimum::Minimum),
        Box::new(standing::Standing),
        Box::new(evicted_once::EvictedOnce::default()),
        Box::new(one_round::OneRound::default()),
        Box::new(lawful::Lawful),
        Box::new(accounted::Accounted::default()),
        Box::new(in_step::InStep::default()),
        Box::new(bounded::Bounded),
        Box::new(rest::Rest),
    ];
    let mut world = World::new(setup, Box::new(|| 0));
    let mut violation = None;
    let mut ask = |at: Timestamp,
                   question: &mut dyn FnMut(&mut dyn Invariant) -> Result<(), String>,
                   violation: &mut Option<Violation>| {
        for invariant in &mut invariants {
            if let (Err(problem), None) = (question(invariant.as_mut()), &violation) {
                *violation = Some(Violation { invariant: invariant.name(), at, problem });
            }
        }
    };
    loop {
        let goes_on = world.pass(|world, step| {
            ask(world.now(), &mut |invariant| invariant.at_step(world, step), &mut violation);
        });
        if !goes_on {
            break;
        }
        ask(world.now(), &mut |invariant| invariant.at_moment(&world), &mut violation);
        if let Some(violation) = violation {
            return Err(violation);
        }
    }
    ask(world.now(), &mut |invariant| invariant.at_end(&world), &mut violation);
    match violation {
        Some(violation) => Err(violation),
        None => Ok(world.finish()),
    }
}
