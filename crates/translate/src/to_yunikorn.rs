//! Accounts as YuniKorn's queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::queue_tree::Accounts;
use crate::synthetic::{made, named};
use reprieve_api::membership::group_of;
use reprieve_api::meta::FullName;
use reprieve_api::object_set::Objects;
use reprieve_api::quantity::written;
use reprieve_loader::request::Amounts;

impl Accounts {
    pub(crate) fn as_yunikorn(&self, plain: &Objects) -> Objects {
        let queues: Vec<Value> = self.children(None).map(|at| self.queue(at)).collect();
        let config = json!({ "partitions": [{ "name": "default", "queues": [{ "name": "root", "queues": queues }] }] });
        let config = ConfigMap {
            metadata: named("yunikorn-configs", Some("yunikorn")),
            data: Some(BTreeMap::from([("queues.yaml".to_owned(), config.to_string())])),
            ..ConfigMap::default()
        };
        let mut mapped = plain.clone();
        mapped.config_maps.push(made(config));
        for pod in &mut mapped.pods {
            let name = FullName::of(&pod.object.metadata);
            let application = group_of(&pod.object).map_or_else(|| name.name.clone(), |group| group.name);
            let labels = Arc::make_mut(&mut pod.object).metadata.labels.get_or_insert_default();
            labels.retain(|key, _| key != "queue" && key != "yunikorn.apache.org/queue");
            labels.entry("applicationId".to_owned()).or_insert(application);
            labels.extend(self.of_pod.get(&name).map(|&at| ("queue".to_owned(), self.path(at))));
        }
        mapped
    }

    fn path(&self, at: usize) -> String {
        let above = self.accounts[at].parent.map_or_else(|| "root".to_owned(), |parent| self.path(parent));
        format!("{above}.{}", self.names[at])
    }

    /// YuniKorn wants no parent with a guarantee below its children's, and no maximum above a parent's.
    fn queue(&self, at: usize) -> Value {
        let account = &self.accounts[at];
        let guarantee = account.guarantee.keys().map(|resource| (resource.clone(), self.guaranteed(at, resource)));
        let ceiling =
            account.ceiling.keys().filter_map(|resource| Some((resource.clone(), self.lowest(at, resource)?)));
        let resources = json!({ "guaranteed": amounts(guarantee.collect()), "max": amounts(ceiling.collect()) });
        let children: Vec<Value> = self.children(Some(at)).map(|child| self.queue(child)).collect();
        json!({ "name": self.names[at], "parent": !children.is_empty(), "resources": resources, "queues": children })
    }

    /// The lowest ceiling on the way up.
    fn lowest(&self, at: usize, resource: &str) -> Option<i64> {
        let way = std::iter::successors(Some(at), |&at| self.accounts[at].parent);
        way.filter_map(|at| self.accounts[at].ceiling.get(resource).copied()).min()
    }
}

fn amounts(amounts: Amounts) -> Value {
    let name = |resource: &String| if resource == "cpu" { "vcore".to_owned() } else { resource.clone() };
    amounts.iter().map(|(resource, amount)| (name(resource), json!(written(resource, *amount)))).collect()
}
