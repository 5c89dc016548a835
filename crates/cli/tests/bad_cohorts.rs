//! Bad input under policy Kueue gets one clear error that names the file, the object, the field and what would be right; never a panic. 2
//! is the status of `test`, 1 that of `plan`.

use std::process::{Command, Stdio};

use tempfile::TempDir;

const CASE: &str = r#"
apiVersion: reprieve.dev/v1alpha1
kind: PreemptionTest
metadata: {name: case}
spec:
  profile: {policy: Kueue, args: {placement: QuotaOnly, fairSharing: {enable: true}}}
  preemptor: {kind: Workload, namespace: default, name: in}
  expect: {outcome: Preempt, victims: [{workload: default/borrower, reason: InCohortReclamation}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: team}
spec: {parentName: all, fairSharing: {weight: "2"}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: owner}
spec:
  cohortName: team
  fairSharing: {weight: "1"}
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: spot, resources: [{name: cpu, nominalQuota: "2", borrowingLimit: "4", lendingLimit: "2"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: other}
spec:
  cohortName: team
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: spot, resources: [{name: cpu, nominalQuota: "0"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: owner}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: borrower, namespace: default}
spec:
  podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}]
status:
  admission: {clusterQueue: other, podSetAssignments: [{name: main, flavors: {cpu: spot}, resourceUsage: {cpu: "1"}, count: 1}]}
  conditions: [{type: QuotaReserved, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: in, namespace: default}
spec:
  queueName: main
  podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}]
"#;

/// What `test` and what `plan` print of a case, each with its status.
fn outputs(case: &str) -> [(Option<i32>, String); 2] {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("case.yaml");
    std::fs::write(&file, case).expect("the file is written");
    [["test"].as_slice(), ["plan", "-f"].as_slice()].map(|arguments| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
        let output = command.args(arguments).arg(&file).stdin(Stdio::null()).output().expect("reprieve runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    })
}

/// Both refuse the case with one part of it in other words, in words that hold all of `parts`.
fn refused_with(part: &str, changed: &str, parts: &[&str]) {
    assert!(CASE.contains(part) && part != changed, "a part of the case is changed");
    for ((status, text), wanted) in outputs(&CASE.replacen(part, changed, 1)).into_iter().zip([2, 1]) {
        assert_eq!(status, Some(wanted), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        for part in parts.iter().chain(&["case.yaml", "document"]) {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }
}

/// `plan` decides without the broken object, and warns in words that hold all of `parts`.
fn set_aside_with(part: &str, changed: &str, parts: &[&str]) {
    assert!(CASE.contains(part) && part != changed, "a part of the case is changed");
    let [_, (status, text)] = outputs(&CASE.replacen(part, changed, 1));
    assert_ne!(status, Some(1), "{text}");
    for part in parts.iter().chain(&["case.yaml", "document", "warning: ", "set aside"]) {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[test]
fn unchanged_case_is_accepted() {
    let [(test, output), (plan, _)] = outputs(CASE);
    assert_eq!(test, Some(0), "{output}");
    assert_eq!(plan, Some(2));
}

#[test]
fn a_workload_in_a_queue_that_does_not_exist() {
    let parts = ["Workload default/in", "spec.queueName", "default/ghost", "not in the input", "add it"];
    refused_with("queueName: main", "queueName: ghost", &parts);
    let parts = ["Workload default/in", "spec.queueName", "names ClusterQueue \"ghost\"", "not in the input"];
    refused_with("{clusterQueue: owner}", "{clusterQueue: ghost}", &parts);
    let parts =
        ["Workload default/borrower", "status.admission.clusterQueue", "\"ghost\"", "not in the input", "add it"];
    set_aside_with("clusterQueue: other", "clusterQueue: ghost", &parts);
}

#[test]
fn a_flavor_that_is_missing() {
    let parts =
        ["ClusterQueue owner", "spec.resourceGroups[0].flavors[0].name", "\"ghost\"", "not in the input", "add it"];
    refused_with("{name: spot, resources", "{name: ghost, resources", &parts);
    let field = "status.admission.podSetAssignments[main].flavors.cpu";
    let parts = ["Workload default/borrower", field, "\"ghost\"", "not in the input", "add it"];
    set_aside_with("flavors: {cpu: spot}", "flavors: {cpu: ghost}", &parts);
}

/// Another queue covers the resource; that does not count.
#[test]
fn a_quota_for_a_resource_that_its_group_does_not_cover() {
    let field = "spec.resourceGroups[0].flavors[0].resources";
    let parts = ["ClusterQueue owner", field, "\"cpu\" is not in coveredResources", "add it there"];
    let group = |covered: &str| {
        format!(
            "coveredResources: [{covered}]\n    flavors:\n    - {{name: spot, resources: [{{name: cpu, nominalQuota: \"2\""
        )
    };
    refused_with(&group("cpu"), &group("memory"), &parts);
}

#[test]
fn a_cohort_that_is_its_own_ancestor() {
    let parts = ["Cohort team", "spec.parentName", "\"team\"", "ancestor of itself", "break the cycle"];
    refused_with("parentName: all", "parentName: team", &parts);
}

#[test]
fn quota_in_the_wrong_unit() {
    let field = "spec.resourceGroups[0].flavors[0].cpu.nominalQuota";
    refused_with("nominalQuota: \"2\"", "nominalQuota: 2 cores", &["ClusterQueue owner", field, "2 cores", "500m"]);
}

#[test]
fn a_negative_limit_or_quota() {
    for name in ["nominalQuota: \"2\"", "borrowingLimit: \"4\"", "lendingLimit: \"2\""] {
        let (name, amount) = name.split_once(": \"").expect("a field and its value");
        let field = format!("spec.resourceGroups[0].flavors[0].cpu.{name}");
        let (part, changed) = (format!("{name}: \"{amount}"), format!("{name}: \"-{amount}"));
        refused_with(&part, &changed, &["ClusterQueue owner", &field, "negative", "0 or more"]);
    }
}

#[test]
fn a_weight_below_zero() {
    let parts = ["spec.fairSharing.weight", "\"-1\"", "negative", "0 or more"];
    refused_with("weight: \"1\"", "weight: \"-1\"", &[&["ClusterQueue owner"], &parts[..]].concat());
    refused_with("weight: \"2\"", "weight: \"-1\"", &[&["Cohort team"], &parts[..]].concat());
}
