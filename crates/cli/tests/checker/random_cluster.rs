//! Small random clusters from a seed, each with a few features that the rules evaluate.

/// Numbers that look random and are the same on every machine (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Which things a cluster has.
struct Themes {
    groups: bool,
    budgets: bool,
    classes: bool,
    taints: bool,
    ports: bool,
    apart: bool,
    near: bool,
    spread: bool,
    terminating: bool,
    nominees: bool,
    resize: bool,
    unlike: bool,
    constraints: bool,
    unknown_class: bool,
    namespaces: bool,
    sizes: bool,
    discord: bool,
    workloads: bool,
}

const PRIORITIES: [&str; 5] = ["0", "10", "10", "50", "100"];
/// Containers whose sum is not all that the pod asks for.
const SIZES: [&str; 6] = [
    "initContainers: [{name: i, resources: {requests: {cpu: '2'}}}], \
     containers: [{name: c, resources: {requests: {cpu: '1'}}}]",
    "initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 300m}}}, \
     {name: i, resources: {requests: {cpu: '1'}}}], containers: [{name: c, resources: {requests: {cpu: 600m}}}]",
    "overhead: {cpu: 250m}, containers: [{name: c, resources: {requests: {cpu: 250.5m}}}, \
     {name: d, resources: {requests: {cpu: 249.5m}}}]",
    "containers: [{name: c, resources: {requests: {cpu: 500m, gpu: '1'}}}]",
    "containers: [{name: c, resources: {requests: {cpu: 0.1m, gpu: 500m}}}, \
     {name: d, resources: {requests: {cpu: 0.1m, gpu: 500m}}}]",
    "resources: {requests: {cpu: '1'}}, containers: [{name: c, resources: {requests: {cpu: 300m}}}]",
];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const CLASSES: &str = "\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: plain}
value: 10
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: sturdy, annotations: {preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: '80', \
preemption-toleration.scheduling.x-k8s.io/toleration-seconds: '1800'}}
value: 10
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: exempt, annotations: {yunikorn.apache.org/allow-preemption: 'false'}}
value: 10
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: meek}
value: 60
preemptionPolicy: Never
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: dear}
value: 70";

/// A synthetic case: its documents, the test first.
pub fn random_cluster(seed: u64) -> Vec<String> {
    let mut chance = Chance(seed);
    let rare = 3 + seed % 6;
    let mut some = || chance.one_in(rare);
    let themes = Themes {
        groups: !some(),
        budgets: some(),
        classes: some(),
        taints: some(),
        ports: some(),
        apart: some(),
        near: some(),
        spread: some(),
        terminating: some(),
        nominees: some(),
        resize: some() && some(),
        unlike: some(),
        constraints: some(),
        unknown_class: some() && some(),
        namespaces: some(),
        sizes: some(),
        discord: some() && some(),
        workloads: some() && some(),
    };
    let mut documents = vec![String::new()];
    let n_nodes = 1 + chance.below(4);
    for node in 1..=n_nodes {
        documents.push(node_document(&mut chance, &themes, node));
    }
    documents.extend(CLASSES.split("\n---\n").map(str::to_owned));
    if themes.namespaces {
        documents.push("apiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {team: x}}".to_owned());
    }
    if themes.workloads {
        documents.push(workload_document(&mut chance));
    }
    for group in 1..=3 {
        if themes.groups && !chance.one_in(5) {
            documents.push(group_document(&mut chance, &format!("g{group}"), 0, themes.namespaces && group == 3));
        }
    }
    for pod in 1..=chance.below(12) {
        let node = 1 + chance.below(n_nodes);
        documents.push(bound_pod(&mut chance, &themes, pod, node));
    }
    for number in 1..=2 {
        if themes.budgets {
            documents.push(budget_document(&mut chance, number));
        }
        if themes.nominees {
            let spec =
                format!("priority: {}, {}", chance.pick(&["50", "100", "200"]), pending_spec(&mut chance, &themes));
            let status = format!("phase: Pending, nominatedNodeName: n{}", 1 + chance.below(n_nodes));
            documents.push(pod_document(&format!("nominee-{number}"), "", &spec, &status));
        }
    }
    let preemptor = preemptor(&mut chance, &themes, n_nodes, &mut documents);
    documents[0] = format!(
        "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionTest\nmetadata: {{name: synthetic-{seed}}}\n\
         spec: {{profile: {{policy: Kubernetes}}, preemptor: {preemptor}}}"
    );
    documents
}

