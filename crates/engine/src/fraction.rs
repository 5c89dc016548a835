//! Fractions that are compared exactly, whatever they are written as.

use std::cmp::Ordering;

/// A numerator that is not negative over a denominator that is positive.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    /// What is above the line.
    pub numerator: i128,
    /// What is below it.
    pub denominator: i128,
}

impl Fraction {
    /// Nothing.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
}

impl Ord for Fraction {
    /// Compares `a/b` with `c/d` by cross-multiplication, and where the numbers are too large for that by whole parts first, then the
    /// remainders the other way round.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b, mut c, mut d) = (self.numerator, self.denominator, other.numerator, other.denominator);
        if let (Some(one), Some(other)) = (a.checked_mul(d), c.checked_mul(b)) {
            return one.cmp(&other);
        }
        loop {
            let (whole, other) = (a / b, c / d);
            if whole != other {
                return whole.cmp(&other);
            }
            (a, c) = (a % b, c % d);
            if a == 0 || c == 0 {
                return a.cmp(&c);
            }
            (a, b, c, d) = (d, c, b, a); // a/b < c/d exactly when d/c < b/a
        }
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}
