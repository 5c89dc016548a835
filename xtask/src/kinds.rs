//! Generates texts from the table of kinds (`crates/api/src/kinds.rs`): the read permissions of the ClusterRoles and the list in the
//! documentation. `fix` writes them; `tidy` fails if one is not current.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use reprieve_api::kinds::{Kind, Reader, Resource};

use crate::tasks::root;

/// A generated part of a file, between two marker lines.
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
    Block { file: "docs/run.md", begin: "<!-- kinds -->\n", end: "<!-- end of kinds -->\n", text: kinds_by_policy },
];

/// The files with a part that is not current.
pub fn violations() -> Result<Vec<String>, String> {
    let mut stale = Vec::new();
    for block in BLOCKS {
        let (file, current, generated) = block.read()?;
        if current != generated {
            stale.push(format!("{}: does not match the table of kinds; run `cargo xtask fix`", file.display()));
        }
    }
    Ok(stale)
}

/// Writes all parts.
pub fn fix() -> Result<(), String> {
    for block in BLOCKS {
        let (file, _, generated) = block.read()?;
        fs::write(&file, generated).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

impl Block {
    /// The file, its current text and its generated text.
    fn read(&self) -> Result<(PathBuf, String, String), String> {
        let file = root().join(self.file);
        let current = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let generated = self.replaced(&current).ok_or_else(|| format!("{}: lacks {:?}", file.display(), self.begin))?;
        Ok((file, current, generated))
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let (before, rest) = text.split_once(self.begin)?;
        let (_, after) = rest.split_once(self.end)?;
        Some(format!("{before}{}{}{}{after}", self.begin, (self.text)(), self.end))
    }
}

/// An RBAC rule for each API group. The only readable ConfigMap is the one with YuniKorn's queues.
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

/// A table with a row for each policy.
fn kinds_by_policy() -> String {
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
    fn only_the_part_between_the_markers_is_replaced() {
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
