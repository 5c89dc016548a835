//! Reads single objects, and lists the objects of a kind page by page.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::core::Request;
use kube::core::params::ListParams;
use reprieve_api::kinds::Need;
use reprieve_api::object_set::Unreadable;
use reprieve_api::{Kind, Object};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::WatchScope;
use super::undecodable::{Identity, Undecodable};
use crate::error::{Error, has_code};
use crate::served::ServedVersions;
use crate::trim::ObjectTrimmer;

const PAGE_SIZE: u32 = 500;
/// The number of undecodable objects of a kind that get a warning of their own.
const MAX_WARNINGS: usize = 10;

/// Reads one object.
pub async fn get(
    client: &Client,
    versions: &ServedVersions,
    kind: Kind,
    namespace: &str,
    name: &str,
) -> Result<Object, kube::Error> {
    let request = Request::new(versions.path(kind, Some(namespace)));
    let request = request.get(name, &Default::default()).map_err(kube::Error::BuildRequest)?;
    let object = Object::from_json(kind, &client.request_text(request).await?).map_err(kube::Error::SerdeError)?;
    Ok(ObjectTrimmer::default().trim(object))
}

/// A page of a list. Its objects are decoded and trimmed one by one: a page of complete objects takes many times the memory.
#[derive(Deserialize)]
struct Page<'t> {
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

impl Page<'_> {
    /// Decodes the objects; those that cannot be decoded go to `undecodable`.
    fn objects(&self, kind: Kind, trimmer: &mut ObjectTrimmer, undecodable: &mut Vec<Undecodable>) -> Vec<Object> {
        let decode = |item: &&RawValue| match Object::from_json(kind, item.get()) {
            Ok(object) => Some(trimmer.trim(object)),
            Err(error) => {
                let identity: Identity = serde_json::from_str(item.get()).unwrap_or_default();
                undecodable.push(Undecodable::new(kind, &identity, item.get(), &error));
                None
            }
        };
        self.items.iter().flatten().filter_map(decode).collect()
    }
}

/// A complete list.
pub struct Listed {
    /// The version of the list, from which a watch continues.
    pub version: u64,
    /// The objects that cannot be decoded.
    pub undecodable: Vec<Undecodable>,
}

/// Lists the objects of a kind in the newest version that the API server serves, and passes each page to `take`.
pub async fn list(
    client: &Client,
    versions: &ServedVersions,
    scope: &WatchScope,
    trimmer: &mut ObjectTrimmer,
    take: &mut (dyn FnMut(Vec<Object>) + Send),
) -> Result<Listed, kube::Error> {
    versions.discover(client, scope.kind).await;
    let path = scope.request(versions);
    let mut undecodable = Vec::new();
    let mut params =
        ListParams { limit: Some(PAGE_SIZE), field_selector: scope.field_selector(), ..ListParams::default() };
    loop {
        let request = path.list(&params).map_err(kube::Error::BuildRequest)?;
        let text = client.request_text(request).await?;
        let page: Page = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        take(page.objects(scope.kind, trimmer, &mut undecodable));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            let version = page.metadata.resource_version.as_deref().map_or(0, parse_version);
            return Ok(Listed { version, undecodable });
        }
    }
}

pub(super) fn parse_version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Whether the API server does not know the kind.
pub fn is_unknown_kind(error: &kube::Error) -> bool {
    has_code(error, 404)
}

/// Whether the scheduler can run without a kind that cannot be listed because of this error: the API server does not know the kind, or
/// listing an optional kind is forbidden.
pub fn can_run_without(kind: Kind, error: &kube::Error) -> bool {
    is_unknown_kind(error) || (has_code(error, 403) && kind.resource().need != Need::Required)
}

