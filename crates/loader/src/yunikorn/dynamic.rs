//! The dynamic queues: queues that pods name and that the configuration does not have.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::{InputError, NamespacedName, ObjectSet, Pod, ProblemCode};

use super::{QueueConfig, TreeBuilder, YuniKornTree, amounts, positive};
use crate::QueueSpec;
use crate::quarantine::Problem;
use crate::queue_settings::QueueScope;
use crate::requests::{amount, limit};
use crate::yunikorn_pods::queue_of;

/// Returns the queues that pods name and may use, in the order of the oldest pod that names each. A queue with pods has no children, so
/// without this order a younger pod of another tenant could take the queue of older pods from them.
pub(super) fn named_queues(
    objects: &ObjectSet,
    tree: &YuniKornTree,
    scope: &QueueScope,
    reads_queue: impl Fn(&Pod) -> bool,
) -> Vec<String> {
    let mut oldest: BTreeMap<String, Option<Time>> = BTreeMap::new();
    for pod in objects.pods.iter().map(|pod| &*pod.object).filter(|pod| !pod.is_finished() && reads_queue(pod)) {
        let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
        let may_use = |path: &String| tree.restricted(path).is_none() && scope.permits(&namespace, path);
        let Some(path) = queue_of(pod).filter(may_use) else { continue };
        let created = pod.metadata.creation_timestamp.clone();
        let first = oldest.entry(path).or_insert_with(|| created.clone());
        *first = created.min(first.take());
    }
    let mut named: Vec<(Option<Time>, String)> = oldest.into_iter().map(|(path, created)| (created, path)).collect();
    named.sort_unstable();
    named.into_iter().map(|(_, path)| path).collect()
}

impl TreeBuilder<'_> {
    /// Adds the queues of a path that the configuration does not have, from the template of the nearest queue that it has. A path that
    /// cannot be added is refused.
    pub(super) fn add_dynamic(&mut self, path: &str) {
        if let Err(problem) = self.try_add_dynamic(path) {
            self.tree.refused.insert(path.to_owned(), problem);
        }
    }

    fn try_add_dynamic(&mut self, path: &str) -> Result<(), Problem> {
        let field = "metadata.labels.queue";
        let is_lost = |lost: &&String| path == **lost || path.starts_with(&format!("{lost}."));
        if let (Some(_), Some(config)) = (self.tree.lost.iter().find(is_lost), &self.tree.config) {
            return Err(Problem::refers_to(config.clone(), field));
        }
        if let Some(index) = self.tree.find(path) {
            let may_be_leaf = self.tree.queues[index].dynamic && !self.tree.has_children(index);
            self.tree.queues[index].leaf |= may_be_leaf;
            let problem = format!("queue {path:?} has child queues; name one of them, because pods run in leaf queues");
            // Without the pods that name the children, pods could name this queue.
            let code = if self.tree.queues[index].dynamic { ProblemCode::Conflict } else { ProblemCode::InvalidValue };
            let error = InputError::new(problem).field(field).code(code);
            return if self.tree.queues[index].leaf { Ok(()) } else { Err(error.into()) };
        }
        let parts: Vec<&str> = path.split('.').collect();
        let known = (1..parts.len()).rev().find_map(|n| Some((n, self.tree.find(&parts[..n].join("."))?)));
        let dynamic = known.filter(|(_, index)| self.tree.queues[*index].dynamic);
        if let Some((_, above)) = dynamic.filter(|(_, index)| self.tree.queues[*index].leaf) {
            let above = &self.tree.queues[above].spec.name;
            let problem =
                format!("older pods run in queue {above:?}, so it can have no child queues; name another queue");
            return Err(InputError::new(problem).field(field).code(ProblemCode::Conflict).into());
        }
        let Some((n, mut parent)) = dynamic else {
            let problem = format!("queue {path:?} is not in the ConfigMap with the queues; add it, or name another");
            return Err(InputError::new(problem).field(field).code(ProblemCode::MissingReference).into());
        };
        for depth in n..parts.len() {
            let leaf = depth + 1 == parts.len();
            let template = self.tree.queues[parent].template.clone();
            let own = template.clone().filter(|_| leaf).unwrap_or_default();
            let path = parts[..=depth].join(".");
            let inherited = Some(self.tree.queues[parent].settings.policy);
            let settings = self.settings(&path, &own.properties, inherited);
            let guarantee = positive(amounts(&own.resources.guaranteed, &path, amount)?);
            let limit = positive(amounts(&own.resources.max, &path, limit)?);
            let spec = QueueSpec { name: path, parent: Some(parent), guarantee, limit };
            parent = self.tree.queues.len();
            self.tree.queues.push(QueueConfig {
                spec,
                leaf,
                configured: false,
                dynamic: true,
                template,
                settings,
                is_restricted: None,
            });
        }
        Ok(())
    }
}
