//! Checks that the input files contain the objects that a decision needs: an export from a cluster may lack some. A PreemptionTest and a
//! live cluster are complete.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::Need;
use reprieve_api::{InputError, Kind, NamespacedName, ObjectRef, ObjectSet, Pod, Reader, Source};
use reprieve_report::plural::count;

/// The command that exports all objects that a decision under policy Kubernetes reads and every cluster serves.
pub fn export_all() -> String {
    let resources = Kind::STORED.iter().map(|kind| kind.resource());
    let served = resources.filter(|resource| resource.reader == Reader::All || resource.need == Need::Completes);
    let plurals: Vec<&str> = served.map(|resource| resource.plural).collect();
    format!("kubectl get {} -A -o yaml", plurals.join(","))
}

const EXPORT_NODES: &str = "kubectl get nodes -o yaml";
const EXPORT_PODS: &str = "kubectl get pods -A -o yaml";
const EXPORT_CLASSES: &str = "kubectl get priorityclasses -o yaml";

/// The classes that every cluster has.
const BUILT_IN: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// Refuses input without nodes, and input without any PriorityClass whose objects name one. Returns warnings about single missing classes.
/// `files` is the name of the input.
pub fn check(objects: &ObjectSet, files: &str) -> Result<Vec<String>, InputError> {
    if objects.nodes.is_empty() {
        let problem = format!("{files}: no Node in the input; add the output of: {EXPORT_NODES}");
        return Err(InputError::new(problem));
    }
    let named = named_classes(objects);
    let has =
        |class: &str| objects.priority_classes.iter().any(|known| known.object.metadata.name.as_deref() == Some(class));
    if objects.priority_classes.is_empty()
        && let Some(first) = named.values().flatten().min_by_key(|naming| naming.source)
    {
        let kinds = named.values().flatten().map(|naming| naming.kind.resource().kind);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        kinds.for_each(|kind| *counts.entry(kind).or_default() += 1);
        let counts: Vec<String> = counts.into_iter().map(|(kind, n)| count(n, kind, &format!("{kind}s"))).collect();
        let problem = format!(
            "PriorityClass {:?} is not in the input; PriorityClasses are referenced by {}, and the input has none; add the output \
             of: {EXPORT_CLASSES}",
            first.class,
            counts.join(" and ")
        );
        let object = ObjectRef::of(first.kind, &first.name);
        return Err(InputError::new(problem).at(first.source).object(object).field(first.field));
    }
    let mut warnings = Vec::new();
    if !objects.pods.iter().any(|pod| is_running(&pod.object)) {
        warnings.push(format!("no running Pod in the input; if the cluster has any, add the output of: {EXPORT_PODS}"));
    }
    for (class, naming) in named.iter().filter(|(class, _)| !has(class)) {
        let Some(first) = naming.iter().min_by_key(|naming| (naming.kind.resource().kind, &naming.name)) else {
            continue;
        };
        let more = if naming.len() > 1 { format!(" and {} more", naming.len() - 1) } else { String::new() };
        warnings.push(format!(
            "{} {}{more}: {}: PriorityClass {class:?} is not in the input; add the output of: {EXPORT_CLASSES}",
            first.kind.resource().kind,
            first.name,
            first.field
        ));
    }
    Ok(warnings)
}

/// Whether the pod is on a node and not finished.
fn is_running(pod: &Pod) -> bool {
    pod.node_name.as_deref().is_some_and(|node| !node.is_empty()) && !pod.is_finished()
}

/// An object that names a PriorityClass.
struct ClassReference<'o> {
    kind: Kind,
    name: NamespacedName,
    source: &'o Source,
    field: &'static str,
    class: &'o str,
}

/// The objects that name a PriorityClass, by class. Finished pods do not count.
fn named_classes(objects: &ObjectSet) -> BTreeMap<&str, Vec<ClassReference<'_>>> {
    let mut named: BTreeMap<&str, Vec<ClassReference<'_>>> = BTreeMap::new();
    let own = "spec.priorityClassName";
    for pod in objects.pods.iter().filter(|pod| !pod.object.is_finished()) {
        let class = pod.object.spec.as_ref().and_then(|spec| spec.priority_class_name.as_ref());
        add(&mut named, Kind::Pod, &pod.object.metadata, &pod.source, own, class);
    }
    for group in &objects.pod_groups {
        let class = group.object.spec.priority_class_name.as_ref();
        add(&mut named, Kind::PodGroup, &group.object.metadata, &group.source, own, class);
    }
    for workload in &objects.workloads {
        let (metadata, spec) = (&workload.object.metadata, &workload.object.spec);
        let as_victim = ("spec.preemptionPriorityClassName", &spec.preemption_priority_class_name);
        for (field, class) in [(own, &spec.priority_class_name), as_victim] {
            add(&mut named, Kind::Workload, metadata, &workload.source, field, class.as_ref());
        }
    }
    for workload in &objects.kueue_workloads {
        let specs = workload.object.spec.pod_sets.iter().filter_map(|set| set.template.spec.as_ref());
        let class = specs.filter_map(|spec| spec.priority_class_name.as_ref()).next();
        let field = "spec.podSets[].template.spec.priorityClassName";
        add(&mut named, Kind::KueueWorkload, &workload.object.metadata, &workload.source, field, class);
    }
    named
}

/// Adds an object that names a class, unless every cluster has the class.
fn add<'o>(
    named: &mut BTreeMap<&'o str, Vec<ClassReference<'o>>>,
    kind: Kind,
    metadata: &ObjectMeta,
    source: &'o Source,
    field: &'static str,
    class: Option<&'o String>,
) {
    if let Some(class) = class.filter(|class| !class.is_empty() && !BUILT_IN.contains(&class.as_str())) {
        let name = NamespacedName::from_meta(metadata);
        named.entry(class).or_default().push(ClassReference { kind, name, source, field, class });
    }
}
