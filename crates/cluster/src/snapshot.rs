//! Lists the objects of a cluster once, for the commands that only read, such as `reprieve plan`.

use reprieve_api::{Kind, Object, ObjectSet, Source};

use crate::client::Cluster;
use crate::error::Error;
use crate::trim::apply_api_defaults;
use crate::watch::list_all;

/// All objects that a decision reads, and a warning for each object or optional kind that cannot be read. Changes nothing.
pub fn read(cluster: &Cluster) -> Result<(ObjectSet, Vec<String>), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (found, unreadable, warnings) = runtime.map_err(Error::stopped)?.block_on(async {
        let client = cluster.client().await?;
        list_all(&client, Kind::STORED).await
    })?;
    let mut objects = ObjectSet { unreadable, is_complete: true, ..ObjectSet::default() };
    let source = Source { file: "the cluster".into(), document: 1, item: None };
    for mut object in found.into_iter().filter(|object| !matches!(object, Object::Pod(pod) if pod.is_finished())) {
        apply_api_defaults(&mut object);
        objects.push(&object, &source);
    }
    Ok((objects, warnings))
}