fn node_document(chance: &mut Chance, themes: &Themes, node: u64) -> String {
    let zone = chance.pick(&["zone: a, ", "zone: b, ", "zone: b, ", ""]);
    let (cpu, pods) = (1 + chance.below(4), chance.pick(&["2", "4", "110", "110"]));
    let gpu = chance.below(3);
    let spec = if themes.taints {
        chance.pick(&[
            "",
            "taints: [{key: t, value: v, effect: NoSchedule}]",
            "unschedulable: true",
            "taints: [{key: t, effect: PreferNoSchedule}]",
        ])
    } else {
        ""
    };
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: n{node}, labels: {{{zone}host: n{node}, size: '{gpu}'}}}}\nspec: {{{spec}}}\n\
         status: {{allocatable: {{cpu: '{cpu}', pods: '{pods}', gpu: '{gpu}'}}}}"
    )
}

fn group_document(chance: &mut Chance, name: &str, at_least: u64, elsewhere: bool) -> String {
    let mode = chance.pick(&[
        "disruptionMode: {all: {}}, ",
        "disruptionMode: {all: {}}, ",
        "disruptionMode: {single: {}}, ",
        "",
    ]);
    let annotation =
        if chance.one_in(5) { ", annotations: {reprieve.dev/preemption-priority-class: dear}" } else { "" };
    let policy = if chance.one_in(4) {
        "basic: {}".to_owned()
    } else {
        format!("gang: {{minCount: {}}}", at_least.max(1 + chance.below(3)))
    };
    let priority = if at_least > 0 { "100" } else { chance.pick(&PRIORITIES) };
    let namespace = if elsewhere { ", namespace: other" } else { "" };
    let topology = if chance.one_in(4) { ", schedulingConstraints: {topology: [{key: zone}]}" } else { "" };
    format!(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}{annotation}{namespace}}}\n\
         spec: {{{mode}priority: {priority}, schedulingPolicy: {{{policy}}}{topology}}}"
    )
}

fn workload_document(chance: &mut Chance) -> String {
    let mode = chance.pick(&["Pod", "PodGroup", "PodGroup"]);
    let class = chance.pick(&["priorityClassName: plain, ", "", "preemptionPriorityClassName: dear, "]);
    let policy = format!("policy: {{gang: {{minCount: 2, preemptionMode: {mode}}}}}");
    format!(
        "apiVersion: scheduling.k8s.io/v1alpha1\nkind: Workload\nmetadata: {{name: w}}\n\
         spec: {{{class}podGroups: [{{name: x, {policy}}}]}}"
    )
}

fn budget_document(chance: &mut Chance, number: u64) -> String {
    let (app, allowed) = (chance.pick(&["a", "b", "c"]), chance.below(3));
    let disrupted = chance.pick(&["", "", ", disruptedPods: {p1: '2026-01-01T00:59:00Z', p2: '2026-01-01T00:59:00Z'}"]);
    format!(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: budget-{number}}}\n\
         spec: {{selector: {{matchLabels: {{app: {app}}}}}}}\nstatus: {{disruptionsAllowed: {allowed}{disrupted}}}"
    )
}

fn pod_document(name: &str, metadata: &str, spec: &str, status: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{metadata}}}\nspec: {{{spec}}}\nstatus: {{{status}}}")
}

fn labels(chance: &mut Chance) -> &'static str {
    chance.pick(&[", labels: {app: a}", ", labels: {app: b}", ", labels: {app: a, tier: x}", ""])
}

