//! Whether the cluster has what is needed, and whether it may be used. Everything that is missing is said at once, before anything is done.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use reprieve_api::kinds::{Kind, Need};
use reprieve_engine::policy::Policy;
use tracing::warn;

use crate::config::{Configuration, LeaderElection};
use crate::error::Error;
use crate::resources::kinds;
use crate::watch::{is_dispensable, is_unknown_kind, probe};

/// A right: verb, group, resource, subresource, namespace and name.
type RequiredPermission = (&'static str, &'static str, &'static str, &'static str, Option<(String, Option<String>)>);

/// Checks everything.
pub async fn check(client: &Client, config: &Configuration, policies: &[Policy], dry_run: bool) -> Result<(), Error> {
    client.apiserver_version().await.map_err(|error| Error::api("asking the API server for its version", &error))?;
    let mut missing = Vec::new();
    let mut wanted: Vec<Kind> = policies.iter().flat_map(kinds).collect();
    wanted.sort_unstable();
    wanted.dedup();
    for (kind, found) in wanted.iter().zip(join_all(wanted.iter().map(|&kind| probe(client, kind))).await) {
        let resource = kind.resource();
        match found {
            Ok(()) => {}
            Err(error) if is_unknown_kind(&error) && resource.need != Need::Required => {
                warn!("the cluster has no {} of {}: none are applied", resource.kind, resource.api_version());
            }
            Err(error) if is_dispensable(*kind, &error) => {
                let (plural, version) = (resource.plural, resource.api_version());
                warn!(
                    "no right to list {plural} of {version}: none are applied; bind the ClusterRole reprieve-run of deploy/manifests"
                );
            }
            Err(error) if is_unknown_kind(&error) => missing.push(format!(
                "  {}.{} is not installed: kubectl apply -f deploy/crds/{}.{}.yaml",
                resource.plural, resource.group, resource.plural, resource.group
            )),
            Err(error) => missing.push(format!("  {}: {}", resource.plural, crate::error::problem(&error))),
        }
    }
    missing.extend(no_place_for_the_lease(client, config).await.filter(|_| !dry_run));
    if missing.is_empty() {
        let rights = rights(config, policies, dry_run);
        for (right, allowed) in rights.iter().zip(join_all(rights.iter().map(|right| allowed(client, right))).await) {
            if !allowed? {
                missing.push(format!("  {}", refused(right)));
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::NotReady(missing)) }
}

async fn no_place_for_the_lease(client: &Client, config: &Configuration) -> Option<String> {
    let LeaderElection { enabled: true, namespace, name, .. } = &config.leader_election else { return None };
    let found = Api::<Namespace>::all(client.clone()).get_opt(namespace).await;
    // Whether it may be looked at is another question.
    matches!(found, Ok(None)).then(|| {
        format!(
            "  there is no namespace {namespace} for the lease {name}: kubectl create namespace {namespace}, or set \
             leaderElection.namespace, or leaderElection.enabled: false where there is only one replica"
        )
    })
}

fn rights(config: &Configuration, policies: &[Policy], dry_run: bool) -> Vec<RequiredPermission> {
    let mut rights: Vec<RequiredPermission> = vec![("create", "events.k8s.io", "events", "", None)];
    if dry_run {
        return rights;
    }
    rights.extend([
        ("create", "", "pods", "binding", None),
        ("patch", "", "pods", "status", None),
        ("delete", "", "pods", "", None),
    ] as [RequiredPermission; 3]);
    if policies.iter().any(|policy| matches!(policy, Policy::Kueue(_))) {
        rights.extend([
            ("create", "kueue.x-k8s.io", "workloads", "", None),
            ("patch", "kueue.x-k8s.io", "workloads", "status", None),
            ("patch", "batch", "jobs", "", None),
        ] as [RequiredPermission; 3]);
    }
    if config.leader_election.enabled {
        let LeaderElection { namespace, name, .. } = &config.leader_election;
        // What is not there yet cannot be allowed by its name.
        rights.extend(
            [("get", Some(name)), ("create", None), ("update", Some(name))].map(|(verb, name)| {
                (verb, "coordination.k8s.io", "leases", "", Some((namespace.clone(), name.cloned())))
            }),
        );
    }
    rights
}

fn refused((verb, group, resource, subresource, place): &RequiredPermission) -> String {
    let what = if subresource.is_empty() { (*resource).to_owned() } else { format!("{resource}/{subresource}") };
    let group = if group.is_empty() { String::new() } else { format!(" of {group}") };
    let place = place.as_ref().map_or(String::new(), |(namespace, _)| format!(" in namespace {namespace}"));
    format!("no right to {verb} {what}{group}{place}: bind the ClusterRole reprieve-run of deploy/manifests")
}

async fn allowed(
    client: &Client,
    (verb, group, resource, subresource, place): &RequiredPermission,
) -> Result<bool, Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some((*verb).to_owned()),
                group: Some((*group).to_owned()),
                resource: Some((*resource).to_owned()),
                subresource: Some((*subresource).to_owned()).filter(|subresource| !subresource.is_empty()),
                namespace: place.as_ref().map(|(namespace, _)| namespace.clone()),
                name: place.as_ref().and_then(|(_, name)| name.clone()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(|error| Error::api("asking for one's own rights", &error))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use kube::client::Body;
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use serde_json::{Value, json};
    use tower::BoxError;

    use super::*;

    /// Checks a cluster in which the objects at this path must not be listed, and everything else is allowed.
    async fn check_without(forbidden: &'static str) -> Result<(), Error> {
        let answer = move |request: http::Request<Body>| {
            let path = request.uri().path().to_owned();
            let (code, body) = match path.as_str() {
                path if path == forbidden => (StatusCode::FORBIDDEN, failure(403)),
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
            *response.status_mut() = code;
            async move { Ok::<_, BoxError>(response) }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let config = json!({"apiVersion": "reprieve.dev/v1alpha1", "kind": "Configuration"});
        let config: Configuration = serde_json::from_value(config).expect("a configuration");
        check(&client, &config, &[Policy::Kubernetes(Kubernetes::default())], false).await
    }

    fn failure(code: u16) -> Value {
        json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "not allowed", "code": code})
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
    async fn without_the_right_to_list_an_optional_kind_the_scheduler_starts() {
        for path in ["none", "/apis/scheduling.k8s.io/v1beta1/workloads", "/apis/scheduling.k8s.io/v1beta1/podgroups"] {
            assert!(check_without(path).await.is_ok(), "{path}");
        }
    }

    #[tokio::test]
    async fn without_the_right_to_list_a_required_kind_the_scheduler_does_not_start() {
        let error = check_without("/api/v1/pods").await.expect_err("pods are required").to_string();
        assert!(error.contains("pods: not allowed"), "{error}");
    }
}
