//! Every relative link of a document leads to a file of the repository and, if it names an anchor, to a heading or `<a id="...">` there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::read;
use crate::tasks::output;

/// The anchors of the documents that were read.
pub(super) type Anchors = BTreeMap<PathBuf, BTreeSet<String>>;

/// Links without a target, by file and line.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"]).current_dir(root);
    let (mut violations, mut anchors) = (Vec::new(), Anchors::new());
    for file in output(&mut list)?.lines().filter(|file| root.join(file).exists()) {
        let path = root.join(file);
        // The end of a link's text and its target are on one line, because the targets contain no spaces.
        for (index, line) in read(&path)?.lines().enumerate() {
            for link in links(line) {
                if !exists(&path, link, &mut anchors)? {
                    violations.push(format!("{file}:{}: the link {link} has no target", index + 1));
                }
            }
        }
    }
    Ok(violations)
}

/// The relative targets of the links in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://") && !target.contains(' '))
}

/// Whether the target of a link in this file exists.
pub(super) fn exists(file: &Path, link: &str, anchors: &mut Anchors) -> Result<bool, String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { file.to_owned() } else { file.parent().unwrap_or(file).join(path) };
    if anchor.is_empty() || !target.is_file() {
        return Ok(target.exists());
    }
    if !anchors.contains_key(&target) {
        anchors.insert(target.clone(), anchors_of(&read(&target)?));
    }
    Ok(anchors[&target].contains(anchor))
}

/// The headings of a document as anchors, and the ids of its elements `<a id="...">`.
fn anchors_of(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim_start()));
    let ids = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    headings.map(slug).chain(ids.map(|(id, _)| id.to_owned())).collect()
}

/// The anchor of a heading: lower case, without punctuation, and a hyphen for each space.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_of_a_line_are_found() {
        let line = "See [a](b.md), [c](https://d.e/f) and [g](../h.md#i); an index `x[0](y z)` is none.";
        assert_eq!(links(line).collect::<Vec<_>>(), ["b.md", "../h.md#i"]);
    }

    #[test]
    fn anchors_are_headings_or_elements() {
        let text = "# Laws, filters and `wait` reasons\n\n<a id=\"g1\"></a>**G1.** Text.\n";
        let anchors: Vec<String> = anchors_of(text).into_iter().collect();
        assert_eq!(anchors, ["g1", "laws-filters-and-wait-reasons"]);
    }
}
