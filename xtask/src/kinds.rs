//! Generates texts from the table of kinds (`crates/api/src/kinds.rs`) and the table of permissions (`crates/api/src/permissions.rs`): the
//! rules of the chart's roles and the list in the documentation. `fix` writes them; `tidy` fails if one is not current.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use reprieve_api::kinds::{Kind, Need, Reader};
use reprieve_api::permissions::{CHANGES, COPY_OF_QUEUES, EVENTS, LEASE, Objects, Permission, READ_VERBS};

use crate::tasks::root;

/// A generated part of a file, between two marker lines.
struct Block {
    file: &'static str,
    begin: &'static str,
    end: &'static str,
    text: fn() -> String,
}

/// The policies of a reader, as in a table.
fn policies_of(reader: Reader) -> &'static str {
    match reader {
        Reader::All => "every",
        Reader::AllButKueue => "every but Kueue",
        Reader::Kubernetes | Reader::YuniKorn | Reader::Koordinator | Reader::Kueue => {
            reader.policy().unwrap_or_default()
        }
    }
}

const BLOCKS: [Block; 8] = [
    Block {
        file: "deploy/chart/reprieve/templates/role-run.yaml",
        begin: "  # Kinds that are read, from crates/api/src/kinds.rs by `cargo xtask fix`.\n",
        end: "  # End of the kinds that are read.\n",
        text: || read_rules(&format!("[{}]", READ_VERBS.join(", ")), Condition::Policies),
    },
    Block {
        file: "deploy/chart/reprieve/templates/role-plan.yaml",
        begin: "  # Kinds that are read, from crates/api/src/kinds.rs by `cargo xtask fix`.\n",
        end: "  # End of the kinds that are read.\n",
        text: || read_rules("[get, list]", Condition::None),
    },
    Block {
        file: "deploy/chart/reprieve/templates/_rules.tpl",
        begin: "  # Changes, from crates/api/src/permissions.rs by `cargo xtask fix`.\n",
        end: "  # End of the changes.\n",
        text: change_rules,
    },
    Block {
        file: "deploy/chart/reprieve/templates/role-run.yaml",
        begin: "  # The lease, from crates/api/src/permissions.rs by `cargo xtask fix`.\n",
        end: "  # End of the lease.\n",
        text: || LEASE.iter().map(rule_with_purpose).collect(),
    },
    Block {
        file: "deploy/chart/reprieve/templates/role-run.yaml",
        begin: "  # The copy of the queues, from crates/api/src/permissions.rs by `cargo xtask fix`.\n",
        end: "  # End of the copy of the queues.\n",
        text: || conditional_rules(COPY_OF_QUEUES.iter(), Condition::Policies),
    },
    Block { file: "docs/run.md", begin: "<!-- kinds -->\n", end: "<!-- end of kinds -->\n", text: kinds_by_policy },
    Block {
        file: "docs/getting-started.md",
        begin: "<!-- export, from crates/api/src/kinds.rs by `cargo xtask fix` -->\n",
        end: "<!-- end of export -->\n",
        text: export_commands,
    },
    Block {
        file: "deploy/chart/reprieve/values.schema.json",
        begin: "\"policy\": {\"enum\": [",
        end: "]}",
        text: || {
            let policies = Reader::ALL.iter().filter_map(|reader| reader.policy());
            policies.map(|policy| format!("{policy:?}")).collect::<Vec<_>>().join(", ")
        },
    },
];

