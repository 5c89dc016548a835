//! Builds the Go programs of the end-to-end tests from the module registry, in the versions of the `go.mod` files, and keeps them in cargo's
//! target folder until these files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::tasks::{root, target_folder};

/// A Go program and its source.
struct Program {
    name: &'static str,
    package: &'static str,
    /// The folder of `xtask` with its `go.mod`.
    module: &'static str,
    /// The build tags.
    tags: &'static str,
}

const fn kubernetes(name: &'static str, package: &'static str) -> Program {
    Program { name, package, module: "control-plane", tags: "" }
}

const HELM: Program = kubernetes("helm", "helm.sh/helm/v4/cmd/helm");

const PROGRAMS: [Program; 7] = [
    kubernetes("etcd", "go.etcd.io/etcd/server/v3"),
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    kubernetes("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    HELM,
    Program {
        name: "promtool",
        package: "github.com/prometheus/prometheus/cmd/promtool",
        module: "promtool",
        // The tests check only alert rules, so service discovery is left out.
        tags: "remove_all_sd",
    },
];

/// Builds the programs of the tests that are missing or not current.
pub fn build() -> Result<(), String> {
    PROGRAMS.iter().try_for_each(|program| build_if_stale(program).map(|_| ()))
}

/// Builds kube-scheduler, for the comparison.
pub fn build_kube_scheduler() -> Result<(), String> {
    build_if_stale(&kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler")).map(|_| ())
}

/// The path of Helm, which is built if it is missing.
pub fn helm() -> Result<PathBuf, String> {
    build_if_stale(&HELM)
}

/// The folder of the built programs.
pub fn folder() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("control-plane/bin"))
}

fn build_if_stale(program: &Program) -> Result<PathBuf, String> {
    let folder = folder()?;
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let path = folder.join(program.name);
    let stamp = format!("{}{}\n{}", go_version()?, program.tags, module_files(program)?);
    let stamp_file = folder.join(format!("{}.stamp", program.name));
    if path.exists() && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        eprintln!("{:24} is current", program.name);
        return Ok(path);
    }
    eprintln!("{:24} building from the module registry", program.name);
    let start = Instant::now();
    build_program(program, &path)?;
    fs::write(&stamp_file, stamp).map_err(|error| format!("{}: {error}", stamp_file.display()))?;
    eprintln!("{:24} built in {:.1} s", program.name, start.elapsed().as_secs_f64());
    Ok(path)
}

fn go_version() -> Result<String, String> {
    let missing = "Go is missing: the end-to-end tests build Kubernetes with it. Install Go 1.26 or newer \
                   (on Debian: apt-get install golang), and have `go` on the PATH";
    match Command::new("go").arg("version").current_dir(root()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!("`go version`: {}{missing}", String::from_utf8_lossy(&output.stderr))),
        Err(_) => Err(missing.to_owned()),
    }
}

fn module_files(program: &Program) -> Result<String, String> {
    let read = |name: &str| {
        let path = module(program).join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(read("go.mod")? + &read("go.sum")?)
}

fn module(program: &Program) -> PathBuf {
    root().join("xtask").join(program.module)
}

fn build_program(program: &Program, path: &Path) -> Result<(), String> {
    let files = module_files(program)?;
    let mut flags = "-s -w".to_owned();
    // Clients reject a server that reports no version.
    for (module, variable) in [
        ("k8s.io/kubernetes ", "k8s.io/component-base/version.gitVersion"),
        ("helm.sh/helm/v4 ", "helm.sh/helm/v4/internal/version.version"),
    ] {
        let version = |line: &str| line.trim().strip_prefix(module)?.split(' ').next().map(str::to_owned);
        if let Some(version) = files.lines().find_map(version) {
            flags += &format!(" -X {variable}={version}");
        }
    }
    let status = Command::new("go")
        .args(["build", "-trimpath", "-tags", program.tags, "-ldflags", &flags, "-o"])
        .args([path.as_os_str(), program.package.as_ref()])
        .current_dir(module(program))
        .env("CGO_ENABLED", "0")
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`go build {}` ended with {status}", program.package)),
        Err(error) => Err(format!("cannot run go: {error}")),
    }
}
