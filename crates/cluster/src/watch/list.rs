//! The objects of a kind as they are now, page by page.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::core::Request;
use kube::core::params::ListParams;
use reprieve_api::kinds::{Kind, Need, Object};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::undecodable::{Identity, Undecodable};
use crate::error::{Error, has_code};
use crate::resources::QUEUES;
use crate::trim::ObjectTrimmer;

/// How many objects are read at a time.
const PAGE: u32 = 500;
/// How many objects of a kind that cannot be decoded a warning names.
const NAMED: usize = 10;

/// One object, as the API has it.
pub async fn get(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<Object, kube::Error> {
    let request = Request::new(kind.resource().path(Some(namespace)));
    let request = request.get(name, &Default::default()).map_err(kube::Error::BuildRequest)?;
    let object = Object::from_json(kind, &client.request_text(request).await?).map_err(kube::Error::SerdeError)?;
    Ok(ObjectTrimmer::default().trim(object))
}

/// A page of a list. Each object is understood and slimmed by itself: all of a page in full take many times as much.
#[derive(Deserialize)]
struct Page<'t> {
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

impl Page<'_> {
    /// The objects, without those that cannot be decoded, which are added to `undecodable`.
    fn objects(&self, kind: Kind, slim: &mut ObjectTrimmer, undecodable: &mut Vec<Undecodable>) -> Vec<Object> {
        let decode = |item: &&RawValue| match Object::from_json(kind, item.get()) {
            Ok(object) => Some(slim.trim(object)),
            Err(error) => {
                let identity: Identity = serde_json::from_str(item.get()).unwrap_or_default();
                undecodable.push(Undecodable::new(kind, &identity, &error));
                None
            }
        };
        self.items.iter().flatten().filter_map(decode).collect()
    }
}

/// A list that was read to its end.
pub struct Listed {
    /// As of which version.
    pub version: u64,
    /// The objects that are left out.
    pub undecodable: Vec<Undecodable>,
}

/// Reads all objects of a kind, page by page.
pub async fn list(
    client: &Client,
    kind: Kind,
    slim: &mut ObjectTrimmer,
    take: &mut (dyn FnMut(Vec<Object>) + Send),
) -> Result<Listed, kube::Error> {
    let path = Request::new(kind.resource().path(None));
    let mut undecodable = Vec::new();
    let mut params = ListParams { limit: Some(PAGE), field_selector: selector(kind), ..ListParams::default() };
    loop {
        let request = path.list(&params).map_err(kube::Error::BuildRequest)?;
        let text = client.request_text(request).await?;
        let page: Page = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        take(page.objects(kind, slim, &mut undecodable));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            let version = page.metadata.resource_version.as_deref().map_or(0, version);
            return Ok(Listed { version, undecodable });
        }
    }
}

pub(super) fn selector(kind: Kind) -> Option<String> {
    (kind == Kind::ConfigMap).then(|| format!("metadata.name={QUEUES}"))
}

pub(super) fn version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Whether the API has no such kind.
pub fn is_unknown_kind(error: &kube::Error) -> bool {
    has_code(error, 404)
}

/// Whether the scheduler goes on without the objects of a kind that it could not list: the API has no such kind, or the policy can do
/// without a kind that may not be listed.
pub fn is_dispensable(kind: Kind, error: &kube::Error) -> bool {
    is_unknown_kind(error) || (has_code(error, 403) && kind.resource().need != Need::Required)
}

/// All objects of these kinds, or why they cannot be read; and warnings about those that are left out. Kinds that the cluster does not
/// know have none.
pub async fn list_all(client: &Client, kinds: &[Kind]) -> Result<(Vec<Object>, Vec<String>), Error> {
    let lists = kinds.iter().map(|&kind| async move {
        let mut objects = Vec::new();
        match list(client, kind, &mut ObjectTrimmer::default(), &mut |page| objects.extend(page)).await {
            Ok(listed) => Ok((objects, warnings(kind, &listed.undecodable))),
            Err(error) if is_unknown_kind(&error) => Ok((Vec::new(), Vec::new())),
            Err(error) if has_code(&error, 403) && kind.resource().need == Need::Completes => {
                let plural = kind.resource().plural;
                let warning = format!(
                    "no right to list {plural}: what they add to submitted pods and to workloads is not counted; bind the \
                     ClusterRole reprieve-plan of deploy/manifests"
                );
                Ok((Vec::new(), vec![warning]))
            }
            Err(error) => Err(Error::api(format!("reading {}", kind.resource().plural), &error)),
        }
    });
    let (objects, warnings): (Vec<_>, Vec<_>) = futures::future::try_join_all(lists).await?.into_iter().unzip();
    Ok((objects.into_iter().flatten().collect(), warnings.into_iter().flatten().collect()))
}

