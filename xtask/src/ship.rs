//! The program as it is shipped: it needs no library of the system, and is built by a profile of how it runs. What runs often is made fast,
//! the rest small.

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
/// How much more what it does on a cluster counts than all else that it can do.
const RUN_WEIGHT: u32 = 100;

/// Where it is.
pub fn path() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("shipped/reprieve"))
}

/// What is needed on the way.
fn profiling(name: &str) -> Result<PathBuf, String> {
    Ok(target_folder()?.join("profiling").join(name))
}

fn build(flag: &str, to: &Path) -> Result<(), String> {
    let (host, _) = compiler()?;
    let flags = ["-Ctarget-feature=+crt-static", flag].join("\u{1f}");
    let words = ["build", "--locked", "--profile", "dist", "--package", "reprieve", "--target", &host];
    let variables = [("CARGO_ENCODED_RUSTFLAGS", flags), ("CARGO_PROFILE_DIST_STRIP", "debuginfo".to_owned())];
    cargo_with(&words, &variables.map(|(name, value)| (name, OsString::from(value))))?;
    let from = target_folder()?.join(&host).join("dist/reprieve");
    let folder = to.parent().ok_or("it belongs into a folder")?;
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(&from, to));
    copied.map(|_| ()).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Gangs come, preempt each other and end on a real cluster; and each policy decides, so that none of them is taken for seldom used.
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
    let uses: [&[&str]; 2] = [&["test", "conformance"], &["simulate", "--check", "--seeds", "2"]];
    for words in uses {
        output(Command::new(&program).args(words).env("LLVM_PROFILE_FILE", raw(&rest)).current_dir(root()))?;
    }
    let weighted = |weight: u32, folder: &Path| format!("--weighted-input={weight},{}", folder.display());
    let inputs = [weighted(RUN_WEIGHT, &run), weighted(1, &rest)];
    output(Command::new(profdata).arg("merge").args(inputs).arg("-o").arg(profiling(PROFILE)?)).map(|_| ())
}

/// What merges profiles: the compiler's own, or one that is as new.
fn profdata() -> Result<PathBuf, String> {
    let (host, llvm) = compiler()?;
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let own = PathBuf::from(sysroot.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    let others = [format!("llvm-profdata-{llvm}"), "llvm-profdata".to_owned()].map(PathBuf::from);
    let version = format!("LLVM version {llvm}.");
    let fits =
        |program: &PathBuf| output(Command::new(program).arg("--version")).is_ok_and(|said| said.contains(&version));
    [own].into_iter().chain(others).find(fits).ok_or_else(|| {
        format!(
            "llvm-profdata of LLVM {llvm} is missing: `rustup component add llvm-tools` installs it (on Debian \
             also: apt-get install llvm-{llvm})"
        )
    })
}

/// For which machine the compiler is, and which LLVM it has.
fn compiler() -> Result<(String, String), String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let word = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let llvm = word("LLVM version: ").and_then(|version| version.split('.').next().map(str::to_owned));
    word("host: ").zip(llvm).ok_or_else(|| format!("`rustc -vV` says neither host nor LLVM version: {said}"))
}
