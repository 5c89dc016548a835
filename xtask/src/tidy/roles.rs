//! Every kind that Reprieve reads has a rule in the roles of the chart.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use serde::Deserialize;

use super::files::read;

/// The file with the table of kinds: rows with a group, a version and a plural, as strings in this order.
const KINDS: &str = "crates/cluster/src/resources.rs";

/// The templates with a ClusterRole, and the verbs that it needs for each kind.
const ROLES: [(&str, &[&str]); 2] = [
    ("deploy/chart/reprieve/templates/role-plan.yaml", &["list"]),
    ("deploy/chart/reprieve/templates/role-run.yaml", &["list", "watch"]),
];

/// Kinds that a role does not name, or without a verb that is needed.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let tokens = read(&root.join(KINDS))?.parse().map_err(|error| format!("{KINDS}: {error}"))?;
    let kinds = kinds(tokens);
    if kinds.is_empty() {
        return Ok(vec![format!("{KINDS} has no table of kinds")]);
    }
    let mut violations = Vec::new();
    for (template, verbs) in ROLES {
        let rules = rules(&read(&root.join(template))?).map_err(|error| format!("{template}: {error}"))?;
        for (group, plural) in &kinds {
            for verb in verbs.iter().filter(|verb| !rules.iter().any(|rule| rule.allows(group, plural, verb))) {
                violations.push(format!("{template} has no rule to {verb} {plural} of group {group:?}"));
            }
        }
    }
    Ok(violations)
}

/// Group and plural of each kind: of every group of tokens that begins with three strings.
fn kinds(tokens: TokenStream) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else { continue };
        let inside: Vec<TokenTree> = group.stream().into_iter().collect();
        let parts = inside.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','));
        let strings: Vec<Option<String>> = parts.take(3).map(string).collect();
        match strings.as_slice() {
            [Some(group), Some(_version), Some(plural)] => found.push((group.clone(), plural.clone())),
            _ => found.extend(kinds(group.stream())),
        }
    }
    found
}

fn string(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [TokenTree::Literal(literal)] => Some(literal.to_string().strip_prefix('"')?.strip_suffix('"')?.to_owned()),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Role {
    kind: String,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
}

impl Rule {
    fn allows(&self, group: &str, plural: &str, verb: &str) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|one| one == word);
        has(&self.api_groups, group) && has(&self.resources, plural) && has(&self.verbs, verb)
    }
}

/// The rules of the ClusterRoles in a template.
fn rules(template: &str) -> Result<Vec<Rule>, String> {
    // What stands in double braces is for Helm: a line that begins with it is left out, elsewhere it stands for a word.
    let mut text = String::new();
    for line in template.lines().filter(|line| !line.trim_start().starts_with("{{")) {
        let mut rest = line;
        while let Some((before, (_, after))) = rest.split_once("{{").and_then(|(a, b)| Some((a, b.split_once("}}")?))) {
            text.push_str(before);
            text.push_str("word");
            rest = after;
        }
        text.push_str(rest);
        text.push('\n');
    }
    let mut rules = Vec::new();
    for document in text.split("\n---\n") {
        let role: Role = serde_saphyr::from_str(document).map_err(|error| error.to_string())?;
        if role.kind == "ClusterRole" {
            rules.extend(role.rules);
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_table_are_read() {
        let text = r#"fn f() { match kind { A => ("", "v1", "as", "A", true), B => { ("g.io", "v1", "bs", "B") } } } const C: &str = "c";"#;
        let expected = [("".to_owned(), "as".to_owned()), ("g.io".to_owned(), "bs".to_owned())];
        assert_eq!(kinds(text.parse().unwrap()), expected);
    }

    #[test]
    fn rules_are_read_from_a_template() {
        let template = "{{- if .Values.create }}\nkind: ClusterRole\nmetadata:\n  name: {{ .Name }}-run\nrules:\n  - apiGroups: [\"\"]\n    \
                        resources: [pods]\n    verbs: [list]\n---\nkind: Role\nrules:\n  - apiGroups: [\"\"]\n    resources: [pods]\n    \
                        verbs: [watch]\n{{- end }}\n";
        let rules = rules(template).expect("a valid template");
        assert!(rules.iter().any(|rule| rule.allows("", "pods", "list")));
        assert!(!rules.iter().any(|rule| rule.allows("", "pods", "watch")));
        assert!(!rules.iter().any(|rule| rule.allows("", "nodes", "list")));
        assert!(!rules.iter().any(|rule| rule.allows("batch", "pods", "list")));
    }
}
