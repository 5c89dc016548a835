//! Translates queues to the ConfigMap of YuniKorn.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use reprieve_api::quantity::format;
use reprieve_api::{ObjectSet, group_of};
use reprieve_engine::Policy;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_loader::Amounts;
use serde_json::{Value, json};

use crate::queue_tree::NeutralQueues;
use crate::synthetic::{named, synthetic};

/// Returns YuniKorn's ConfigMap with these queues below `root`. `properties` maps the name of a queue, which is unique in the tree, to its
/// `properties`, for example `preemption.delay`. YuniKorn rejects queues whose guarantees or limits contradict those of their parents; the
/// caller makes them consistent.
pub fn config_map(queues: &NeutralQueues, properties: impl Fn(&str) -> Value) -> ConfigMap {
    let top = children(queues, None, &properties);
    let root = json!({ "name": "root", "submitacl": "*", "queues": top });
    let config = json!({ "partitions": [{ "name": "default", "queues": [root] }] });
    ConfigMap {
        metadata: named("yunikorn-configs", None),
        data: Some(BTreeMap::from([("queues.yaml".to_owned(), config.to_string())])),
        ..ConfigMap::default()
    }
}

fn children(queues: &NeutralQueues, parent: Option<usize>, properties: &impl Fn(&str) -> Value) -> Vec<Value> {
    let children = queues.children(parent).map(|index| {
        let queue = &queues.queues[index];
        let children = children(queues, Some(index), properties);
        json!({
            "name": queue.name,
            "parent": !children.is_empty(),
            "resources": { "guaranteed": amounts(&queue.guarantee), "max": amounts(&queue.limit) },
            "properties": properties(&queue.name),
            "queues": children,
        })
    });
    children.collect()
}

/// Formats amounts; YuniKorn calls cpu `vcore`.
fn amounts(amounts: &Amounts) -> Value {
    let name = |resource: &String| if resource == "cpu" { "vcore".to_owned() } else { resource.clone() };
    amounts.iter().map(|(resource, amount)| (name(resource), json!(format(resource, *amount)))).collect()
}

impl NeutralQueues {
    /// Returns a copy of the cluster with these queues, in which labels of each pod name its queue and its application: its group, or the
    /// pod itself. `plain` has no objects of other policies.
    pub(crate) fn to_yunikorn(&self, plain: &ObjectSet) -> ObjectSet {
        let mut translated = plain.clone();
        translated.config_maps.push(synthetic(config_map(&self.consistent(), |_| json!({}))));
        for pod in &mut translated.pods {
            let name = pod.name();
            let application = group_of(&pod.object).map_or_else(|| name.name.clone(), |group| group.name);
            let labels = Arc::make_mut(&mut pod.object).metadata.labels.get_or_insert_default();
            labels.retain(|key, _| key != "queue" && key != "yunikorn.apache.org/queue");
            labels.entry("applicationId".to_owned()).or_insert(application);
            labels.extend(
                self.queue_of(&name).and_then(|queue| self.label(queue, &Policy::YuniKorn(YuniKorn::default()))),
            );
        }
        translated
    }

    /// Raises guarantees and lowers limits, because YuniKorn rejects a guarantee below the children's and a maximum above the parent's. It
    /// does not compare a guarantee that is not set, so a queue gets no guarantee of a resource for which it had none.
    fn consistent(&self) -> Self {
        let mut consistent = self.with_guarantees_of_children();
        for (index, queue) in consistent.queues.iter_mut().enumerate() {
            queue.guarantee.retain(|resource, _| self.queues[index].guarantee.contains_key(resource));
            for (resource, limit) in &mut queue.limit {
                let path = std::iter::successors(Some(index), |&index| self.queues[index].parent);
                let limits = path.filter_map(|index| self.queues[index].limit.get(resource).copied());
                *limit = limits.min().unwrap_or(*limit);
            }
        }
        consistent
    }
}
