//! What a decision says about the honest tenants: its outcome and its explanation, without the entries of the hostile tenant.

use std::fmt::Write as _;

use reprieve_api::{Kind, ObjectKey};
use reprieve_engine::PodId;
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::policy::Policy;
use reprieve_loader::build::Loaded;
use reprieve_loader::cache::SnapshotCache;
use reprieve_loader::policy::{DEFAULT_NOW, Question};
use reprieve_loader::time::parse_time;
use reprieve_loader::timestamp;
use reprieve_report::cycle::cycle_report;
use reprieve_report::report::decide_and_report;
use reprieve_simulator::hostile::{NODE, TENANT};
use serde_json::Value;

use crate::test_clusters::TestCluster;

/// The largest number of units of a cluster that are decided.
const MAX_UNITS: usize = 8;

/// The decision of a cluster's question as JSON, or why the question cannot be asked.
pub fn answer(cluster: &TestCluster, loaded: &mut Loaded) -> String {
    let question = match Question::new(&cluster.spec, loaded) {
        Ok(question) => question,
        Err(error) => return error.to_string(),
    };
    let mut report = serde_json::to_value(decide_and_report(&question, loaded)).expect("a report is JSON");
    let explanation = &mut report["explanation"];
    for (list, is_of_tenant) in [("spared", of_tenant as fn(&Value) -> bool), ("nodes", on_tenant_node)] {
        for entry in explanation[list].as_array_mut().into_iter().flatten() {
            // A pod with constraints across nodes, of whatever tenant, makes everything decisive: no entry says more than it can.
            entry.as_object_mut().map(|entry| entry.remove("decisive"));
        }
        if let Some(entries) = explanation[list].as_array_mut() {
            entries.retain(|entry| !is_of_tenant(entry));
        }
    }
    let quotas = cluster.objects.iter().filter(|object| object.kind() == Kind::ElasticQuota);
    let queues: Vec<&str> = quotas.filter_map(|quota| quota.metadata().name.as_deref()).collect();
    if let Some(entries) =
        explanation["queues"].as_array_mut().filter(|_| matches!(question.policy, Policy::Koordinator(_)))
    {
        entries.retain(|entry| entry["name"].as_str().is_some_and(|name| queues.contains(&name)));
        if entries.is_empty() {
            explanation["queues"].take();
        }
    }
    if let Some(domains) = explanation["domains"].as_array_mut() {
        domains.retain(|domain| !on_tenant_node(domain));
    }
    for domain in explanation["domains"].as_array_mut().into_iter().flatten() {
        // The tenant's pods are candidates in a domain that has the tenant's node, although they cannot help.
        let text = domain["text"].as_str().unwrap_or_default();
        domain["text"] = text.replace(", and no pod there may be evicted", " even without all candidates").into();
        domain.as_object_mut().map(|domain| domain.remove("decisive"));
        if let Some(nodes) = domain["nodes"].as_object_mut() {
            nodes.remove(NODE);
        }
    }
    sort_spared(&mut report);
    // Warnings are about single objects; those about the tenant's objects name it.
    if let Some(warnings) = report["warnings"].as_array_mut() {
        warnings.retain(|warning| !warning.as_str().unwrap_or_default().contains(TENANT));
    }
    let cycle = match &question.policy {
        Policy::Kueue(policy) => serde_json::to_value(cycle_report(loaded, policy, question.now).heads).ok(),
        _ => None,
    };
    format!("{report:#}\n{}", cycle.unwrap_or_default())
}

/// The order of the units that are spared depends on the order in which the objects came.
fn sort_spared(report: &mut Value) {
    if let Some(spared) = report["explanation"]["spared"].as_array_mut() {
        spared.sort_by_cached_key(Value::to_string);
    }
}

fn of_tenant(entry: &Value) -> bool {
    let is_of_tenant = |name: &Value| name.as_str().is_some_and(|name| name.starts_with(TENANT));
    let pods = entry["pods"].as_array();
    is_of_tenant(&entry["workload"]) || pods.is_some_and(|pods| !pods.is_empty() && pods.iter().all(is_of_tenant))
}

fn on_tenant_node(entry: &Value) -> bool {
    entry["name"] == NODE
}

/// The first lines in which two answers differ.
pub fn difference(expected: &str, found: &str) -> String {
    let changed = expected.lines().zip(found.lines()).position(|(a, b)| a != b);
    let from = changed.unwrap_or(expected.lines().count().min(found.lines().count())).saturating_sub(3);
    let part = |text: &str| text.lines().skip(from).take(9).collect::<Vec<_>>().join("\n");
    format!("expected\n{}\nfound\n{}", part(expected), part(found))
}

/// The pending units of a cache by name, at most [`MAX_UNITS`].
fn pending_units(cluster: &TestCluster, cache: &SnapshotCache) -> Vec<(String, PreemptorId)> {
    let Loaded { snapshot, names, .. } = cache.loaded();
    let is_pending = |pod: &PodId| snapshot.pod(*pod).node.is_none();
    // Only policy Kubernetes decides about groups.
    let has_groups = matches!(cluster.policy, Policy::Kubernetes(_));
    let pods = names.pod_ids().filter(|pod| is_pending(pod) && !(has_groups && snapshot.pod(*pod).group.is_some()));
    let pods = pods.map(|pod| (names.pod(pod).to_string(), PreemptorId::Pod(pod)));
    let others = cache.all().filter_map(|(ObjectKey { kind, name }, _)| match kind {
        Kind::PodGroup if has_groups => {
            let group = names.group_id(name)?;
            let is_pending = snapshot.group(group).members.iter().any(is_pending);
            is_pending.then(|| (name.to_string(), PreemptorId::Group(group)))
        }
        Kind::KueueWorkload => {
            let workload = names.workload_id(name)?;
            let is_pending = snapshot.workload(workload).admission.is_none();
            is_pending.then(|| (name.to_string(), PreemptorId::Workload(workload)))
        }
        _ => None,
    });
    let mut units: Vec<(String, PreemptorId)> = match cluster.policy {
        Policy::Kueue(_) => others.collect(),
        Policy::Kubernetes(_) | Policy::YuniKorn(_) | Policy::Koordinator(_) => pods.chain(others).collect(),
    };
    units.sort_by(|a, b| a.0.cmp(&b.0));
    units.truncate(MAX_UNITS);
    units
}

/// The decisions of a cache for all its pending units, and what it sets aside.
pub fn everything(cluster: &TestCluster, cache: &mut SnapshotCache) -> String {
    let now = parse_time(cluster.spec.now.as_deref().unwrap_or(DEFAULT_NOW)).expect("the time of a test");
    let units = pending_units(cluster, cache);
    let mut text = String::new();
    for entry in cache.quarantined() {
        let _ = writeln!(text, "set aside: {} {:?} {}", entry.object, entry.error.field, entry.error.problem);
    }
    let loaded = cache.loaded_mut();
    for (name, preemptor) in units {
        let question = Question { policy: cluster.policy, now: timestamp(now), preemptor };
        let mut report = serde_json::to_value(decide_and_report(&question, loaded)).expect("a report is JSON");
        // Live, problems of single objects are reported once, when they occur.
        report["warnings"].take();
        sort_spared(&mut report);
        let _ = writeln!(text, "{name}\n{report:#}");
    }
    text
}
