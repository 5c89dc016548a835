//! The frame and the style sheet of all HTML pages. Pages are written with `html!`, which escapes all text.

use maud::{Markup, PreEscaped, html};

/// Light and dark; on a narrow screen every row of a table is a card, and each cell has the title of its column.
const STYLE: &str = include_str!("web/style.css");

/// A page with no outside resources: its content security policy forbids the browser to load any.
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

/// A script and its digest: the content security policy allows only this script.
#[derive(Clone, Copy)]
pub struct Script {
    /// The source of the script.
    pub text: &'static str,
    /// The SHA-256 digest in base64; a browser prints the expected one in its error about a wrong one.
    pub sha256: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_in_elements_and_attributes() {
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
