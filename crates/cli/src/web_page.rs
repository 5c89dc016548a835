//! What the HTML pages share: one style sheet and one frame. Pages are written with `html!`, which escapes whatever is not markup.

use maud::{Markup, PreEscaped, html};

/// Light and dark; on a narrow screen every row of a table is a card, and each cell says what it is.
const STYLE: &str = include_str!("web/style.css");

/// A whole page with no outside resources: the browser itself refuses to load any.
pub fn page(title: &str, style: &str, script: Option<Script>, body: Markup) -> String {
    let allowed = script.map_or_else(String::new, |script| format!(";script-src 'sha256-{}'", script.sha256));
    let policy = format!("default-src 'none';style-src 'unsafe-inline'{allowed}");
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body {
                h1 { (title) }
                (body)
                @if let Some(script) = script {
                    script { (PreEscaped(script.text)) }
                }
            }
        }
        "\n"
    };
    page.into_string()
}

/// A script, and the digest by which a browser knows it: no other one is run.
#[derive(Clone, Copy)]
pub struct Script {
    /// What it does.
    pub text: &'static str,
    /// Its digest in base64, as the browser's complaint about a wrong one shows it.
    pub sha256: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_in_elements_and_attributes() {
        for (text, safe) in [
            ("team-a/train-0", "team-a/train-0"),
            ("<script>", "&lt;script&gt;"),
            ("a&lt;b", "a&amp;lt;b"),
            ("\" onclick='x'", "&quot; onclick='x'"),
        ] {
            let markup = html! { p title=(text) { (text) } };
            assert_eq!(markup.into_string(), format!("<p title=\"{safe}\">{safe}</p>"));
        }
    }
}
