//! The ways in: what stands behind the commands of `reprieve`.
