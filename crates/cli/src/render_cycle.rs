//! A cycle as a table: the heads in the order in which they were considered.

use std::fmt::Write as _;

use comfy_table::Color;
use reprieve_api::kueue::AdmissionSpec;
use reprieve_report::cycle::{CycleReport, HeadReport};
use reprieve_report::plural::count;

use crate::render::{Detail, assumed, table};

/// The whole cycle.
pub fn cycle(report: &CycleReport, detail: Detail) -> String {
    let of = |verdict: &str| report.heads.iter().filter(|head| head.verdict == verdict).count();
    let (admitted, preempting) = (of("Schedule"), of("Preempt"));
    let victims: usize = report.heads.iter().map(|head| head.victims.len()).sum();
    let mut text = match (report.heads.len(), preempting) {
        (0, _) => "nobody asks for quota".to_owned(),
        (heads, 0) => format!("quota now for {admitted} of {}", count(heads, "workload", "workloads")),
        (heads, _) => format!(
            "quota now for {admitted} of {}; for {preempting} more once {} gone",
            count(heads, "workload", "workloads"),
            count(victims, "workload is", "workloads are")
        ),
    };
    text.push_str(&assumed(&report.assumed));
    text.push('\n');
    for budget in &report.budgets {
        let _ = writeln!(text, "{}", budget.sentence("the cycle"));
    }
    let mut part = |table: String| {
        if !table.is_empty() {
            let _ = write!(text, "\n{table}\n");
        }
    };
    part(heads(report, detail));
    if detail == Detail::Wide {
        part(given(report));
    }
    for warning in &report.warnings {
        part(format!("warning: {}", crate::output::escaped(warning)));
    }
    text
}

fn heads(report: &CycleReport, detail: Detail) -> String {
    let row = |(at, head): (usize, &HeadReport)| {
        let names: Vec<&str> = head.victims.iter().filter_map(|victim| victim.workload.as_deref()).collect();
        let victims = match (detail, names.as_slice()) {
            (Detail::Wide, names) | (Detail::Short, names @ [_, _] | names @ [_] | names @ []) => names.join(", "),
            (Detail::Short, [first, second, rest @ ..]) => format!("{first}, {second} and {} more", rest.len()),
        };
        let verdict = head.reason.map_or_else(|| head.verdict.clone(), |reason| format!("{} {reason}", head.verdict));
        vec![
            (at + 1).to_string(),
            head.workload.clone(),
            head.queue.clone(),
            head.priority.to_string(),
            verdict,
            victims,
            head.text.clone(),
        ]
    };
    let rows = report.heads.iter().enumerate().map(row);
    table(["", "WORKLOAD", "QUEUE", "PRIORITY", "VERDICT", "VICTIMS", "WHY"], rows, None)
}

/// What each gets of which flavor.
fn given(report: &CycleReport) -> String {
    let rows = report.heads.iter().filter_map(|head| Some((head, head.admission.as_ref()?)));
    let rows = rows.flat_map(|(head, admission): (&HeadReport, &AdmissionSpec)| {
        let sets = admission.pod_set_assignments.iter().map(|set| {
            let resource = |(resource, flavor): (&String, &String)| {
                let amount = set.resource_usage.get(resource).and_then(|amount| amount.as_str()).unwrap_or_default();
                format!("{amount} {resource} of {flavor}")
            };
            let resources: Vec<String> = set.flavors.iter().map(resource).collect();
            let pods = set.count.map(|count| count.to_string()).unwrap_or_default();
            vec![head.workload.clone(), set.name.clone(), pods, resources.join(", ")]
        });
        sets.collect::<Vec<_>>()
    });
    table(["GIVEN", "POD SET", "PODS", "QUOTA"], rows, Some(Color::Green))
}
