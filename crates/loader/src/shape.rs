//! Converts pod specs into shapes: all fields that the engine's filters read, with names replaced by ids. Pods with equal shapes share one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Taint as ApiTaint,
    Toleration as ApiToleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use reprieve_engine::shape::{
    Effect, HostPort, NameRequirement, NodeSelection, NodeTerm, Shape, Spread, Taint, TaintToleration, Term,
};
use reprieve_engine::{KeyId, Labels, NamespaceId, Operator, Requirement, ResourceId, Selector, TopologyId, ValueId};

use crate::{Amounts, Interner, by_name, requests};
use reprieve_api::kueue::POD_SET;
use reprieve_api::{Container, InputError, NamespacedName, ObjectSet, Pod, PodSpec};

/// The ids of all names in a snapshot.
#[derive(Default)]
pub struct Interners {
    pub keys: Interner,
    pub values: Interner,
    pub namespaces: Interner,
    pub resources: Interner,
    pub topologies: Interner,
    pub applications: Interner,
    /// Texts that only explanations quote.
    pub texts: Interner,
    /// The labels of each namespace.
    pub namespace_labels: BTreeMap<u32, BTreeMap<String, String>>,
    /// The keys of pod labels that selectors of pods and budgets read.
    pub selected_keys: BTreeSet<String>,
}

type StringMap = BTreeMap<String, String>;

impl Interners {
    pub fn key(&mut self, key: &str) -> KeyId {
        KeyId(self.keys.id(key))
    }

    pub fn value(&mut self, value: &str) -> ValueId {
        ValueId(self.values.id(value))
    }

    fn values(&mut self, values: &[String]) -> Vec<ValueId> {
        values.iter().map(|value| self.value(value)).collect()
    }

    pub fn topology(&mut self, key: &str) -> TopologyId {
        TopologyId(self.topologies.id(key))
    }

    pub fn labels(&mut self, labels: Option<&StringMap>) -> Labels {
        let pairs = labels.into_iter().flatten();
        Labels::new(pairs.map(|(key, value)| (self.key(key), self.value(value))).collect())
    }

    /// Returns the labels of a pod that selectors read. All others become one empty label, so that pods which differ only in them have the
    /// same shape.
    fn selected_labels(&mut self, labels: Option<&StringMap>) -> Labels {
        let all = labels.into_iter().flatten();
        let (read, others): (Vec<_>, Vec<_>) = all.partition(|(key, _)| self.selected_keys.contains(*key));
        let other = (!others.is_empty()).then(|| (self.key(""), self.value("")));
        let read = read.into_iter().map(|(key, value)| (self.key(key), self.value(value)));
        Labels::new(read.chain(other).collect())
    }

    pub fn taint(&mut self, taint: &ApiTaint) -> Result<Taint, InputError> {
        let effect = effect(&taint.effect).map_err(|error| error.field("spec.taints.effect"))?;
        let value = self.value(taint.value.as_deref().unwrap_or_default());
        Ok(Taint { key: self.key(&taint.key), value, effect })
    }

    /// Returns the taint of a cordoned node.
    pub fn cordon(&mut self) -> Taint {
        let key = self.key("node.kubernetes.io/unschedulable");
        Taint { key, value: self.value(""), effect: Effect::NoSchedule }
    }

