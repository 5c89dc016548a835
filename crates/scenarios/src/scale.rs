//! Large regular clusters.
