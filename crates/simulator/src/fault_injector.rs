//! When something goes wrong. Chance is drawn for each kind of fault and each thing that it may befall on its own, so that a world with
//! fewer kinds of faults, or fewer jobs, meets with the same misfortunes otherwise.

use std::collections::BTreeMap;

use crate::faults::{Fault, Faults};
use crate::rng::Rng;

/// Decides which faults a run meets with, and counts them.
pub(crate) struct FaultInjector {
    seed: u64,
    faults: Faults,
    /// How often it was asked about each.
    asked: BTreeMap<(Fault, u64), u64>,
    /// How many faults there were.
    pub struck: u64,
}

impl FaultInjector {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self { seed, faults, asked: BTreeMap::new(), struck: 0 }
    }

    /// What a fault may befall; nothing where there are none, which saves putting it into words.
    pub fn about(&self, about: impl FnOnce() -> String) -> String {
        if self.faults.is_none() { String::new() } else { about() }
    }

    /// Whether a fault befalls something now; if so, what more there is to chance about it.
    pub fn draw_fault(&mut self, fault: Fault, about: &str) -> Option<Rng> {
        let rate = *self.faults.rate(fault);
        if rate == 0 {
            return None;
        }
        let about = digest(about);
        let nth = self.asked.entry((fault, about)).or_default();
        *nth += 1;
        let mut chance = Rng::new(digest(&format!("{} {fault:?} {about} {nth}", self.seed)));
        let strikes = chance.happens(rate);
        self.struck += u64::from(strikes);
        strikes.then_some(chance)
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
    fn one_kind_of_fault_plays_no_part_in_another() {
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
