//! The laws of YuniKorn, one file each.

pub(super) mod delay;
pub(super) mod fence;
pub(super) mod keeps_guarantee;
pub(super) mod leaving;
pub(super) mod over_guarantee;
pub(super) mod own_queue;
pub(super) mod priority;
pub(super) mod under_guarantee;
pub(super) mod underway;