/// The files with a part that is not current.
pub fn violations() -> Result<Vec<String>, String> {
    let mut stale = Vec::new();
    for block in BLOCKS {
        let (file, current, generated) = block.read()?;
        if current != generated {
            stale.push(format!(
                "{}: does not match the tables of kinds and permissions; run `cargo xtask fix`",
                file.display()
            ));
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

/// Where a template of the chart has the list of the configured policies, on which the rules of a policy depend.
#[derive(Clone, Copy)]
enum Condition {
    /// In no variable: the rules of all policies apply.
    None,
    /// In the variable `$policies`.
    Policies,
    /// In the argument of a named template.
    Argument,
}

impl Condition {
    /// Rules that apply only under the policy of this reader.
    fn around(self, reader: Reader, rules: &str) -> String {
        let policies = match self {
            Self::None => return rules.to_owned(),
            Self::Policies => "$policies",
            Self::Argument => ".",
        };
        let has = Reader::ALL.iter().filter(|policy| reader.includes(**policy)).filter_map(|policy| policy.policy());
        let has: Vec<String> = has.map(|policy| format!("(has \"{policy}\" {policies})")).collect();
        match has.as_slice() {
            [one] => format!("  {{{{- if {} }}}}\n{rules}  {{{{- end }}}}\n", one.trim_matches(['(', ')'])),
            several if reader != Reader::All => {
                format!("  {{{{- if or {} }}}}\n{rules}  {{{{- end }}}}\n", several.join(" "))
            }
            _ => rules.to_owned(),
        }
    }
}

/// The rules to read all kinds, one for each policy and API group, without the ConfigMap with the queues, which has a role of its own.
fn read_rules(verbs: &str, condition: Condition) -> String {
    let mut text = String::new();
    for &reader in Reader::ALL {
        let mut groups: BTreeMap<(&str, Objects), Vec<&str>> = BTreeMap::new();
        let kinds = Kind::ALL.iter().filter(|kind| **kind != Kind::ConfigMap);
        for permission in kinds.map(|kind| Permission::to_read(*kind)).filter(|read| read.reader == reader) {
            groups.entry((permission.group, permission.objects)).or_default().push(permission.resource);
        }
        if groups.is_empty() {
            continue;
        }
        let policy = policies_of(reader).replace("every", "every policy");
        let mut rules = format!("  # Read under {policy}:\n");
        for ((group, objects), resources) in groups {
            rules += &rule(group, &resources.join(", "), objects, verbs);
        }
        text += &condition.around(reader, &rules);
    }
    text
}

/// The rules to change objects and to write events, each with its purpose.
fn change_rules() -> String {
    conditional_rules(CHANGES.iter().chain([&EVENTS]), Condition::Argument)
}

/// Rules, each with its purpose, that depend on the configured policies.
fn conditional_rules<'p>(permissions: impl Iterator<Item = &'p Permission>, condition: Condition) -> String {
    permissions.map(|permission| condition.around(permission.reader, &rule_with_purpose(permission))).collect()
}

fn rule_with_purpose(permission: &Permission) -> String {
    let verbs = format!("[{}]", permission.verbs.join(", "));
    let rule = rule(permission.group, permission.resource, permission.objects, &verbs);
    format!("  # {}\n{rule}", permission.purpose)
}

fn rule(group: &str, resources: &str, objects: Objects, verbs: &str) -> String {
    let group = if group.is_empty() { "\"\"" } else { group };
    let names = match objects {
        Objects::All => String::new(),
        Objects::NamedAsRelease => "    resourceNames: [{{ .Release.Name }}]\n".to_owned(),
        Objects::CopyOfQueues => "    resourceNames: [{{ .Release.Name }}-queues]\n".to_owned(),
    };
    format!("  - apiGroups: [{group}]\n    resources: [{resources}]\n{names}    verbs: {verbs}\n")
}

/// A table with a row for each policy.
fn kinds_by_policy() -> String {
    let mut text = "| policy | kinds |\n| --- | --- |\n".to_owned();
    for &reader in Reader::ALL {
        let kinds = Kind::ALL.iter().map(|kind| kind.resource()).filter(|resource| resource.reader == reader);
        let names: Vec<String> =
            kinds.map(|resource| format!("{} (`{}`)", resource.kind, resource.api_version())).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "| {} | {} |", policies_of(reader), names.join(", "));
        }
    }
    text
}