    /// Returns the shape of a pod.
    pub fn shape(&mut self, name: &NamespacedName, pod: &Pod, requests: &Amounts) -> Result<Shape, InputError> {
        let empty = PodSpec::default();
        let spec = pod.spec.as_deref().unwrap_or(&empty);
        let own_labels = pod.metadata.labels.as_ref();
        let (together, apart) = required_terms(spec.affinity.as_ref());
        let terms = |interners: &mut Self, terms: &[PodAffinityTerm], field: &str| {
            terms
                .iter()
                .map(|term| interners.term(term, name, own_labels))
                .collect::<Result<Vec<Term>, InputError>>()
                .map_err(|error| error.field(format!("spec.affinity.{field}")))
        };
        let keys = selected_keys(spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref());
        self.selected_keys.extend(keys.into_iter().cloned());
        Ok(Shape {
            namespace: NamespaceId(self.namespaces.id(&name.namespace)),
            labels: self.selected_labels(own_labels),
            requests: self.requests(requests),
            nodes: self.node_selection(spec)?,
            tolerations: self.tolerations(spec)?,
            ports: self.ports(spec),
            affinity: terms(self, together, "podAffinity")?,
            anti_affinity: terms(self, apart, "podAntiAffinity")?,
            spread: self.spread(spec, own_labels)?,
        })
    }

    /// Returns the shape of a bound pod of which only the room is known: its labels, its ports and `requests`.
    pub fn occupied_shape(&mut self, name: &NamespacedName, pod: &Pod, requests: &Amounts) -> Shape {
        let empty = PodSpec::default();
        let spec = pod.spec.as_deref().unwrap_or(&empty);
        Shape {
            namespace: NamespaceId(self.namespaces.id(&name.namespace)),
            labels: self.selected_labels(pod.metadata.labels.as_ref()),
            requests: self.requests(requests),
            nodes: NodeSelection { all: Vec::new(), any: None },
            tolerations: Vec::new(),
            ports: self.ports(spec),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            spread: Vec::new(),
        }
    }

    /// Returns the requests by resource id, starting with 1 for `pods`. Resources with higher ids are added later.
    fn requests(&mut self, amounts: &Amounts) -> Vec<i64> {
        let mut requests = vec![1];
        for (resource, &amount) in amounts.iter().filter(|(resource, amount)| **amount > 0 && *resource != "pods") {
            let index = ResourceId(self.resources.id(resource)).index();
            if requests.len() <= index {
                requests.resize(index + 1, 0);
            }
            requests[index] = amount;
        }
        requests
    }

    fn node_selection(&mut self, spec: &PodSpec) -> Result<NodeSelection, InputError> {
        let all = spec.node_selector.iter().flatten().map(|(key, value)| self.equals(key, value)).collect();
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        let terms = required.map(|required| required.node_selector_terms.iter());
        let any = terms.map(|terms| terms.map(|term| self.node_term(term)).collect::<Result<_, InputError>>());
        let any = any.transpose().map_err(|error| error.field("spec.affinity.nodeAffinity"))?;
        Ok(NodeSelection { all, any })
    }

    fn equals(&mut self, key: &str, value: &str) -> Requirement {
        Requirement { key: self.key(key), operator: Operator::In(vec![self.value(value)]) }
    }

    fn node_term(&mut self, term: &NodeSelectorTerm) -> Result<NodeTerm, InputError> {
        let labels = term
            .match_expressions
            .iter()
            .flatten()
            .map(|label| self.node_requirement(label))
            .collect::<Result<_, _>>()?;
        let names =
            term.match_fields.iter().flatten().map(|field| self.name_requirement(field)).collect::<Result<_, _>>()?;
        Ok(NodeTerm { labels, names })
    }

    fn node_requirement(&mut self, requirement: &NodeSelectorRequirement) -> Result<Requirement, InputError> {
        let values = requirement.values.as_deref().unwrap_or_default();
        let number = || match values {
            [value] => value
                .parse()
                .map_err(|_| InputError::new(format!("{value:?} is not valid; Gt and Lt need a whole number"))),
            _ => Err(InputError::new(format!("{} values are given; Gt and Lt need one whole number", values.len()))),
        };
        let operator = match requirement.operator.as_str() {
            "Gt" => Operator::Above(number()?),
            "Lt" => Operator::Below(number()?),
            other => self.operator(other, values, "In, NotIn, Exists, DoesNotExist, Gt, Lt")?,
        };
        Ok(Requirement { key: self.key(&requirement.key), operator })
    }

