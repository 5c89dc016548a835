//! Development tasks: `verify` runs every check of CI and writes nothing, `fix` updates formatting and generated files, `e2e` tests `reprieve` on
//! a real control plane, `ship` builds the release binary, `bench` compares the speed with the goals.

mod bench;
mod blocks;
mod browser;
mod crds;
mod docs;
mod e2e;
mod go;
mod kinds;
mod manifests;
mod ship;
mod tasks;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask verify           check everything that CI checks; writes nothing
       cargo xtask verify --from STEP  the same from this step on, such as tests or documentation
       cargo xtask tidy [--report]  check the structure of the source; --report prints and never fails
       cargo xtask fix              apply formatting and lint fixes, and write all generated files and documented outputs
       cargo xtask e2e              build a Kubernetes control plane, and test `reprieve` on it
       cargo xtask e2e --bench      compare `reprieve run` with kube-scheduler on it
       cargo xtask e2e --soak [MINUTES]  run arrivals, preemptions and killed leaders on it [default: 30]
       cargo xtask ship             build the release binary: static, optimised by a profile of a run on it
       cargo xtask bench [--quick]  compare the speed with the goals; --quick stays under a minute";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["verify"] => tasks::run(tasks::VERIFY),
        ["verify", "--from", step] => match tasks::VERIFY.iter().position(|other| other.name == *step) {
            Some(index) => tasks::run(&tasks::VERIFY[index..]),
            None => {
                let steps: Vec<&str> = tasks::VERIFY.iter().map(|step| step.name).collect();
                eprintln!("there is no step {step:?}; the steps are: {}", steps.join(", "));
                ExitCode::from(2)
            }
        },
        ["tidy"] => tasks::run(&[tasks::Step { name: "tidy", run: tidy::check }]),
        ["tidy", "--report"] => tasks::run(&[tasks::Step { name: "tidy", run: tidy::report }]),
        ["fix"] => tasks::run(&tasks::FIX),
        ["fix", "kinds"] => tasks::run(&[tasks::Step { name: "kinds", run: kinds::fix }]),
        ["e2e"] => tasks::run(&e2e::STEPS),
        ["e2e", "--bench"] => tasks::run(&e2e::BENCH),
        ["e2e", "--soak"] | ["e2e", "--soak", _] => tasks::run(&e2e::SOAK),
        ["ship"] => tasks::run(&ship::STEPS),
        ["bench"] => bench::run(false),
        ["bench", "--quick"] => bench::run(true),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
