//! A comparison as one HTML page with no outside resources, to attach to a change request.

use maud::{Markup, html};
use reprieve_api::test_file::PreemptorRef;

use crate::policies::PolicyResult;
use crate::web_page;

/// The whole page.
pub fn page(preemptor: &PreemptorRef, verdicts: &[PolicyResult], warnings: &[String]) -> String {
    let title = format!("Who yields for {} {}", preemptor.kind, preemptor.full_name());
    let columns = ["Policy", "Tolerations", "Outcome", "Victims", "Lost", "What makes the difference"];
    let body = html! {
        p { "One cluster, one preemptor, every policy's verdict. Nothing was changed." }
        table {
            thead { tr { @for column in columns { th { (column) } } } }
            tbody { @for verdict in verdicts { (row(verdict)) } }
        }
        @for warning in warnings { p { "Warning: " (warning) } }
    };
    web_page::page(&title, "", None, body)
}

fn row(verdict: &PolicyResult) -> Markup {
    let mut lost = verdict.lost.words();
    if let Some(ran) = lost.last_mut() {
        ran.push_str(" of work");
    }
    let mut why =
        if verdict.difference.is_empty() { vec![verdict.summary.clone()] } else { verdict.difference.clone() };
    why.extend(verdict.violations());
    html! {
        tr {
            th scope="row" { (verdict.policy) }
            td.t data-is="Tolerations" { @if verdict.tolerations { "on" } @else { "off" } }
            td {
                @match verdict.outcome.map(|outcome| format!("{outcome:?}")) {
                    None => span.none { "no answer" },
                    Some(outcome) => span class={ "o " (outcome) } { (outcome) },
                }
            }
            td.v data-is="Victims" { (list(&verdict.victims)) }
            td.l data-is="Lost" { (list(&lost)) }
            td.w { (list(&why)) }
        }
    }
}

fn list(items: &[String]) -> Markup {
    html! {
        @match items {
            [] => "",
            [one] => (one),
            many => ul { @for item in many { li { (item) } } },
        }
    }
}