fn bound_pod(chance: &mut Chance, themes: &Themes, pod: u64, node: u64) -> String {
    let mut metadata = labels(chance).to_owned();
    if themes.namespaces && chance.one_in(3) {
        metadata += ", namespace: other";
    }
    let mut conditions = vec!["{type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-01T00:45:00Z'}"];
    if themes.terminating && chance.one_in(3) {
        metadata += ", deletionTimestamp: '2026-01-01T01:00:20Z'";
        conditions.extend(
            chance.one_in(2).then_some("{type: DisruptionTarget, status: 'True', reason: PreemptionByScheduler}"),
        );
    }
    let mut spec = format!("nodeName: n{node}, priority: {}, ", chance.pick(&PRIORITIES));
    if themes.groups && chance.one_in(2) {
        spec += &format!("schedulingGroup: {{podGroupName: g{}}}, ", 1 + chance.below(3));
    } else if themes.workloads && chance.one_in(2) {
        spec += chance.pick(&[
            "workloadRef: {name: w, podGroup: x}, ",
            "workloadRef: {name: w, podGroup: x, podGroupReplicaKey: '1'}, ",
        ]);
    }
    if themes.classes && chance.one_in(2) {
        spec += &format!("priorityClassName: {}, ", chance.pick(&["plain", "sturdy", "exempt"]));
    } else if themes.unknown_class && chance.one_in(3) {
        spec += "priorityClassName: gone, ";
    }
    if themes.apart && chance.one_in(3) {
        spec += &format!("affinity: {{{}}}, ", apart(chance));
    }
    spec += &container(chance, themes);
    let start = chance.pick(&["startTime: '2026-01-01T00:10:00Z', ", "startTime: '2026-01-01T00:20:00Z', ", ""]);
    pod_document(
        &format!("p{pod}"),
        &metadata,
        &spec,
        &format!("phase: Running, {start}conditions: [{}]", conditions.join(", ")),
    )
}

fn container(chance: &mut Chance, themes: &Themes) -> String {
    if themes.sizes && chance.one_in(2) {
        return chance.pick(&SIZES).to_owned();
    }
    let cpu = chance.pick(&["0", "300m", "500m", "1", "1", "1", "2"]);
    let ports = if themes.ports {
        chance.pick(&[
            "",
            ", ports: [{containerPort: 80, hostPort: 80}]",
            ", ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}]",
            ", ports: [{containerPort: 80, hostPort: 80, protocol: UDP}]",
        ])
    } else {
        ""
    };
    format!("containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}{ports}}}]")
}

fn apart(chance: &mut Chance) -> String {
    format!("podAntiAffinity: {{{REQUIRED}: [{}]}}", terms(chance))
}

fn terms(chance: &mut Chance) -> String {
    let (app, key) = (chance.pick(&["a", "b"]), chance.pick(&["host", "zone"]));
    let more = chance.pick(&[
        "",
        "",
        "",
        "",
        ", namespaces: [other]",
        ", namespaceSelector: {}",
        ", namespaceSelector: {matchLabels: {team: x}}",
        ", matchLabelKeys: [tier]",
        ", mismatchLabelKeys: [tier]",
        ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}",
    ]);
    let term = format!("{{labelSelector: {{matchLabels: {{app: {app}}}}}, topologyKey: {key}{more}}}");
    let other = chance.pick(&[
        "",
        "",
        "",
        ", {labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}, topologyKey: host}",
        ", {labelSelector: {}, topologyKey: zone}",
        ", {topologyKey: zone}",
    ]);
    format!("{term}{other}")
}

