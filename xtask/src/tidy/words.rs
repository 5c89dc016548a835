//! Words that `docs/glossary.md` retires do not come back: each has a plain technical term.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::files::read;
use crate::tasks::output;

/// Retired words and what to write instead. A phrase matches when its words follow each other, also over the end of a line.
const RETIRED: &[(&str, &str)] = &[
    ("alike", "equal, in one class"),
    ("anew", "again"),
    ("anybody", "the noun itself"),
    ("are told", "are notified"),
    ("asker", "preemptor"),
    ("averse", "having anti-affinity"),
    ("befalls", "happens to"),
    ("brain", "event loop"),
    ("chore", "job step"),
    ("chores", "tasks"),
    ("crowd", "equivalence class"),
    ("crowds", "equivalence classes"),
    ("dearer", "higher cost"),
    ("deed", "request in flight"),
    ("deeds", "requests in flight"),
    ("disagreement", "mismatch"),
    ("everybody", "every unit"),
    ("footing", "landing nodes"),
    ("for ever", "without end"),
    ("ground", "reason; scratch snapshot"),
    ("hands", "executor"),
    ("hear", "receive"),
    ("hears", "receives"),
    ("held back", "waiting for an older unit"),
    ("in vain", "not enough"),
    ("inbox", "event queue"),
    ("is meant", "the noun itself"),
    ("is told", "is notified"),
    ("keeps peace", "policy `Never`"),
    ("lane", "queue candidates"),
    ("lanes", "queue candidates"),
    ("leaving", "terminating"),
    ("likeness", "class key"),
    ("lives", "runs"),
    ("looks again", "re-evaluates"),
    ("luck", "fault injector"),
    ("lull", "park"),
    ("made up", "synthetic"),
    ("mind", "have anti-affinity against"),
    ("misfit", "filter failure"),
    ("misfits", "filter failures"),
    ("misunderstood", "invalid object"),
    ("needy", "pending"),
    ("nobody", "no unit"),
    ("passed over", "skipped"),
    ("passes over", "skips"),
    ("patience", "starvation timeout"),
    ("said", "reported"),
    ("somebody", "the noun itself"),
    ("speaks", "represents"),
    ("speaks for", "represents"),
    ("standing", "usage, state, occupancy; valid"),
    ("steps aside", "waits after an error"),
    ("to whom", "object"),
    ("told", "notified"),
    ("underway", "in progress"),
    ("unsettled", "awaiting API state"),
    ("verdict", "result"),
    ("verdicts", "results"),
    ("whoever", "the noun itself"),
    ("whom", "the noun itself"),
    ("wish", "constraint"),
    ("wishes", "constraints"),
    ("world", "virtual cluster"),
    ("worlds", "virtual clusters"),
];

/// Retired words of the glossary that cannot be found by machine, because they have another meaning that is in use.
const WITH_OTHER_MEANING: &[(&str, &str)] = &[
    ("ask", "a request to another program"),
    ("asking", "as above, and a name in random clusters"),
    ("account", "a service account"),
    ("away", "compiled away"),
    ("broken", "a broken reference"),
    ("ceiling", "a field of scenarios"),
    ("chance", "a probability"),
    ("claim", "a device claim"),
    ("cluster", "the cluster of Kubernetes"),
    ("fault", "an injected fault"),
    ("home", "the environment variable"),
    ("is gone", "of an object that no longer exists"),
    ("lives on", "found as `lives`"),
    ("own", "prose about the preemptor's queue"),
    ("quota node", "two words of code that follow each other"),
    ("roll", "roll back"),
    ("says", "of a field or an annotation"),
    ("slim", "the name of an image"),
    ("slot", "a pod slot of a node"),
    ("takes", "a candidate that is taken on trial"),
    ("to do", "what a user has to do"),
    ("turn", "turn one thing into another"),
    ("words", "the words of a text"),
    ("yields", "a task that yields to others"),
];

/// The document that lists retired words.
const GLOSSARY: &str = "docs/glossary.md";

/// Where retired words may be: in the lists of them, in the history, and in cases, whose names are references.
const EXEMPT: [&str; 4] = ["CHANGELOG.md", "conformance/", GLOSSARY, "xtask/src/tidy/words.rs"];

/// Files with text, by their extension or, without one, by their name.
const TEXTS: [&str; 15] = [
    "Containerfile",
    "css",
    "gitignore",
    "go",
    "html",
    "js",
    "json",
    "md",
    "rs",
    "sh",
    "toml",
    "tpl",
    "txt",
    "yaml",
    "yml",
];

