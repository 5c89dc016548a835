//! Every law of the engine refers to a rule of `docs/rules`, and every such reference exists.

use std::collections::BTreeSet;
use std::path::Path;

use super::documented::variants_of;
use super::files::{crate_folders, read, sources};
use super::relative;

/// How a reference begins.
const PREFIX: &str = "docs/rules/";

/// References without a target, and laws without a reference.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for folder in crate_folders(root)? {
        for file in sources(&folder)? {
            for (index, line) in read(&file)?.lines().enumerate() {
                for link in links(line) {
                    if !exists(root, link)? {
                        violations.push(format!("{}:{}: {link} does not exist", relative(&file), index + 1));
                    }
                }
            }
        }
    }
    let laws = root.join("crates/engine/src/laws/mod.rs");
    let text = read(&laws)?;
    let linked = linked_variants(&text);
    let tokens = text.parse().map_err(|error| format!("{}: {error}", relative(&laws)))?;
    for law in variants_of(tokens, "Law").unwrap_or_default() {
        if !linked.contains(law.as_str()) {
            violations
                .push(format!("{}: Law::{law} has no link to its rule (`{PREFIX}FILE.md#ANCHOR`)", relative(&laws)));
        }
    }
    Ok(violations)
}

/// The references of a line: `docs/rules/FILE.md#ANCHOR`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(PREFIX).map(|(start, _)| {
        let rest = &line[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/.-#".contains(c)).unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    })
}

fn exists(root: &Path, link: &str) -> Result<bool, String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = root.join(file);
    Ok(path.is_file() && (anchor.is_empty() || read(&path)?.contains(&format!("<a id=\"{anchor}\">"))))
}

/// The variants whose documentation has a reference: the comment lines right above them.
fn linked_variants(text: &str) -> BTreeSet<&str> {
    let mut linked = BTreeSet::new();
    let mut has_link = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") {
            has_link |= line.contains(PREFIX);
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
