//! The programs that the end-to-end tests need and that are written in Go: they are built from the module registry, by the versions in the
//! `go.mod` files, and kept in cargo's target folder until these change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::tasks::{root, target_folder};

/// A program, and where it comes from.
struct Program {
    name: &'static str,
    package: &'static str,
    /// The folder of `xtask` with its `go.mod`.
    module: &'static str,
    /// What is left out of it.
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
        // It is to read rules, not to find in every cloud what could be scraped.
        tags: "remove_all_sd",
    },
];

/// Builds what the tests need, as far as it is not there yet.
pub fn build() -> Result<(), String> {
    PROGRAMS.iter().try_for_each(|program| built(program).map(|_| ()))
}

/// Builds the scheduler of Kubernetes, to compare with.
pub fn build_peer() -> Result<(), String> {
    built(&kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler")).map(|_| ())
}

/// Helm, which is built if it is not there yet.
pub fn helm() -> Result<PathBuf, String> {
    built(&HELM)
}

/// Where they are.
pub fn folder() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("control-plane/bin"))
}

fn built(program: &Program) -> Result<PathBuf, String> {
    let folder = folder()?;
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let path = folder.join(program.name);
    let stamp = format!("{}{}\n{}", version()?, program.tags, module_files(program)?);
    let stamp_file = folder.join(format!("{}.stamp", program.name));
    if path.exists() && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        eprintln!("{:24} is there", program.name);
        return Ok(path);
    }
    eprintln!("{:24} is built from the module registry", program.name);
    let start = Instant::now();
    build_one(program, &path)?;
    fs::write(&stamp_file, stamp).map_err(|error| format!("{}: {error}", stamp_file.display()))?;
    eprintln!("{:24} took {:.1} s", program.name, start.elapsed().as_secs_f64());
    Ok(path)
}

fn version() -> Result<String, String> {
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

fn build_one(program: &Program, path: &Path) -> Result<(), String> {
    let files = module_files(program)?;
    let mut flags = "-s -w".to_owned();
    // Without these the programs say that they are of no version, and clients mind.
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
        Err(error) => Err(format!("go could not be run: {error}")),
    }
}
