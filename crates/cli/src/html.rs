//! A comparison as one HTML page with no outside resources, to attach to a change request.

use std::fmt::Write as _;

use reprieve_objects::test_file::{OutcomeName, PreemptorRef};

use crate::compare::{Lost, Verdict};
use crate::render::span;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1c2430;background:#fff}\
h1{font-size:1.4rem}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.5rem .75rem;\
border-bottom:1px solid #d9dee5}th{font-size:.8rem;text-transform:uppercase;letter-spacing:.04em;color:#5a6675}\
.o{font-weight:600;padding:.1rem .5rem;border-radius:.6rem;white-space:nowrap}.Schedule{background:#d8f3dc;color:#14532d}\
.Preempt{background:#fff0c2;color:#6b4a00}.Wait{background:#d7ecfb;color:#0b4a6f}.Unschedulable{background:#fbdcdc;color:#7f1d1d}\
.none{color:#5a6675}li{margin:0}ul{margin:0;padding-left:1.1rem}\
@media(prefers-color-scheme:dark){body{background:#14181f;color:#e6eaf0}th,td{border-color:#303845}}";

/// The whole page.
pub fn page(preemptor: &PreemptorRef, verdicts: &[Verdict]) -> String {
    let name = escaped(&format!("{} {}", preemptor.kind, preemptor.full_name()));
    let mut rows = String::new();
    for verdict in verdicts {
        let _ = writeln!(rows, "<tr>{}</tr>", row(verdict));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Who yields for {name}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Who yields for {name}</h1>\n\
         <p>One cluster, one preemptor, every policy's verdict. Nothing was changed.</p>\n<table>\n<thead><tr><th>Policy</th>\
         <th>Tolerations</th><th>Outcome</th><th>Victims</th><th>Lost</th><th>What makes the difference</th></tr></thead>\n<tbody>\n\
         {rows}</tbody>\n</table>\n</body>\n</html>\n"
    )
}

fn row(verdict: &Verdict) -> String {
    let outcome = match verdict.outcome {
        None => "<span class=\"none\">no answer</span>".to_owned(),
        Some(outcome) => format!("<span class=\"o {0}\">{0}</span>", word(outcome)),
    };
    let Lost { pods, gpus, seconds } = verdict.lost;
    let lost = match pods {
        0 => String::new(),
        _ => format!("{pods} pods<br>{gpus} GPUs<br>{} of running", span(jiff::SignedDuration::from_secs(seconds))),
    };
    let why = if verdict.difference.is_empty() { vec![verdict.summary.clone()] } else { verdict.difference.clone() };
    let cells = [
        escaped(&verdict.policy),
        if verdict.tolerations { "on" } else { "off" }.to_owned(),
        outcome,
        list(&verdict.victims),
        lost,
        list(&why),
    ];
    cells.iter().map(|cell| format!("<td>{cell}</td>")).collect()
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
