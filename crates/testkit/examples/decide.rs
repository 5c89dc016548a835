//! Decides PreemptionTest files and prints a line of JSON for each: `decide FILE|DIR…`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::VictimRef;
use reprieve_engine::choose::Plan;
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::node_plans;
use reprieve_loader::build::{Loaded, OnInvalid, load};
use reprieve_loader::policy::Question;
use reprieve_report::answer::answer;
use serde_json::{Value, json};

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1).flat_map(|argument| files(Path::new(&argument))) {
        match decide(&path) {
            Ok(line) => println!("{line}"),
            Err(problem) => {
                eprintln!("{}: {problem}", path.display());
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// The file itself, or the YAML files of a folder in order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.to_owned()];
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort_unstable();
    files
}

fn decide(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut objects = ObjectSet::default();
    let mut test = None;
    for document in documents(&path.to_string_lossy(), &text) {
        let read = document.read(&mut objects).map_err(|error| error.to_string())?;
        test = test.or(read.map(|sourced| sourced.object));
    }
    let test = test.ok_or("there is no PreemptionTest in it")?;
    let mut loaded = load(&objects, OnInvalid::Reject).map_err(|error| error.to_string())?;
    let question = Question::new(&test.spec, &loaded).map_err(|error| error.to_string())?;
    let answer = answer(&question, &mut loaded);
    let victim = |victim: &VictimRef| match &victim.workload {
        Some(workload) => json!({"workload": workload, "reason": victim.reason}),
        None => json!(victim.pod),
    };
    let victims: Vec<Value> = answer.victims.iter().map(victim).collect();
    let mut line = json!({
        "file": path.file_name().map(|name| name.to_string_lossy()),
        "outcome": answer.outcome,
        "victims": victims,
        "nominated": answer.nominated,
    });
    if let PreemptorId::Pod(pod) = question.preemptor {
        let plans = node_plans(&mut loaded.snapshot, &question.policy, pod, question.now);
        let names = |(node, plan): &(_, Plan)| (loaded.names.node(*node).to_owned(), victims_of(&loaded, plan));
        line["candidates"] = json!(plans.iter().map(names).collect::<BTreeMap<String, Vec<String>>>());
    }
    Ok(line)
}

fn victims_of(loaded: &Loaded, plan: &Plan) -> Vec<String> {
    let pods = plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods);
    let mut names: Vec<String> = pods.map(|&pod| loaded.names.pod(pod).to_string()).collect();
    names.sort_unstable();
    names
}