    fn name_requirement(&mut self, requirement: &NodeSelectorRequirement) -> Result<NameRequirement, InputError> {
        if requirement.key != "metadata.name" {
            let problem = format!("{:?} cannot be matched; write metadata.name", requirement.key);
            return Err(InputError::new(problem));
        }
        let names = self.values(requirement.values.as_deref().unwrap_or_default());
        match requirement.operator.as_str() {
            "In" => Ok(NameRequirement::In(names)),
            "NotIn" => Ok(NameRequirement::NotIn(names)),
            other => Err(unknown_operator(other, "In, NotIn")),
        }
    }

    /// Tolerations with operator `Gt` or `Lt` tolerate no taint, as in a cluster without that feature gate.
    fn tolerations(&mut self, spec: &PodSpec) -> Result<Vec<TaintToleration>, InputError> {
        let compares = |toleration: &&ApiToleration| matches!(toleration.operator.as_deref(), Some("Gt" | "Lt"));
        let others = spec.tolerations.iter().flatten().filter(|toleration| !compares(toleration));
        others.map(|toleration| self.toleration(toleration)).collect()
    }

    pub fn toleration(&mut self, toleration: &ApiToleration) -> Result<TaintToleration, InputError> {
        let named = toleration.effect.as_deref().filter(|effect| !effect.is_empty());
        let effect = named.map(effect).transpose().map_err(|error| error.field("spec.tolerations.effect"))?;
        let key = toleration.key.as_deref().filter(|key| !key.is_empty()).map(|key| self.key(key));
        let value = match toleration.operator.as_deref() {
            Some("Exists") => None,
            None | Some("" | "Equal") => Some(self.value(toleration.value.as_deref().unwrap_or_default())),
            Some(other) => return Err(unknown_operator(other, "Exists, Equal").field("spec.tolerations.operator")),
        };
        Ok(TaintToleration { key, value, effect })
    }

    /// Returns the host ports of containers and sidecars. With `hostNetwork`, every container port is a host port.
    fn ports(&mut self, spec: &PodSpec) -> Vec<HostPort> {
        let on_host = spec.host_network == Some(true);
        let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
        let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
        let mut taken: Vec<HostPort> = ports
            .filter_map(|port| {
                let host = port.host_port.or(on_host.then_some(port.container_port));
                let number = u16::try_from(host?).ok().filter(|&number| number > 0)?;
                let address = port.host_ip.as_deref().filter(|address| !address.is_empty() && *address != "0.0.0.0");
                Some(HostPort {
                    protocol: self.value(port.protocol.as_deref().unwrap_or("TCP")),
                    address: address.map(|address| self.value(address)),
                    port: number,
                })
            })
            .collect();
        taken.sort_unstable();
        taken.dedup();
        taken
    }

    fn term(
        &mut self,
        term: &PodAffinityTerm,
        pod: &NamespacedName,
        own: Option<&StringMap>,
    ) -> Result<Term, InputError> {
        let mut selector = self.selector(term.label_selector.as_ref())?;
        self.add_label_keys(&mut selector, term.match_label_keys.as_deref(), own, Operator::In);
        self.add_label_keys(&mut selector, term.mismatch_label_keys.as_deref(), own, Operator::NotIn);
        let mut namespaces: BTreeSet<u32> =
            term.namespaces.iter().flatten().map(|namespace| self.namespaces.id(namespace)).collect();
        match &term.namespace_selector {
            Some(selector) => {
                let selector = self.selector(Some(selector))?;
                let all = self.namespace_labels.clone();
                namespaces.extend(
                    all.iter().filter(|(_, labels)| selector.matches(&self.labels(Some(labels)))).map(|(id, _)| id),
                );
            }
            None if namespaces.is_empty() => {
                namespaces.insert(self.namespaces.id(&pod.namespace));
            }
            None => {}
        }
        let namespaces = namespaces.into_iter().map(NamespaceId).collect();
        Ok(Term { namespaces, selector, topology: self.topology(&term.topology_key) })
    }

