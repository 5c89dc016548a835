//! Writes random clusters as PreemptionTest files: `random --seed 1 --count 1000 --kind pods DIR`.

use std::path::PathBuf;
use std::process::ExitCode;

use reprieve_testkit::random::{Options, cluster};

const USAGE: &str = "usage: random [--seed N] [--count N] [--kind resources|pods|groups|tolerations|everything] DIR";

struct Arguments {
    seed: u64,
    count: u64,
    options: Options,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let written = arguments().and_then(|arguments| write(&arguments));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn write(arguments: &Arguments) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", arguments.folder.display());
    std::fs::create_dir_all(&arguments.folder).map_err(failed)?;
    for seed in arguments.seed..arguments.seed + arguments.count {
        let path = arguments.folder.join(format!("random-{seed}.yaml"));
        std::fs::write(path, cluster(seed, &arguments.options).to_yaml()).map_err(failed)?;
    }
    Ok(())
}

fn arguments() -> Result<Arguments, String> {
    let (mut seed, mut count, mut options, mut folder) = (1, 1, Options::everything(), None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--seed" => seed = number(&value()?)?,
            "--count" => count = number(&value()?)?,
            "--kind" => options = kind(&value()?)?,
            _ if !word.starts_with("--") && folder.is_none() => folder = Some(PathBuf::from(word)),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(Arguments { seed, count, options, folder: folder.ok_or(USAGE)? })
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number\n{USAGE}"))
}

fn kind(text: &str) -> Result<Options, String> {
    match text {
        "resources" => Ok(Options::resources()),
        "pods" => Ok(Options::pods()),
        "groups" => Ok(Options::groups()),
        "tolerations" => Ok(Options::tolerations()),
        "everything" => Ok(Options::everything()),
        _ => Err(format!("{text:?} is no kind\n{USAGE}")),
    }
}
