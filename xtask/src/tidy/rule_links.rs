//! Every law of the engine refers to a rule of `docs/rules`, and every reference of the source to a document or source file exists.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::doc_links::{Anchors, exists};
use super::documented::variants_of;
use super::files::read;
use crate::tasks::output;

/// The document folder, and that of the rules.
const DOCUMENTS: &str = "docs/";
const RULES: &str = "docs/rules/";
/// The file with the laws.
const LAWS: &str = "crates/engine/src/laws/mod.rs";

/// References without a target, and laws without a reference.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).args(["*.rs", "*Cargo.toml", "deploy"]);
    let (mut violations, mut anchors) = (Vec::new(), Anchors::new());
    for file in output(list.current_dir(root))?.lines().filter(|file| root.join(file).is_file()) {
        for (index, line) in read(&root.join(file))?.lines().enumerate() {
            for link in links(line) {
                if !exists(&root.join("Cargo.toml"), link, &mut anchors)? {
                    violations.push(format!("{file}:{}: {link} does not exist", index + 1));
                }
            }
            let comment = if file.ends_with("Cargo.toml") { line.split_once('#') } else { None };
            for path in comment.into_iter().flat_map(|(_, comment)| sources(comment)) {
                if !root.join(file).with_file_name(path).is_file() {
                    violations.push(format!("{file}:{}: {path} does not exist", index + 1));
                }
            }
        }
    }
    violations.extend(unlinked_laws(&read(&root.join(LAWS))?)?);
    Ok(violations)
}

/// The laws in this source without a link to their rule; also a violation if the source has no laws at all.
fn unlinked_laws(text: &str) -> Result<Vec<String>, String> {
    let tokens = text.parse().map_err(|error| format!("{LAWS}: {error}"))?;
    let Some(laws) = variants_of(tokens, "Law").filter(|laws| !laws.is_empty()) else {
        return Ok(vec![format!("{LAWS} has no enum Law")]);
    };
    let linked = linked_variants(text);
    let unlinked = laws.iter().filter(|law| !linked.contains(law.as_str()));
    Ok(unlinked.map(|law| format!("{LAWS}: Law::{law} has no link to its rule (`{RULES}FILE.md#ANCHOR`)")).collect())
}

/// The references of a line: a path from the root of the repository to a document, with or without an anchor.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.match_indices(DOCUMENTS).map(|(start, _)| start);
    let is_path_end = |start: usize| line[..start].ends_with(|c: char| c.is_ascii_alphanumeric() || "/.-_".contains(c));
    starts.filter(move |&start| !is_path_end(start)).filter_map(|start| {
        let rest = &line[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/.-_#".contains(c)).unwrap_or(rest.len());
        // A path with a placeholder, such as `docs/rules/{file}`, is none.
        (!rest[end..].starts_with(['{', '*'])).then(|| rest[..end].trim_end_matches('.'))
    })
}

/// The source files that a text names.
fn sources(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "`(),;:".contains(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| word.contains('/') && word.ends_with(".rs"))
}

/// The variants whose documentation has a reference to an anchor of a rule: the comment lines right above them.
fn linked_variants(text: &str) -> BTreeSet<&str> {
    let mut linked = BTreeSet::new();
    let mut has_link = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") {
            has_link |= links(line).any(|link| link.starts_with(RULES) && link.contains('#'));
        } else if !line.starts_with("#[") {
            let name = line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            if has_link {
                linked.insert(name);
            }
            has_link = false;
        }
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_without_an_anchor_of_a_rule_is_a_violation() {
        let rule = format!("{RULES}a.md");
        let text = format!(
            "enum Law {{\n    /// One. {rule}#p1\n    One,\n    /// Two. {rule}\n    Two,\n    Three {{ n: u8 }},\n}}"
        );
        let problem = |law: &str| format!("{LAWS}: Law::{law} has no link to its rule (`{RULES}FILE.md#ANCHOR`)");
        assert_eq!(unlinked_laws(&text), Ok(vec![problem("Two"), problem("Three")]));
    }

    #[test]
    fn a_file_without_laws_is_a_violation() {
        for text in ["enum Rule { A }", "pub use other::Law;", "enum Law {}"] {
            assert_eq!(unlinked_laws(text), Ok(vec![format!("{LAWS} has no enum Law")]));
        }
    }

    #[test]
    fn references_to_documents_are_found() {
        let line =
            format!("/// See {DOCUMENTS}a.md#b-c, `{RULES}d.md#e1`. Not ../{DOCUMENTS}f.md or {RULES}{{name}}.md.");
        assert_eq!(links(&line).collect::<Vec<_>>(), [format!("{DOCUMENTS}a.md#b-c"), format!("{RULES}d.md#e1")]);
    }

    #[test]
    fn source_files_in_comments_are_found() {
        assert_eq!(sources(" Only for tests: see src/bug.rs.").collect::<Vec<_>>(), ["src/bug.rs"]);
    }

    #[test]
    fn anchors_that_do_not_exist_are_found() {
        let root = crate::tasks::root().join("Cargo.toml");
        let mut anchors = Anchors::new();
        for (link, expected) in
            [("laws.md", true), ("laws.md#why-a-unit-is-pending", true), ("laws.md#no", false), ("no.md", false)]
        {
            assert_eq!(exists(&root, &format!("{DOCUMENTS}{link}"), &mut anchors), Ok(expected), "{link}");
        }
    }
}
