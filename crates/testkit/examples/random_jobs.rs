//! Writes random clusters for policy Koordinator as PreemptionTest files: `random_jobs FIRST_SEED COUNT DIR [FEATURE...]`. Features are
//! `arguments`, `quotas`, `members`, `obstacles` and `gangs`; default: all.

#![allow(clippy::disallowed_methods, reason = "it reads its arguments and writes files")]

use std::path::PathBuf;
use std::process::ExitCode;

use reprieve_testkit::random_jobs::{Options, cluster};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, count, folder, parts @ ..] = arguments.as_slice() else {
        eprintln!("usage: random_jobs FIRST_SEED COUNT DIR [PART...]");
        return ExitCode::FAILURE;
    };
    let has = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let options = Options {
        arguments: has("arguments"),
        quotas: has("quotas"),
        members: has("members"),
        obstacles: has("obstacles"),
        gangs: has("gangs"),
    };
    match write(seed, count, &PathBuf::from(folder), &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn write(seed: &str, count: &str, folder: &PathBuf, options: &Options) -> Result<(), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
    let (first, count) = (number(seed)?, number(count)?);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for seed in first..first + count {
        std::fs::write(folder.join(format!("random-jobs-{seed}.yaml")), cluster(seed, options)).map_err(failed)?;
    }
    Ok(())
}
