//! The HTML page of a simulation, in a real browser and byte by byte.

mod browser;

use std::path::{Path, PathBuf};
use std::process::Command;

use reprieve::simulate::html::page;
use reprieve::simulate::policy_run::PolicyRun;
use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::run::{Eviction, JobRecord, Preemption, Run, RunInterval, Sample};
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::summary::summary;
use reprieve_simulator::trace::SkippedLines;
use serde_json::json;

use browser::Browser;

/// Simulates a scenario of the documentation and returns the path of its page.
fn simulate(folder: &Path, file: &str, policies: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = folder.join("report.html");
    let output = Command::new(env!("CARGO_BIN_EXE_reprieve"))
        .current_dir(&root)
        .args(["simulate", file, "--policy", policies, "--report"])
        .arg(&path)
        .output()
        .expect("reprieve runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// A run in which a job with this name was evicted by a job with a similar one.
fn evicting(name: &str) -> Run {
    const HOUR: i64 = 3_600_000_000;
    let job = |name: String, from: i64| JobRecord {
        name,
        priority: 1,
        queue: Some("<i>team".to_owned()),
        pods: 1,
        gang: None,
        each: 1,
        submitted: 0,
        started: Some(from),
        finished: None,
        evictions: 1,
        lost_micros: 0,
        idle_micros: 0,
        finished_micros: 0,
        held: None,
        ran: vec![RunInterval { from, to: None }],
    };
    let (victim, preemptor) = (format!("ns/{name}"), format!("ns/{name}-urgent"));
    Run {
        ended: 2 * HOUR,
        jobs: vec![job(victim.clone(), 0), job(preemptor.clone(), HOUR)],
        evictions: vec![Eviction {
            at: HOUR,
            pod: victim.clone(),
            job: victim,
            preemptor: format!("Pod {preemptor}"),
            preemptor_job: Some(preemptor.clone()),
            second_order: true,
            foreseen: false,
        }],
        preemptions: vec![Preemption {
            at: Timestamp(HOUR),
            unit: format!("Pod {preemptor}"),
            victims: vec![NamespacedName::new("ns", name)],
            placement: Vec::new(),
        }],
        samples: vec![Sample { at: 0, used: 1, running: 1, pending: 1, by_queue: vec![("<i>team".to_owned(), 1)] }],
        resource: "nvidia.com/gpu".to_owned(),
        capacity: 1,
        ..Run::default()
    }
}

/// An empty simulation with this name.
fn input(name: &str) -> SimulationInput {
    let text = "apiVersion: reprieve.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {end: 1h, nodes: [{name: n, count: 1, allocatable: {cpu: 1}}]}\n";
    let input = Scenario::read("scenario.yaml", text).expect("a scenario").input(0);
    SimulationInput { name: name.to_owned(), assumptions: vec![name.to_owned()], ..input }
}

fn result(policy: &str, run: Run) -> PolicyRun {
    let summary = summary(policy, &run, &input("s").queues);
    PolicyRun { run, explained: Default::default(), summary, took: Default::default() }
}

/// The labels of the plots; each plot has marks, and a title for each axis.
fn plots_with_marks(browser: &mut Browser, seen: &str) -> Vec<String> {
    let plots = browser.value(
        "[...document.querySelectorAll('svg.chart')].map(svg => [svg.getAttribute('aria-label'), \
         svg.querySelectorAll('.line, .area, .bar').length, svg.querySelectorAll('.what').length])",
    );
    let plots = plots.as_array().expect("a list");
    for plot in plots {
        assert!(plot[1].as_u64() > Some(0) && plot[2] == 2, "{seen}: {plot}");
    }
    plots.iter().map(|plot| plot[0].as_str().expect("a label").to_owned()).collect()
}

#[test]
fn plot_of_queues_shows_shares_at_the_pointer() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = simulate(folder.path(), "docs/examples/scenarios/yunikorn-replicasets.yaml", "YuniKorn");
    let mut browser = Browser::start();
    browser.open(&page, 1280, "light");
    let plots = plots_with_marks(&mut browser, "queues");
    assert_eq!(plots.last().map(String::as_str), Some("YuniKorn: shares of the queues over time"), "{plots:?}");
    browser.point_at("section:nth-of-type(5) svg.chart");
    let tip = browser.value("document.querySelector('.tip').innerText");
    assert!(tip.as_str().is_some_and(|tip| tip.matches('%').count() > 1), "{tip}");
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
fn every_plot_has_marks_and_a_click_on_an_arrow_opens_its_decision() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = simulate(folder.path(), "docs/examples/scenarios/training-job.yaml", "Kubernetes,Koordinator");
    let mut browser = Browser::start();
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")] {
        browser.open(&page, width, scheme);
        let seen = format!("{width} {scheme}");
        assert_eq!(plots_with_marks(&mut browser, &seen).len(), 8, "{seen}");
        let size = browser.value("[document.documentElement.scrollWidth, innerWidth]");
        assert!(size[0].as_u64() <= size[1].as_u64(), "{seen}: the page is wider than the screen: {size}");
        let colours =
            browser.value("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]");
        let light = json!(["rgb(28, 36, 48)", "rgb(255, 255, 255)"]);
        assert_eq!(colours == light, scheme == "light", "{seen}: {colours}");

        assert_eq!(browser.value("document.querySelectorAll('details[open]').length"), 0, "{seen}");
        browser.click(".scroll a .hit");
        assert_eq!(browser.value("document.querySelectorAll('details[open]').length"), 1, "{seen}");
        let says = browser.value("document.querySelector('details[open]').textContent.toLowerCase()");
        for word in ["evicts", "reason", "placed", "spared", "would not fit"] {
            assert!(says.as_str().is_some_and(|says| says.contains(word)), "{seen}: {word} is not in {says}");
        }
        browser.click("details[open] summary");
        assert_eq!(browser.value("document.querySelectorAll('details[open]').length"), 0, "{seen}");

        browser.point_at("svg.chart");
        let tip = browser.value("document.querySelector('.tip').innerText");
        assert!(tip.as_str().is_some_and(|tip| tip.contains("in use: ")), "{seen}: {tip}");
    }
    assert_eq!(browser.errors, Vec::<String>::new());
    assert!(
        browser.fetched.iter().all(|url| url.starts_with("file://") && url.contains("report.html")),
        "{:?}",
        browser.fetched
    );
}

