//! Tests of `deploy/`: the chart with Helm, the roles with RBAC, the alerts and the dashboard with promtool.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client, Resource};
use reprieve_e2e::fixtures::{CLASSES, Fixture};
use reprieve_e2e::{ControlPlane, User, eventually, objects, plain_http, program, roles_for, root};
use serde_json::{Value, json};

const NAMESPACE: &str = "reprieve-system";

/// The output of a program, which must succeed.
fn run(name: &str, arguments: &[&str], folder: &Path) -> String {
    try_run(name, arguments, folder).unwrap_or_else(|problem| panic!("{name} {arguments:?}: {problem}"))
}

fn try_run(name: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    let output = Command::new(program(name)).args(arguments).current_dir(folder).output().unwrap();
    let [text, problem] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() { Ok(text) } else { Err(text + &problem) }
}

fn chart() -> String {
    root().join("deploy/chart/reprieve").display().to_string()
}

#[test]
fn chart_passes_lint_and_rejects_invalid_values() {
    let chart = chart();
    run("helm", &["lint", "--strict", &chart], root());
    for (values, wrong) in [
        ("replicas=0", "replicas"),
        ("replica=2", "replica"),
        ("config.leaseSeconds=1", "leaseSeconds"),
        ("config.profiles[0].name=a,config.profiles[0].policy=Fifo", "policy"),
        ("metrics.port=80", "port"),
        ("metrics.from[0]=anyone", "from"),
        ("config.profiles[0].name=a,config.profiles[0].policy=YuniKorn,config.profiles[0].queues.path=a", "queues"),
    ] {
        let error = try_run("helm", &["template", "reprieve", &chart, "--set", values], root()).expect_err(values);
        let names = [format!("'{wrong}'"), format!("/{wrong}'"), format!("/{wrong}/")];
        assert!(names.iter().any(|name| error.contains(name)), "{values}: {error}");
    }
}

#[test]
fn chart_renders_with_all_features() {
    let on = "crds.install=true,audit.enabled=true,dryRun=true,metrics.serviceMonitor.enabled=true,\
              metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true";
    let text = run("helm", &["template", "reprieve", &chart(), "--namespace", "other", "--set", on], root());
    let objects = objects(&text);
    let kinds: BTreeSet<&str> = objects.iter().map(|object| object.types.as_ref().unwrap().kind.as_str()).collect();
    for kind in ["ServiceMonitor", "PrometheusRule", "NetworkPolicy", "CustomResourceDefinition", "PodDisruptionBudget"]
    {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let file = |name: &str| objects.iter().find_map(|object| object.data["data"][name].as_str()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(file("reprieve.json")).unwrap()["title"], "Reprieve");
    let configuration = file("config.yaml");
    let lines = ["auditFolder: /var/lib/reprieve/audit", "namespace: other", "- other", "metricsAddress: 0.0.0.0"];
    for line in lines {
        assert!(configuration.contains(line), "{line}: {configuration}");
    }
}

#[tokio::test]
async fn chart_installs_upgrades_rolls_back_and_uninstalls() {
    let cluster = ControlPlane::start_bare("chart_installs_upgrades_rolls_back_and_uninstalls").await;
    let restricted = "pod-security.kubernetes.io/enforce: restricted";
    cluster
        .apply(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}, labels: {{{restricted}}}}}}}"
        ))
        .await;
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig(User::Admin).display());
    let helm =
        |arguments: &[&str]| run("helm", &[arguments, &["--namespace", NAMESPACE, &kubeconfig]].concat(), root());
    let chart = chart();
    helm(&["install", "reprieve", &chart, "--set", "crds.install=true"]);
    let pods: Api<Pod> = Api::namespaced(cluster.client().clone(), NAMESPACE);
    eventually("two pods exist, which the restricted namespace admits", async || {
        let created = pods.list(&ListParams::default()).await.ok()?;
        (created.items.len() == 2).then_some(())
    })
    .await;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client().clone(), NAMESPACE);
    let configuration = async || {
        let template = deployments.get("reprieve").await.unwrap().spec.template;
        template.metadata.unwrap().annotations.unwrap()["reprieve.dev/configuration"].clone()
    };
    let first = configuration().await;
    helm(&["upgrade", "reprieve", &chart, "--reuse-values", "--set", "config.evictionsPerMinute=60"]);
    assert_ne!(configuration().await, first, "a changed configuration restarts the pods");
    helm(&["rollback", "reprieve", "1"]);
    assert_eq!(configuration().await, first);
    helm(&["uninstall", "reprieve"]);
    assert!(deployments.get_opt("reprieve").await.unwrap().is_none());
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client().clone());
    let left = definitions.list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(left, fs::read_dir(root().join("deploy/crds")).unwrap().count(), "the custom resources stay");
}

