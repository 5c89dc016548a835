//! What follows from the table of kinds (`crates/api/src/kinds.rs`) outside the program: the rules of the ClusterRoles that let it read
//! them, and the list in the documents. `cargo xtask fix` writes both; a text that is not current fails.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use reprieve_api::kinds::{Kind, Reader, Resource};

use crate::tasks::root;

/// A part of a file that is written from the table, between two lines that stay.
struct Block {
    file: &'static str,
    begin: &'static str,
    end: &'static str,
    text: fn() -> String,
}

const BLOCKS: [Block; 3] = [
    Block {
        file: "deploy/chart/reprieve/templates/role-run.yaml",
        begin: "  # Kinds that are read, from crates/api/src/kinds.rs by `cargo xtask fix`.\n",
        end: "  # End of the kinds that are read.\n",
        text: || rules(Kind::ALL, "[get, list, watch]"),
    },
    Block {
        file: "deploy/chart/reprieve/templates/role-plan.yaml",
        begin: "  # Kinds that are read, from crates/api/src/kinds.rs by `cargo xtask fix`.\n",
        end: "  # End of the kinds that are read.\n",
        text: || rules(Kind::ALL, "[get, list]"),
    },
    Block { file: "docs/run.md", begin: "<!-- kinds -->\n", end: "<!-- end of kinds -->\n", text: documented },
];

/// Whether every part is as it would be written.
pub fn violations() -> Result<Vec<String>, String> {
    let mut stale = Vec::new();
    for block in BLOCKS {
        let (file, now, written) = block.read()?;
        if now != written {
            stale.push(format!("{}: not as the table of kinds says; run `cargo xtask fix`", file.display()));
        }
    }
    Ok(stale)
}

/// Writes every part.
pub fn fix() -> Result<(), String> {
    for block in BLOCKS {
        let (file, _, written) = block.read()?;
        fs::write(&file, written).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

impl Block {
    /// The file, its text, and the text that it should have.
    fn read(&self) -> Result<(PathBuf, String, String), String> {
        let file = root().join(self.file);
        let now = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let written = self.replaced(&now).ok_or_else(|| format!("{}: lacks {:?}", file.display(), self.begin))?;
        Ok((file, now, written))
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let (before, rest) = text.split_once(self.begin)?;
        let (_, after) = rest.split_once(self.end)?;
        Some(format!("{before}{}{}{}{after}", self.begin, (self.text)(), self.end))
    }
}

/// A rule for each group. Of ConfigMaps only the one with YuniKorn's queues may be read.
fn rules(kinds: &[Kind], verbs: &str) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| **kind != Kind::ConfigMap) {
        let Resource { group, plural, .. } = kind.resource();
        groups.entry(group).or_default().push(plural);
    }
    let mut text = String::new();
    for (group, plurals) in groups {
        let group = if group.is_empty() { "\"\"" } else { group };
        let plurals = plurals.join(", ");
        let _ = write!(text, "  - apiGroups: [{group}]\n    resources: [{plurals}]\n    verbs: {verbs}\n");
    }
    let _ = write!(
        text,
        "  - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [yunikorn-configs]\n    verbs: {verbs}\n"
    );
    text
}

/// A row for each policy.
fn documented() -> String {
    let mut text = "| policy | kinds |\n| --- | --- |\n".to_owned();
    for (reader, policy) in [
        (Reader::All, "every"),
        (Reader::Kubernetes, "Kubernetes"),
        (Reader::YuniKorn, "YuniKorn"),
        (Reader::Koordinator, "Koordinator"),
        (Reader::Kueue, "Kueue"),
    ] {
        let kinds = Kind::ALL.iter().map(|kind| kind.resource()).filter(|resource| resource.reader == reader);
        let names: Vec<String> =
            kinds.map(|resource| format!("{} (`{}`)", resource.kind, resource.api_version())).collect();
        let _ = writeln!(text, "| {policy} | {} |", names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_the_lines_is_written() {
        let block = Block { file: "", begin: "<\n", end: ">\n", text: || "new\n".to_owned() };
        assert_eq!(block.replaced("a\n<\nold\n>\nb\n").as_deref(), Some("a\n<\nnew\n>\nb\n"));
        assert_eq!(block.replaced("a\nb\n"), None);
    }

    #[test]
    fn every_kind_has_a_rule() {
        let rules = rules(Kind::ALL, "[get]");
        for kind in Kind::ALL {
            let Resource { group, plural, .. } = kind.resource();
            let group = if group.is_empty() { "\"\"" } else { group };
            let rule = rules
                .split("  - ")
                .find(|rule| rule.starts_with(&format!("apiGroups: [{group}]")) && rule.contains(plural));
            assert!(rule.is_some(), "{kind:?}");
        }
    }
}
