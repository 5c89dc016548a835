//! What `deploy/` ships does what it says: the chart with Helm, the roles with RBAC, the alerts and the dashboard with promtool.

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
use reprieve_e2e::{ControlPlane, User, eventually, objects, plain, program, root};
use serde_json::{Value, json};

const NAMESPACE: &str = "reprieve-system";

/// What a program says; it must succeed.
fn run(name: &str, arguments: &[&str], folder: &Path) -> String {
    tried(name, arguments, folder).unwrap_or_else(|problem| panic!("{name} {arguments:?}: {problem}"))
}

fn tried(name: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    let output = Command::new(program(name)).args(arguments).current_dir(folder).output().unwrap();
    let [text, problem] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() { Ok(text) } else { Err(text + &problem) }
}

fn chart() -> String {
    root().join("deploy/chart/reprieve").display().to_string()
}

#[test]
fn the_chart_is_linted_and_refuses_what_it_does_not_know() {
    let chart = chart();
    run("helm", &["lint", "--strict", &chart], root());
    for (values, wrong) in [
        ("replicas=0", "replicas"),
        ("replica=2", "replica"),
        ("config.leaseSeconds=1", "leaseSeconds"),
        ("config.profiles[0].name=a,config.profiles[0].policy=Fifo", "policy"),
        ("metrics.port=80", "port"),
    ] {
        let refused = tried("helm", &["template", "reprieve", &chart, "--set", values], root()).expect_err(values);
        assert!(
            refused.contains(&format!("'{wrong}'")) || refused.contains(&format!("/{wrong}'")),
            "{values}: {refused}"
        );
    }
}

#[test]
fn the_chart_renders_with_everything_on() {
    let on = "crds.install=true,audit.enabled=true,dryRun=true,metrics.serviceMonitor.enabled=true,\
              metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true";
    let text = run("helm", &["template", "reprieve", &chart(), "--namespace", "other", "--set", on], root());
    let objects = objects(&text);
    let kinds: BTreeSet<&str> = objects.iter().map(|object| object.types.as_ref().unwrap().kind.as_str()).collect();
    for kind in ["ServiceMonitor", "PrometheusRule", "CustomResourceDefinition", "PodDisruptionBudget"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let file = |name: &str| objects.iter().find_map(|object| object.data["data"][name].as_str()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(file("reprieve.json")).unwrap()["title"], "Reprieve");
    let configuration = file("config.yaml");
    for line in ["auditFolder: /var/lib/reprieve/audit", "namespace: other", "- other"] {
        assert!(configuration.contains(line), "{line}: {configuration}");
    }
}

#[tokio::test]
async fn the_chart_is_installed_upgraded_rolled_back_and_uninstalled() {
    let cluster = ControlPlane::start_bare("the_chart_is_installed_upgraded_rolled_back_and_uninstalled").await;
    let restricted = "pod-security.kubernetes.io/enforce: restricted";
    cluster
        .apply(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}, labels: {{{restricted}}}}}}}"
        ))
        .await;
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig(User::Admin).display());
    let helm = |words: &[&str]| run("helm", &[words, &["--namespace", NAMESPACE, &kubeconfig]].concat(), root());
    let chart = chart();
    helm(&["install", "reprieve", &chart, "--set", "crds.install=true"]);
    let pods: Api<Pod> = Api::namespaced(cluster.client().clone(), NAMESPACE);
    eventually("two pods are made, as the restricted namespace lets them", async || {
        let made = pods.list(&ListParams::default()).await.ok()?;
        (made.items.len() == 2).then_some(())
    })
    .await;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client().clone(), NAMESPACE);
    let configuration = async || {
        let template = deployments.get("reprieve").await.unwrap().spec.template;
        template.metadata.unwrap().annotations.unwrap()["reprieve.dev/configuration"].clone()
    };
    let first = configuration().await;
    helm(&["upgrade", "reprieve", &chart, "--reuse-values", "--set", "config.evictionsPerMinute=60"]);
    assert_ne!(configuration().await, first, "a new configuration starts new pods");
    helm(&["rollback", "reprieve", "1"]);
    assert_eq!(configuration().await, first);
    helm(&["uninstall", "reprieve"]);
    assert!(deployments.get_opt("reprieve").await.unwrap().is_none());
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client().clone());
    let left = definitions.list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(left, fs::read_dir(root().join("deploy/crds")).unwrap().count(), "the custom resources stay");
}