/// Retired words in texts of the repository, by file and line, and words that the glossary retires but this file does not know.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let listed =
        output(Command::new("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root))?;
    let cases: BTreeSet<&str> =
        listed.lines().filter_map(|file| file.strip_prefix("conformance/")?.strip_suffix(".yaml")).collect();
    let cases = cases.into_iter().map(|case| case.rsplit('/').next().unwrap_or(case)).collect();
    let mut violations = unknown(&read(&root.join(GLOSSARY))?);
    for file in listed.lines().filter(|file| is_text(file) && root.join(file).is_file()) {
        let found = found(&read(&root.join(file))?, &cases);
        violations.extend(found.into_iter().map(|(line, problem)| format!("{file}:{line}: {problem}")));
    }
    Ok(violations)
}

/// The retired words of a text, by line. `cases` are the names of cases, which may contain them.
fn found(text: &str, cases: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let words: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .flat_map(|(index, line)| words(line, cases).into_iter().map(move |word| (index + 1, word)))
        .collect();
    let mut found = Vec::new();
    for (phrase, instead) in RETIRED {
        let parts: Vec<&str> = phrase.split(' ').collect();
        for window in words.windows(parts.len()) {
            if window.iter().map(|(_, word)| word).eq(&parts) {
                found.push((window[0].0, format!("{phrase:?} is retired: {instead}")));
            }
        }
    }
    found.sort();
    found
}

/// The words in the glossary's table of retired words that are in neither list.
fn unknown(glossary: &str) -> Vec<String> {
    let Some((_, table)) = glossary.split_once("## Retired words") else {
        return vec![format!("{GLOSSARY} has no section of retired words")];
    };
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let words: Vec<String> =
        cells.filter(|cell| *cell != "retired" && !cell.starts_with('-')).flat_map(entries).collect();
    let lists = || RETIRED.iter().chain(WITH_OTHER_MEANING);
    let is_known = |word: &str| lists().any(|(known, _)| *known == word);
    let mut problems: Vec<String> = words
        .iter()
        .filter(|word| !is_known(word))
        .map(|word| format!("{GLOSSARY} retires {word:?}, but tidy does not look for it"))
        .collect();
    if words.is_empty() {
        problems.push(format!("{GLOSSARY} has no retired words"));
    }
    problems
}

/// The words of a cell: separated by commas, without what is in parentheses.
fn entries(cell: &str) -> Vec<String> {
    let mut text = String::new();
    let mut depth = 0;
    for c in cell.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

fn is_text(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let extension = name.rsplit('.').next().unwrap_or(name);
    !EXEMPT.iter().any(|exempt| file.starts_with(exempt)) && TEXTS.contains(&extension)
}

/// The words of a line in lower case, those of identifiers and of words with hyphens one by one; without the names of cases.
fn words(line: &str, cases: &BTreeSet<&str>) -> Vec<String> {
    let mut words = Vec::new();
    for token in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        if cases.contains(token) {
            continue;
        }
        for token in token.split('-') {
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
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of a text, without the case that is named `own-a-case-of-nobody`.
    fn problems(text: &str) -> Vec<(usize, String)> {
        found(text, &BTreeSet::from(["own-a-case-of-nobody"]))
    }

    #[test]
    fn identifiers_and_words_with_hyphens_are_split() {
        let found = words("/// fn evict_all(PodGroup) of a-name, twice", &BTreeSet::new());
        assert_eq!(found, ["fn", "evict", "all", "pod", "group", "of", "a", "name", "twice"]);
    }

    #[test]
    fn planted_words_are_found() {
        let problem = |line, word: &str, instead: &str| (line, format!("{word:?} is retired: {instead}"));
        assert_eq!(problems("a\n/// Made-up pods."), [problem(2, "made up", "synthetic")]);
        assert_eq!(
            problems("/// a pod is\n/// told\n"),
            [problem(1, "is told", "is notified"), problem(2, "told", "notified")]
        );
        assert_eq!(problems("{{- define \"needyPods\" -}}"), [problem(1, "needy", "pending")]);
        assert_eq!(problems("let x = \"conformance/a/own-a-case-of-nobody.yaml\";"), []);
        assert_eq!(problems("own-another-case-of-nobody").len(), 1);
    }

    #[test]
    fn texts_are_known_by_their_names() {
        for file in [
            "deploy/chart/templates/_helpers.tpl",
            "deploy/Containerfile",
            "a.json",
            "crates/a/src/lib.rs",
            ".gitignore",
        ] {
            assert!(is_text(file), "{file}");
        }
        for file in ["a.png", "CHANGELOG.md", "conformance/a/b.yaml", "LICENSE", "Cargo.lock"] {
            assert!(!is_text(file), "{file}");
        }
    }

    #[test]
    fn words_that_only_the_glossary_retires_are_violations() {
        let table = "## Retired words\n\n| retired | use |\n| --- | --- |\n| crowd, gloaming (of a pod) | queue |\n";
        assert_eq!(unknown(table), ["docs/glossary.md retires \"gloaming\", but tidy does not look for it"]);
        assert_eq!(unknown("# Glossary\n").len(), 1);
        assert_eq!(unknown("## Retired words\n").len(), 1);
    }
}
