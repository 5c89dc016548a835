//! A gang starts with at least its minimum number of pods.

use reprieve_engine::Policy;
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::victims_have_a_valid_plan::bound_members;
use super::{CheckResult, ensure};
use crate::run::Gang;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(cluster: &VirtualCluster, step: &Step) -> CheckResult {
    let (Some(unit), StepOutcome::Bind { .. }) = (&step.unit, &step.outcome) else { return Ok(()) };
    let (UnitRef::Group(name) | UnitRef::Job(name)) = unit else { return Ok(()) };
    if matches!(cluster.setup.policy, Policy::YuniKorn(_)) {
        return Ok(());
    }
    for (_, Gang { min, .. }) in cluster.gangs().filter(|(job, _)| job.submission.name == *name) {
        let bound = bound_members(cluster, unit);
        ensure(bound >= min, || format!("gang {name}: {bound} pods bound, minimum {min}"))?;
    }
    Ok(())
}
