//! The versions in which the API server serves kinds that a cluster may lack: their versions differ from cluster to cluster, and each kind
//! has its own.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::Request;
use kube::Client;
use reprieve_api::Kind;
use reprieve_api::kinds::Need;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The newest served version of each kind that has been discovered; for other kinds the version of the table of kinds.
#[derive(Debug, Default)]
pub struct ServedVersions(Mutex<BTreeMap<Kind, String>>);

#[derive(Deserialize)]
struct ApiGroup {
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
struct ApiResource {
    name: String,
}

impl ServedVersions {
    /// The path of the objects of a kind, or of those in a namespace.
    pub fn path(&self, kind: Kind, namespace: Option<&str>) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resource = kind.resource();
        resource.path_in(known.get(&kind).map_or(resource.version, String::as_str), namespace)
    }

    /// Asks the API server for the newest version of a kind that a cluster may lack. If it serves none, or does not answer, the version of
    /// the table stays, and listing the kind shows the error.
    pub async fn discover(&self, client: &Client, kind: Kind) {
        if kind.resource().need == Need::Optional {
            let found = newest_version(client, kind).await.unwrap_or_default();
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match found {
                Some(version) => _ = known.insert(kind, version),
                None => _ = known.remove(&kind),
            }
        }
    }
}

async fn newest_version(client: &Client, kind: Kind) -> Result<Option<String>, kube::Error> {
    let resource = kind.resource();
    let group: ApiGroup = read(client, &format!("/apis/{}", resource.group)).await?;
    let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
    versions.sort_by_cached_key(|version| Reverse(age_key(version)));
    for version in versions {
        let served: ResourceList = read(client, &format!("/apis/{}/{version}", resource.group)).await?;
        if served.resources.iter().any(|served| served.name == resource.plural) {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

async fn read<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// A key that is larger for a newer version: `v1` is newer than `v1beta2`, that is newer than `v1beta1`, and that is newer than any alpha.
fn age_key(version: &str) -> (u8, u32, u32) {
    let digits = |text: &str| text.parse().unwrap_or(0);
    let rest = version.strip_prefix('v').unwrap_or_default();
    if let Some((major, minor)) = rest.split_once("beta") {
        (1, digits(major), digits(minor))
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (0, digits(major), digits(minor))
    } else {
        (2, digits(rest), 0)
    }
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::BoxError;

    use super::*;

    /// By version: the plural names of the resources that an API server serves in it.
    type Served = &'static [(&'static str, &'static [&'static str])];

    /// A client of an API server that serves these resources of `scheduling.k8s.io`.
    fn client(served: Served) -> Client {
        let respond = move |request: http::Request<Body>| {
            let version = |version: &str| json!({"groupVersion": version, "version": version});
            let resources = |names: &[&str]| -> Vec<Value> { names.iter().map(|name| json!({"name": name})).collect() };
            let path = request.uri().path().trim_start_matches("/apis/scheduling.k8s.io").trim_start_matches('/');
            let body = match (path, served.iter().find(|(version, _)| *version == path)) {
                ("", _) => json!({"versions": served.iter().map(|(name, _)| version(name)).collect::<Vec<_>>()}),
                (_, Some((_, names))) => json!({"resources": resources(names)}),
                (_, None) => json!({}),
            };
            async move { Ok::<_, BoxError>(http::Response::new(Body::from(body.to_string().into_bytes()))) }
        };
        Client::new(tower::service_fn(respond), "default")
    }

    #[tokio::test]
    async fn each_kind_is_read_in_its_newest_served_version() {
        const PRIORITIES: (&str, &[&str]) = ("v1", &["priorityclasses"]);
        let cases: [(Served, &str, &str); 4] = [
            (&[PRIORITIES, ("v1alpha1", &["workloads"])], "v1beta1", "v1alpha1"),
            (&[("v1alpha2", &["podgroups", "workloads"]), PRIORITIES], "v1alpha2", "v1alpha2"),
            (
                &[
                    PRIORITIES,
                    ("v1alpha3", &["compositepodgroups", "podgroups", "workloads"]),
                    ("v1beta1", &["podgroups"]),
                ],
                "v1beta1",
                "v1alpha3",
            ),
            (&[PRIORITIES], "v1beta1", "v1beta1"),
        ];
        for (served, group, workload) in cases {
            let (client, versions) = (client(served), ServedVersions::default());
            for (kind, version) in [(Kind::PodGroup, group), (Kind::Workload, workload)] {
                versions.discover(&client, kind).await;
                let plural = kind.resource().plural;
                assert_eq!(
                    versions.path(kind, Some("a")),
                    format!("/apis/scheduling.k8s.io/{version}/namespaces/a/{plural}")
                );
            }
            assert_eq!(versions.path(Kind::Pod, None), "/api/v1/pods");
        }
    }
}
