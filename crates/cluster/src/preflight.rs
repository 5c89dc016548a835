//! The checks before `reprieve run` starts: the API server answers, the kinds are installed and readable, the lease's namespace exists, and
//! all permissions are granted. The error lists everything that is missing at once.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use reprieve_api::Kind;
use reprieve_api::kinds::Need;
use reprieve_engine::Policy;
use tracing::warn;

use crate::config::{Configuration, LeaderElection};
use crate::error::{Error, problem};
use crate::resources::kinds;
use crate::watch::{is_dispensable, is_unknown_kind, probe};

const BIND_ROLE: &str = "bind the ClusterRole reprieve-run of deploy/manifests";

/// Checks the cluster for these policies.
pub async fn check(client: &Client, config: &Configuration, policies: &[Policy], dry_run: bool) -> Result<(), Error> {
    client.apiserver_version().await.map_err(|error| Error::api("asking the API server for its version", &error))?;
    let mut missing = Vec::new();
    let mut wanted: Vec<Kind> = policies.iter().flat_map(kinds).collect();
    wanted.sort_unstable();
    wanted.dedup();
    for (kind, probed) in wanted.iter().zip(join_all(wanted.iter().map(|&kind| probe(client, kind))).await) {
        let Err(error) = probed else { continue };
        let resource = kind.resource();
        let (plural, group, version) = (resource.plural, resource.group, resource.api_version());
        if is_unknown_kind(&error) && resource.need != Need::Required {
            warn!("the cluster has no {} of {version}: none are applied", resource.kind);
        } else if is_unknown_kind(&error) {
            let install = format!("kubectl apply -f deploy/crds/{plural}.{group}.yaml");
            missing.push(format!("  {plural}.{group} is not installed: {install}"));
        } else if is_dispensable(*kind, &error) {
            warn!("no permission to list {plural} of {version}: none are applied; {BIND_ROLE}");
        } else {
            missing.push(format!("  {plural}: {}", problem(&error)));
        }
    }
    missing.extend(missing_lease_namespace(client, config).await.filter(|_| !dry_run));
    if missing.is_empty() {
        let required = required_permissions(config, policies, dry_run);
        let granted = join_all(required.iter().map(|permission| is_granted(client, permission))).await;
        for (permission, granted) in required.iter().zip(granted) {
            if !granted? {
                missing.push(describe_missing(permission));
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::NotReady(missing)) }
}

async fn missing_lease_namespace(client: &Client, config: &Configuration) -> Option<String> {
    let LeaderElection { enabled: true, namespace, name, .. } = &config.leader_election else { return None };
    let found = Api::<Namespace>::all(client.clone()).get_opt(namespace).await;
    // An error is no proof: reading the namespace may be forbidden.
    matches!(found, Ok(None)).then(|| {
        format!(
            "  namespace {namespace} of the lease {name} does not exist: kubectl create namespace {namespace}, or set \
             leaderElection.namespace, or leaderElection.enabled: false if there is only one replica"
        )
    })
}

fn required_permissions(config: &Configuration, policies: &[Policy], dry_run: bool) -> Vec<ResourceAttributes> {
    let mut required = vec![permission("create", "events.k8s.io", "events", None)];
    if dry_run {
        return required;
    }
    required.extend([
        permission("create", "", "pods", Some("binding")),
        permission("patch", "", "pods", Some("status")),
        permission("delete", "", "pods", None),
    ]);
    if policies.iter().any(|policy| matches!(policy, Policy::Kueue(_))) {
        required.extend([
            permission("create", "kueue.x-k8s.io", "workloads", None),
            permission("patch", "kueue.x-k8s.io", "workloads", Some("status")),
            permission("patch", "batch", "jobs", None),
        ]);
    }
    let LeaderElection { enabled, namespace, name, .. } = &config.leader_election;
    if *enabled {
        // RBAC cannot restrict `create` by name.
        required.extend([("get", Some(name)), ("create", None), ("update", Some(name))].map(|(verb, name)| {
            let leases = permission(verb, "coordination.k8s.io", "leases", None);
            ResourceAttributes { namespace: Some(namespace.clone()), name: name.cloned(), ..leases }
        }));
    }
    required
}

fn permission(verb: &str, group: &str, resource: &str, subresource: Option<&str>) -> ResourceAttributes {
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: subresource.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

fn describe_missing(permission: &ResourceAttributes) -> String {
    let part = |prefix: &str, field: &Option<String>| match field.as_deref() {
        None | Some("") => String::new(),
        Some(value) => format!("{prefix}{value}"),
    };
    let ResourceAttributes { verb, group, resource, subresource, namespace, .. } = permission;
    let object =
        part(" ", resource) + &part("/", subresource) + &part(" of ", group) + &part(" in namespace ", namespace);
    format!("  no permission to{}{object}: {BIND_ROLE}", part(" ", verb))
}

async fn is_granted(client: &Client, permission: &ResourceAttributes) -> Result<bool, Error> {
    let resource_attributes = Some(permission.clone());
    let spec = SelfSubjectAccessReviewSpec { resource_attributes, ..SelfSubjectAccessReviewSpec::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviewed = Api::all(client.clone()).create(&PostParams::default(), &review).await;
    let reviewed = reviewed.map_err(|error| Error::api("checking the permissions of this user", &error))?;
    Ok(reviewed.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use kube::client::Body;
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use serde_json::{Value, json};
    use tower::BoxError;

    use super::*;

    /// Checks a cluster in which only the requests for this path fail, with this status code.
    async fn check_with_failure(failing: &'static str, code: StatusCode) -> Result<(), Error> {
        let respond = move |request: http::Request<Body>| {
            let path = request.uri().path().to_owned();
            let (status, body) = match path.as_str() {
                path if path == failing => (code, failure(code.as_u16())),
                "/version" => (StatusCode::OK, version()),
                "/api/v1/namespaces/reprieve-system" => {
                    (StatusCode::OK, json!({"metadata": {"name": "reprieve-system"}}))
                }
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                    (StatusCode::CREATED, json!({"spec": {}, "status": {"allowed": true}}))
                }
                _ => (StatusCode::OK, json!({"metadata": {}, "items": []})),
            };
            let mut response = http::Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = status;
            async move { Ok::<_, BoxError>(response) }
        };
        let client = Client::new(tower::service_fn(respond), "default");
        let config = json!({"apiVersion": "reprieve.dev/v1alpha1", "kind": "Configuration"});
        let config: Configuration = serde_json::from_value(config).expect("a configuration");
        check(&client, &config, &[Policy::Kubernetes(Kubernetes::default())], false).await
    }

    fn failure(code: u16) -> Value {
        json!({"kind": "Status", "status": "Failure", "message": "not allowed", "code": code})
    }

    fn version() -> Value {
        let fields = [
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ];
        fields.map(|field| (field.to_owned(), json!("1"))).into_iter().collect::<serde_json::Map<_, _>>().into()
    }

    #[tokio::test]
    async fn scheduler_starts_without_permission_to_list_an_optional_kind() {
        for path in ["none", "/apis/scheduling.k8s.io/v1beta1/workloads", "/apis/scheduling.k8s.io/v1beta1/podgroups"] {
            assert!(check_with_failure(path, StatusCode::FORBIDDEN).await.is_ok(), "{path}");
        }
    }

    #[tokio::test]
    async fn scheduler_does_not_start_without_permission_to_list_a_required_kind() {
        let error = check_with_failure("/api/v1/pods", StatusCode::FORBIDDEN).await.expect_err("pods are required");
        let error = error.to_string();
        assert!(error.contains("pods: not allowed"), "{error}");
    }

    #[tokio::test]
    async fn scheduler_does_not_start_without_a_required_kind() {
        let failure = check_with_failure("/apis/policy/v1/poddisruptionbudgets", StatusCode::NOT_FOUND).await;
        let error = failure.expect_err("the kind is required").to_string();
        assert!(error.contains("poddisruptionbudgets.policy is not installed"), "{error}");
    }
}
