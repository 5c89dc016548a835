//! Prints a Kueue cycle: a table of the heads in the order of the decisions.

use comfy_table::Color;
use reprieve_api::kueue::AdmissionSpec;
use reprieve_report::cycle::{CycleReport, HeadReport, HeadResult};
use reprieve_report::plural::count;

use crate::render::{Detail, assumed, document, first_n_and_more, table};

/// The output of `plan --cycle`.
pub fn cycle(report: &CycleReport, detail: Detail) -> String {
    let of = |result| report.heads.iter().filter(|head| head.result == result).count();
    let workloads = count(report.heads.len(), "workload", "workloads");
    let victims: usize = report.heads.iter().map(|head| head.victims.len()).sum();
    let first_line = match (report.heads.len(), of(HeadResult::Preempt)) {
        (0, _) => "no pending workload".to_owned(),
        (_, 0) => format!("{} of {workloads} can be admitted now", of(HeadResult::Schedule)),
        (_, preempting) => format!(
            "{} of {workloads} can be admitted now, {preempting} more after evicting {}",
            of(HeadResult::Schedule),
            count(victims, "workload", "workloads")
        ),
    };
    let violations = report.budgets.iter().map(|budget| budget.sentence("the cycle"));
    let admissions = (detail == Detail::Wide).then(|| admissions(report));
    let tables = std::iter::once(heads(report, detail)).chain(admissions);
    document(first_line + &assumed(&report.assumed), violations, tables, &report.warnings)
}

fn heads(report: &CycleReport, detail: Detail) -> String {
    let shown = if detail == Detail::Wide { usize::MAX } else { 2 };
    let row = |(index, head): (usize, &HeadReport)| {
        let victims: Vec<String> = head.victims.iter().filter_map(|victim| victim.workload.clone()).collect();
        let reason = head.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
        vec![
            (index + 1).to_string(),
            head.workload.clone(),
            head.queue.clone(),
            head.priority.to_string(),
            format!("{:?}{reason}", head.result),
            first_n_and_more(&victims, shown),
            head.text.clone(),
        ]
    };
    let rows = report.heads.iter().enumerate().map(row);
    table(["#", "WORKLOAD", "QUEUE", "PRIORITY", "RESULT", "VICTIMS", "REASON"], rows, None)
}

/// The quota that each workload gets, by pod set and flavor.
fn admissions(report: &CycleReport) -> String {
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
    table(["ADMISSION", "POD SET", "PODS", "QUOTA"], rows, Some(Color::Green))
}