/// All of a pending pod's spec but its priority and its group.
fn pending_spec(chance: &mut Chance, themes: &Themes) -> String {
    let mut spec = String::new();
    let mut affinity = Vec::new();
    if themes.apart && chance.one_in(2) {
        affinity.push(apart(chance));
    }
    if themes.near && chance.one_in(2) {
        affinity.push(format!("podAffinity: {{{REQUIRED}: [{}]}}", terms(chance)));
    }
    if themes.constraints && chance.one_in(2) {
        let expression = chance.pick(&[
            "{key: zone, operator: In, values: [b]}",
            "{key: zone, operator: NotIn, values: [b]}",
            "{key: host, operator: Exists}",
            "{key: zone, operator: DoesNotExist}",
            "{key: size, operator: Gt, values: ['1']}",
            "{key: size, operator: Lt, values: ['3']}",
        ]);
        let or = chance.pick(&[
            "",
            "",
            ", {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}",
            ", {matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}], \
             matchExpressions: [{key: zone, operator: Exists}]}",
        ]);
        let terms = format!("{{matchExpressions: [{expression}]}}{or}");
        affinity.push(format!("nodeAffinity: {{{REQUIRED}: {{nodeSelectorTerms: [{terms}]}}}}"));
    }
    spec += &format!("affinity: {{{}}}, ", affinity.join(", "));
    if themes.constraints && chance.one_in(3) {
        spec += "nodeSelector: {zone: b}, ";
    }
    if themes.taints && chance.one_in(2) {
        spec += chance.pick(&[
            "tolerations: [{key: t, operator: Exists}], ",
            "tolerations: [{key: t, value: v}], ",
            "tolerations: [{operator: Exists}], ",
        ]);
    }
    if themes.spread && chance.one_in(2) {
        let (key, app) = (chance.pick(&["host", "zone"]), chance.pick(&["a", "b"]));
        let more = chance.pick(&[
            "",
            ", minDomains: 3",
            ", nodeTaintsPolicy: Honor",
            ", nodeAffinityPolicy: Ignore",
            ", matchLabelKeys: [tier]",
        ]);
        let skew = 1 + chance.below(2);
        let constraint = |skew: u64, key: &str, app: &str, when: &str| {
            format!(
                "maxSkew: {skew}, topologyKey: {key}, whenUnsatisfiable: {when}, \
                 labelSelector: {{matchLabels: {{app: {app}}}}}"
            )
        };
        let second = match chance.below(4) {
            0 => format!(", {{{}}}", constraint(1, "host", "a", "DoNotSchedule")),
            1 => format!(", {{{}}}", constraint(1, "zone", "a", "ScheduleAnyway")),
            _ => String::new(),
        };
        let first = constraint(skew, key, app, "DoNotSchedule");
        spec += &format!("topologySpreadConstraints: [{{{first}{more}}}{second}], ");
    }
    spec + &container(chance, themes)
}

fn preemptor(chance: &mut Chance, themes: &Themes, n_nodes: u64, documents: &mut Vec<String>) -> &'static str {
    let nominated = |chance: &mut Chance| {
        let node = 1 + chance.below(n_nodes + 1);
        if (themes.terminating || themes.nominees) && chance.one_in(2) {
            format!(", nominatedNodeName: n{node}")
        } else {
            String::new()
        }
    };
    if themes.resize {
        let node = 1 + chance.below(n_nodes);
        let spec = format!("nodeName: n{node}, priority: 60, {}", container(chance, themes));
        documents.push(pod_document(
            "urgent",
            "",
            &spec,
            "phase: Running, conditions: [{type: PodResizePending, status: 'True', reason: Deferred}]",
        ));
        return "{kind: Pod, name: urgent}";
    }
    if chance.one_in(2) {
        let priority =
            chance.pick(&["priority: 60, ", "priority: 60, ", "priority: 100, ", "priorityClassName: meek, "]);
        let group = if themes.groups && chance.one_in(6) { "schedulingGroup: {podGroupName: g1}, " } else { "" };
        let spec = format!("{priority}{group}{}", pending_spec(chance, themes));
        let status = format!("phase: Pending{}", nominated(chance));
        documents.push(pod_document("urgent", labels(chance), &spec, &status));
        return "{kind: Pod, name: urgent}";
    }
    let members = 1 + chance.below(4);
    let at_least = 1 + chance.below(members);
    documents.push(group_document(chance, "urgent", at_least, false));
    if chance.one_in(4) {
        let node = 1 + chance.below(n_nodes);
        let spec = format!(
            "nodeName: n{node}, priority: 100, schedulingGroup: {{podGroupName: urgent}}, {}",
            container(chance, themes)
        );
        documents.push(pod_document("urgent-0", labels(chance), &spec, "phase: Running"));
    }
    let (mut spec, mut label) = (pending_spec(chance, themes), labels(chance));
    for member in 1..=members {
        if themes.unlike {
            (spec, label) = (pending_spec(chance, themes), labels(chance));
        }
        let priority = if themes.discord {
            chance.pick(&["priority: 100", "priority: 90", "preemptionPolicy: Never, priority: 100"])
        } else {
            "priority: 100"
        };
        let spec = format!("{priority}, schedulingGroup: {{podGroupName: urgent}}, {spec}");
        let status = format!("phase: Pending{}", nominated(chance));
        documents.push(pod_document(&format!("urgent-{member}"), label, &spec, &status));
    }
    "{kind: PodGroup, name: urgent}"
}
