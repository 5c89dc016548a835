//! The hostile objects have every key of a label or annotation that the code reads.

use std::collections::BTreeSet;
use std::path::Path;

use reprieve_simulator::hostile::words;

/// The crates that read objects.
const CRATES: [&str; 4] = ["api", "loader", "report", "scheduler"];
/// The domains of keys.
const DOMAINS: [&str; 6] =
    ["reprieve.dev", "x-k8s.io", "koordinator.sh", "sigs.k8s.io", "yunikorn.apache.org", "kubernetes.io"];
/// Texts of the same form that are no keys of objects which a tenant writes.
const NO_KEYS: [&str; 5] = [
    "kubernetes.io/job-controller", // a controller of Jobs
    "reprieve.dev/PreemptedFor",    // a condition of a workload
    "reprieve.dev/assumed",         // in PreemptionTest files
    "reprieve.dev/origin",          // in PreemptionTest files
    "kueue.x-k8s.io/admission",     // a scheduling gate
];

/// The texts in the source that have the form of a key.
fn keys_in(folder: &Path, keys: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the source is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            keys_in(&path, keys);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("source is text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let texts = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
            keys.extend(texts.filter(|text| is_key(text)).map(str::to_owned));
        }
    }
}

fn is_key(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else { return false };
    let is_version = name.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    DOMAINS.iter().any(|suffix| domain.ends_with(suffix)) && is_word(domain) && is_word(name) && !is_version
}

#[test]
fn hostile_objects_have_every_key_that_is_read() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut keys = BTreeSet::new();
    for name in CRATES {
        keys_in(&crates.join(name).join("src"), &mut keys);
    }
    assert!(keys.len() > 25, "the code reads keys: {keys:?}");
    let missing: Vec<&String> = keys.iter().filter(|key| !words::KEYS.contains(&key.as_str())).collect();
    let missing: Vec<&&String> = missing.iter().filter(|key| !NO_KEYS.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "add to `hostile::words::KEYS`: {missing:?}");
}
