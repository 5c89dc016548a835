//! Counts with their noun.

/// `1 pod is`, `2 pods are`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
