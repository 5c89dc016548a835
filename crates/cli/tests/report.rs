//! The page of a simulation, in a real browser and byte by byte.

mod browser;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use reprieve::report::{Page, PolicyRunPage, page};
use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_simulator::run::{Eviction, JobRecord, Preemption, Run, RunInterval, Sample};
use serde_json::json;

use browser::Browser;

/// Lets a scenario of the documentation run, and tells where its page is.
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

/// A run in which somebody with this name was evicted by somebody with a like one.
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

fn hostile(name: &str, run: &Run) -> String {
    let notes = [name.to_owned()];
    page(&Page {
        name,
        headline: name,
        comparison: &[vec![name.to_owned(), name.to_owned()]],
        legend: name,
        runs: &[PolicyRunPage { policy: name, run, explained: &BTreeMap::new() }],
        made_up: &notes,
        command: name,
    })
}

/// What the plots are; each has marks, and a title for each axis.
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
fn queues_have_a_plot_whose_shares_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = simulate(folder.path(), "docs/examples/scenarios/yunikorn-replicasets.yaml", "YuniKorn");
    let mut browser = Browser::start();
    browser.open(&page, 1280, "light");
    let plots = plots_with_marks(&mut browser, "queues");
    assert_eq!(plots.last().map(String::as_str), Some("YuniKorn: shares of the queues over time"), "{plots:?}");
    browser.point_at("section:nth-of-type(5) svg.chart");
    let tip = browser.value("document.querySelector('.tip').innerText");
    assert!(tip.as_str().is_some_and(|tip| tip.matches('%').count() > 1), "{tip}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn every_plot_has_marks_and_every_decision_is_a_click_away() {
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
        for word in ["evicts", "why it cannot stay", "placed", "spared", "would not fit"] {
            assert!(says.as_str().is_some_and(|says| says.contains(word)), "{seen}: {word} is not in {says}");
        }
        browser.click("details[open] summary");
        assert_eq!(browser.value("document.querySelectorAll('details[open]').length"), 0, "{seen}");

        browser.point_at("svg.chart");
        let tip = browser.value("document.querySelector('.tip').innerText");
        assert!(tip.as_str().is_some_and(|tip| tip.contains("in use: ")), "{seen}: {tip}");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    assert!(
        browser.fetched.iter().all(|url| url.starts_with("file://") && url.contains("report.html")),
        "{:?}",
        browser.fetched
    );
}

#[test]
fn a_name_is_never_more_than_a_name() {
    let name = "a\"b'c&lt;<script>document.title='taken'</script><img src=x onerror=document.title='taken'>";
    let run = evicting(name);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    std::fs::write(&path, hostile(name, &run)).expect("the page is written");
    let mut browser = Browser::start();
    browser.open(&path, 1280, "light");
    assert_eq!(browser.value("document.title"), format!("Simulation of {name}"));
    assert_eq!(browser.value("document.querySelectorAll('img, i, script:not(:last-of-type)').length"), 0);
    browser.click(".scroll a .hit");
    let says = browser.value("document.querySelector('details[open]').innerText");
    assert!(says.as_str().is_some_and(|says| says.contains(name)), "{says}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn the_same_runs_make_the_same_bytes() {
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

#[test]
fn a_page_of_thousands_of_jobs_and_decisions_stays_below_5_megabytes() {
    let mut run = evicting("job");
    let (job, eviction, preemption) = (run.jobs[0].clone(), run.evictions[0].clone(), run.preemptions.remove(0));
    run.jobs = (0..8_152).map(|at| JobRecord { name: format!("ns/job-{at}"), ..job.clone() }).collect();
    for at in 0..30_000 {
        let (victim, preemptor) = (format!("job-{}", at % 8_152), format!("job-{}", at * 7 % 8_152));
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
    let (run, explained) = (&run, &BTreeMap::new());
    let runs = ["Kubernetes", "YuniKorn", "Koordinator"].map(|policy| PolicyRunPage { policy, run, explained });
    let page = page(&Page {
        name: "many",
        headline: "",
        comparison: &[],
        legend: "",
        runs: &runs,
        made_up: &[],
        command: "reprieve simulate",
    });
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.contains("have a row, ") && page.contains("there is no room on this page"));
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_reprieve"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["simulate", "docs/examples/scenarios/training-job.yaml", "--report", "no/such/folder/report.html"])
        .output()
        .expect("reprieve runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no/such/folder/report.html"), "{output:?}");
}
