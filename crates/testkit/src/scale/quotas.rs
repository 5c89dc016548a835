//! Koordinator's elastic quotas in two levels: teams, and leaves below them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::koordinator::{ElasticQuota, ElasticQuotaSpec, KoordinatorPodGroup, KoordinatorPodGroupSpec};

const API: &str = "scheduling.sigs.k8s.io/v1alpha1";
/// The number of leaves per team.
const TEAM: usize = 100;

pub const NAME: &str = "quota.scheduling.koordinator.sh/name";
pub const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";
pub const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

/// The name of a leaf.
pub fn leaf(index: usize) -> String {
    format!("leaf-{index:04}")
}

/// Leaves with the same limit, and above them teams with a limit for all their leaves and for the `requested` amount of the preemptor. If
/// `root` is given, all teams are below one root with this limit.
pub fn quotas(leaves: usize, each: usize, requested: usize, root: Option<usize>) -> Vec<ElasticQuota> {
    let team = |index: usize| format!("team-{:02}", index / TEAM);
    let mut quotas: Vec<ElasticQuota> = (0..leaves).map(|index| quota(leaf(index), Some(team(index)), each)).collect();
    let room = TEAM * each + requested;
    quotas.extend((0..leaves).step_by(TEAM).map(|index| quota(team(index), root.map(|_| "all".to_owned()), room)));
    quotas.extend(root.map(|milli_cpu| quota("all".to_owned(), None, milli_cpu)));
    quotas
}

fn quota(name: String, parent: Option<String>, milli_cpu: usize) -> ElasticQuota {
    let labels = parent.map(|parent| BTreeMap::from([("quota.scheduling.koordinator.sh/parent".to_owned(), parent)]));
    let amount = BTreeMap::from([("cpu".to_owned(), format!("{milli_cpu}m").into())]);
    ElasticQuota {
        api_version: API.to_owned(),
        kind: "ElasticQuota".to_owned(),
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some("quotas".to_owned()),
            labels,
            ..ObjectMeta::default()
        },
        spec: ElasticQuotaSpec { min: amount.clone(), max: amount },
    }
}

/// A job with this minimum number of pods.
pub fn job(namespace: &str, name: &str, members: usize) -> KoordinatorPodGroup {
    let min_member = i64::try_from(members).expect("a job is small");
    let (name, namespace) = (Some(name.to_owned()), Some(namespace.to_owned()));
    KoordinatorPodGroup {
        api_version: API.to_owned(),
        kind: "PodGroup".to_owned(),
        metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() },
        spec: KoordinatorPodGroupSpec { min_member },
    }
}