/// Whether a request is not forbidden.
fn is_allowed<T: std::fmt::Debug>(response: Result<T, kube::Error>) -> bool {
    match response {
        Err(kube::Error::Api(status)) if status.code == 403 => false,
        Ok(_) | Err(kube::Error::Api(_)) => true,
        Err(error) => panic!("{error}"),
    }
}

async fn may_list<K>(client: &Client, parameters: &ListParams) -> bool
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    is_allowed(Api::<K>::all(client.clone()).list(parameters).await)
}

#[tokio::test]
async fn shipped_roles_have_exactly_the_required_permissions() {
    let cluster = ControlPlane::start("shipped_roles_have_exactly_the_required_permissions").await;
    cluster.apply_manifests().await;
    cluster
        .apply(
            "{apiVersion: v1, kind: Pod, metadata: {name: pod}, \
              spec: {schedulerName: none, containers: [{name: main, image: none}]}}",
        )
        .await;
    let all = ListParams::default();
    for (user, runs) in [(User::Run, true), (User::Planner, false)] {
        let client = cluster.client_of(user).await;
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let others: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        let patch = PatchParams::default();
        let lease = objects("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: other}}");
        let lease: Lease = serde_json::from_value(serde_json::to_value(&lease[0]).unwrap()).unwrap();
        let watched = match pods.watch(&WatchParams::default().timeout(1), "0").await {
            Ok(events) => events.collect::<Vec<_>>().await.into_iter().all(is_allowed),
            Err(error) => is_allowed(Err::<(), _>(error)),
        };
        for (request, allowed, expected) in [
            ("list pods", may_list::<Pod>(&client, &all).await, true),
            ("list nodes", may_list::<Node>(&client, &all).await, true),
            ("list jobs", may_list::<Job>(&client, &all).await, true),
            ("watch pods", watched, runs),
            ("patch a pod's status", is_allowed(pods.patch_status("pod", &patch, &label).await), runs),
            ("patch a job", is_allowed(jobs.patch("job", &patch, &label).await), false),
            ("create a lease", is_allowed(leases.create(&PostParams::default(), &lease).await), runs),
            ("patch a pod", is_allowed(pods.patch("pod", &patch, &label).await), false),
            ("read all ConfigMaps", may_list::<ConfigMap>(&client, &all).await, false),
            ("read Secrets", may_list::<Secret>(&client, &all).await, false),
            ("delete a job", is_allowed(jobs.delete("job", &DeleteParams::default()).await), false),
            (
                "create a lease in another namespace",
                is_allowed(others.create(&PostParams::default(), &lease).await),
                false,
            ),
            ("delete a lease", is_allowed(leases.delete("other", &DeleteParams::default()).await), false),
            ("delete a pod", is_allowed(pods.delete("pod", &DeleteParams::default().dry_run()).await), runs),
        ] {
            assert_eq!(allowed, expected, "{user:?}: {request}");
        }
    }
}

/// The roles follow from the policies: Jobs are changed only under policy Kueue, and the only readable ConfigMap is that with the queues.
#[tokio::test]
async fn roles_follow_from_the_policies() {
    let cluster = ControlPlane::start("roles_follow_from_the_policies").await;
    cluster.apply_manifests().await;
    cluster.apply_roles_for(&["YuniKorn", "Kueue"]).await;
    let client = cluster.client_of(User::Run).await;
    let named = |name: &str| ListParams::default().fields(&format!("metadata.name={name}"));
    let in_namespace = |namespace: &str| Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    eventually("a Job may be patched", async || {
        is_allowed(jobs.patch("job", &PatchParams::default(), &label).await).then_some(())
    })
    .await;
    for (namespace, name, expected) in [
        ("yunikorn", "yunikorn-configs", true),
        ("yunikorn", "other", false),
        ("default", "yunikorn-configs", false),
        ("reprieve-system", "yunikorn-configs", false),
    ] {
        let allowed = is_allowed(in_namespace(namespace).list(&named(name)).await);
        assert_eq!(allowed, expected, "read ConfigMap {name} in {namespace}");
    }
    assert!(!may_list::<ConfigMap>(&client, &named("yunikorn-configs")).await, "in all namespaces");
    let copies = in_namespace(NAMESPACE);
    let copy = objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: reprieve-queues}}");
    let copy: ConfigMap = serde_json::from_value(serde_json::to_value(&copy[0]).unwrap()).unwrap();
    assert!(is_allowed(copies.create(&PostParams::default(), &copy).await));
    assert!(is_allowed(copies.replace("reprieve-queues", &PostParams::default(), &copy).await));
    assert!(!is_allowed(copies.get("reprieve").await), "its own configuration is a mounted file");
}