    fn spread(&mut self, spec: &PodSpec, own: Option<&StringMap>) -> Result<Vec<Spread>, InputError> {
        let constraints = spec.topology_spread_constraints.iter().flatten();
        let hard = constraints.filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule");
        hard.map(|constraint| self.spread_constraint(constraint, own))
            .collect::<Result<_, _>>()
            .map_err(|error| error.field("spec.topologySpreadConstraints"))
    }

    fn spread_constraint(
        &mut self,
        constraint: &TopologySpreadConstraint,
        own: Option<&StringMap>,
    ) -> Result<Spread, InputError> {
        let mut selector = self.selector(constraint.label_selector.as_ref())?;
        self.add_label_keys(&mut selector, constraint.match_label_keys.as_deref(), own, Operator::In);
        let honors = |policy: Option<&str>, default: bool| policy.map_or(default, |policy| policy == "Honor");
        Ok(Spread {
            topology: self.topology(&constraint.topology_key),
            max_skew: i64::from(constraint.max_skew),
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            selector,
            honors_selection: honors(constraint.node_affinity_policy.as_deref(), true),
            honors_taints: honors(constraint.node_taints_policy.as_deref(), false),
        })
    }

    /// Adds `matchLabelKeys` or `mismatchLabelKeys`: a requirement with the pod's own value for each key that it has.
    fn add_label_keys(
        &mut self,
        selector: &mut Selector,
        keys: Option<&[String]>,
        own: Option<&StringMap>,
        operator: impl Fn(Vec<ValueId>) -> Operator,
    ) {
        let Selector::All(requirements) = selector else { return };
        for key in keys.unwrap_or_default() {
            if let Some(value) = own.and_then(|labels| labels.get(key)) {
                let requirement = Requirement { key: self.key(key), operator: operator(vec![self.value(value)]) };
                requirements.push(requirement);
            }
        }
    }

    /// Converts a label selector; a missing selector matches nothing.
    pub fn selector(&mut self, selector: Option<&LabelSelector>) -> Result<Selector, InputError> {
        let Some(selector) = selector else { return Ok(Selector::Nothing) };
        let mut requirements: Vec<Requirement> =
            selector.match_labels.iter().flatten().map(|(key, value)| self.equals(key, value)).collect();
        for expression in selector.match_expressions.iter().flatten() {
            requirements.push(self.requirement(expression)?);
        }
        Ok(Selector::All(requirements))
    }

    fn requirement(&mut self, expression: &LabelSelectorRequirement) -> Result<Requirement, InputError> {
        let values = expression.values.as_deref().unwrap_or_default();
        let operator = self.operator(&expression.operator, values, "In, NotIn, Exists, DoesNotExist")?;
        Ok(Requirement { key: self.key(&expression.key), operator })
    }

    fn operator(&mut self, name: &str, values: &[String], known: &str) -> Result<Operator, InputError> {
        match name {
            "In" => Ok(Operator::In(self.values(values))),
            "NotIn" => Ok(Operator::NotIn(self.values(values))),
            "Exists" => Ok(Operator::Exists),
            "DoesNotExist" => Ok(Operator::DoesNotExist),
            other => Err(unknown_operator(other, known)),
        }
    }
}

/// Returns the required terms of pod affinity and of pod anti-affinity.
fn required_terms(affinity: Option<&Affinity>) -> (&[PodAffinityTerm], &[PodAffinityTerm]) {
    let together = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let together = together.and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_deref());
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let apart = apart.and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_deref());
    (together.unwrap_or_default(), apart.unwrap_or_default())
}

