//! Scalars without quotes are read as by kubectl, except that a word such as `n` in a text field stays text.

use std::collections::BTreeMap;

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;

fn read(text: &str) -> Result<ObjectSet, String> {
    let mut objects = ObjectSet::default();
    for document in documents("cluster.yaml", text) {
        document.read(&mut objects).map_err(|error| error.to_string())?;
    }
    Ok(objects)
}

fn pod(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {name}\n  labels: {{{name}: {name}}}\nspec:\n  \
         nodeSelector: {{zone: {name}}}\n  containers: [{{name: c}}]\n"
    )
}

#[test]
fn words_that_look_like_a_boolean_or_infinity_are_text() {
    for name in [
        "n",
        "y",
        "N",
        "Y",
        "on",
        "off",
        "On",
        "OFF",
        "yes",
        "no",
        "12e4567",
        "-12e4567",
        "1e400",
        "8180246350127e25",
        "12e4567a",
        "1:30",
        "2026-01-01",
        "nan",
        "1.5Gi",
        "'true'",
        "\"null\"",
        "'010'",
    ] {
        let text = name.trim_matches(['\'', '"']);
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", pod(name).trim_end().replace('\n', "\n  "));
        for yaml in [pod(name), list] {
            let objects = read(&yaml).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(objects.pods.len(), 1, "{name}");
            let pod = &objects.pods[0].object;
            let metadata = &pod.metadata;
            assert_eq!((metadata.name.as_deref(), metadata.namespace.as_deref()), (Some(text), Some(text)));
            assert_eq!(metadata.labels, Some(BTreeMap::from([(text.to_owned(), text.to_owned())])), "{name}");
            let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.clone());
            assert_eq!(selector, Some(BTreeMap::from([("zone".to_owned(), text.to_owned())])), "{name}");
        }
    }
}

#[test]
fn objects_of_a_list_are_read_once_if_one_needs_a_second_pass() {
    let items: String = ["a", "12e4567", "b"].map(|name| format!("- {}", pod(name).replace('\n', "\n  "))).join("\n");
    let objects = read(&format!("apiVersion: v1\nkind: List\nitems:\n{items}\n")).expect("a list");
    let names: Vec<_> = objects.pods.iter().map(|pod| pod.object.metadata.name.clone().unwrap_or_default()).collect();
    assert_eq!(names, ["a", "12e4567", "b"]);
}

#[test]
fn numbers_and_booleans_are_refused_as_names() {
    for (name, is) in [
        ("true", "true is a boolean"),
        ("False", "false is a boolean"),
        ("7", "7 is a number"),
        ("1e3", "1000.0 is a number"),
        ("0x1f", "31 is a number"),
        ("010", "8 is a number"),
        ("1_000", "1000 is a number"),
        (".5", "0.5 is a number"),
    ] {
        let problems = |text: &str| -> Vec<String> {
            let unreadable = read(text).expect("the pod is set aside").unreadable;
            unreadable.iter().map(|pod| pod.error.to_string()).collect()
        };
        let problem = format!("cluster.yaml: document 1: Pod: metadata.name: {is}; quote it, because it must be text");
        assert_eq!(problems(&format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n")), [problem]);
        let labels = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a, labels: {{b: {name}}}}}\n");
        let problem =
            format!("cluster.yaml: document 1: Pod a: metadata.labels.b: {is}; quote it, because it must be text");
        assert_eq!(problems(&labels), [problem]);
    }
    for null in ["null", "~", ""] {
        let error = read(&format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {null}}}\n")).expect_err(null);
        assert!(error.ends_with("Pod: metadata.name: is missing; every object needs a name"), "{error}");
    }
    let error = read("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {~: b}}\n").expect_err("a key is null");
    assert!(error.ends_with("a key is null; quote it"), "{error}");
}

#[test]
fn numbers_and_booleans_are_read_where_they_are_expected() {
    let yaml = "
apiVersion: v1
kind: Node
metadata: {name: node, labels: {empty: }}
spec: {unschedulable: yes}
status: {allocatable: {cpu: 2, memory: 1.5Gi, pods: 010, nvidia.com/gpu: 1e3}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: 1e400}
value: 1e3
globalDefault: on
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  hostNetwork: off
  priority: 1_000
  terminationGracePeriodSeconds: 0x1e
  containers: [{name: c, ports: [{containerPort: 8080}], resources: {requests: {cpu: 0.5, memory: 1e9}}}]
";
    let objects = read(yaml).expect("objects");
    let node = &objects.nodes[0].object;
    assert_eq!(node.metadata.labels.as_ref().map(|labels| labels["empty"].as_str()), Some(""));
    assert_eq!(node.spec.as_ref().and_then(|spec| spec.unschedulable), Some(true));
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let quantity = |resource: &str| allocatable[resource].0.clone();
    let quantities = ["cpu", "memory", "pods", "nvidia.com/gpu"].map(quantity);
    assert_eq!(quantities, ["2", "1.5Gi", "8", "1000.0"]);
    let class = &objects.priority_classes[0].object;
    assert_eq!(
        (class.metadata.name.as_deref(), class.value, class.global_default),
        (Some("1e400"), Some(1000), Some(true))
    );
    let spec = objects.pods[0].object.spec.clone().unwrap_or_default();
    assert_eq!(
        (spec.host_network, spec.priority, spec.termination_grace_period_seconds),
        (Some(false), Some(1000), Some(30))
    );
    assert_eq!(spec.containers[0].ports.as_ref().map(|ports| ports[0].container_port), Some(8080));
}
