//! Places in an order that grows.

/// The place of the nth of many in an order; between any two is room for more.
pub fn nth_rank(n: usize) -> u64 {
    (n as u64 + 1) << 32
}
