//! Every law, filter and reason to wait has a row in its table of `docs/laws.md`, and every row there is one of them.

use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::files::{read, sources};

const DOCUMENT: &str = "docs/laws.md";

/// The tables of the document, by their headings.
const SPARED: &str = "Why a running unit is spared";
const REFUSED: &str = "Laws that refuse a preemptor or let it wait";
const NODES: &str = "Why a node is refused";
const PENDING: &str = "Why a unit is pending";

/// Crates, their enums whose variants are documented, and the tables with their rows: a variant is in one of them, if not in [`ROWS`].
const ENUMS: [(&str, &str, &[&str]); 4] = [
    ("engine", "Law", &[SPARED, REFUSED]),
    ("engine", "Spared", &[SPARED]),
    ("engine", "FilterFailure", &[NODES]),
    ("scheduler", "WaitReason", &[PENDING]),
];

/// Variants that have rows in these tables and no other.
const ROWS: [(&str, &str, &[&str]); 6] = [
    // The law lets a preemptor wait, and under Kueue also spares candidates.
    ("Law", "PreemptionDelay", &[SPARED, REFUSED]),
    // These laws refuse nodes.
    ("Law", "NodeReserved", &[NODES]),
    ("Law", "UnknownPriorityClass", &[SPARED, NODES]),
    // A law has the row of its own code.
    ("Spared", "Law", &[]),
    ("WaitReason", "Law", &[]),
    // Its code is that of `Reprieved`.
    ("Spared", "EqualCost", &[]),
];

/// Variants whose code in tables differs from their name.
const CODES: [(&str, &str, &str); 1] = [("FilterFailure", "Resource", "Resources")];

/// Variants without a row, rows without a variant, and enums that do not exist.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut enums = Vec::new();
    for (folder, name, _) in ENUMS {
        let source = root.join("crates").join(folder).join("src");
        let mut variants = None;
        for file in sources(&source)? {
            let text = read(&file)?;
            // A search for the name is faster than parsing every file.
            if variants.is_none() && text.contains(&format!("enum {name}")) {
                let tokens = text.parse().map_err(|error| format!("{}: {error}", file.display()))?;
                variants = variants_of(tokens, name);
            }
        }
        enums.push(variants);
    }
    Ok(differences(&enums, &read(&root.join(DOCUMENT))?))
}

/// The differences between the variants of [`ENUMS`], in that order, and the rows of the document.
fn differences(enums: &[Option<Vec<String>>], document: &str) -> Vec<String> {
    let rows = rows(document);
    let mut violations = Vec::new();
    // The rows that the enums permit.
    let mut permitted: Vec<(&str, &str)> = Vec::new();
    for ((folder, name, tables), variants) in ENUMS.iter().zip(enums) {
        let Some(variants) = variants else {
            violations.push(format!("crates/{folder} has no enum {name}"));
            continue;
        };
        for variant in variants {
            let is_this = |row: &(&str, &str)| row.0 == *name && row.1 == variant;
            let code = CODES.iter().find(|row| is_this(&(row.0, row.1))).map_or(variant.as_str(), |row| row.2);
            let listed = ROWS.iter().find(|row| is_this(&(row.0, row.1))).map(|row| row.2);
            let has_row = |table: &str| rows.contains(&(table, code));
            permitted.extend(listed.unwrap_or(tables).iter().map(|table| (*table, code)));
            let problem = |table: &str| format!("{name}::{variant} has no row in {DOCUMENT}, {table:?}");
            match listed {
                Some(listed) => violations.extend(listed.iter().filter(|table| !has_row(table)).map(|t| problem(t))),
                None if tables.iter().any(|table| has_row(table)) => {}
                None => violations.push(problem(&tables.join("\" or \""))),
            }
        }
    }
    for (table, code) in rows {
        if ENUMS.iter().any(|row| row.2.contains(&table)) && !permitted.contains(&(table, code)) {
            violations.push(format!("{DOCUMENT}, {table:?}: {code} is no law, filter or wait reason of this table"));
        }
    }
    violations
}

