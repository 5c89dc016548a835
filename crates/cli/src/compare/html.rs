//! `reprieve compare -o html`: the comparison as one HTML page with no outside resources, to attach to a change request.

use maud::{Markup, html};
use reprieve_api::PreemptorRef;

use super::KUBERNETES_ROWS;
use super::policies::PolicyResult;
use crate::web_page;

/// The whole page.
pub fn page(preemptor: &PreemptorRef, results: &[PolicyResult], warnings: &[String]) -> String {
    let title = format!("Policies compared for {} {}", preemptor.kind, preemptor.full_name());
    let columns = ["Policy", "Tolerations", "Outcome", "Victims", "Evicted", "Difference"];
    let body = html! {
        p { "The decision of every policy for the same preemptor on the same cluster. The comparison is read-only." }
        table {
            thead { tr { @for column in columns { th { (column) } } } }
            tbody { @for result in results { (row(result)) } }
        }
        p { (KUBERNETES_ROWS) }
        @for warning in warnings { p { "Warning: " (warning) } }
    };
    web_page::page(&title, "", None, body)
}

fn row(result: &PolicyResult) -> Markup {
    let evicted = result.eviction_cost.texts();
    let mut why = if result.difference.is_empty() { vec![result.summary.clone()] } else { result.difference.clone() };
    why.extend(result.violations());
    html! {
        tr {
            th scope="row" { (result.policy) }
            td.t data-is="Tolerations" { @if result.tolerations { "on" } @else { "off" } }
            td {
                @match result.outcome.map(|outcome| format!("{outcome:?}")) {
                    None => span.none { "no decision" },
                    Some(outcome) => span class={ "o " (outcome) } { (outcome) },
                }
            }
            td.v data-is="Victims" { (list(&result.victims)) }
            td.l data-is="Evicted" { (list(&evicted)) }
            td.w { (list(&why)) }
        }
    }
}

fn list(items: &[String]) -> Markup {
    html! {
        @match items {
            [] => "",
            [item] => (item),
            many => ul { @for item in many { li { (item) } } },
        }
    }
}
