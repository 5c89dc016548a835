//! The checks before `reprieve run` starts: the API server answers, the kinds are installed and readable, the lease's namespace exists, and
//! all permissions are granted. The error lists everything that is missing at once.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use reprieve_api::Kind;
use reprieve_api::kinds::Need;
use reprieve_api::permissions::{CHANGES, COPY_OF_QUEUES, EVENTS, LEASE, Objects, Permission};
use reprieve_engine::Policy;
use reprieve_loader::QueueSettings;
use reprieve_loader::policy::reader;
use tracing::warn;

use crate::config::{Configuration, LeaderElection};
use crate::error::{Error, problem};
use crate::resources::scopes;
use crate::watch::{WatchScope, can_run_without, is_unknown_kind, probe};

const BIND_ROLE: &str = "render deploy/chart with these profiles and bind the ClusterRole reprieve-run";

/// Checks the cluster for these policies.
pub async fn check(
    client: &Client,
    config: &Configuration,
    profiles: &[(Policy, QueueSettings)],
    dry_run: bool,
) -> Result<(), Error> {
    client.apiserver_version().await.map_err(|error| Error::api("asking the API server for its version", &error))?;
    let (mut missing, mut readable) = (Vec::new(), Vec::new());
    let wanted = scopes(profiles);
    for (scope, probed) in wanted.iter().zip(join_all(wanted.iter().map(|scope| probe(client, scope))).await) {
        let Err(error) = probed else {
            readable.push(scope);
            continue;
        };
        let kind = &scope.kind;
        let resource = kind.resource();
        let (plural, group, version) = (resource.plural, resource.group, resource.api_version());
        if is_unknown_kind(&error) && resource.need != Need::Required {
            warn!("the cluster does not serve {} of {version}: the scheduler runs without such objects", resource.kind);
        } else if is_unknown_kind(&error) {
            let install = format!("kubectl apply -f deploy/crds/{plural}.{group}.yaml");
            missing.push(format!("  {plural}.{group} is not installed: {install}"));
        } else if can_run_without(*kind, &error) {
            warn!("no permission to list {plural} of {version}: the scheduler runs without such objects; {BIND_ROLE}");
        } else {
            missing.push(format!("  {plural}{}: {}", scope.place(), problem(&error)));
        }
    }
    missing.extend(missing_lease_namespace(client, config).await.filter(|_| !dry_run));
    if missing.is_empty() {
        let required = required_permissions(config, profiles, &readable, dry_run);
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

/// The permissions that these policies need for the kinds that can be read, from the table that the roles of the chart are written from. That
/// the kinds can be listed is known already.
fn required_permissions(
    config: &Configuration,
    profiles: &[(Policy, QueueSettings)],
    readable: &[&WatchScope],
    dry_run: bool,
) -> Vec<ResourceAttributes> {
    let is_needed = |permission: &&Permission| {
        let is_readable = |kind: &Kind| readable.iter().any(|scope| scope.kind == *kind);
        let is_unreadable = |kind: &Kind| permission.is_for(*kind) && !is_readable(kind);
        let is_read_by = |(policy, _): &(Policy, QueueSettings)| permission.reader.includes(reader(policy));
        profiles.iter().any(is_read_by) && !Kind::ALL.iter().any(is_unreadable)
    };
    let place = |namespace: Option<&str>, name: Option<&str>| (namespace.map(str::to_owned), name.map(str::to_owned));
    let mut required: Vec<ResourceAttributes> = Vec::new();
    for scope in readable {
        let permission = Permission::to_read(scope.kind);
        let read = attributes(&permission, place(scope.namespace(), scope.name()));
        required.extend(read.filter(|read| read.verb.as_deref() != Some("list")));
    }
    let changed = || match &config.managed_namespaces {
        Some(namespaces) => namespaces.iter().map(|namespace| place(Some(namespace), None)).collect(),
        None => vec![place(None, None)],
    };
    let in_managed = |permission: &Permission| -> Vec<ResourceAttributes> {
        changed().into_iter().flat_map(|place| attributes(permission, place)).collect()
    };
    required.extend(in_managed(&EVENTS));
    if dry_run {
        return required;
    }
    required.extend(CHANGES.iter().filter(is_needed).flat_map(in_managed));
    let LeaderElection { enabled, namespace, name, .. } = &config.leader_election;
    if *enabled {
        let copy = config.copy_of_queues().name;
        for permission in LEASE.iter().chain(COPY_OF_QUEUES.iter().filter(is_needed)) {
            let name = match permission.objects {
                Objects::All => None,
                Objects::NamedAsRelease => Some(name.as_str()),
                Objects::CopyOfQueues => Some(copy.as_str()),
            };
            required.extend(attributes(permission, place(Some(namespace), name)));
        }
    }
    required
}

/// A permission for the objects of this namespace and name (`None`: for all), in the form in which the API server is asked for it, once
/// for each verb.
fn attributes(
    permission: &Permission,
    (namespace, name): (Option<String>, Option<String>),
) -> impl Iterator<Item = ResourceAttributes> {
    let (group, (resource, subresource)) = (permission.group, permission.parts());
    permission.verbs.iter().map(move |verb| ResourceAttributes {
        verb: Some((*verb).to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: subresource.map(str::to_owned),
        namespace: namespace.clone(),
        name: name.clone(),
        ..ResourceAttributes::default()
    })
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
    use reprieve_engine::policy::yunikorn::YuniKorn;
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
        check(&client, &config, &[(Policy::Kubernetes(Kubernetes::default()), QueueSettings::default())], false).await
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

    #[test]
    fn permissions_follow_from_the_policies_and_the_readable_kinds() {
        let config = json!({"apiVersion": "reprieve.dev/v1alpha1", "kind": "Configuration"});
        let mut config: Configuration = serde_json::from_value(config).expect("a configuration");
        let required = |config: &Configuration, policy: Policy, without: Option<Kind>, dry_run| -> Vec<String> {
            let profiles = [(policy, QueueSettings::default())];
            let scopes = scopes(&profiles);
            let readable: Vec<_> = scopes.iter().filter(|scope| Some(scope.kind) != without).collect();
            let required = required_permissions(config, &profiles, &readable, dry_run);
            required.iter().map(describe_missing).collect()
        };
        let has = |required: &[String], text: &str| required.iter().any(|line| line.contains(text));
        let kubernetes = || Policy::Kubernetes(Kubernetes::default());
        let groups = "patch podgroups/status of scheduling.k8s.io";
        assert!(has(&required(&config, kubernetes(), None, false), groups));
        assert!(has(&required(&config, kubernetes(), None, false), "watch podgroups of scheduling.k8s.io"));
        let without_groups = required(&config, kubernetes(), Some(Kind::PodGroup), false);
        assert!(!has(&without_groups, "podgroups"), "{without_groups:?}");
        assert!(!has(&required(&config, kubernetes(), None, false), "patch jobs"));
        assert!(!has(&required(&config, Policy::YuniKorn(YuniKorn::default()), None, false), groups));
        let dry_run = required(&config, kubernetes(), None, true);
        assert!(has(&dry_run, "create events of events.k8s.io"), "{dry_run:?}");
        let yunikorn = required(&config, Policy::YuniKorn(YuniKorn::default()), None, false);
        assert!(has(&yunikorn, "watch configmaps in namespace yunikorn"), "{yunikorn:?}");
        assert!(has(&yunikorn, "update configmaps in namespace reprieve-system"), "{yunikorn:?}");
        assert!(!has(&required(&config, kubernetes(), None, false), "configmaps"));
        assert!(!has(&required(&config, Policy::YuniKorn(YuniKorn::default()), None, true), "update configmaps"));
        config.managed_namespaces = Some(["a".to_owned(), "b".to_owned()].into());
        let managed = required(&config, kubernetes(), None, false);
        assert!(
            has(&managed, "delete pods in namespace a") && has(&managed, "delete pods in namespace b"),
            "{managed:?}"
        );
        assert!(!has(&managed, "delete pods:"), "{managed:?}");
        assert!(!has(&dry_run, "patch") && !has(&dry_run, "delete") && !has(&dry_run, "leases"), "{dry_run:?}");
    }
}
