//! Writes random clusters for policy YuniKorn as PreemptionTest files: `random_queues FIRST_SEED COUNT DIR`.

use std::path::PathBuf;
use std::process::ExitCode;

use reprieve_testkit::random_queues::cluster;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, count, folder] = arguments.as_slice() else {
        eprintln!("usage: random_queues FIRST_SEED COUNT DIR");
        return ExitCode::FAILURE;
    };
    match write(seed, count, &PathBuf::from(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn write(seed: &str, count: &str, folder: &PathBuf) -> Result<(), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
    let (first, count) = (number(seed)?, number(count)?);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for seed in first..first + count {
        std::fs::write(folder.join(format!("random-queues-{seed}.yaml")), cluster(seed)).map_err(failed)?;
    }
    Ok(())
}
