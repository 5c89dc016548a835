//! Words that `docs/glossary.md` retires do not come back: each has a plain technical term.

use std::path::Path;
use std::process::Command;

use super::files::read;
use crate::tasks::output;

/// Retired words and what to write instead. A phrase matches when its words follow each other on one line.
const RETIRED: [(&str, &str); 33] = [
    ("anew", "again"),
    ("are told", "are notified"),
    ("asker", "preemptor"),
    ("befalls", "happens to"),
    ("brain", "event loop"),
    ("chore", "job step"),
    ("chores", "tasks"),
    ("crowd", "equivalence class"),
    ("crowds", "equivalence classes"),
    ("dearer", "higher cost"),
    ("deed", "request in flight"),
    ("deeds", "requests in flight"),
    ("everybody", "every unit"),
    ("footing", "landing nodes"),
    ("for ever", "without end"),
    ("hears", "receives"),
    ("in vain", "not enough"),
    ("is meant", "the noun itself"),
    ("is told", "is notified"),
    ("likeness", "class key"),
    ("luck", "fault injector"),
    ("lull", "park"),
    ("made up", "synthetic"),
    ("misfit", "filter failure"),
    ("misfits", "filter failures"),
    ("needy", "pending"),
    ("nobody", "no unit"),
    ("somebody", "the noun itself"),
    ("speaks", "represents"),
    ("verdict", "result"),
    ("verdicts", "results"),
    ("whoever", "the noun itself"),
    ("whom", "the noun itself"),
];

/// Where retired words may be: in the lists of them, in the history, and in cases, whose names are references.
const EXEMPT: [&str; 4] = ["CHANGELOG.md", "conformance/", "docs/glossary.md", "xtask/src/tidy/words.rs"];

/// Retired words in texts of the repository, by file and line.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let retired = RETIRED.map(|(phrase, instead)| (phrase.split(' ').collect::<Vec<_>>(), instead));
    let listed =
        output(Command::new("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root))?;
    let mut violations = Vec::new();
    for file in listed.lines().filter(|file| is_text(file) && root.join(file).exists()) {
        for (index, line) in read(&root.join(file))?.lines().enumerate() {
            let words = words(line);
            for (phrase, instead) in &retired {
                if words.windows(phrase.len()).any(|words| words == phrase) {
                    let line = index + 1;
                    violations.push(format!("{file}:{line}: {:?} is retired: {instead}", phrase.join(" ")));
                }
            }
        }
    }
    Ok(violations)
}

fn is_text(file: &str) -> bool {
    let has_text = ["rs", "md", "toml", "yaml", "js", "css", "html", "txt"];
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
    !EXEMPT.iter().any(|exempt| file.starts_with(exempt))
        && extension.is_some_and(|extension| has_text.contains(&extension))
}

/// The words of a line in lower case, those of identifiers one by one. Words with a hyphen are names, and left out.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for token in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        if token.contains('-') {
            continue;
        }
        let mut word = String::new();
        let mut was_lower = false;
        for c in token.chars() {
            if was_lower && c.is_ascii_uppercase() {
                words.push(std::mem::take(&mut word));
            }
            was_lower = c.is_ascii_lowercase();
            word.push(c.to_ascii_lowercase());
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn identifiers_are_split_and_hyphenated_names_left_out() {
        let found = words("/// fn evict_all(PodGroup) of a-name, twice");
        assert_eq!(found, ["fn", "evict", "all", "pod", "group", "of", "twice"]);
    }
}
