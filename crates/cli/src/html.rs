//! A comparison as one HTML page with no outside resources, to attach to a change request.

use reprieve_objects::report::count;
use reprieve_objects::test_file::{OutcomeName, PreemptorRef};

use crate::render::span;
use crate::verdicts::{Lost, Verdict};
use crate::web::{self, escaped};

/// The whole page.
pub fn page(preemptor: &PreemptorRef, verdicts: &[Verdict], warnings: &[String]) -> String {
    let title = format!("Who yields for {} {}", preemptor.kind, preemptor.full_name());
    let rows: String = verdicts.iter().map(|verdict| format!("<tr>{}</tr>\n", row(verdict))).collect();
    let warnings: String = warnings.iter().map(|warning| format!("<p>Warning: {}</p>\n", escaped(warning))).collect();
    let body = format!(
        "<p>One cluster, one preemptor, every policy's verdict. Nothing was changed.</p>\n<table>\n<thead><tr><th>Policy</th>\
         <th>Tolerations</th><th>Outcome</th><th>Victims</th><th>Lost</th><th>What makes the difference</th></tr></thead>\n<tbody>\n\
         {rows}</tbody>\n</table>\n{warnings}"
    );
    web::page(&title, "", None, &body)
}

fn row(verdict: &Verdict) -> String {
    let outcome = match verdict.outcome {
        None => "<span class=\"none\">no answer</span>".to_owned(),
        Some(outcome) => format!("<span class=\"o {0}\">{0}</span>", word(outcome)),
    };
    let Lost { pods, gpus, seconds } = verdict.lost;
    let lost = match pods {
        0 => Vec::new(),
        _ => vec![
            count(pods, "pod", "pods"),
            format!("{gpus} {}", if gpus == 1 { "GPU" } else { "GPUs" }),
            format!("{} of work", span(jiff::SignedDuration::from_secs(seconds))),
        ],
    };
    let mut why =
        if verdict.difference.is_empty() { vec![verdict.summary.clone()] } else { verdict.difference.clone() };
    why.extend(verdict.violations());
    let policy = escaped(verdict.policy);
    let tolerations = if verdict.tolerations { "on" } else { "off" };
    let (victims, lost, why) = (list(&verdict.victims), list(&lost), list(&why));
    format!(
        "<th scope=\"row\">{policy}</th><td class=\"t\" data-is=\"Tolerations\">{tolerations}</td><td>{outcome}</td>\
         <td class=\"v\" data-is=\"Victims\">{victims}</td><td class=\"l\" data-is=\"Lost\">{lost}</td><td class=\"w\">{why}</td>"
    )
}

fn word(outcome: OutcomeName) -> &'static str {
    match outcome {
        OutcomeName::Schedule => "Schedule",
        OutcomeName::Preempt => "Preempt",
        OutcomeName::Wait => "Wait",
        OutcomeName::Unschedulable => "Unschedulable",
    }
}

fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => escaped(one),
        many => {
            let items: String = many.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
            format!("<ul>{items}</ul>")
        }
    }
}
