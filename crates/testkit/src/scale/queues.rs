//! A regular tree of YuniKorn's queues: twelve below the root, then three levels with `width` children per queue.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The number of queues directly below the root.
const TOP: usize = 12;
/// The number of levels below those.
const DEPTH: usize = 3;

/// The paths of the leaves, in order of their names.
pub fn leaves(width: usize) -> Vec<String> {
    let mut paths: Vec<String> = (0..TOP).map(|index| format!("root.queue-{index:02}")).collect();
    for _ in 0..DEPTH {
        paths = paths.iter().flat_map(|path| (0..width).map(move |index| format!("{path}.queue-{index:02}"))).collect();
    }
    paths
}

/// The configuration in which every leaf has this guarantee.
pub fn config(width: usize, milli_cpu: usize) -> ConfigMap {
    let mut text = "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n".to_owned();
    for index in 0..TOP {
        write(&mut text, index, 0, width, milli_cpu);
    }
    let name = Some("yunikorn-configs".to_owned());
    let metadata = ObjectMeta { name, namespace: Some("yunikorn".to_owned()), ..ObjectMeta::default() };
    let data = Some(BTreeMap::from([("queues.yaml".to_owned(), text)]));
    ConfigMap { metadata, data, ..ConfigMap::default() }
}

fn write(text: &mut String, index: usize, depth: usize, width: usize, milli_cpu: usize) {
    let indent = 4 + 2 * depth;
    let _ = writeln!(text, "{:indent$}- name: queue-{index:02}", "");
    if depth == DEPTH {
        let _ = writeln!(text, "{:indent$}  resources: {{guaranteed: {{vcore: {milli_cpu}m}}}}", "");
        return;
    }
    let _ = writeln!(text, "{:indent$}  queues:", "");
    for child in 0..width {
        write(text, child, depth + 1, width, milli_cpu);
    }
}
