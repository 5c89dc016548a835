//! Preemption options of Kueue workloads and queues: their effect on the actions, and the values that are refused.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn plan(preemption: &str, low: &str, output: &str) -> Output {
    let admitted = "status:\n  admission: {clusterQueue: team, podSetAssignments: [{name: main, flavors: {cpu: default}, resourceUsage: {cpu: 2}}]}\n  \
                    conditions: [{type: QuotaReserved, status: \"True\", lastTransitionTime: \"2026-01-01T00:00:00Z\", reason: r, message: \"\"}]";
    let workload = |name: &str, priority: i32, rest: &str| {
        format!(
            "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {{namespace: default, name: {name}}}\nspec:\n  queueName: \
             team\n  priority: {priority}\n  podSets: [{{name: main, count: 1, template: {{spec: {{containers: [{{name: c, resources: \
             {{requests: {{cpu: 2}}}}}}]}}}}}}]\n{rest}\n"
        )
    };
    let objects = format!(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {{name: default}}\n---\napiVersion: \
         kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{namespace: default, name: team}}\nspec: {{clusterQueue: team}}\n---\napiVersion: \
         kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: team}}\nspec:\n  preemption: {{withinClusterQueue: \
         LowerPriority{preemption}}}\n  resourceGroups: [{{coveredResources: [cpu], flavors: [{{name: default, resources: [{{name: cpu, \
         nominalQuota: 4}}]}}]}}]\n{}{}{}",
        workload("a", 0, &format!("{low}\n{admitted}")),
        workload("b", 0, admitted),
        workload("urgent", 9, "").replace("cpu: 2", "cpu: 4"),
    );
    let objects = objects.replace("  priority: 0\n", ""); // which is what it has without a word
    run(&objects, output)
}

fn run(objects: &str, output: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_reprieve"))
        .args(["plan", "--policy", "Kueue", "--for", "workload/urgent", "-f", "-", "-o", output])
        .args(["--now", "2026-01-01T01:00:00Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("reprieve runs");
    child.stdin.take().expect("it has an input").write_all(objects.as_bytes()).expect("it reads its input");
    child.wait_with_output().expect("it ends")
}

#[test]
fn victim_is_requeued_or_terminated_as_on_preemption_says() {
    let output = plan("", "  onPreemption: Terminate", "json");
    let decision: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let actions: Vec<(&str, &str)> = decision["explanation"]["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|action| (action["action"].as_str().unwrap_or(""), action["workload"].as_str().unwrap_or("")))
        .filter(|(action, _)| *action != "Event")
        .collect();
    assert_eq!(actions, [("Terminate", "default/a"), ("Requeue", "default/b")]);
    let wide = String::from_utf8_lossy(&plan("", "  onPreemption: Terminate", "wide").stdout).into_owned();
    assert!(wide.contains("Terminate   default/a"), "{wide}");
}

#[test]
fn values_without_a_meaning_are_refused_with_their_names() {
    for (preemption, low, field, problem) in [
        (", workloadSorting: [BySize]", "", "spec.preemption.workloadSorting", "\"BySize\" is not valid"),
        (
            ", workloadSorting: [ByLowestRuntime, ByLongestRuntime]",
            "",
            "spec.preemption.workloadSorting",
            "\"ByLongestRuntime\" is not valid",
        ),
        (
            ", triggerAfterWorkloadWaitingSeconds: -1",
            "",
            "spec.preemption.triggerAfterWorkloadWaitingSeconds",
            "-1 is negative",
        ),
        ("", "  onPreemption: Kill", "spec.onPreemption", "write one of Requeue, Terminate"),
        (
            "",
            "  preemption: {disruptionCostMilestones: [{seconds: 60, cost: 1}, {seconds: 60, cost: 2}]}",
            "disruptionCostMilestones[1].seconds",
            "sort them by seconds",
        ),
        (
            "",
            "  priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: gone}",
            "spec.priorityClassRef",
            "WorkloadPriorityClass \"gone\" is not in the input",
        ),
        (
            "",
            "  preemption: {disruptionCostMilestones: [{seconds: 60, cost: -1}]}",
            "disruptionCostMilestones[0].cost",
            "-1 is not between 0 and",
        ),
    ] {
        // The queue is the preemptor's own. The running workload keeps its quota and is a victim: a wrong word does not protect it.
        let output = plan(preemption, low, "table");
        // Warnings are part of the table; errors go to standard error.
        let text = [output.stderr, output.stdout].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(if low.is_empty() { 1 } else { 2 }), "{text}");
        assert!(text.contains(field) && text.contains(problem), "{text}");
        assert_eq!(text.contains("it is set aside"), !low.is_empty(), "{text}");
    }
}

#[test]
fn pod_set_count_is_between_zero_and_its_count() {
    for (count, field, problem) in
        [("-1", "count", "-1 is negative"), ("2, minCount: 3", "minCount", "3 is out of range; write 0 to 2")]
    {
        let case =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/kueue-options/own-sorting-by-default.yaml");
        let case = std::fs::read_to_string(case).expect("the case is there");
        let output = run(&case.replace("count: 1, template", &format!("count: {count}, template")), "json");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(&format!("spec.podSets[main].{field}: {problem}")), "{text}");
    }
}
