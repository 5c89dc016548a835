//! Random numbers from a seed, the same on every machine.

use rand_core::{Rng as _, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A seeded random number generator.
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A number from 0 to `end` - 1; `end` is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(end);
        u64::try_from(wide >> 64).expect("below the end")
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low).expect("low is not above high");
        low + i64::try_from(self.below(span + 1)).expect("within the span")
    }

    /// `true` with a probability of `per_million` / 1,000,000.
    pub fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    /// One of the items, each with the same probability.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::try_from(self.below(items.len() as u64)).expect("below the length")]
    }

    /// An exponentially distributed number with this mean: the time between independent arrivals. Computed with integers, so that it is the
    /// same on all machines.
    pub fn exponential(&mut self, mean_micros: i64) -> i64 {
        // -ln(u) for u in (0, 1]: 64 bits of u, its leading zeros times ln 2 and a table-free series for the rest.
        let drawn = self.0.next_u64().max(1);
        let zeros = drawn.leading_zeros();
        let mantissa = u128::from(drawn << zeros); // in [2^63, 2^64)
        let micro_ln = |x: u128| -> i64 {
            // ln(x / 2^63) in millionths, for x in [2^63, 2^64): 2 * artanh((x - 1) / (x + 1)) as a series.
            let one = 1_i128 << 40;
            let x = (x >> 23) as i128;
            let t = (x - one) * one / (x + one);
            let t2 = t * t / one;
            let (mut term, mut sum) = (t, 0_i128);
            for odd in (1..30).step_by(2) {
                sum += term / odd;
                term = term * t2 / one;
            }
            (2 * sum * 1_000_000 / one) as i64
        };
        let minus_ln = i64::from(zeros + 1) * 693_147 - micro_ln(mantissa);
        let wide = i128::from(minus_ln.max(0)) * i128::from(mean_micros) / 1_000_000;
        i64::try_from(wide).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_expected_mean() {
        let mut rng = Rng::new(1);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.exponential(1_000_000)).sum::<i64>() / n;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        let below = (0..n).map(|_| rng.below(10)).sum::<u64>();
        assert!((445_000..455_000).contains(&below), "{below}");
        let happened = (0..n).filter(|_| rng.happens(250_000)).count();
        assert!((24_000..26_000).contains(&happened), "{happened}");
    }
}
