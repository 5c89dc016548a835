//! Structs with more than [`MAX_FIELDS`] fields and functions with more than [`MAX_LINES`] lines state their reason.
//!
//! A struct states it in a line `// Fields: ...` before `struct`. A function states it in a line `// Long: ...` before `fn`, or reads as
//! numbered steps (`// 1. ...`). The source is formatted, so that an item ends at the first line with its indentation and a brace.

use std::path::Path;

use super::crates::CRATES;
use super::files::{crate_folders, read, sources};
use super::relative;

const MAX_FIELDS: usize = 12;
/// One screen.
const MAX_LINES: usize = 60;

/// The structs and functions of the shipped crates that are too large without a reason. Code for tests does not count.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for folder in crate_folders(root)? {
        if CRATES.iter().any(|entry| !entry.shipped && folder.ends_with(entry.folder)) {
            continue;
        }
        for file in sources(&folder.join("src"))? {
            if file.file_stem().is_some_and(|stem| stem == "tests") {
                continue;
            }
            let found = too_large(&read(&file)?);
            violations.extend(found.into_iter().map(|problem| format!("{}:{problem}", relative(&file))));
        }
    }
    Ok(violations)
}

/// The items of a file that are too large, each with its line.
fn too_large(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = code_of_tests(&lines);
    let mut problems = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(index, _)| !is_test[*index]) {
        let indent = line.len() - line.trim_start().len();
        let Some((keyword, name)) = item(line) else { continue };
        let is_end = |line: &&str| line.len() == indent + 1 && line.trim_start() == "}";
        let Some(length) = lines[index..].iter().position(is_end) else { continue };
        let body = &lines[index..=index + length];
        let before = lines[..index].iter().rev().map(|line| line.trim_start());
        let mut before = before.take_while(|line| line.starts_with("//") || line.starts_with("#["));
        match keyword {
            "struct" => {
                let fields = body.iter().filter(|line| is_field(line, indent + 4)).count();
                if fields > MAX_FIELDS && line.ends_with('{') && !before.any(|line| line.starts_with("// Fields: ")) {
                    problems.push(format!("{}: struct {name} has {fields} fields, more than {MAX_FIELDS}", index + 1));
                }
            }
            _ => {
                let has_steps = body.iter().any(|line| line.trim_start().starts_with("// 1. "));
                if body.len() > MAX_LINES && !has_steps && !before.any(|line| line.starts_with("// Long: ")) {
                    let length = body.len();
                    problems.push(format!("{}: fn {name} has {length} lines, more than {MAX_LINES}", index + 1));
                }
            }
        }
    }
    problems
}

/// By line: whether it is in a module only for tests.
fn code_of_tests(lines: &[&str]) -> Vec<bool> {
    let mut is_test = vec![false; lines.len()];
    for start in (0..lines.len()).filter(|&start| lines[start] == "#[cfg(test)]") {
        let is_head = |line: &&str| line.starts_with("#[") || line.starts_with("//");
        let item = start + lines[start..].iter().take_while(|line| is_head(line)).count();
        // A module in another file, or another item of one line, ends where it begins.
        let is_body = lines.get(item).is_some_and(|line| line.ends_with('{'));
        let end = if is_body { item + lines[item..].iter().take_while(|line| **line != "}").count() } else { item };
        is_test[start..lines.len().min(end + 1)].fill(true);
    }
    is_test
}

/// The keyword and name of the struct or function that begins in this line.
fn item(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace().skip_while(|word| {
        ["pub", "async", "const", "unsafe"].contains(word) || word.starts_with("pub(") || word.ends_with(')')
    });
    let keyword = words.next().filter(|word| ["fn", "struct"].contains(word))?;
    let name = words.next()?.split(['(', '<', '{']).next()?;
    Some((keyword, name))
}

fn is_field(line: &str, indent: usize) -> bool {
    let trimmed = line.trim_start();
    let name = trimmed.strip_prefix("pub ").unwrap_or(trimmed);
    let name = name.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map_or(name, |(_, name)| name);
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    line.len() - trimmed.len() == indent && name.split_once(": ").is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(reason: &str, fields: usize) -> String {
        let fields: String =
            (0..fields).map(|n| format!("    /// Note: a field.\n    pub(crate) f{n}: u8,\n")).collect();
        format!("/// A struct.\n{reason}#[derive(Clone)]\npub struct Large {{\n{fields}}}\n")
    }

    fn function(reason: &str, step: &str, lines: usize) -> String {
        let body = "        work();\n".repeat(lines);
        format!("impl A {{\n    {reason}pub async fn long<T>(\n        a: T,\n    ) {{\n{step}{body}    }}\n}}\n")
    }

    #[test]
    fn large_items_need_a_reason() {
        assert_eq!(too_large(&structure("", 13)), ["3: struct Large has 13 fields, more than 12"]);
        assert!(too_large(&structure("", 12)).is_empty());
        assert!(too_large(&structure("// Fields: those of the file.\n", 13)).is_empty());
        assert_eq!(too_large(&function("", "", 58)), ["2: fn long has 62 lines, more than 60"]);
        assert!(too_large(&function("", "", 56)).is_empty());
        assert!(too_large(&function("", "        // 1. Work.\n", 58)).is_empty());
        assert!(too_large(&function("// Long: one line for each.\n    ", "", 58)).is_empty());
        assert!(too_large(&format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("", "", 90))).is_empty());
    }

    #[test]
    fn only_the_bodies_of_test_modules_are_left_out() {
        let long = function("", "", 58);
        for head in
            ["#[cfg(test)]\nmod tests;\n", "#[cfg(test)]\n#[path = \"t.rs\"]\nmod tests {\n    fn a() {\n    }\n}\n"]
        {
            assert_eq!(too_large(&format!("{head}\n{long}")).len(), 1, "{head}");
        }
    }
}