/// Lists the objects of these kinds. Returns those that cannot be decoded, and a warning for each object without a name and each optional
/// kind that cannot be read; a kind that the API server does not know has no objects.
pub async fn list_all(
    client: &Client,
    scopes: &[WatchScope],
) -> Result<(Vec<Object>, Vec<Unreadable>, Vec<String>), Error> {
    let lists = scopes.iter().map(|scope| async move {
        let (kind, mut objects) = (scope.kind, Vec::new());
        match list(client, &ServedVersions::default(), scope, &mut ObjectTrimmer::default(), &mut |page| objects.extend(page)).await {
            Ok(listed) => {
                let (named, nameless): (Vec<_>, Vec<_>) =
                    listed.undecodable.into_iter().partition(Undecodable::has_name);
                Ok((objects, named.into_iter().map(|object| object.unreadable).collect(), warnings(kind, &nameless)))
            }
            Err(error) if is_unknown_kind(&error) => Ok((Vec::new(), Vec::new(), Vec::new())),
            Err(error) if has_code(&error, 403) && kind.resource().need == Need::Completes => {
                let plural = kind.resource().plural;
                let warning = format!(
                    "no permission to list {plural}: what they add to submitted pods and to workloads is not counted; bind the \
                     ClusterRole reprieve-plan of deploy/manifests"
                );
                Ok((Vec::new(), Vec::new(), vec![warning]))
            }
            // Policies without these queues need no permission for them.
            Err(error) if has_code(&error, 403) && scope.name().is_some() => {
                let (resource, name) = (kind.resource(), scope.name().unwrap_or_default());
                let place = scope.place();
                let warning = format!("no permission to read {} {name}{place}: its queues are not known", resource.kind);
                Ok((Vec::new(), Vec::new(), vec![warning]))
            }
            Err(error) => Err(Error::api(format!("reading {}{}", kind.resource().plural, scope.place()), &error)),
        }
    });
    let (mut objects, mut unreadable, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for listed in futures::future::try_join_all(lists).await? {
        objects.extend(listed.0);
        unreadable.extend(listed.1);
        warnings.extend(listed.2);
    }
    Ok((objects, unreadable, warnings))
}

/// The warnings about undecodable objects of a kind.
fn warnings(kind: Kind, undecodable: &[Undecodable]) -> Vec<String> {
    let named = undecodable.iter().take(MAX_WARNINGS).map(|Undecodable { object, error, .. }| {
        format!("{object} cannot be decoded and is left out: {error}; correct it, or delete it")
    });
    let more = undecodable.len().saturating_sub(MAX_WARNINGS);
    let rest = (more > 0).then(|| format!("{more} more {} cannot be decoded and are left out", kind.resource().plural));
    named.chain(rest).collect()
}

/// Checks that the objects can be listed.
pub async fn probe(client: &Client, scope: &WatchScope) -> Result<(), kube::Error> {
    let params = ListParams { limit: Some(1), field_selector: scope.field_selector(), ..ListParams::default() };
    let versions = ServedVersions::default();
    versions.discover(client, scope.kind).await;
    let request = scope.request(&versions).list(&params).map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::BoxError;

    use super::*;

    #[test]
    fn objects_of_a_page_are_trimmed() {
        let node = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}});
        for (items, expected) in [(json!([node]), 1), (json!([]), 0), (json!(null), 0)] {
            let (objects, undecodable) = read(items);
            assert_eq!(undecodable, []);
            assert_eq!(objects.len(), expected);
            assert!(objects.iter().all(|object| object.metadata().managed_fields.is_none()));
        }
    }

    #[test]
    fn undecodable_object_does_not_hide_others() {
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
    fn only_the_first_undecodable_objects_are_named() {
        let (_, undecodable) = read(json!(vec![json!({"metadata": {"name": "a"}, "spec": 7}); MAX_WARNINGS + 5]));
        let warnings = warnings(Kind::Node, &undecodable);
        assert_eq!(warnings.len(), MAX_WARNINGS + 1);
        assert_eq!(warnings[MAX_WARNINGS], "5 more nodes cannot be decoded and are left out");
    }

    #[tokio::test]
    async fn all_pages_are_read_and_every_undecodable_object_is_named() {
        let respond = |request: http::Request<Body>| {
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
        let client = Client::new(tower::service_fn(respond), "default");
        let (objects, unreadable, warnings) =
            list_all(&client, &[Kind::Node, Kind::Pod].map(WatchScope::all)).await.expect("lists");
        let names: Vec<String> = objects.iter().map(|object| object.key().to_string()).collect();
        assert_eq!(names, ["Node default/n", "Pod team/a", "Pod team/c"]);
        let unreadable: Vec<String> = unreadable.iter().map(|one| format!("{} {:?}", one.error, one.node)).collect();
        let problem = "Pod team/b: \"none\" is text; expected a list; correct it, or delete the object";
        assert_eq!((unreadable, warnings), (vec![format!("{problem} Some(\"n\")")], Vec::<String>::new()));
    }

    fn node(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn pod(name: &str, containers: Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "team"}, "spec": {"nodeName": "n", "containers": containers}})
    }

    /// Decodes a page of nodes: the objects, and the undecodable ones.
    fn read(items: Value) -> (Vec<Object>, Vec<Undecodable>) {
        let text = json!({"metadata": {"resourceVersion": "7"}, "items": items}).to_string();
        let page: Page = serde_json::from_str(&text).expect("a page");
        let mut undecodable = Vec::new();
        let objects = page.objects(Kind::Node, &mut ObjectTrimmer::default(), &mut undecodable);
        (objects, undecodable)
    }
}
