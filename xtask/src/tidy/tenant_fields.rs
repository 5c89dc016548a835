//! Every field and key that tenants can write and that the code reads is listed in `docs/security.md`.
//!
//! Fields come from the types into which objects are decoded, labels and annotations from the string literals that have their form. Types of
//! `k8s-openapi` are not searched.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use reprieve_api::Kind;

use super::files::{read, sources};

const DOCUMENT: &str = "docs/security.md";

/// Files with types of tenants' objects: the type, the heading of its table, and the path of its fields.
const TYPES: [(&str, &str, &str, &str); 21] = [
    ("pod.rs", "MetadataFields", "Metadata", "metadata."),
    ("pod.rs", "PodSpec", "Pod", "spec."),
    ("pod.rs", "Container", "Pod", "spec.containers[]."),
    ("pod.rs", "PodStatus", "Pod", "status."),
    ("pod.rs", "ContainerStatus", "Pod", "status.containerStatuses[]."),
    ("workload.rs", "WorkloadSpec", "PodGroup and Workload of scheduling.k8s.io", "spec."),
    ("workload.rs", "WorkloadGroup", "PodGroup and Workload of scheduling.k8s.io", "spec.podGroups[]."),
    ("workload.rs", "GroupPolicy", "PodGroup and Workload of scheduling.k8s.io", "spec.podGroups[].policy."),
    ("workload.rs", "Gang", "PodGroup and Workload of scheduling.k8s.io", "spec.podGroups[].policy.gang."),
    ("koordinator.rs", "KoordinatorPodGroupSpec", "PodGroup of scheduling.sigs.k8s.io", "spec."),
    ("kueue.rs", "KueueWorkloadSpec", "Workload of kueue.x-k8s.io", "spec."),
    ("kueue.rs", "PriorityClassRef", "Workload of kueue.x-k8s.io", "spec.priorityClassRef."),
    ("kueue.rs", "WorkloadPreemptionSpec", "Workload of kueue.x-k8s.io", "spec.preemption."),
    ("kueue.rs", "MilestoneSpec", "Workload of kueue.x-k8s.io", "spec.preemption.disruptionCostMilestones[]."),
    ("kueue.rs", "PodSetSpec", "Workload of kueue.x-k8s.io", "spec.podSets[]."),
    ("owners.rs", "DaemonSetSpec", "DaemonSet", "spec."),
    ("owners.rs", "OwnerJobSpec", "Owners of gangs", "spec."),
    ("owners.rs", "OwnerJobTemplate", "Owners of gangs", "spec.template."),
    ("owners.rs", "OwnerJobPodSpec", "Owners of gangs", "spec.template.spec."),
    ("owners.rs", "RayClusterSpec", "Owners of gangs", "spec."),
    ("kueue.rs", "KueueWorkloadStatus", "Workload of kueue.x-k8s.io", "status."),
];

/// The heading in the document below which the fields of a kind are listed; `None` if tenants cannot write objects of the kind.
fn heading(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Pod => Some("Pod"),
        Kind::PodGroup | Kind::Workload => Some("PodGroup and Workload of scheduling.k8s.io"),
        Kind::KoordinatorPodGroup => Some("PodGroup of scheduling.sigs.k8s.io"),
        Kind::KueueWorkload => Some("Workload of kueue.x-k8s.io"),
        Kind::Job => Some("Job"),
        Kind::PodDisruptionBudget => Some("PodDisruptionBudget"),
        Kind::DaemonSet => Some("DaemonSet"),
        Kind::StatefulSet
        | Kind::OwnerJob
        | Kind::JobSet
        | Kind::LeaderWorkerSet
        | Kind::MpiJob
        | Kind::RayCluster
        | Kind::TrainJob => Some("Owners of gangs"),
        // Administrators write them.
        Kind::LimitRange | Kind::ConfigMap | Kind::ElasticQuota | Kind::LocalQueue => None,
        Kind::Node
        | Kind::Namespace
        | Kind::PriorityClass
        | Kind::RuntimeClass
        | Kind::ResourceFlavor
        | Kind::Cohort
        | Kind::ClusterQueue
        | Kind::WorkloadPriorityClass => None,
    }
}

/// The crates that interpret labels and annotations.
const READERS: [&str; 5] = ["api", "engine", "loader", "report", "scheduler"];

/// Literals in the form of a key that are no label, annotation, condition or taint of an object in a cluster.
const NO_KEYS: [&str; 3] = ["nvidia.com/gpu", "kubernetes.io/hostname", "scheduling.k8s.io/priorityclass"];

/// The fields and keys that are not listed.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let document = read(&root.join(DOCUMENT))?;
    let mut violations = Vec::new();
    for kind in Kind::ALL {
        if let Some(heading) = heading(*kind).filter(|heading| listed_below(&document, heading).is_empty()) {
            violations.push(format!("{kind:?}: no fields are listed below {heading:?} in {DOCUMENT}"));
        }
    }
    for (file, name, heading, path) in TYPES {
        let file = root.join("crates/api/src").join(file);
        let tokens = read(&file)?.parse().map_err(|error| format!("{}: {error}", file.display()))?;
        let Some(fields) = fields_of(tokens, name) else {
            violations.push(format!("{} has no struct {name}", file.display()));
            continue;
        };
        let listed = listed_below(&document, heading);
        for field in fields.into_iter().map(|field| format!("{path}{}", camel_case(&field))) {
            if !listed.contains(field.as_str()) {
                violations.push(format!("{field} ({name}) is not listed below {heading:?} in {DOCUMENT}"));
            }
        }
    }
    let listed = listed_below(&document, "Labels and annotations");
    for folder in READERS {
        for file in sources(&root.join("crates").join(folder).join("src"))? {
            let tokens: TokenStream = read(&file)?.parse().map_err(|error| format!("{}: {error}", file.display()))?;
            let mut keys = BTreeSet::new();
            collect_keys(tokens, &mut keys);
            for key in keys.iter().filter(|key| !listed.contains(key.as_str())) {
                violations.push(format!("{}: the key {key} is not listed in {DOCUMENT}", super::relative(&file)));
            }
        }
    }
    Ok(violations)
}

