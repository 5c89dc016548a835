//! Numbers with a noun in the singular or plural.

/// `1 pod`, `2 pods`.
pub fn count(n: usize, singular: &str, plural: &str) -> String {
    format!("{n} {}", if n == 1 { singular } else { plural })
}
