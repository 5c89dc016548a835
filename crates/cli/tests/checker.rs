//! The checker accepts every decision of the conformance cases and of random clusters, and rejects each wrong answer
//! derived from a right one.

#[path = "checker/case.rs"]
mod case;
#[path = "checker/properties.rs"]
mod properties;
#[path = "checker/random_cluster.rs"]
mod random_cluster;
#[path = "checker/wrong.rs"]
mod wrong;

use std::fs;

use case::{Case, cases, is_for_kubernetes};

#[test]
fn every_decision_of_the_conformance_cases_is_accepted() {
    let (mut judged, mut problems) = (0, Vec::new());
    for path in cases() {
        let text = fs::read_to_string(&path).expect("the case can be read");
        if !is_for_kubernetes(&text) {
            continue;
        }
        for priority_cut in [true, false] {
            let case = Case::read(&text, priority_cut).expect("the case can be decided");
            judged += 1;
            let name = path.file_stem().unwrap_or_default().display();
            for finding in case.findings() {
                problems.push(format!("{name} (cut: {priority_cut}): {finding}; claimed {:?}", case.answer));
            }
        }
    }
    assert!(judged > 200, "only {judged} decisions were judged");
    assert!(problems.is_empty(), "{} findings:\n{}", problems.len(), problems.join("\n"));
}
