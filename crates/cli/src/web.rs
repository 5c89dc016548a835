//! What the HTML pages share: one style sheet, one frame, and text that stays text.

/// Light and dark; on a narrow screen every row of a table is a card, and each cell says what it is.
const STYLE: &str = include_str!("web/style.css");

/// A whole page with no outside resources: the browser itself refuses to load any.
pub fn page(title: &str, style: &str, script: Option<Script>, body: &str) -> String {
    let title = escaped(title);
    let (allowed, script) = script.map_or_else(Default::default, |Script { text, sha256 }| {
        (format!(";script-src 'sha256-{sha256}'"), format!("<script>{text}</script>\n"))
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline'{allowed}\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}{script}</body>\n</html>\n"
    )
}

/// A script, and the digest by which a browser knows it: no other one is run.
pub struct Script {
    /// What it does.
    pub text: &'static str,
    /// Its digest in base64, as the browser's complaint about a wrong one shows it.
    pub sha256: &'static str,
}

/// Text that stays text, in an element and in an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn text_stays_text() {
        for (text, safe) in [
            ("team-a/train-0", "team-a/train-0"),
            ("<script>", "&lt;script&gt;"),
            ("a&lt;b", "a&amp;lt;b"),
            ("\" onclick='x'", "&quot; onclick=&#39;x&#39;"),
        ] {
            assert_eq!(escaped(text), safe);
        }
    }
}
