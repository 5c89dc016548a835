//! A regular tree of YuniKorn's queues: twelve below the root, then as many as the tree is wide, three times over.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How many queues are right below the root.
const TOP: usize = 12;
/// How many levels come below those.
const DEPTH: usize = 3;

/// The paths of the leaves, in the order of their names.
pub fn leaves(width: usize) -> Vec<String> {
    let mut paths: Vec<String> = (0..TOP).map(|at| format!("root.queue-{at:02}")).collect();
    for _ in 0..DEPTH {
        paths = paths.iter().flat_map(|path| (0..width).map(move |at| format!("{path}.queue-{at:02}"))).collect();
    }
    paths
}

/// Every leaf is guaranteed so much.
pub fn config(width: usize, milli_cpu: usize) -> ConfigMap {
    let mut text = "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n".to_owned();
    for at in 0..TOP {
        write(&mut text, at, 0, width, milli_cpu);
    }
    let name = Some("yunikorn-configs".to_owned());
    let metadata = ObjectMeta { name, namespace: Some("yunikorn".to_owned()), ..ObjectMeta::default() };
    let data = Some(BTreeMap::from([("queues.yaml".to_owned(), text)]));
    ConfigMap { metadata, data, ..ConfigMap::default() }
}

fn write(text: &mut String, at: usize, depth: usize, width: usize, milli_cpu: usize) {
    let indent = 4 + 2 * depth;
    let _ = writeln!(text, "{:indent$}- name: queue-{at:02}", "");
    if depth == DEPTH {
        let _ = writeln!(text, "{:indent$}  resources: {{guaranteed: {{vcore: {milli_cpu}m}}}}", "");
        return;
    }
    let _ = writeln!(text, "{:indent$}  queues:", "");
    for child in 0..width {
        write(text, child, depth + 1, width, milli_cpu);
    }
}
