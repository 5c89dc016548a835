//! Fractions of integers with exact comparison, so that no decision depends on rounding.

use std::cmp::Ordering;

/// A non-negative fraction. The caller ensures the signs; a denominator of 0 makes a comparison wrong, or makes it panic.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    /// Not negative.
    pub numerator: i128,
    /// Positive.
    pub denominator: i128,
}

impl Fraction {
    /// 0/1.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
}

impl Ord for Fraction {
    /// Compares `a/b` with `c/d` by cross-multiplication or, if that overflows, by the integer parts and, while these are equal, by
    /// the reciprocals of the fractional parts, with the two sides exchanged.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b, mut c, mut d) = (self.numerator, self.denominator, other.numerator, other.denominator);
        // a/b < c/d exactly when a*d < c*b
        if let (Some(own_product), Some(other_product)) = (a.checked_mul(d), c.checked_mul(b)) {
            return own_product.cmp(&other_product);
        }
        loop {
            let (whole, other_whole) = (a / b, c / d);
            if whole != other_whole {
                return whole.cmp(&other_whole);
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

/// Equal by value: 1/2 equals 2/4.
impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}
