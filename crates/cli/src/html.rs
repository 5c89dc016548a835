//! A comparison as one HTML page with no outside resources, to attach to a change request.

use reprieve_objects::report::count;
use reprieve_objects::test_file::{OutcomeName, PreemptorRef};

use crate::render::span;
use crate::verdicts::{Lost, Verdict};

/// On a narrow screen every verdict is a card, and each cell says what it is.
const STYLE: &str = "
:root{color-scheme:light dark;--text:#1c2430;--quiet:#5a6675;--page:#fff;--line:#d9dee5}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;color:var(--text);background:var(--page)}
h1{font-size:1.4rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.5rem .75rem;border-bottom:1px solid var(--line)}
thead th{font-size:.8rem;text-transform:uppercase;letter-spacing:.04em;color:var(--quiet)}
tbody th{font-weight:600}
tbody th,.t,.l,.o{white-space:nowrap}
.v,.w{overflow-wrap:anywhere}
.v{min-width:10rem}
ul{margin:0;padding:0;list-style:none}
.o{font-weight:600;padding:.1rem .5rem;border-radius:.6rem}
.Schedule{background:#d8f3dc;color:#14532d}
.Preempt{background:#fff0c2;color:#6b4a00}
.Wait{background:#d7ecfb;color:#0b4a6f}
.Unschedulable{background:#fbdcdc;color:#7f1d1d}
.none{color:var(--quiet)}
@media(prefers-color-scheme:dark){
:root{--text:#e6eaf0;--quiet:#9aa7b8;--page:#14181f;--line:#303845}
.Schedule{background:#14432a;color:#b7efc5}
.Preempt{background:#4d3a06;color:#ffe08a}
.Wait{background:#0d3b57;color:#b5defa}
.Unschedulable{background:#571d1d;color:#fbc4c4}
}
@media(max-width:48rem){
thead{display:none}
tr,tbody th,td{display:block}
tr{border:1px solid var(--line);border-radius:.6rem;margin:0 0 1rem;padding:.5rem 0}
tbody th,td{border:0;padding:.2rem .75rem}
td:empty{display:none}
td[data-is]::before{content:attr(data-is) \": \";color:var(--quiet)}
td[data-is]>ul{display:inline-block;vertical-align:top}
}
";

/// The whole page.
pub fn page(preemptor: &PreemptorRef, verdicts: &[Verdict]) -> String {
    let name = escaped(&format!("{} {}", preemptor.kind, preemptor.full_name()));
    let rows: String = verdicts.iter().map(|verdict| format!("<tr>{}</tr>\n", row(verdict))).collect();
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
        0 => Vec::new(),
        _ => vec![
            count(pods, "pod", "pods"),
            format!("{gpus} {}", if gpus == 1 { "GPU" } else { "GPUs" }),
            format!("{} of work", span(jiff::SignedDuration::from_secs(seconds))),
        ],
    };
    let why = if verdict.difference.is_empty() { vec![verdict.summary.clone()] } else { verdict.difference.clone() };
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
