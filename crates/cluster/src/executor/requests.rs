//! The request of each action. Its preconditions (uid, resource version) make it fail if the object is not the one that was decided about.

use http::HeaderValue;
use http::header::ACCEPT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::Request;
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use reprieve_api::Kind;
use reprieve_loader::timestamp;
use reprieve_scheduler::{Action, ActionResult, effects};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Executor;
use super::merge_patch::merge_patch;
use crate::messages::EventObjectUids;
use crate::reporter::event_path;
use crate::watch::get;

/// The executor reads only the metadata of a response.
const METADATA_ONLY: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json");

type BuiltRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    metadata: ListMeta,
}

impl Executor {
    pub(super) async fn request(&self, action: &Action, uids: &EventObjectUids) -> Result<ActionResult, kube::Error> {
        let version = match action {
            Action::Bind { pod, node } => {
                let binding = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": pod.name.name, "namespace": pod.name.namespace, "uid": pod.uid},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let pods = Kind::Pod.resource().path(Some(&pod.name.namespace));
                self.post(&format!("{pods}/{}/binding", pod.name.name), &binding).await?;
                0
            }
            Action::Nominate { .. }
            | Action::Mark { .. }
            | Action::Unmark { .. }
            | Action::SetCondition { .. }
            | Action::SoftEvict { .. } => return self.patch_status(action).await,
            Action::Evict { pod } => {
                let preconditions =
                    Preconditions { uid: Some(pod.uid.clone()), resource_version: Some(pod.version.to_string()) };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                let pods = Request::new(Kind::Pod.resource().path(Some(&pod.name.namespace)));
                self.send(pods.delete(&pod.name.name, &params)).await?.unwrap_or(pod.version + 1)
            }
            Action::CreateWorkload { workload } => {
                let path = Kind::KueueWorkload.resource().path(workload.metadata.namespace.as_deref());
                self.post(&path, workload).await?.unwrap_or(0)
            }
            Action::SetQuotaPending { .. }
            | Action::Admit { .. }
            | Action::EvictWorkload { .. }
            | Action::RequeueWorkload { .. }
            | Action::FinishWorkload { .. }
            | Action::StartJob { .. }
            | Action::SuspendJob { .. }
            | Action::RestoreJob { .. } => return self.patch_workload_or_job(action).await,
            Action::EmitEvent { about, related, reason, message } => {
                let about = about.kind.resource().reference(about, uids.regarding.clone());
                let related = related.as_ref().map(|key| key.kind.resource().reference(key, uids.related.clone()));
                let event = self.reporter.event(*reason, message, &about, related.as_ref());
                self.post(&event_path(&about), &event).await?;
                0
            }
            Action::GetObject { key } => {
                let object = get(&self.client, &self.versions, key.kind, &key.name.namespace, &key.name.name).await?;
                return Ok(ActionResult::Read(object));
            }
            // The caller lists the objects; the event loop keeps the timers.
            Action::Relist { .. } | Action::WakeAt { .. } => 0,
        };
        Ok(ActionResult::Ok { version })
    }

    /// Patches a workload or a Job if it still has the version that was decided about. The patch has only the fields that differ.
    async fn patch_workload_or_job(&self, action: &Action) -> Result<ActionResult, kube::Error> {
        let Some((kind, target)) = action.changes() else { return Ok(ActionResult::NotFound) };
        let before = get(&self.client, &self.versions, kind, &target.name.namespace, &target.name.name).await?;
        if before.uid() != target.uid {
            return Ok(ActionResult::NotFound);
        }
        let mut after = before.clone();
        if before.version() != target.version || !effects::apply(action, &mut after, timestamp(jiff::Timestamp::now()))
        {
            return Ok(ActionResult::Conflict);
        }
        let value = |object| serde_json::to_value(object).map_err(kube::Error::SerdeError);
        let Some(mut patch) = merge_patch(&value(&before)?, &value(&after)?) else {
            return Ok(ActionResult::Ok { version: target.version });
        };
        patch["metadata"] = json!({"uid": target.uid, "resourceVersion": target.version.to_string()});
        let path = Request::new(self.versions.path(kind, Some(&target.name.namespace)));
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.patch(match kind {
            Kind::KueueWorkload => path.patch_subresource("status", &target.name.name, &params, &patch),
            _ => path.patch(&target.name.name, &params, &patch),
        })
        .await
    }

    /// Patches the status of a pod or a PodGroup, and in the same request a pod's labels and annotations, if the uid matches.
    async fn patch_status(&self, action: &Action) -> Result<ActionResult, kube::Error> {
        let (Some((kind, target)), Some(mut patch)) = (action.changes(), effects::patch(action)) else {
            return Ok(ActionResult::NotFound);
        };
        patch["metadata"]["uid"] = json!(target.uid);
        let path = Request::new(self.versions.path(kind, Some(&target.name.namespace)));
        let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
        self.patch(path.patch_subresource("status", &target.name.name, &params, &patch)).await
    }

    async fn patch(&self, request: BuiltRequest) -> Result<ActionResult, kube::Error> {
        Ok(ActionResult::Ok { version: self.send(request).await?.unwrap_or(0) })
    }

    async fn post(&self, path: &str, body: &impl Serialize) -> Result<Option<u64>, kube::Error> {
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        self.send(Request::new(path).create(&PostParams::default(), body)).await
    }

    /// Sends a request and returns the version of the changed object, if the response has one.
    async fn send(&self, request: BuiltRequest) -> Result<Option<u64>, kube::Error> {
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        request.headers_mut().insert(ACCEPT, METADATA_ONLY);
        let response: Response = self.client.request(request).await?;
        Ok(response.metadata.resource_version.and_then(|version| version.parse().ok()))
    }
}