/// The codes of all rows, each with the heading above it: the words in backquotes in a first cell that begins with one.
fn rows(document: &str) -> Vec<(&str, &str)> {
    let (mut rows, mut heading) = (Vec::new(), "");
    for line in document.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = text;
        } else if let Some((cell, _)) = line.strip_prefix("| `").and_then(|line| line.split_once('|')) {
            rows.extend(cell.split('`').step_by(2).filter(|code| !code.trim().is_empty()).map(|code| (heading, code)));
        }
    }
    rows
}

/// The variants of an enum at the top level of a file.
pub fn variants_of(tokens: TokenStream, name: &str) -> Option<Vec<String>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let body = tokens.windows(3).find_map(|window| match window {
        [TokenTree::Ident(keyword), TokenTree::Ident(found), TokenTree::Group(body)]
            if keyword == "enum" && found == name && body.delimiter() == Delimiter::Brace =>
        {
            Some(body.stream())
        }
        _ => None,
    })?;
    let body: Vec<TokenTree> = body.into_iter().collect();
    let parts = body.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','));
    // The name is the first word: attributes are a punctuation mark and a group.
    let first_word = |part: &[TokenTree]| {
        part.iter().find_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        })
    };
    Some(parts.filter_map(first_word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_read_with_their_fields_and_comments() {
        let text = "struct Before; /// Of many, an enum.\n#[derive(Debug)] pub enum Law { /// A, B.\n A { x: u8, y: u8 }, B(u8, u8), \
                    #[allow(dead_code)] C, } enum Other { D }";
        assert_eq!(variants_of(text.parse().unwrap(), "Law"), Some(vec!["A".into(), "B".into(), "C".into()]));
        assert_eq!(variants_of(text.parse().unwrap(), "Missing"), None);
    }

    #[test]
    fn rows_are_read_with_their_heading() {
        let text =
            "`No` row\n\n## One\n| law | it says |\n| --- | --- |\n| `A`, `B` (new) | `C` |\n## Two\n| `D` | |\n";
        assert_eq!(rows(text), [("One", "A"), ("One", "B"), ("Two", "D")]);
    }

    fn enums() -> Vec<Option<Vec<String>>> {
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        vec![
            names(&["QueueLimit", "PreemptionDelay", "NodeReserved", "UnknownPriorityClass"]),
            names(&["Law", "NotReached", "EqualCost"]),
            names(&["QueueLimit", "Resource"]),
            names(&["Law", "Backoff"]),
        ]
    }

    const COMPLETE: &str = "## Why a running unit is spared
| `PreemptionDelay` | spares |
| `UnknownPriorityClass` | spares |
| `NotReached` | - |
## Laws that refuse a preemptor or let it wait
| `QueueLimit` | refuses |
| `PreemptionDelay` | waits |
## Why a node is refused
| `QueueLimit` | yes |
| `Resources` | yes |
| `NodeReserved`, `UnknownPriorityClass` | no |
## Why a unit is pending
| the code of a law, such as `QueueLimit` | - |
| `Backoff` | - |
";

    #[test]
    fn every_deleted_row_is_a_violation() {
        assert_eq!(differences(&enums(), COMPLETE), Vec::<String>::new());
        for row in COMPLETE.lines().filter(|line| line.starts_with("| `")) {
            let document = COMPLETE.replace(&format!("{row}\n"), "");
            // Some rows are there twice, under two headings.
            if document.lines().count() + 1 == COMPLETE.lines().count() {
                let codes = row.matches('`').count() / 2;
                assert_eq!(differences(&enums(), &document).len(), codes, "{row}");
            }
        }
        let without_one = COMPLETE.replacen("| `QueueLimit` | yes |\n", "", 1);
        assert_eq!(
            differences(&enums(), &without_one),
            ["FilterFailure::QueueLimit has no row in docs/laws.md, \"Why a node is refused\""]
        );
    }

    #[test]
    fn rows_and_enums_that_do_not_exist_are_violations() {
        let stale = COMPLETE.replace("`Backoff`", "`Backoff`, `NotReached`");
        assert_eq!(
            differences(&enums(), &stale),
            ["docs/laws.md, \"Why a unit is pending\": NotReached is no law, filter or wait reason of this table"]
        );
        let mut enums = enums();
        enums[3] = None;
        assert_eq!(differences(&enums, COMPLETE)[0], "crates/scheduler has no enum WaitReason");
    }
}
