//! The former paths of what is now in `api`, `loader`, `report` and `translate`, for one step only.
#[cfg(feature = "crds")]
pub use reprieve_api::crds;
pub use reprieve_api::{
    answer, decode, fields, koordinator, kueue, pod, quantity, read, record, source, test_file, workload,
};
pub use reprieve_loader::{live, names, preemption_priority, protected, request, schedulers, unsupported};
pub use reprieve_report::{budget_report, cycle, queue_report, quota_report, words};
pub use reprieve_translate::{accounts, made_up};
pub mod groups {
    pub use reprieve_api::membership::*;
    pub use reprieve_loader::groups::*;
}
pub mod load {
    pub use reprieve_loader::load::*;
    pub use reprieve_loader::time::{time, timestamp};
}
pub mod object {
    pub use reprieve_api::kinds::*;
}
pub mod objects {
    pub use reprieve_api::meta::FullName;
    pub use reprieve_api::object_set::Objects;
}
pub mod question {
    pub use reprieve_loader::question::*;
    pub use reprieve_loader::time::parse_time;
}
pub mod report {
    pub use reprieve_report::plural::count;
    pub use reprieve_report::report::*;
}
pub mod submit {
    pub use reprieve_api::controlled::Controlled;
    pub use reprieve_loader::submit::*;
}