/// The commands that export the objects that a decision reads, by policy.
fn export_commands() -> String {
    let mut text = "```sh\n".to_owned();
    for &reader in Reader::ALL {
        let resources = Kind::STORED.iter().filter(|kind| **kind != Kind::ConfigMap).map(|kind| kind.resource());
        let read: Vec<_> = resources.filter(|resource| resource.reader == reader).collect();
        if read.is_empty() {
            continue;
        }
        let optional = if read.iter().all(|resource| resource.need == Need::Optional) {
            ", without the kinds that the cluster lacks"
        } else {
            ""
        };
        let policies = reader
            .policy()
            .map_or_else(|| policies_of(reader).replace("every", "every policy"), |policy| format!("policy {policy}"));
        let _ = writeln!(text, "# {policies}{optional}");
        // Names of the core group and of groups with one meaning need no group.
        let is_unique = |plural: &str| Kind::ALL.iter().filter(|kind| kind.resource().plural == plural).count() == 1;
        let names = read.iter().map(|resource| match resource.plural {
            plural if is_unique(plural) => plural.to_owned(),
            plural => format!("{plural}.{}", resource.group),
        });
        let file = match reader {
            Reader::All => "cluster.yaml".to_owned(),
            Reader::AllButKueue => "groups.yaml".to_owned(),
            Reader::Kubernetes | Reader::YuniKorn | Reader::Koordinator | Reader::Kueue => {
                format!("{}.yaml", policies_of(reader).to_lowercase())
            }
        };
        let _ = writeln!(text, "kubectl get {} -A -o yaml > {file}", names.collect::<Vec<_>>().join(","));
        if Kind::ConfigMap.resource().reader == reader {
            text += "kubectl get configmap yunikorn-configs -n yunikorn -o yaml > queues.yaml\n";
        }
    }
    text + "\nreprieve plan -f cluster.yaml groups.yaml --for pod/urgent\n```\n"
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
    fn every_kind_and_every_change_has_a_rule() {
        let rules = read_rules("[get]", Condition::Policies) + &change_rules();
        let has_rule = |permission: Permission| {
            let group = if permission.group.is_empty() { "\"\"" } else { permission.group };
            let (group, resource) = (format!("apiGroups: [{group}]"), permission.resource);
            let is_for = |rule: &str| {
                let resources = rule.split_once("resources: [").and_then(|(_, rest)| rest.split_once(']'));
                rule.starts_with(&group)
                    && resources.is_some_and(|(list, _)| list.split(", ").any(|one| one == resource))
            };
            rules.split("  - ").any(is_for)
        };
        let kinds = Kind::ALL.iter().filter(|kind| **kind != Kind::ConfigMap);
        let permissions = kinds.map(|kind| Permission::to_read(*kind)).chain(CHANGES.iter().copied());
        for permission in permissions {
            assert!(has_rule(permission), "{permission:?}");
        }
    }

    #[test]
    fn every_kind_of_files_is_exported_and_documented() {
        let (exported, documented) = (export_commands(), kinds_by_policy());
        for resource in Kind::STORED.iter().map(|kind| kind.resource()) {
            let singular = resource.plural.trim_end_matches('s');
            assert!(
                exported.contains(resource.plural) || exported.contains(&format!("get {singular} ")),
                "{resource:?}"
            );
            assert!(documented.contains(&format!("{} (`{}`)", resource.kind, resource.api_version())), "{resource:?}");
        }
    }

    #[test]
    fn rules_of_a_policy_depend_on_it() {
        let rules = change_rules();
        let jobs = rules.split_once("resources: [jobs]").expect("a rule for Jobs").0;
        let condition = jobs.rsplit_once("{{- if ").expect("a condition").1;
        assert!(condition.starts_with("has \"Kueue\" .") && !condition.contains("{{- end"), "{condition}");
        assert!(rules.starts_with("  # Evict victims.\n"), "every policy evicts: {rules}");
        assert!(!read_rules("[get]", Condition::None).contains("{{"));
        assert!(!read_rules("[get]", Condition::Policies).contains("configmaps"), "its role is for one ConfigMap");
    }
}
