//! Every error of the loader names the file, the object and the field.

use reprieve_api::read::documents;
use reprieve_api::{ObjectSet, Profile};
use reprieve_loader::OnInvalid;
use reprieve_loader::build::load_for;
use reprieve_loader::policy::policy_of_profile;

fn error(policy: &str, text: &str) -> String {
    let policy = policy_of_profile(&Profile::of_policy(policy)).expect("a policy");
    let mut objects = ObjectSet::default();
    for document in documents("cluster.yaml", text) {
        document.read(&mut objects).expect("valid YAML");
    }
    load_for(&objects, OnInvalid::Reject, &policy).expect_err("an invalid object").to_string()
}

#[test]
fn error_about_a_rule_of_a_queue_names_file_object_and_field() {
    let queue = |spec: &str| {
        format!("{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: q}}, spec: {{{spec}}}}}")
    };
    let prefix = "cluster.yaml: document 1: ClusterQueue q";
    for (spec, problem) in [
        (
            "preemption: {withinClusterQueue: All}",
            "spec.preemption.withinClusterQueue: \"All\" is not valid; write one of Never, LowerPriority, \
             LowerOrNewerEqualPriority",
        ),
        (
            "preemption: {borrowWithinCohort: {policy: Any}}",
            "spec.preemption.borrowWithinCohort.policy: \"Any\" is not valid; write one of Never, LowerPriority",
        ),
        (
            "flavorFungibility: {whenCanBorrow: Preempt}",
            "spec.flavorFungibility.whenCanBorrow: \"Preempt\" is not valid; write one of MayStopSearch, TryNextFlavor",
        ),
        (
            "queueingStrategy: LIFO",
            "spec.queueingStrategy: \"LIFO\" is not valid; write one of BestEffortFIFO, StrictFIFO",
        ),
    ] {
        assert_eq!(error("Kueue", &queue(spec)), format!("{prefix}: {problem}"));
    }
}

#[test]
fn error_about_a_namespaced_quota_names_its_namespace() {
    let quota = "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, namespace: team}, \
                 spec: {min: {cpu: 2}, max: {cpu: 1}}}";
    let problem = "spec.min.cpu: 2 is above spec.max, which is 1; lower the one or raise the other";
    assert_eq!(error("Koordinator", quota), format!("cluster.yaml: document 1: ElasticQuota team/q: {problem}"));
}

#[test]
fn second_object_with_the_same_name_is_refused() {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n}}";
    let problem =
        "metadata.name: cluster.yaml: document 1 has an object with the same name; rename or remove one of them";
    assert_eq!(
        error("Kubernetes", &format!("{node}\n---\n{node}")),
        format!("cluster.yaml: document 2: Node n: {problem}")
    );
}

#[test]
fn second_config_map_with_queues_is_refused_unless_one_is_named() {
    let map = |namespace: &str, name: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}}, \
             data: {{queues.yaml: 'partitions: [{{name: default}}]'}}}}"
        )
    };
    let text = format!("{}\n---\n{}", map("b", "other"), map("a", "yunikorn-configs"));
    let problem = "has queues, and so has ConfigMap a/yunikorn-configs; name one of them in the argument queues: \
                   {namespace: …, name: …}";
    assert_eq!(error("YuniKorn", &text), format!("cluster.yaml: document 1: ConfigMap b/other: {problem}"));
}
