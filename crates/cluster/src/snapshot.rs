//! A cluster as it is now, for those who only ask.

use reprieve_api::kinds::{Kind, Object};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::source::Source;

use crate::client::Cluster;
use crate::error::Error;
use crate::trim::apply_api_defaults;
use crate::watch::list_all;

/// All objects of the cluster that a decision reads, and a warning for each kind that could not be read but is not needed. Nothing is
/// changed.
pub fn read(cluster: &Cluster) -> Result<(ObjectSet, Vec<String>), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Stopped(error.to_string()))?;
    let (found, warnings) = runtime.block_on(async {
        let client = cluster.client().await?;
        list_all(&client, Kind::STORED).await
    })?;
    let mut objects = ObjectSet::default();
    let source = Source { file: "the cluster".into(), document: 1, item: None };
    for mut object in found.into_iter().filter(|object| !matches!(object, Object::Pod(pod) if pod.is_finished())) {
        apply_api_defaults(&mut object);
        objects.push(&object, &source);
    }
    Ok((objects, warnings))
}
