//! The designs: what sets each apart from the others.

pub mod kubernetes;
