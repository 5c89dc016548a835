//! The volumes of a pod that a scheduler has to consider, because they are not available on every node. All other volumes, such as emptyDir
//! or configMap, are skipped while decoding.

use std::fmt;

use k8s_openapi::api::core::v1 as api;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// Volume sources that are available on every node. kube-scheduler ignores them, too.
const UNTIED_SOURCES: [&str; 20] = [
    "azureFile",
    "cephfs",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "nfs",
    "photonPersistentDisk",
    "projected",
    "quobyte",
    "scaleIO",
    "secret",
    "storageos",
];

/// The volumes of a pod that are not available on every node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Volumes(Vec<Volume>);

/// A volume that is not available on every node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Volume {
    fields: Map<String, Value>,
    /// The index in the pod's list.
    #[serde(skip)]
    index: usize,
}

impl Volumes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a volume with a PersistentVolumeClaim; a volume of the same name is replaced, as in the pods of a StatefulSet.
    pub fn push_claim(&mut self, name: &str, claim: &str) {
        self.0.retain(|volume| volume.fields.get("name").and_then(Value::as_str) != Some(name));
        let index = self.0.last().map_or(0, |volume| volume.index + 1);
        let fields = json!({"name": name, "persistentVolumeClaim": {"claimName": claim}});
        if let Value::Object(fields) = fields {
            self.0.push(Volume { fields, index });
        }
    }

    /// Returns the path of the first volume source, for example `volumes[0].persistentVolumeClaim`.
    pub fn first_path(&self) -> Option<String> {
        let volume = self.0.first()?;
        let source = volume.fields.keys().find(|key| is_tied(key));
        Some(format!("volumes[{}]{}", volume.index, source.map(|key| format!(".{key}")).unwrap_or_default()))
    }

    fn of(all: Vec<Map<String, Value>>) -> Self {
        let is_tied = |(_, fields): &(usize, Map<String, Value>)| fields.keys().any(|key| is_tied(key));
        let tied = all.into_iter().enumerate().filter(is_tied);
        Self(tied.map(|(index, fields)| Volume { fields, index }).collect())
    }
}

/// Whether a field of a volume is a source that is not available on every node. Unknown sources count as such.
fn is_tied(field: &str) -> bool {
    field != "name" && !UNTIED_SOURCES.contains(&field)
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = Option::<Vec<WireVolume>>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self::of(all.into_iter().map(|WireVolume(fields)| fields).collect()))
    }
}

/// The fields of a volume except sources that are available on every node.
struct WireVolume(Map<String, Value>);

impl<'de> Deserialize<'de> for WireVolume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReadVisitor)
    }
}

struct ReadVisitor;

impl<'de> Visitor<'de> for ReadVisitor {
    type Value = WireVolume;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a volume")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireVolume, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if UNTIED_SOURCES.contains(&key.as_str()) {
                map.next_value::<IgnoredAny>()?;
            } else if let Some(value) = map.next_value::<Option<Value>>()? {
                fields.insert(key, value);
            }
        }
        Ok(WireVolume(fields))
    }
}

impl From<Option<Vec<api::Volume>>> for Volumes {
    fn from(all: Option<Vec<api::Volume>>) -> Self {
        let fields = |volume: &api::Volume| match serde_json::to_value(volume) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => Map::new(),
        };
        Self::of(all.iter().flatten().map(fields).collect())
    }
}

impl From<Volumes> for Option<Vec<api::Volume>> {
    fn from(volumes: Volumes) -> Self {
        let read = |volume: Volume| serde_json::from_value(Value::Object(volume.fields)).ok();
        let all: Vec<api::Volume> = volumes.0.into_iter().filter_map(read).collect();
        (!all.is_empty()).then_some(all)
    }
}

/// The volume mounts of a container with bind mount options, which the node must support.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct BoundMounts(Vec<Mount>);

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
struct Mount {
    mount: api::VolumeMount,
    /// The index in the container's list.
    #[serde(skip)]
    index: usize,
}

impl BoundMounts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the path of the first mount, for example `volumeMounts[0].bindMountOptions`.
    pub fn first_path(&self) -> Option<String> {
        self.0.first().map(|mount| format!("volumeMounts[{}].bindMountOptions", mount.index))
    }

    fn of(all: Option<Vec<api::VolumeMount>>) -> Self {
        let numbered = all.into_iter().flatten().enumerate().map(|(index, mount)| Mount { mount, index });
        Self(numbered.filter(|numbered| numbered.mount.bind_mount_options.iter().flatten().next().is_some()).collect())
    }
}

impl<'de> Deserialize<'de> for BoundMounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::of)
    }
}

impl From<Option<Vec<api::VolumeMount>>> for BoundMounts {
    fn from(all: Option<Vec<api::VolumeMount>>) -> Self {
        Self::of(all)
    }
}

impl From<BoundMounts> for Option<Vec<api::VolumeMount>> {
    fn from(mounts: BoundMounts) -> Self {
        let all: Vec<api::VolumeMount> = mounts.0.into_iter().map(|numbered| numbered.mount).collect();
        (!all.is_empty()).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_volumes_that_are_not_available_on_every_node_are_kept() {
        let all = json!([
            {"name": "tmp", "emptyDir": {}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "none", "persistentVolumeClaim": null},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "new", "sourceOfTheFuture": {}},
        ]);
        let volumes: Volumes = serde_json::from_value(all.clone()).expect("volumes");
        assert_eq!(volumes.first_path().as_deref(), Some("volumes[2].persistentVolumeClaim"));
        let kept = json!([all[2], all[4], all[5]]);
        assert_eq!(serde_json::to_value(&volumes).expect("a value"), kept);
        let of_api: Option<Vec<api::Volume>> = serde_json::from_value(all).expect("volumes of the API");
        assert_eq!(Volumes::from(of_api).first_path(), volumes.first_path());
        let none: Volumes = serde_json::from_value(json!([{"name": "tmp", "emptyDir": {}}])).expect("volumes");
        assert_eq!((none.is_empty(), none.first_path()), (true, None));
    }

    #[test]
    fn only_mounts_with_bind_mount_options_are_kept() {
        let all = json!([
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "data", "mountPath": "/data", "bindMountOptions": ["noexec"], "readOnly": true},
        ]);
        let mounts: BoundMounts = serde_json::from_value(all).expect("mounts");
        assert_eq!(mounts.first_path().as_deref(), Some("volumeMounts[1].bindMountOptions"));
    }
}