#[test]
fn names_are_escaped() {
    let name = "a\"b'c&lt;<script>document.title='taken'</script><img src=x onerror=document.title='taken'>";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    std::fs::write(&path, page(&input(name), &SkippedLines::default(), &[result(name, evicting(name))], name))
        .expect("the page is written");
    let mut browser = Browser::start();
    browser.open(&path, 1280, "light");
    assert_eq!(browser.value("document.title"), format!("Simulation of {name}"));
    assert_eq!(browser.value("document.querySelectorAll('img, i, script:not(:last-of-type)').length"), 0);
    browser.click(".scroll a .hit");
    let says = browser.value("document.querySelector('details[open]').innerText");
    assert!(says.as_str().is_some_and(|says| says.contains(name)), "{says}");
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
fn same_runs_make_the_same_bytes() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [first, second] = folders.each_ref().map(|folder| {
        let path = simulate(folder.path(), "docs/examples/scenarios/training-job.yaml", "Kubernetes");
        let page = std::fs::read_to_string(&path).expect("the page");
        page.replace(path.to_str().expect("a path"), "report.html")
    });
    assert_eq!(first, second);
    assert!(first.contains(
        "reprieve simulate docs/examples/scenarios/training-job.yaml --policy Kubernetes --report report.html"
    ));
}

/// A run with 8152 jobs and 30000 decisions.
fn large_run() -> Run {
    let mut run = evicting("job");
    let (job, eviction, preemption) = (run.jobs[0].clone(), run.evictions[0].clone(), run.preemptions.remove(0));
    run.jobs = (0..8_152).map(|index| JobRecord { name: format!("ns/job-{index}"), ..job.clone() }).collect();
    for index in 0..30_000 {
        let (victim, preemptor) = (format!("job-{}", index % 8_152), format!("job-{}", index * 7 % 8_152));
        run.evictions.push(Eviction {
            pod: format!("ns/{victim}"),
            job: format!("ns/{victim}"),
            preemptor: format!("Pod ns/{preemptor}"),
            preemptor_job: Some(format!("ns/{preemptor}")),
            ..eviction.clone()
        });
        run.preemptions.push(Preemption {
            at: preemption.at,
            unit: format!("Pod ns/{preemptor}"),
            victims: vec![NamespacedName::new("ns", &victim)],
            placement: Vec::new(),
        });
    }
    run
}

#[test]
fn page_of_thousands_of_jobs_and_decisions_is_below_5_megabytes() {
    let results = ["Kubernetes", "YuniKorn", "Koordinator"].map(|policy| result(policy, large_run()));
    let page = page(&input("many"), &SkippedLines::default(), &results, "reprieve simulate");
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.contains("evictions are shown, ") && page.contains("do not fit on this page"));
}

#[test]
fn unwritable_page_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_reprieve"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["simulate", "docs/examples/scenarios/training-job.yaml", "--report", "no/such/folder/report.html"])
        .output()
        .expect("reprieve runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no/such/folder/report.html"), "{output:?}");
}
