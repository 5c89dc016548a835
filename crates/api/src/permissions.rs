//! The table of RBAC permissions that `reprieve run` needs, by policy. The rules of the chart's roles and the check at the start of `reprieve
//! run` are derived from it and from the table of kinds. A new request to the API server needs a row here.

use crate::kinds::{Kind, Reader, Resource};

/// The verbs with which `reprieve run` reads a kind.
pub const READ_VERBS: &[&str] = &["get", "list", "watch"];

/// A permission for one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural of the kind, with the subresource if there is one: `pods`, `pods/status`.
    pub resource: &'static str,
    /// The objects that it permits to use.
    pub objects: Objects,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// The policy that needs it.
    pub reader: Reader,
    /// What it is needed for: a sentence for the comment in the chart.
    pub purpose: &'static str,
}

/// The objects of a resource that a permission covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objects {
    /// All objects.
    All,
    /// The objects with the name of the Helm release, which is also the name of the lease.
    NamedAsRelease,
    /// The ConfigMap with the last valid queues, whose name is that of the release with `-queues`.
    CopyOfQueues,
}

const fn permission(
    reader: Reader,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    purpose: &'static str,
) -> Permission {
    Permission { group, resource, objects: Objects::All, verbs, reader, purpose }
}

/// The permissions to change objects in all namespaces. `--dry-run` needs none of them.
pub const CHANGES: &[Permission] = &[
    permission(Reader::All, "", "pods", &["delete"], "Evict victims."),
    permission(Reader::All, "", "pods/binding", &["create"], "Bind pods."),
    permission(Reader::All, "", "pods/status", &["patch"], "Nominate pods, mark victims, and set conditions."),
    permission(
        Reader::Kubernetes,
        "scheduling.k8s.io",
        "podgroups/status",
        &["patch"],
        "Set conditions: scheduled, waiting, pods with another priority, invalid preemption priority.",
    ),
    permission(Reader::Kueue, "kueue.x-k8s.io", "workloads", &["create"], "Create the workloads of Jobs."),
    permission(
        Reader::Kueue,
        "kueue.x-k8s.io",
        "workloads/status",
        &["patch"],
        "Admit, evict, requeue and finish workloads.",
    ),
    permission(Reader::Kueue, "batch", "jobs", &["patch"], "Start, suspend and restore Jobs."),
];

/// The permission to write events, which `--dry-run` needs too.
pub const EVENTS: Permission = permission(Reader::All, "events.k8s.io", "events", &["create"], "Write events.");

/// The permissions for the lease of the leader election, in the lease's namespace. RBAC cannot restrict `create` by name.
pub const LEASE: &[Permission] = &[
    permission(Reader::All, "coordination.k8s.io", "leases", &["create"], "Create the lease."),
    Permission {
        objects: Objects::NamedAsRelease,
        ..permission(Reader::All, "coordination.k8s.io", "leases", &["get", "update"], "Renew the lease.")
    },
];

/// The permissions to store the last valid queues, in Reprieve's own namespace.
pub const COPY_OF_QUEUES: &[Permission] = &[
    permission(Reader::YuniKorn, "", "configmaps", &["create"], "Create the copy of the last valid queues."),
    Permission {
        objects: Objects::CopyOfQueues,
        ..permission(Reader::YuniKorn, "", "configmaps", &["get", "update"], "Read and update the copy.")
    },
];

impl Permission {
    /// The permission to read a kind. The configuration names the only ConfigMap that is read, so that permission is for one object.
    pub const fn to_read(kind: Kind) -> Self {
        let Resource { group, plural, reader, .. } = kind.resource();
        permission(reader, group, plural, READ_VERBS, "Read the kind.")
    }

    /// The resource without the subresource, and the subresource.
    pub fn parts(&self) -> (&'static str, Option<&'static str>) {
        match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (self.resource, None),
        }
    }

    /// Whether the permission is for this kind or a subresource of it.
    pub fn is_for(&self, kind: Kind) -> bool {
        (self.group, self.parts().0) == (kind.resource().group, kind.resource().plural)
    }
}
