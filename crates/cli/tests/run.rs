//! Errors of `reprieve run`, `plan` and `compare` without a reachable cluster.

use std::fs;
use std::process::{Command, Output};

const HEAD: &str = "apiVersion: reprieve.dev/v1alpha1\nkind: Configuration\n";

fn reprieve(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    let nowhere = tempfile::tempdir().expect("a folder can be made");
    command.args(arguments).env("HOME", nowhere.path()).env_remove("KUBECONFIG");
    command.output().expect("the binary runs")
}

fn error_text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn a_configuration_that_is_wrong_is_named_with_its_field() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("config.yaml");
    for (text, words) in [
        (format!("{HEAD}colour: blue\n"), ["config.yaml", "unknown field `colour`"]),
        (format!("{HEAD}profiles: [{{name: a, policy: Fifo}}]\n"), ["profiles[0].policy", "is not a policy"]),
        (format!("{HEAD}ports: {{metrics: many}}\n"), ["ports.metrics", "expected a whole number from 0 to 65535"]),
        ("a: [".to_owned(), ["config.yaml: line 1, column 4", "not valid YAML"]),
    ] {
        fs::write(&file, &text).expect("it can be written");
        let error = error_text(&reprieve(&["run", "--config", &file.display().to_string()]));
        for word in words {
            assert!(error.contains(word), "{text}: {error}");
        }
    }
    let error = error_text(&reprieve(&["run", "--config", "nowhere.yaml"]));
    assert!(error.contains("nowhere.yaml"), "{error}");
}

#[test]
fn error_without_kubeconfig_says_how_to_set_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let config = folder.path().join("config.yaml");
    fs::write(&config, HEAD).expect("it can be written");
    let config = config.display().to_string();
    let error = error_text(&reprieve(&["run", "--config", &config, "--kubeconfig", "nowhere"]));
    assert!(error.contains("--kubeconfig nowhere"), "{error}");
    let error = error_text(&reprieve(&["plan", "--for", "pod/a"]));
    assert!(error.contains("set --kubeconfig or KUBECONFIG"), "{error}");
    let error = error_text(&reprieve(&["compare", "--for", "pod/a", "--context", "nowhere"]));
    assert!(error.contains("--context nowhere"), "{error}");
}

#[test]
fn an_api_server_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let kubeconfig = folder.path().join("kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], \
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}";
    fs::write(&kubeconfig, text).expect("it can be written");
    let config = folder.path().join("config.yaml");
    fs::write(&config, HEAD).expect("it can be written");
    let kubeconfig = kubeconfig.display().to_string();
    let error = error_text(&reprieve(&["run", "--config", &config.display().to_string(), "--kubeconfig", &kubeconfig]));
    assert!(error.contains("asking the API server for its version") && error.contains("refused"), "{error}");
    let error = error_text(&reprieve(&["plan", "--for", "pod/a", "--kubeconfig", &kubeconfig]));
    assert!(error.contains("reading ") && error.contains("refused"), "{error}");
}

#[test]
fn kubectl_plugin_prints_the_same() {
    let of = |binary: &str| Command::new(binary).args(["plan", "--for", "nonsense"]).output().expect("the binary runs");
    let (plugin, own) = (of(env!("CARGO_BIN_EXE_kubectl-reprieve")), of(env!("CARGO_BIN_EXE_reprieve")));
    assert_eq!((plugin.status, plugin.stderr), (own.status, own.stderr));
}
