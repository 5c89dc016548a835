//! Ranks: numbers whose order is the order of names, with gaps for names that are added later.

/// Returns the rank of the nth name.
pub fn nth_rank(n: usize) -> u64 {
    (n as u64 + 1) << 32
}
