//! The Kubernetes objects that a decision reads, as they came.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Node};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use crate::kinds::Object;
use crate::koordinator::{ElasticQuota, JobGroup};
use crate::kueue::{ClusterQueue, Cohort, KueueWorkload, LocalQueue, ResourceFlavor, WorkloadPriorityClass};
use crate::pod::Pod;
use crate::source::UnknownField;
use crate::source::{Source, Sourced};
use crate::workload::Workload;

/// Everything that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    /// `v1` Node.
    pub nodes: Vec<Sourced<Node>>,
    /// `v1` Pod.
    pub pods: Vec<Sourced<Pod>>,
    /// `v1` Namespace.
    pub namespaces: Vec<Sourced<Namespace>>,
    /// `scheduling.k8s.io/v1` PriorityClass.
    pub priority_classes: Vec<Sourced<PriorityClass>>,
    /// `v1` LimitRange.
    pub limit_ranges: Vec<Sourced<LimitRange>>,
    /// `node.k8s.io/v1` RuntimeClass.
    pub runtime_classes: Vec<Sourced<RuntimeClass>>,
    /// `policy/v1` PodDisruptionBudget.
    pub budgets: Vec<Sourced<PodDisruptionBudget>>,
    /// `scheduling.k8s.io/v1beta1` PodGroup.
    pub pod_groups: Vec<Sourced<PodGroup>>,
    /// `scheduling.k8s.io` Workload.
    pub workloads: Vec<Sourced<Workload>>,
    /// `v1` ConfigMap, if it holds YuniKorn's queues.
    pub config_maps: Vec<Sourced<ConfigMap>>,
    /// `kueue.x-k8s.io` ResourceFlavor.
    pub resource_flavors: Vec<Sourced<ResourceFlavor>>,
    /// `kueue.x-k8s.io` ClusterQueue.
    pub cluster_queues: Vec<Sourced<ClusterQueue>>,
    /// `kueue.x-k8s.io` Cohort.
    pub cohorts: Vec<Sourced<Cohort>>,
    /// `kueue.x-k8s.io` LocalQueue.
    pub local_queues: Vec<Sourced<LocalQueue>>,
    /// `kueue.x-k8s.io` WorkloadPriorityClass.
    pub workload_classes: Vec<Sourced<WorkloadPriorityClass>>,
    /// `kueue.x-k8s.io` Workload.
    pub kueue_workloads: Vec<Sourced<KueueWorkload>>,
    /// `scheduling.sigs.k8s.io` ElasticQuota.
    pub elastic_quotas: Vec<Sourced<ElasticQuota>>,
    /// `scheduling.sigs.k8s.io` PodGroup.
    pub job_groups: Vec<Sourced<JobGroup>>,
    /// Kinds that no decision reads, and how many of each there were.
    pub skipped: BTreeMap<String, usize>,
    /// Fields that the API does not have, of objects that may be a preemptor.
    pub unknown_fields: Vec<UnknownField>,
}

impl Objects {
    /// Takes in all of `other`.
    pub fn extend(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.pods.extend(other.pods);
        self.namespaces.extend(other.namespaces);
        self.priority_classes.extend(other.priority_classes);
        self.limit_ranges.extend(other.limit_ranges);
        self.runtime_classes.extend(other.runtime_classes);
        self.budgets.extend(other.budgets);
        self.pod_groups.extend(other.pod_groups);
        self.workloads.extend(other.workloads);
        self.config_maps.extend(other.config_maps);
        self.resource_flavors.extend(other.resource_flavors);
        self.cluster_queues.extend(other.cluster_queues);
        self.cohorts.extend(other.cohorts);
        self.local_queues.extend(other.local_queues);
        self.workload_classes.extend(other.workload_classes);
        self.kueue_workloads.extend(other.kueue_workloads);
        self.elastic_quotas.extend(other.elastic_quotas);
        self.job_groups.extend(other.job_groups);
        for (kind, count) in other.skipped {
            *self.skipped.entry(kind).or_default() += count;
        }
        self.unknown_fields.extend(other.unknown_fields);
    }

    /// Takes in one object; one that no decision reads is left out.
    pub fn push(&mut self, object: &Object, source: &Source) {
        macro_rules! push {
            ($list:ident, $object:expr) => {
                self.$list.push(Sourced { object: Arc::clone($object), source: source.clone() })
            };
        }
        match object {
            Object::Namespace(object) => push!(namespaces, object),
            Object::Node(object) => push!(nodes, object),
            Object::PriorityClass(object) => push!(priority_classes, object),
            Object::LimitRange(object) => push!(limit_ranges, object),
            Object::RuntimeClass(object) => push!(runtime_classes, object),
            Object::ConfigMap(object) => push!(config_maps, object),
            Object::Budget(object) => push!(budgets, object),
            Object::PodGroup(object) => push!(pod_groups, object),
            Object::ResourceFlavor(object) => push!(resource_flavors, object),
            Object::ClusterQueue(object) => push!(cluster_queues, object),
            Object::Cohort(object) => push!(cohorts, object),
            Object::LocalQueue(object) => push!(local_queues, object),
            Object::WorkloadPriorityClass(object) => push!(workload_classes, object),
            Object::Workload(object) => push!(kueue_workloads, object),
            Object::ElasticQuota(object) => push!(elastic_quotas, object),
            Object::JobGroup(object) => push!(job_groups, object),
            Object::Pod(object) => push!(pods, object),
            Object::Job(_) => {}
        }
    }

    /// One by one.
    pub fn into_each(self) -> Vec<Object> {
        let mut all: Vec<Object> = Vec::with_capacity(self.len());
        macro_rules! extend {
            ($($list:ident),+) => {
                $(all.extend(self.$list.into_iter().map(|sourced| Object::from(sourced.object)));)+
            };
        }
        extend!(
            namespaces,
            nodes,
            priority_classes,
            limit_ranges,
            runtime_classes,
            config_maps,
            budgets,
            pod_groups,
            resource_flavors,
            cluster_queues
        );
        extend!(cohorts, local_queues, workload_classes, kueue_workloads, elastic_quotas, job_groups, pods);
        all
    }

    /// How many objects a decision reads.
    pub fn len(&self) -> usize {
        self.nodes.len()
            + self.pods.len()
            + self.namespaces.len()
            + self.priority_classes.len()
            + self.limit_ranges.len()
            + self.runtime_classes.len()
            + self.budgets.len()
            + self.pod_groups.len()
            + self.workloads.len()
            + self.config_maps.len()
            + self.resource_flavors.len()
            + self.cluster_queues.len()
            + self.cohorts.len()
            + self.local_queues.len()
            + self.workload_classes.len()
            + self.kueue_workloads.len()
            + self.elastic_quotas.len()
            + self.job_groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