/// The words in backquotes in the first cells of the tables below a heading.
fn listed_below<'d>(document: &'d str, heading: &str) -> BTreeSet<&'d str> {
    let is_heading = |line: &&str| line.starts_with('#');
    let below = document.lines().skip_while(|line| line.trim_start_matches(['#', ' ']) != heading || !is_heading(line));
    let rows =
        below.skip(1).take_while(|line| !is_heading(line)).filter_map(|line| line.strip_prefix('|')?.split('|').next());
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// The names of the fields of a struct anywhere in a file, without those that are skipped while decoding.
fn fields_of(tokens: TokenStream, name: &str) -> Option<Vec<String>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(keyword) if keyword == "struct" => {
                if let [TokenTree::Ident(found), TokenTree::Group(body), ..] = &tokens[index + 1..]
                    && found == name
                    && body.delimiter() == Delimiter::Brace
                {
                    return Some(names_of(body.stream()));
                }
            }
            TokenTree::Group(group) => {
                if let Some(fields) = fields_of(group.stream(), name) {
                    return Some(fields);
                }
            }
            _ => {}
        }
    }
    None
}

/// The names of the fields in the body of a struct: the words before a single colon.
fn names_of(body: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    let is_punct = |token: Option<&TokenTree>, sign: char| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    let (mut names, mut is_skipped, mut depth) = (Vec::new(), false, 0_i32);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(attribute) if attribute.to_string().replace(' ', "").starts_with("[serde(skip)") => {
                is_skipped = true;
            }
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' => depth -= 1,
            TokenTree::Ident(name) if depth == 0 && is_punct(tokens.get(index + 1), ':') => {
                let is_path = is_punct(tokens.get(index + 2), ':') || index > 0 && is_punct(tokens.get(index - 1), ':');
                if !is_path && !std::mem::take(&mut is_skipped) {
                    names.push(name.to_string());
                }
            }
            _ => {}
        }
    }
    names
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| text + &word[..1].to_uppercase() + &word[1..])
}

/// Collects the string literals in the form of a label or annotation, except in tests, and the words that are looked up in labels.
fn collect_keys(tokens: TokenStream, keys: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let text = text.trim_matches('"');
                if is_key(text) && !NO_KEYS.contains(&text) {
                    keys.insert(text.to_owned());
                }
            }
            TokenTree::Group(_) if is_test_module(&tokens[..index]) => {}
            TokenTree::Group(group) => {
                if let [.., TokenTree::Ident(map), TokenTree::Punct(_), TokenTree::Ident(get)] = &tokens[..index]
                    && (map == "labels" || map == "annotations")
                    && get == "get"
                    && let [TokenTree::Literal(key)] = group.stream().into_iter().collect::<Vec<_>>().as_slice()
                {
                    keys.insert(key.to_string().trim_matches('"').to_owned());
                }
                collect_keys(group.stream(), keys);
            }
            _ => {}
        }
    }
}

/// Whether the tokens end with `mod tests`.
fn is_test_module(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(keyword), TokenTree::Ident(name)] if keyword == "mod" && name == "tests")
}

/// Whether a text has the form `DOMAIN/NAME` and is not the version of an API group.
fn is_key(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else { return false };
    let is_version = name.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let of = |text: &str, more: &[char]| text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c));
    let has_suffix = domain.rsplit_once('.').is_some_and(|(_, suffix)| suffix.len() > 1 && of(suffix, &[]));
    !is_version && has_suffix && of(domain, &['.', '-']) && !name.is_empty() && of(name, &['-', '_', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_field_or_key_is_found() {
        let text = "struct Other { z: u8 } fn f() { struct Spec { #[serde(skip)] no: u8, pub node_name: Option<a::B>, \
                    /// Not: this.\n pub list: BTreeMap<String, u8>, } }";
        let fields = fields_of(text.parse().unwrap(), "Spec").unwrap();
        assert_eq!(fields, ["node_name", "list"]);
        assert_eq!(camel_case("node_name"), "nodeName");
        let text = "const A: &str = \"reprieve.dev/shield\"; fn f() { labels.get(\"queue\"); other.get(\"no\"); \"a.io/v1\"; \"b/c\" } \
                    mod tests { const B: &str = \"reprieve.dev/test\"; }";
        let mut keys = BTreeSet::new();
        collect_keys(text.parse().unwrap(), &mut keys);
        assert_eq!(Vec::from_iter(keys), ["queue", "reprieve.dev/shield"]);
    }

    #[test]
    fn only_first_cells_below_the_heading_are_listed() {
        let text = "# A\n| `no` |\n### Pod\n\n| `a`, `b` | `c` |\n## Next\n| `d` | |\n";
        assert_eq!(Vec::from_iter(listed_below(text, "Pod")), ["a", "b"]);
    }
}
