//! The words of hostile objects: the keys that the project reads, and good and bad values for them.

/// The annotation that says for which preemptor a pod is a victim.
pub const PREEMPTED_FOR: &str = "reprieve.dev/preempted-for";

/// The keys of labels and annotations that the project reads. A test compares them with the code.
pub const KEYS: &[&str] = &[
    "applicationId",
    "gang.scheduling.koordinator.sh/groups",
    "gang.scheduling.koordinator.sh/name",
    "jobset.sigs.k8s.io/jobset-name",
    "kubernetes.io/hostname",
    "kubernetes.io/metadata.name",
    "kueue.x-k8s.io/admission-gated-by",
    "kueue.x-k8s.io/job-min-parallelism",
    "kueue.x-k8s.io/podset",
    "kueue.x-k8s.io/podset-group-name",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/priority-class",
    "kueue.x-k8s.io/queue-name",
    "kueue.x-k8s.io/workload",
    "kueue.x-k8s.io/workload-allowed-resource-flavors",
    "kueue.x-k8s.io/workload-slice-replacement-for",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/name",
    "node.kubernetes.io/unschedulable",
    "pod-group.scheduling.sigs.k8s.io",
    "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority",
    "preemption-toleration.scheduling.x-k8s.io/toleration-seconds",
    "queue",
    "quota.scheduling.koordinator.sh/can-preempt",
    "quota.scheduling.koordinator.sh/is-parent",
    "quota.scheduling.koordinator.sh/name",
    "quota.scheduling.koordinator.sh/parent",
    "quota.scheduling.koordinator.sh/preemptible",
    "reprieve.dev/gang",
    "reprieve.dev/last-checkpoint",
    "reprieve.dev/preempted-for",
    "reprieve.dev/preemption-priority-class",
    "reprieve.dev/protected",
    "reprieve.dev/returns",
    "scheduling.koordinator.sh/device-joint-allocate",
    "scheduling.koordinator.sh/disable-preemptible",
    "scheduling.koordinator.sh/numa-topology-spec",
    "scheduling.koordinator.sh/reservation-affinity",
    "scheduling.koordinator.sh/resource-spec",
    "scheduling.koordinator.sh/soft-eviction",
    "training.kubeflow.org/job-name",
    "yunikorn.apache.org/allow-preemption",
    "yunikorn.apache.org/app-id",
    "yunikorn.apache.org/queue",
    "yunikorn.apache.org/task-group-name",
    "yunikorn.apache.org/task-groups",
];

/// Values of labels and annotations.
pub const VALUES: &[&str] =
    &["true", "false", "True", "yes", "", "0", "-1", "1", "3600", "2147483647", "9223372036854775808", "NaN", "root"];

/// Texts that are no name, no number and no known word.
pub const TEXTS: &[&str] = &[
    "",
    " ",
    "\u{202e}reversed",
    "NaN",
    "null",
    "-",
    "..",
    "a/b/c",
    "{}",
    "[",
    "%s%n",
    "\u{0}",
    "\u{1b}[31m",
    "line\nline",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
     xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
     xxxxxxxxxxxxxxxx",
];

/// Queues that no configuration has.
pub const QUEUES: &[&str] =
    &["", "root", "root.", ".", "root..a", "ROOT", "no-such-queue", "root.no.such.queue", "koordinator-root-quota"];

/// Amounts of a resource: small, extreme and invalid.
pub const AMOUNTS: &[&str] = &[
    "0",
    "1",
    "100m",
    "1Gi",
    "5Ei",
    "8Ei",
    "4611686018427387905",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "1e300",
    "-1",
    "NaN",
    "",
    "1 Gi",
    "0x10",
];

/// Numbers for fields that expect another value, or a number in a range.
pub const NUMBERS: &[i64] = &[0, 1, -1, 7, 2_000_000_000, 2_147_483_648, -2_147_483_649, i64::MAX, i64::MIN];

/// Resources.
pub const RESOURCES: &[&str] =
    &["cpu", "memory", "pods", "nvidia.com/gpu", "example.com/gpu", "ephemeral-storage", "hugepages-2Mi", "", "a/b/c"];

/// Times: long ago, now, in the future, at the end of the calendar.
pub const TIMES: &[&str] = &[
    "1970-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00Z",
    "2026-01-01T02:00:00Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
];

/// Finalizers.
pub const FINALIZERS: &[&str] =
    &["batch.kubernetes.io/job-tracking", "foregroundDeletion", "kueue.x-k8s.io/managed", "reprieve.dev/never"];

/// Kinds of owners.
pub const OWNERS: &[(&str, &str)] = &[
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("kubeflow.org/v2beta1", "MPIJob"),
    ("kueue.x-k8s.io/v1beta2", "Workload"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("ray.io/v1", "RayCluster"),
    ("scheduling.k8s.io/v1beta1", "PodGroup"),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    ("v1", "Pod"),
    ("v1", "Node"),
    ("", ""),
];

/// Words of enumerations, with the same words in a wrong form.
pub const ENUM_WORDS: &[&str] = &[
    "Never",
    "PreemptLowerPriority",
    "LowerPriority",
    "Any",
    "Terminate",
    "Requeue",
    "Always",
    "never",
    "Nonsense",
    "",
    "Running",
    "Succeeded",
];

/// The documents of a queue configuration, most of them invalid.
pub const QUEUE_CONFIGS: &[&str] = &[
    "",
    "{",
    "partitions: 7",
    "partitions: []",
    "- a",
    "partitions: [{name: default, queues: [{name: root, queues: []}]}]",
    "partitions: [{name: default, queues: [{name: root, resources: {max: {vcore: 0}}, queues: [{name: a}, {name: a}]}]}]",
    "partitions: [{name: default, queues: [{name: root, queues: [{name: a, resources: {guaranteed: {vcore: 1000}}}]}]}]",
    "partitions: [{name: default, preemption: {enabled: false}, queues: [{name: a, parent: true}]}]",
    "a: &a [*a]",
];
