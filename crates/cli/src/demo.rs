//! `reprieve demo`: one decision for a high-priority gang on a built-in cluster, then a simulated day on a larger one under two policies.
//! The input files are embedded in the program.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use reprieve_api::read::documents;
use reprieve_api::{ObjectSet, PreemptorRef, Profile, TestSpec};
use reprieve_engine::{Outcome, PodId};
use reprieve_loader::Question;
use reprieve_loader::build::{OnInvalid, load};
use reprieve_report::report::report_decision;
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::trace::SkippedLines;

use crate::input::Error;
use crate::node_diagram::NodeDiagram;
use crate::output;
use crate::render::{self, Detail};
use crate::simulate::{Output, html, show, simulate};

const CLUSTER: &str = include_str!("../demo/cluster.yaml");
const URGENT: &str = include_str!("../demo/urgent.yaml");
const DAY: &str = include_str!("../demo/day.yaml");

/// Shows one decision, then the comparison of two policies over a day.
pub fn run() -> Result<u8, Error> {
    one_decision()?;
    output::line("\nA simulated day on a larger cluster under two policies:\n")?;
    let scenario = Scenario::read("day.yaml", DAY)?;
    let input = scenario.input(0);
    let results = simulate(&input, scenario.profiles(), true)?;
    show(&input, &SkippedLines::default(), &results, Output::Table)?;
    let path = std::env::temp_dir().join(format!("reprieve-demo-{}.html", std::process::id()));
    write_new(&path, &html::page(&input, &SkippedLines::default(), &results, "reprieve demo"))
        .map_err(|error| Error::Write { path: path.clone(), error })?;
    output::note(&format!("Report with plots and the explanation of every decision: {}", path.display()));
    output::line("\nPlan for your own cluster:   reprieve plan -f FILES --for podgroup/NAME")?;
    output::line("Simulate your own workload:  reprieve simulate FILE")?;
    Ok(0)
}

/// Fails if the file exists: the folder for temporary files is shared with other users.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    File::create_new(path)?.write_all(text.as_bytes())
}

/// Shows the cluster before and after, and the explained decision.
fn one_decision() -> Result<(), Error> {
    let mut objects = ObjectSet::default();
    for (file, text) in [("cluster.yaml", CLUSTER), ("urgent.yaml", URGENT)] {
        for document in documents(file, text) {
            document.read(&mut objects)?;
        }
    }
    let preemptor = PreemptorRef { kind: "PodGroup".into(), namespace: "ml".into(), name: "incident".into() };
    let now = Some("2026-01-05T09:00:00Z".to_owned());
    let spec = TestSpec { now, profile: Profile::default(), preemptor, expect: None };
    let mut loaded = load(&objects, OnInvalid::Reject)?;
    let question = Question::new(&spec, &loaded)?;
    let (decision, explanation) = question.decide_and_explain(&mut loaded);
    let report = report_decision(&question, &mut loaded, &decision, &explanation);
    let (evicted, placed) = match &decision.outcome {
        Outcome::Preempt(plan) => {
            let pods = plan.victims.iter().flat_map(|&unit| loaded.snapshot.unit(unit).pods.iter().copied());
            (pods.collect::<Vec<PodId>>(), plan.placement.clone())
        }
        Outcome::Schedule(placement) => (Vec::new(), placement.clone()),
        Outcome::Wait(_) | Outcome::Unschedulable(_) => (Vec::new(), Vec::new()),
    };
    output::line(
        "A high-priority gang arrives: ml/incident, 3 pods with 4 GPUs each, priority 500. All 3 pods must fit.\n",
    )?;
    if let Some(diagram) = NodeDiagram::new(&loaded, "nvidia.com/gpu") {
        let (before, after) = (diagram.rows(&[], &[]), diagram.rows(&evicted, &placed));
        let mut legend = diagram.legend().into_iter();
        output::line("GPUs before (· is free)   GPUs after")?;
        for (before, after) in before.iter().zip(&after) {
            output::line(&format!("{before}         {after}      {}", legend.next().unwrap_or_default()))?;
        }
        output::line("")?;
    }
    output::print(&render::decision(&report, Detail::Short))
}
