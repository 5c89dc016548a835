//! Lists the objects of a cluster once, for the commands that only read, such as `reprieve plan`.

use reprieve_api::{Kind, Object, ObjectSet, Source};
use reprieve_loader::QueueSettings;

use crate::client::Cluster;
use crate::error::Error;
use crate::resources::scope;
use crate::trim::apply_api_defaults;
use crate::watch::list_all;

/// All objects that a decision with these queues reads, and a warning for each object or optional kind that cannot be read. Only policy
/// YuniKorn needs the ConfigMap with queues. Changes nothing.
pub fn read(
    cluster: &Cluster,
    queues: &QueueSettings,
    reads_config_map: bool,
) -> Result<(ObjectSet, Vec<String>), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (found, unreadable, warnings) = runtime.map_err(Error::stopped)?.block_on(async {
        let client = cluster.client().await?;
        let scopes: Vec<_> = Kind::STORED
            .iter()
            .filter(|kind| **kind != Kind::ConfigMap || reads_config_map)
            .map(|&kind| scope(kind, queues))
            .collect();
        list_all(&client, &scopes).await
    })?;
    let mut objects = ObjectSet { unreadable, is_complete: true, ..ObjectSet::default() };
    let source = Source { file: "the cluster".into(), document: 1, item: None };
    // Finished pods use no room, and a large cluster has many.
    for mut object in found.into_iter().filter(|object| !matches!(object, Object::Pod(pod) if pod.is_finished())) {
        apply_api_defaults(&mut object);
        objects.push(&object, &source);
    }
    Ok((objects, warnings))
}
