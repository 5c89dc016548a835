//! The objects of a kind as they are now, page by page.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::core::Request;
use kube::core::params::ListParams;
use reprieve_objects::object::{Kind, Object};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::resources::{QUEUES, resource};
use crate::slim::Slim;

/// How many objects are read at a time.
const PAGE: u32 = 500;

/// One object, as the API has it.
pub async fn get(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<Object, kube::Error> {
    let request = Request::new(resource(kind).path(Some(namespace)));
    let request = request.get(name, &Default::default()).map_err(kube::Error::BuildRequest)?;
    understood(kind, &client.request_text(request).await?, &mut Slim::default())
}

fn understood(kind: Kind, text: &str, slim: &mut Slim) -> Result<Object, kube::Error> {
    Object::from_json(kind, text).map(|object| slim.keep(object)).map_err(kube::Error::SerdeError)
}

/// A page of a list. Each object is understood and slimmed by itself: all of a page in full take many times as much.
#[derive(Deserialize)]
struct Page<'t> {
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

impl Page<'_> {
    fn objects(&self, kind: Kind, slim: &mut Slim) -> Result<Vec<Object>, kube::Error> {
        self.items.iter().flatten().map(|item| understood(kind, item.get(), slim)).collect()
    }
}

/// Reads all objects of a kind, page by page, and says as of which version.
pub async fn list(
    client: &Client,
    kind: Kind,
    slim: &mut Slim,
    take: &mut (dyn FnMut(Vec<Object>) + Send),
) -> Result<u64, kube::Error> {
    let path = Request::new(resource(kind).path(None));
    let mut params = ListParams { limit: Some(PAGE), field_selector: selector(kind), ..ListParams::default() };
    loop {
        let request = path.list(&params).map_err(kube::Error::BuildRequest)?;
        let text = client.request_text(request).await?;
        let page: Page = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        take(page.objects(kind, slim)?);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(page.metadata.resource_version.as_deref().map_or(0, version));
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
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether there is no right to do it.
fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// All objects of these kinds, or why they cannot be read. Kinds that the cluster does not know have none.
pub async fn list_all(client: &Client, kinds: &[Kind], optional: &[Kind]) -> Result<(Vec<Object>, Vec<String>), Error> {
    let lists = kinds.iter().map(|&kind| async move {
        let mut objects = Vec::new();
        match list(client, kind, &mut Slim::default(), &mut |page| objects.extend(page)).await {
            Ok(_) => Ok((objects, None)),
            Err(error) if is_unknown_kind(&error) => Ok((Vec::new(), None)),
            Err(error) if is_forbidden(&error) && optional.contains(&kind) => {
                let plural = resource(kind).plural;
                let warning = format!(
                    "no right to list {plural}: what they add to submitted pods and to workloads is not counted; bind the \
                     ClusterRole reprieve-plan of deploy/manifests"
                );
                Ok((Vec::new(), Some(warning)))
            }
            Err(error) => Err(Error::api(format!("reading {}", resource(kind).plural), &error)),
        }
    });
    let (objects, warnings): (Vec<_>, Vec<_>) = futures::future::try_join_all(lists).await?.into_iter().unzip();
    Ok((objects.into_iter().flatten().collect(), warnings.into_iter().flatten().collect()))
}

/// Whether the objects of a kind can be listed.
pub async fn probe(client: &Client, kind: Kind) -> Result<(), kube::Error> {
    let params = ListParams { limit: Some(1), field_selector: selector(kind), ..ListParams::default() };
    let request = Request::new(resource(kind).path(None)).list(&params).map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_is_read_and_slimmed() {
        let read = |page: serde_json::Value| -> Result<Vec<Object>, String> {
            let text = page.to_string();
            let page: Page = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            page.objects(Kind::Node, &mut Slim::default()).map_err(|error| error.to_string())
        };
        let node = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}});
        for (items, expected) in [(json!([node]), 1), (json!([]), 0), (json!(null), 0)] {
            let objects = read(json!({"metadata": {"resourceVersion": "7"}, "items": items})).expect("a page");
            assert_eq!(objects.len(), expected);
            assert!(objects.iter().all(|object| object.metadata().managed_fields.is_none()));
        }
        assert_eq!(read(json!({"metadata": {}})), Ok(Vec::new()));
        let wrong = read(json!({"metadata": {}, "items": ["a"]})).expect_err("no node");
        assert!(wrong.contains("invalid type: string \"a\""), "{wrong}");
    }
}