#[test]
fn roles_are_rendered_by_policy_and_namespace() {
    let has = |text: &str, rule: &str| text.contains(rule);
    let (jobs, queues) = ("resources: [jobs]\n    verbs: [patch]", "name: reprieve-queues");
    for (policies, patches_jobs, reads_queues) in [
        (&["Kubernetes"][..], false, false),
        (&["Koordinator"], false, false),
        (&["YuniKorn"], false, true),
        (&["Kubernetes", "Kueue"], true, false),
    ] {
        let text = roles_for(policies, "");
        assert_eq!((has(&text, jobs), has(&text, queues)), (patches_jobs, reads_queues), "{policies:?}: {text}");
        assert!(has(&text, "resources: [pods]\n    verbs: [delete]"), "{text}");
    }
    let objects = objects(&roles_for(&["Kubernetes"], "rbac.namespaces={a,b}"));
    let deletes = |object: &&kube::api::DynamicObject| object.data["rules"].to_string().contains("delete");
    let with_deletion: Vec<_> = objects
        .iter()
        .filter(deletes)
        .map(|object| (object.types.as_ref().unwrap().kind.as_str(), object.metadata.namespace.as_deref()))
        .collect();
    assert_eq!(with_deletion, [("Role", Some("a")), ("Role", Some("b"))]);
}

#[test]
fn alerts_are_valid_tested_and_documented() {
    let folder = root().join("deploy/monitoring");
    run("promtool", &["check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"], &folder);
    run("promtool", &["test", "rules", "alerts.test.yaml"], &folder);
    let alerts = rules();
    let tests = fs::read_to_string(folder.join("alerts.test.yaml")).unwrap();
    let operations = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for alert in alerts.iter().map(|rule| rule["alert"].as_str().unwrap()) {
        assert!(
            tests.contains(&format!("alertname: {alert}\n        exp_alerts:\n          -")),
            "{alert} has no test"
        );
        assert!(operations.contains(alert), "docs/operations.md does not describe {alert}");
    }
}

fn rules() -> Vec<Value> {
    let text = fs::read_to_string(root().join("deploy/monitoring/alerts.yaml")).unwrap();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    file["groups"][0]["rules"].as_array().unwrap().clone()
}

/// Prometheus' own parser reads every query of the dashboard, as the expression of a rule.
#[test]
fn queries_of_the_dashboard_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |(index, query): (usize, String)| json!({"record": format!("query:{index}"), "expr": query});
    let rules: Vec<Value> = queries().into_iter().enumerate().map(rule).collect();
    assert!(rules.len() > 10, "{rules:?}");
    let file = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(folder.path().join("rules.yaml"), file.to_string()).unwrap();
    run("promtool", &["check", "rules", "rules.yaml"], folder.path());
}

/// Every metric of the alerts and the dashboard exists in `reprieve run`, and every metric is documented.
#[tokio::test]
async fn queried_metrics_exist_and_are_documented() {
    let cluster = ControlPlane::start("queried_metrics_exist_and_are_documented").await;
    let scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    let port = eventually("the log contains the metrics port", async || {
        let log = scheduler.log();
        let (_, port) = log.lines().find(|line| line.contains("/metrics"))?.rsplit_once("port=")?;
        port.trim().parse::<u16>().ok()
    })
    .await;
    // Some metrics appear only after a preemption, or with a pending pod.
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    for (name, class) in [("train", "low"), ("urgent", "high")] {
        cluster.create_pods("default", vec![Fixture::pod(name, class, 8).build()]).await;
        cluster.runs(name, 1).await;
    }
    cluster.create_pods("default", vec![Fixture::pod("late", "low", 8).build()]).await;
    let text = eventually("the pending pod is counted", async || {
        let text = plain_http::get(port, "/metrics");
        text.contains("\nreprieve_pending_units{").then_some(text)
    })
    .await;
    let described = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    // The TYPE lines of counters and infos lack the suffix of the name.
    let name = |(name, kind): (&str, &str)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    };
    let metrics: BTreeSet<String> = described.map(name).collect();
    let operations = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for name in &metrics {
        assert!(operations.contains(&format!("`{name}`")), "docs/operations.md does not describe {name}");
    }
    let rules = rules().into_iter().map(|rule| rule["expr"].as_str().unwrap().to_owned());
    for query in rules.chain(queries()) {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("reprieve_")) {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
            assert!(metrics.contains(base.unwrap_or(word)), "{word} does not exist: {metrics:?}");
        }
    }
}

/// The queries, with Grafana's variables filled in.
fn queries() -> Vec<String> {
    let text = fs::read_to_string(root().join("deploy/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let query = |target: &Value| target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
    targets.map(query).map(|query| query.replace("$namespace", ".*")).collect()
}
