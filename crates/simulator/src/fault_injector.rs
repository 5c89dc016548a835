//! Draws the injected faults. Each draw depends only on the seed, the kind of fault, its subject and the number of earlier draws for these, so
//! that a run with fewer kinds of faults or fewer jobs has the same faults otherwise. `shrink` relies on it.

use std::collections::BTreeMap;

use crate::faults::{Fault, Faults};
use crate::rng::Rng;

pub(crate) struct FaultInjector {
    seed: u64,
    faults: Faults,
    /// The number of draws for each kind of fault and subject.
    draws: BTreeMap<(Fault, u64), u64>,
    /// The number of injected faults.
    pub count: u64,
}

impl FaultInjector {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self { seed, faults, draws: BTreeMap::new(), count: 0 }
    }

    /// The subject of a draw; empty in a run without faults, which saves formatting it.
    pub fn about(&self, about: impl FnOnce() -> String) -> String {
        if self.faults.is_none() { String::new() } else { about() }
    }

    /// Draws a fault; if it occurs, returns a random number generator for its details.
    pub fn draw_fault(&mut self, fault: Fault, about: &str) -> Option<Rng> {
        let rate = *self.faults.rate(fault);
        if rate == 0 {
            return None;
        }
        let about = digest(about);
        let nth = self.draws.entry((fault, about)).or_default();
        *nth += 1;
        let mut rng = Rng::new(digest(&format!("{} {fault:?} {about} {nth}", self.seed)));
        let strikes = rng.happens(rate);
        self.count += u64::from(strikes);
        strikes.then_some(rng)
    }
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_faults_are_independent() {
        let met = |rates: Faults| {
            let mut faults = FaultInjector::new(7, rates);
            let mut strikes = Vec::new();
            for about in (0..20_000).map(|at| format!("Pod default/{}", at % 50)) {
                faults.draw_fault(Fault::LostEvent, &about);
                strikes.push(faults.draw_fault(Fault::Conflict, &about).is_some());
            }
            strikes
        };
        let all = met(Faults::SOME);
        assert_eq!(all, met(Faults { conflicts: Faults::SOME.conflicts, ..Faults::default() }));
        let n = all.iter().filter(|strikes| **strikes).count();
        assert!((320..480).contains(&n), "{n} of 20,000");
    }
}
