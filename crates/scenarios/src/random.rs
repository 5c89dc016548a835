//! Small random clusters.
