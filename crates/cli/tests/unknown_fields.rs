//! An unknown field of the preemptor is a warning with the nearest known name; unknown fields of other objects are ignored.

use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 4, pods: 10}}}
---
apiVersion: v1
kind: Pod
metadata: {name: low}
spec: {nodeName: node-1, priority: 1, toleration: [], containers: [{name: c, resources: {requests: {cpu: 4}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {priority: 2, toleration: [], containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec: {priority: 9, toleration: [], rack: a, containers: [{name: c, resources: {request: {cpu: 2}}}]}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {priority: 9, schedulingPolicy: {gang: {minCount: 2, mincount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: gang-0}
spec: {schedulingGroup: {podGroupName: gang}, priority: 9, nodeselector: {}, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: gang-1}
spec: {schedulingGroup: {podGroupName: gang}, priority: 9, nodeselector: {}, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: job-0, labels: {pod-group.scheduling.sigs.k8s.io: job}}
spec: {priority: 9, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: job-1, labels: {pod-group.scheduling.sigs.k8s.io: job}}
spec: {priority: 9, affinities: {}, containers: [{name: c}]}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: job}
spec: {minMember: 2, minmembers: 2}
";

fn warnings(arguments: &[&str], submitted: &str) -> Vec<String> {
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("cluster.yaml"), CLUSTER).expect("the file is written");
    std::fs::write(folder.path().join("new.yaml"), submitted).expect("the file is written");
    let run = |form| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
        command.args(arguments).args(["-f", "cluster.yaml", "-o", form]).stdin(Stdio::null());
        command.current_dir(folder.path()).output().expect("reprieve runs")
    };
    let output = run("json");
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    let warnings: Vec<String> =
        json["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let table = run("table");
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    for warning in &warnings {
        assert!(table.contains(&format!("warning: {warning}\n")), "{warning:?} is missing in {table}");
    }
    warnings
}

const REQUESTS: &str = "Pod default/urgent: spec.containers[0].resources.request: unknown field, ignored; did you mean \
                        spec.containers[0].resources.requests?";
const RACK: &str = "Pod default/urgent: spec.rack: unknown field, ignored";
const TOLERATIONS: &str = "Pod default/urgent: spec.toleration: unknown field, ignored; did you mean spec.tolerations?";

#[test]
fn unknown_field_of_a_pod_is_a_warning_with_the_nearest_name() {
    for command in ["plan", "compare"] {
        assert_eq!(warnings(&[command, "--for", "pod/urgent"], ""), [REQUESTS, RACK, TOLERATIONS], "{command}");
    }
}

#[test]
fn warnings_cover_a_group_and_its_members() {
    let group = "PodGroup default/gang: spec.schedulingPolicy.gang.mincount: unknown field, ignored; did you mean \
                 spec.schedulingPolicy.gang.minCount?";
    let members =
        "Pod default/gang-0 and 1 more: spec.nodeselector: unknown field, ignored; did you mean spec.nodeSelector?";
    for command in ["plan", "compare"] {
        assert_eq!(warnings(&[command, "--for", "podgroup/gang"], ""), [members, group], "{command}");
    }
}

#[test]
fn warnings_cover_all_pods_of_a_koordinator_gang() {
    let member = "Pod default/job-1: spec.affinities: unknown field, ignored; did you mean spec.affinity?";
    let job = "PodGroup default/job: spec.minmembers: unknown field, ignored; did you mean spec.minMember?";
    let asked = ["plan", "--for", "pod/job-0", "--policy"];
    assert_eq!(warnings(&[&asked[..], &["Koordinator"]].concat(), ""), [member, job]);
    assert_eq!(warnings(&[&asked[..], &["Kubernetes"]].concat(), ""), [job]);
}

#[test]
fn whatever_is_submitted_is_warned_about() {
    let template =
        "template: {metadata: {label: {}}, spec: {priority: 9, containers: [{name: c, image: i, env: [{key: A}]}]}}";
    let metadata = "spec.template.metadata.label: unknown field, ignored; did you mean spec.template.metadata.labels?";
    let env = "spec.template.spec.containers[0].env[0].key: unknown field, ignored";
    for (kind, version, spec) in [
        ("Job", "batch/v1", "parallelism: 2, "),
        ("Deployment", "apps/v1", "replicas: 2, "),
        ("ReplicaSet", "apps/v1", ""),
        ("StatefulSet", "apps/v1", "serviceName: a, "),
    ] {
        let object =
            format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: new}}\nspec: {{{spec}{template}}}\n");
        let expected = [metadata, env].map(|rest| format!("{kind} default/new: {rest}"));
        let mut warned = warnings(&["plan", "--submit", "new.yaml"], &object);
        warned.sort_unstable();
        assert_eq!(warned, expected, "{kind}");
    }
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {nodeselector: {}, containers: [{name: c}]}\n";
    let warning = "Pod default/new: spec.nodeselector: unknown field, ignored; did you mean spec.nodeSelector?";
    assert_eq!(warnings(&["plan", "--submit", "new.yaml"], pod), [warning]);
}

#[test]
fn warnings_cover_a_kueue_workload_and_the_heads_of_a_cycle() {
    let folder = TempDir::new().expect("a temporary folder");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/kueue-cycle.yaml");
    let text = std::fs::read_to_string(example).expect("the example is there");
    let wrong = text.replace("  priority: ", "  priorities: 1\n  priority: ");
    assert_ne!(text, wrong);
    std::fs::write(folder.path().join("queues.yaml"), wrong).expect("the file is written");
    for arguments in [["--cycle"].as_slice(), &["--for", "workload/llama", "--policy", "Kueue"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
        command.args(["plan", "-f", "queues.yaml", "-o", "json"]).args(arguments).current_dir(folder.path());
        let output = command.output().expect("reprieve runs");
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
        let warning = json["warnings"][0].as_str().unwrap_or_default();
        let rest = "spec.priorities: unknown field, ignored; did you mean spec.priority?";
        assert!(warning.starts_with("Workload default/") && warning.ends_with(rest), "{arguments:?}: {warning:?}");
    }
}