/// What is said about the objects of a kind that cannot be decoded.
fn warnings(kind: Kind, undecodable: &[Undecodable]) -> Vec<String> {
    let named = undecodable.iter().take(NAMED).map(|Undecodable { object, error, .. }| {
        format!("{object} cannot be decoded and is left out: {error}; correct it, or delete it")
    });
    let more = undecodable.len().saturating_sub(NAMED);
    let rest = (more > 0).then(|| format!("{more} more {} cannot be decoded and are left out", kind.resource().plural));
    named.chain(rest).collect()
}

/// Whether the objects of a kind can be listed.
pub async fn probe(client: &Client, kind: Kind) -> Result<(), kube::Error> {
    let params = ListParams { limit: Some(1), field_selector: selector(kind), ..ListParams::default() };
    let request = Request::new(kind.resource().path(None)).list(&params).map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::BoxError;

    use super::*;

    #[test]
    fn a_page_is_read_and_slimmed() {
        let node = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}});
        for (items, expected) in [(json!([node]), 1), (json!([]), 0), (json!(null), 0)] {
            let (objects, undecodable) = read(items);
            assert_eq!(undecodable, []);
            assert_eq!(objects.len(), expected);
            assert!(objects.iter().all(|object| object.metadata().managed_fields.is_none()));
        }
    }

    #[test]
    fn an_object_that_cannot_be_decoded_hides_no_other() {
        let wrong = json!({"metadata": {"name": "b", "resourceVersion": "7"}, "spec": {"unschedulable": "perhaps"}});
        let (objects, undecodable) =
            read(json!([{"metadata": {"name": "a"}}, wrong, "no object", {"metadata": {"name": "c"}}]));
        let names: Vec<String> = objects.iter().map(|object| object.key().name.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(
            warnings(Kind::Node, &undecodable),
            [
                "Node b cannot be decoded and is left out: invalid type: string \"perhaps\", expected a boolean; correct it, \
                 or delete it",
                "Node without a name cannot be decoded and is left out: invalid type: string \"no object\", expected Node; \
                 correct it, or delete it",
            ]
        );
    }

    #[test]
    fn of_many_objects_that_cannot_be_decoded_the_first_are_named() {
        let (_, undecodable) = read(json!(vec![json!({"metadata": {"name": "a"}, "spec": 7}); NAMED + 5]));
        let warnings = warnings(Kind::Node, &undecodable);
        assert_eq!(warnings.len(), NAMED + 1);
        assert_eq!(warnings[NAMED], "5 more nodes cannot be decoded and are left out");
    }

    #[tokio::test]
    async fn all_lists_are_read_to_their_end_and_every_object_left_out_is_named() {
        let answer = |request: http::Request<Body>| {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let page = match path {
                path if path.starts_with("/api/v1/nodes") => json!({"metadata": {}, "items": [node("n")]}),
                path if path.contains("continue=more") => json!({"metadata": {}, "items": [pod("c", json!([]))]}),
                _ => {
                    let items = [pod("a", json!([])), pod("b", json!("none"))];
                    json!({"metadata": {"continue": "more"}, "items": items})
                }
            };
            async move { Ok::<_, BoxError>(http::Response::new(Body::from(page.to_string().into_bytes()))) }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let (objects, warnings) = list_all(&client, &[Kind::Node, Kind::Pod]).await.expect("lists");
        let names: Vec<String> = objects.iter().map(|object| object.key().to_string()).collect();
        assert_eq!(names, ["Node default/n", "Pod team/a", "Pod team/c"]);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("Pod team/b cannot be decoded and is left out: "), "{warnings:?}");
    }

    fn node(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn pod(name: &str, containers: Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "team"}, "spec": {"containers": containers}})
    }

    /// The objects on a page of nodes, and those that are left out.
    fn read(items: Value) -> (Vec<Object>, Vec<Undecodable>) {
        let text = json!({"metadata": {"resourceVersion": "7"}, "items": items}).to_string();
        let page: Page = serde_json::from_str(&text).expect("a page");
        let mut undecodable = Vec::new();
        let objects = page.objects(Kind::Node, &mut ObjectTrimmer::default(), &mut undecodable);
        (objects, undecodable)
    }
}
