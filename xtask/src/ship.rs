//! Builds the release binary: statically linked, and optimised by a profile of a run, so that frequent code is fast and the rest small.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tasks::{Step, cargo_with, output, root, target_folder};
use crate::{e2e, go};

pub const STEPS: [Step; 4] = [
    Step { name: "control plane", run: || profdata().and_then(|_| go::build()) },
    Step { name: "instrumented", run: || build("-Cprofile-generate", &profiling(INSTRUMENTED)?) },
    Step { name: "profile", run: profile },
    Step { name: "reprieve", run: || build(&format!("-Cprofile-use={}", profiling(PROFILE)?.display()), &path()?) },
];

const INSTRUMENTED: &str = "reprieve";
const PROFILE: &str = "merged.profdata";
/// The weight of `reprieve run` in the profile, relative to the other commands.
const RUN_WEIGHT: u32 = 100;

/// The path of the release binary.
pub fn path() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("shipped/reprieve"))
}

/// The path of an intermediate file.
fn profiling(name: &str) -> Result<PathBuf, String> {
    Ok(target_folder()?.join("profiling").join(name))
}

fn build(flag: &str, to: &Path) -> Result<(), String> {
    let (host, _) = compiler()?;
    let flags = ["-Ctarget-feature=+crt-static", flag].join("\u{1f}");
    let arguments = ["build", "--locked", "--profile", "dist", "--package", "reprieve", "--target", &host];
    let variables = [("CARGO_ENCODED_RUSTFLAGS", flags), ("CARGO_PROFILE_DIST_STRIP", "debuginfo".to_owned())];
    cargo_with(&arguments, &variables.map(|(name, value)| (name, OsString::from(value))))?;
    let from = target_folder()?.join(&host).join("dist/reprieve");
    let folder = to.parent().ok_or("the target path has no folder")?;
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(&from, to));
    copied.map(|_| ()).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Profiles a soak test on a real cluster, and decisions of every policy, so that the code of no policy counts as rare.
fn profile() -> Result<(), String> {
    let (profdata, program) = (profdata()?, profiling(INSTRUMENTED)?);
    let (run, rest) = (profiling("run")?, profiling("rest")?);
    for folder in [&run, &rest] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    let raw = |folder: &Path| folder.join("%p.profraw").into_os_string();
    e2e::soak("2", &[("REPRIEVE", program.clone().into_os_string()), ("LLVM_PROFILE_FILE", raw(&run))])?;
    let commands: [&[&str]; 2] = [&["test", "conformance"], &["simulate", "--check", "--seeds", "2"]];
    for arguments in commands {
        output(Command::new(&program).args(arguments).env("LLVM_PROFILE_FILE", raw(&rest)).current_dir(root()))?;
    }
    let weighted = |weight: u32, folder: &Path| format!("--weighted-input={weight},{}", folder.display());
    let inputs = [weighted(RUN_WEIGHT, &run), weighted(1, &rest)];
    output(Command::new(profdata).arg("merge").args(inputs).arg("-o").arg(profiling(PROFILE)?)).map(|_| ())
}

/// The program that merges profiles: that of the Rust toolchain, or a system one of the same LLVM version.
fn profdata() -> Result<PathBuf, String> {
    let (host, llvm) = compiler()?;
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let own = PathBuf::from(sysroot.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    let others = [format!("llvm-profdata-{llvm}"), "llvm-profdata".to_owned()].map(PathBuf::from);
    let version = format!("LLVM version {llvm}.");
    let has_version =
        |program: &PathBuf| output(Command::new(program).arg("--version")).is_ok_and(|text| text.contains(&version));
    [own].into_iter().chain(others).find(has_version).ok_or_else(|| {
        format!(
            "llvm-profdata of LLVM {llvm} is missing: `rustup component add llvm-tools` installs it (on Debian \
             also: apt-get install llvm-{llvm})"
        )
    })
}

/// The host triple and the LLVM version of the compiler.
fn compiler() -> Result<(String, String), String> {
    let text = output(Command::new("rustc").arg("-vV"))?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let llvm = value("LLVM version: ").and_then(|version| version.split('.').next().map(str::to_owned));
    value("host: ").zip(llvm).ok_or_else(|| format!("`rustc -vV` does not print a host and an LLVM version: {text}"))
}