/// Whether an answer is anything but "you may not".
fn is_allowed<T: std::fmt::Debug>(answer: Result<T, kube::Error>) -> bool {
    match answer {
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
async fn the_shipped_roles_allow_what_is_needed_and_not_more() {
    let cluster = ControlPlane::start("the_shipped_roles_allow_what_is_needed_and_not_more").await;
    cluster.apply_manifests().await;
    cluster
        .apply(
            "{apiVersion: v1, kind: Pod, metadata: {name: pod}, \
              spec: {schedulerName: nobody, containers: [{name: main, image: none}]}}",
        )
        .await;
    let all = ListParams::default();
    let queues = ListParams::default().fields("metadata.name=yunikorn-configs");
    for (user, runs) in [(User::Run, true), (User::Planner, false)] {
        let client = cluster.client_of(user).await;
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let others: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let nothing = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        let patch = PatchParams::default();
        let lease = objects("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: other}}");
        let lease: Lease = serde_json::from_value(serde_json::to_value(&lease[0]).unwrap()).unwrap();
        let watched = match pods.watch(&WatchParams::default().timeout(1), "0").await {
            Ok(events) => events.collect::<Vec<_>>().await.into_iter().all(is_allowed),
            Err(error) => is_allowed(Err::<(), _>(error)),
        };
        for (what, may, should) in [
            ("list pods", may_list::<Pod>(&client, &all).await, true),
            ("list nodes", may_list::<Node>(&client, &all).await, true),
            ("list jobs", may_list::<Job>(&client, &all).await, true),
            ("read the queues of YuniKorn", may_list::<ConfigMap>(&client, &queues).await, true),
            ("watch pods", watched, runs),
            ("patch a pod's status", is_allowed(pods.patch_status("pod", &patch, &nothing).await), runs),
            ("patch a job", is_allowed(jobs.patch("job", &patch, &nothing).await), runs),
            ("make a lease", is_allowed(leases.create(&PostParams::default(), &lease).await), runs),
            ("patch a pod", is_allowed(pods.patch("pod", &patch, &nothing).await), false),
            ("read all ConfigMaps", may_list::<ConfigMap>(&client, &all).await, false),
            ("read Secrets", may_list::<Secret>(&client, &all).await, false),
            ("delete a job", is_allowed(jobs.delete("job", &DeleteParams::default()).await), false),
            ("make a lease elsewhere", is_allowed(others.create(&PostParams::default(), &lease).await), false),
            ("delete a lease", is_allowed(leases.delete("other", &DeleteParams::default()).await), false),
            ("delete a pod", is_allowed(pods.delete("pod", &DeleteParams::default().dry_run()).await), runs),
        ] {
            assert_eq!(may, should, "{user:?}: {what}");
        }
    }
}

#[test]
fn the_alerts_are_checked_and_fire_when_they_should() {
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
        assert!(operations.contains(alert), "docs/operations.md does not say what {alert} means");
    }
}

fn rules() -> Vec<Value> {
    let text = fs::read_to_string(root().join("deploy/monitoring/alerts.yaml")).unwrap();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    file["groups"][0]["rules"].as_array().unwrap().clone()
}

/// Prometheus' own parser reads every query of the dashboard, as the expression of a rule.
#[test]
fn the_queries_of_the_dashboard_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |(at, query): (usize, String)| json!({"record": format!("query:{at}"), "expr": query});
    let rules: Vec<Value> = queries().into_iter().enumerate().map(rule).collect();
    assert!(rules.len() > 10, "{rules:?}");
    let file = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(folder.path().join("rules.yaml"), file.to_string()).unwrap();
    run("promtool", &["check", "rules", "rules.yaml"], folder.path());
}

/// What the alerts and the dashboard ask for is what `reprieve run` counts, and the documentation says what it is.
#[tokio::test]
async fn what_is_asked_for_is_counted() {
    let cluster = ControlPlane::start("what_is_asked_for_is_counted").await;
    let scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    let port = eventually("it says where it can be looked at", async || {
        let log = scheduler.log();
        let (_, port) = log.lines().find(|line| line.contains("/metrics"))?.rsplit_once("port=")?;
        port.trim().parse::<u16>().ok()
    })
    .await;
    // Some are told only after the first time: a preemption, and somebody who waits.
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    for (name, class) in [("train", "low"), ("urgent", "high")] {
        cluster.create_pods("default", vec![Fixture::pod(name, class, 8).build()]).await;
        cluster.runs(name, 1).await;
    }
    cluster.create_pods("default", vec![Fixture::pod("late", "low", 8).build()]).await;
    let text = eventually("it is counted who waits", async || {
        let text = plain::get(port, "/metrics");
        text.contains("\nreprieve_pending_units{").then_some(text)
    })
    .await;
    let described = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    // Counters and facts are described without what is added to their names.
    let name = |(name, kind): (&str, &str)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    };
    let counted: BTreeSet<String> = described.map(name).collect();
    let operations = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for name in &counted {
        assert!(operations.contains(&format!("`{name}`")), "docs/operations.md does not say what {name} is");
    }
    let rules = rules().into_iter().map(|rule| rule["expr"].as_str().unwrap().to_owned());
    for query in rules.chain(queries()) {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("reprieve_")) {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
            assert!(counted.contains(base.unwrap_or(word)), "{word} is not counted: {counted:?}");
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
