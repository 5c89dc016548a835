use k8s_openapi::api::core::v1 as api;
use serde_json::{Value, json};

use super::*;
use reprieve_api::read::documents;

fn defaults(text: &str) -> Defaults {
    let mut objects = ObjectSet::default();
    for document in documents("test", text) {
        document.read(&mut objects).expect("valid YAML");
    }
    Defaults::new(&objects)
}

/// A spec as a template has it: nothing is filled in.
fn spec(value: Value) -> PodSpec {
    serde_json::from_value::<api::PodSpec>(value).expect("a spec").into()
}

fn requests(spec: &PodSpec) -> Value {
    let pod = Pod::new(k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta::default(), spec.clone());
    json!(requests::requests(&pod).expect("they can be counted"))
}

const LIMITS: &str = "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, default: {cpu: 2}, \
                      defaultRequest: {cpu: 500m}}]}}";

#[test]
fn limits_become_requests_in_every_container() {
    let mut decoded: Pod = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {
            "containers": [
                {"name": "limits", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}}},
                {"name": "both", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "1Gi"}}},
                {"name": "none"},
            ],
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}},
                {"name": "init", "resources": {"limits": {"cpu": "8"}}},
            ],
        },
    }))
    .expect("a pod");
    let requested = json!({"cpu": 9000, "memory": 1_073_741_824, "nvidia.com/gpu": 2});
    assert_eq!(requests(decoded.spec.as_ref().expect("a spec")), requested);
    let once = decoded.clone();
    fill_container_requests(decoded.spec_mut());
    assert_eq!(decoded, once);
}

#[test]
fn pod_level_limit_is_the_request_if_no_container_has_one() {
    for (whole, container, requested) in [
        (json!({"limits": {"cpu": "4"}}), json!({}), json!({"cpu": 4000})),
        (json!({"limits": {"cpu": "4"}}), json!({"requests": {"cpu": "1"}}), json!({"cpu": 1000})),
        (json!({"limits": {"cpu": "4"}}), json!({"requests": {"cpu": "0"}}), json!({"cpu": 0})),
        (json!({"limits": {"cpu": "4"}, "requests": {"cpu": "2"}}), json!({}), json!({"cpu": 2000})),
        (
            json!({"limits": {"cpu": "4", "memory": "8"}}),
            json!({"requests": {"cpu": "1"}}),
            json!({"cpu": 1000, "memory": 8}),
        ),
        (
            json!({"limits": {"hugepages-2Mi": "6Mi"}}),
            json!({"requests": {"hugepages-2Mi": "2Mi"}}),
            json!({"hugepages-2Mi": 6 << 20}),
        ),
        // Other resources cannot be requested at pod level.
        (json!({"limits": {"nvidia.com/gpu": "4"}}), json!({}), json!({})),
    ] {
        let spec = spec(json!({"resources": whole, "containers": [{"name": "main", "resources": container}]}));
        assert_eq!(requests(&spec), requested, "{whole} {container}");
        let mut admitted = spec.clone();
        assert_eq!(defaults("").admit_spec("default", &mut admitted), Vec::<String>::new());
        assert_eq!(requests(&admitted), requested, "{whole} {container}");
    }
}