/// Returns the label keys of other pods that the affinity and spread constraints of a pod read.
pub fn selected_keys<'s>(
    affinity: Option<&'s Affinity>,
    spread: Option<&'s [TopologySpreadConstraint]>,
) -> Vec<&'s String> {
    let (together, apart) = required_terms(affinity);
    let terms = together
        .iter()
        .chain(apart)
        .map(|term| (term.label_selector.as_ref(), &term.match_label_keys, &term.mismatch_label_keys));
    let spread = spread.into_iter().flatten();
    let spread = spread.map(|constraint| (constraint.label_selector.as_ref(), &constraint.match_label_keys, &None));
    let keys = terms.chain(spread).flat_map(|(selector, matched, mismatched)| {
        selector.into_iter().flat_map(keys_of).chain(matched.iter().flatten()).chain(mismatched.iter().flatten())
    });
    keys.collect()
}

/// Returns the label keys that a selector reads.
pub fn keys_of(selector: &LabelSelector) -> impl Iterator<Item = &String> {
    let expressions = selector.match_expressions.iter().flatten().map(|expression| &expression.key);
    selector.match_labels.iter().flatten().map(|(key, _)| key).chain(expressions)
}

fn effect(name: &str) -> Result<Effect, InputError> {
    match name {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        _ => {
            let problem = format!("{name:?} is not an effect; write NoSchedule, PreferNoSchedule or NoExecute");
            Err(InputError::new(problem))
        }
    }
}

fn unknown_operator(operator: &str, known: &str) -> InputError {
    InputError::new(format!("{operator:?} is not an operator; write one of {known}"))
}

/// Gives ids to names that every cluster has, in a fixed order, so that ids do not depend on the order of the objects.
pub fn new_interners(objects: &ObjectSet) -> Interners {
    let mut interners = Interners::default();
    for resource in ["pods", "cpu", "memory", "ephemeral-storage"] {
        interners.resources.id(resource);
    }
    let mut labels: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (name, namespace) in by_name::<String, _>(&objects.namespaces) {
        labels.insert(name, namespace.object.metadata.labels.clone().unwrap_or_default());
    }
    for pod in &objects.pods {
        let namespace = pod.name().namespace;
        labels.entry(namespace).or_default();
    }
    // Pods of different pod sets have different shapes, because pod sets may get different flavors and so different nodes.
    interners.selected_keys.insert(POD_SET.to_owned());
    for budget in &objects.budgets {
        let selector = budget.object.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        interners.selected_keys.extend(selector.into_iter().flat_map(keys_of).cloned());
    }
    let pods = objects.pods.iter().filter_map(|pod| pod.object.spec.as_ref());
    let pods = pods.map(|spec| (spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref()));
    let sets = objects.kueue_workloads.iter().flat_map(|workload| &workload.object.spec.pod_sets);
    let sets = sets.filter_map(|set| set.template.spec.as_ref());
    let sets = sets.map(|spec| (spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref()));
    for (affinity, spread) in pods.chain(sets) {
        interners.selected_keys.extend(selected_keys(affinity, spread).into_iter().cloned());
    }
    for (name, mut labels) in labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        let id = interners.namespaces.id(&name);
        interners.namespace_labels.insert(id, labels);
    }
    interners
}

/// Whether two states of a pod surely have the same shape. False if that would need the conversion.
pub fn same_shape(old: &Pod, new: &Pod) -> bool {
    let (Some(before), Some(after)) = (&old.spec, &new.spec) else { return false };
    if old.metadata.labels != new.metadata.labels
        || requests::requests_depend_on_status(old)
        || requests::requests_depend_on_status(new)
    {
        return false;
    }
    Arc::ptr_eq(before, after)
        || before.containers == after.containers
            && before.init_containers == after.init_containers
            && before.resources == after.resources
            && before.overhead == after.overhead
            && before.host_network == after.host_network
            && before.node_selector == after.node_selector
            && before.affinity == after.affinity
            && before.tolerations == after.tolerations
            && before.topology_spread_constraints == after.topology_spread_constraints
}
