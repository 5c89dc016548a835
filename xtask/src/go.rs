//! The programs that the end-to-end tests need and that are written in Go: they are built from the module registry, by the versions in
//! `control-plane/go.mod`, and kept in cargo's target folder until these change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::steps::{root, target_folder};

/// A program, and where it comes from.
struct Program {
    name: &'static str,
    package: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program { name: "etcd", package: "go.etcd.io/etcd/server/v3" },
    Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
    Program { name: "kube-controller-manager", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
    Program { name: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" },
];

/// Builds what the tests need, as far as it is not there yet.
pub fn build() -> Result<(), String> {
    let folder = folder()?;
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let go = version()?;
    for program in &PROGRAMS {
        let start = Instant::now();
        let stamp = format!("{go}{}", module_files()?);
        let stamp_file = folder.join(format!("{}.stamp", program.name));
        let is_current = fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp);
        if is_current && folder.join(program.name).exists() {
            eprintln!("{:24} is there", program.name);
            continue;
        }
        eprintln!("{:24} is built from the module registry", program.name);
        build_one(program, &folder)?;
        fs::write(&stamp_file, stamp).map_err(|error| format!("{}: {error}", stamp_file.display()))?;
        eprintln!("{:24} took {:.1} s", program.name, start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Where they are.
pub fn folder() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("control-plane/bin"))
}

fn version() -> Result<String, String> {
    let missing = "Go is missing: the end-to-end tests build Kubernetes with it. Install Go 1.26 or newer \
                   (on Debian: apt-get install golang), and have `go` on the PATH";
    match Command::new("go").arg("version").current_dir(module()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!("`go version`: {}{missing}", String::from_utf8_lossy(&output.stderr))),
        Err(_) => Err(missing.to_owned()),
    }
}

/// The folder with `go.mod`.
fn module() -> PathBuf {
    root().join("xtask/control-plane")
}

fn module_files() -> Result<String, String> {
    let read = |name: &str| {
        let path = module().join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(read("go.mod")? + &read("go.sum")?)
}

fn build_one(program: &Program, folder: &Path) -> Result<(), String> {
    let files = module_files()?;
    let version = files.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes ")?.split(' ').next());
    // Without it the programs say that they are of no version, and their clients mind.
    let version = version.ok_or("control-plane/go.mod says no version of k8s.io/kubernetes")?;
    let flags = format!("-s -w -X k8s.io/component-base/version.gitVersion={version}");
    let status = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
        .args([folder.join(program.name).as_os_str(), program.package.as_ref()])
        .current_dir(module())
        .env("CGO_ENABLED", "0")
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`go build {}` ended with {status}", program.package)),
        Err(error) => Err(format!("go could not be run: {error}")),
    }
}