#[test]
fn api_server_copies_limits_first_and_kueue_last() {
    let defaults = defaults(LIMITS);
    let limit = spec(json!({"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]}));
    let nothing = spec(json!({"containers": [{"name": "main"}], "initContainers": [{"name": "init"}]}));
    for (template, namespace, created, counted) in [
        (&limit, "default", json!({"cpu": 1000}), json!({"cpu": 500})),
        (&limit, "other", json!({"cpu": 1000}), json!({"cpu": 1000})),
        (&nothing, "default", json!({"cpu": 500}), json!({"cpu": 500})),
        (&nothing, "other", json!({}), json!({})),
    ] {
        let (mut pod, mut set) = (template.clone(), template.clone());
        assert_eq!(defaults.admit_spec(namespace, &mut pod), Vec::<String>::new());
        defaults.complete_as_kueue(namespace, &mut set);
        assert_eq!((requests(&pod), requests(&set)), (created, counted), "{namespace}");
    }
}

#[test]
fn default_request_of_a_container_takes_precedence_over_the_pod_level_limit() {
    let mut pod = spec(json!({"resources": {"limits": {"cpu": "4"}}, "containers": [{"name": "a"}, {"name": "b"}]}));
    let mut set = pod.clone();
    let defaults = defaults(LIMITS);
    defaults.admit_spec("default", &mut pod);
    assert_eq!(requests(&pod), json!({"cpu": 1000}));
    defaults.complete_as_kueue("default", &mut set);
    assert_eq!(requests(&set), json!({"cpu": 4000}));
}

#[test]
fn limit_range_is_completed_as_by_the_api_server() {
    for (item, limits, requests) in [
        ("{type: Container, max: {cpu: 3}}", json!({"cpu": "3"}), json!({"cpu": "3"})),
        (
            "{type: Container, max: {cpu: 3}, min: {cpu: 1, memory: 1}}",
            json!({"cpu": "3"}),
            json!({"cpu": "3", "memory": "1"}),
        ),
        ("{type: Container, max: {cpu: 3}, default: {cpu: 2}}", json!({"cpu": "2"}), json!({"cpu": "2"})),
        ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", json!({"cpu": "2"}), json!({"cpu": "1"})),
        ("{type: Pod, max: {cpu: 3}}", Value::Null, Value::Null),
        ("{type: PersistentVolumeClaim, max: {storage: 3}}", Value::Null, Value::Null),
    ] {
        let text = format!("{{apiVersion: v1, kind: LimitRange, metadata: {{name: a}}, spec: {{limits: [{item}]}}}}");
        let mut pod = spec(json!({"containers": [{"name": "main", "resources": {}}]}));
        defaults(&text).complete_as_kueue("default", &mut pod);
        let resources = pod.containers[0].resources.clone().unwrap_or_default();
        assert_eq!((json!(resources.limits), json!(resources.requests)), (limits, requests), "{item}");
    }
}

#[test]
fn violations_of_limit_ranges_are_named() {
    let text = "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, max: {cpu: 4}, min: {cpu: 1}}, \
                {type: Pod, max: {memory: 2Gi}}]}}\n---\n{apiVersion: v1, kind: LimitRange, metadata: {name: b}, spec: {limits: \
                [{type: Container, max: {cpu: 3}, min: {cpu: 500m}}]}}";
    let defaults = defaults(text);
    for (resources, violations) in [
        (json!({"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}), vec![]),
        (
            json!({"requests": {"cpu": "3500m"}}),
            vec!["spec.containers[main]: 3500m cpu is above the max of 3 for a container; change it or the LimitRange"],
        ),
        (
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}),
            vec!["spec.containers[main]: 4 cpu is above the max of 3 for a container; change it or the LimitRange"],
        ),
        (
            json!({"requests": {"cpu": "900m"}}),
            vec!["spec.containers[main]: 900m cpu is below the min of 1 for a container; change it or the LimitRange"],
        ),
        (
            json!({"requests": {"memory": "3Gi"}}),
            vec!["spec: 3Gi memory is above the max of 2Gi for a pod; change it or the LimitRange"],
        ),
        (
            json!({"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}),
            vec![
                "spec.containers[main].resources: the request of cpu exceeds its limit; lower the request or raise the limit",
            ],
        ),
        (json!({}), vec![]),
    ] {
        let spec = spec(json!({"containers": [{"name": "main", "resources": resources}]}));
        assert_eq!(defaults.violations("default", &spec).expect("amounts"), violations, "{resources}");
    }
}

#[test]
fn runtime_class_adds_overhead_selector_and_tolerations() {
    let text = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandbox}, handler: s, overhead: {podFixed: {cpu: 1}}, \
                scheduling: {nodeSelector: {runtime: sandbox}, tolerations: [{key: a}, {key: b}]}}";
    let defaults = defaults(text);
    let mut pod = spec(json!({"containers": [], "runtimeClassName": "sandbox", "tolerations": [{"key": "b"}]}));
    let mut set = pod.clone();
    assert_eq!(defaults.admit_spec("default", &mut pod), Vec::<String>::new());
    assert_eq!(json!(pod.overhead), json!({"cpu": "1"}));
    assert_eq!(json!(pod.node_selector), json!({"runtime": "sandbox"}));
    assert_eq!(json!(pod.tolerations), json!([{"key": "b"}, {"key": "a"}]));
    let once = pod.clone();
    assert_eq!(defaults.admit_spec("default", &mut pod), Vec::<String>::new());
    assert_eq!(pod, once);
    defaults.complete_as_kueue("default", &mut set);
    assert_eq!((json!(set.overhead), set.node_selector), (json!({"cpu": "1"}), None));
    let mut other = spec(json!({
        "containers": [], "runtimeClassName": "sandbox", "nodeSelector": {"runtime": "other"}, "overhead": {"cpu": "2"},
    }));
    let problems = defaults.admit_spec("default", &mut other);
    assert!(
        problems[0].starts_with("spec.overhead: differs from the overhead of RuntimeClass \"sandbox\""),
        "{problems:?}"
    );
    assert!(problems[1].starts_with("spec.nodeSelector.runtime: \"other\" conflicts with \"sandbox\""), "{problems:?}");
    assert_eq!(json!((other.node_selector, other.overhead)), json!([{"runtime": "other"}, {"cpu": "2"}]));
    let unknown = defaults.admit_spec("default", &mut spec(json!({"containers": [], "runtimeClassName": "lost"})));
    assert!(unknown[0].contains("kubectl get runtimeclasses -o yaml"), "{unknown:?}");
}

#[test]
fn pod_without_a_class_gets_the_default_class() {
    let text = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: normal}, value: 7, globalDefault: true}\n---\n\
                {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: accident}, value: 8, globalDefault: true}";
    for (objects, spec, class) in [
        (text, json!({}), Some("normal")),
        (text, json!({"priorityClassName": ""}), Some("normal")),
        (text, json!({"priority": 7}), Some("normal")),
        (text, json!({"priority": 9}), None),
        (text, json!({"priorityClassName": "own"}), Some("own")),
        ("", json!({}), None),
    ] {
        let mut pod: Pod = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).expect("a pod");
        let mut group: PodGroup =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).expect("a group");
        defaults(objects).admit(&mut pod);
        defaults(objects).admit_group(&mut group);
        assert_eq!(pod.spec.and_then(|spec| spec.priority_class_name.clone()).as_deref(), class, "{spec}");
        assert_eq!(group.spec.priority_class_name.as_deref(), class, "{spec}");
    }
}

#[test]
fn invalid_object_is_named() {
    for (text, problem) in [
        (
            "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, max: {cpu: lots}}]}}",
            "LimitRange default/a: spec.limits[0].max.cpu",
        ),
        (
            "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: a}, handler: a, overhead: {podFixed: {cpu: -1}}}",
            "RuntimeClass a: overhead.podFixed.cpu",
        ),
    ] {
        let mut objects = ObjectSet::default();
        documents("test", text)[0].read(&mut objects).expect("valid YAML");
        let defaults = Defaults::new(&objects);
        let error = defaults.check("default", Some("a")).expect_err("it is wrong").to_string();
        assert!(error.contains(problem), "{error}");
        assert_eq!(defaults.check("other", None), Ok(()), "another namespace");
    }
}
