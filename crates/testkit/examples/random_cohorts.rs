//! Writes random clusters for policy Kueue as PreemptionTest files: `random_cohorts flat|tree|fair FIRST_SEED COUNT DIR`.

use std::path::PathBuf;
use std::process::ExitCode;

use reprieve_testkit::random_cohorts::{Kind, cluster};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [sort, seed, count, folder] = arguments.as_slice() else {
        eprintln!("usage: random_cohorts flat|tree|fair FIRST_SEED COUNT DIR");
        return ExitCode::FAILURE;
    };
    match write(sort, seed, count, &PathBuf::from(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn write(sort: &str, seed: &str, count: &str, folder: &PathBuf) -> Result<(), String> {
    let known = Kind::ALL.into_iter().find(|known| known.name() == sort);
    let sort = known.ok_or_else(|| format!("{sort:?} is not understood; write flat, tree or fair"))?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
    let (first, count) = (number(seed)?, number(count)?);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for seed in first..first + count {
        let name = format!("random-cohorts-{}-{seed}.yaml", sort.name());
        std::fs::write(folder.join(name), cluster(sort, seed)).map_err(failed)?;
    }
    Ok(())
}
