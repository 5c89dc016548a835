//! Every law and every reason to wait has a row in `docs/laws.md`.

use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::files::{read, sources};

const DOCUMENT: &str = "docs/laws.md";

/// Crates and their enums whose variants are documented.
const ENUMS: [(&str, &str); 2] = [("engine", "Law"), ("scheduler", "WaitReason")];

/// Variants without a row, and enums that do not exist.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let documented = first_cells(&read(&root.join(DOCUMENT))?);
    let mut violations = Vec::new();
    for (folder, name) in ENUMS {
        let source = root.join("crates").join(folder).join("src");
        let mut variants = None;
        for file in sources(&source)? {
            let text = read(&file)?;
            // A search for the name is faster than parsing every file.
            if variants.is_none() && text.contains(&format!("enum {name}")) {
                let tokens = text.parse().map_err(|error| format!("{}: {error}", file.display()))?;
                variants = variants_of(tokens, name);
            }
        }
        let Some(variants) = variants else {
            violations.push(format!("crates/{folder} has no enum {name}"));
            continue;
        };
        for variant in variants.iter().filter(|variant| !documented.contains(variant)) {
            violations.push(format!("{name}::{variant} has no row in {DOCUMENT}"));
        }
    }
    Ok(violations)
}

/// The words in backquotes in the first cell of every row.
fn first_cells(text: &str) -> Vec<String> {
    let cells = text.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The variants of an enum at the top level of a file.
pub fn variants_of(tokens: TokenStream, name: &str) -> Option<Vec<String>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let body = tokens.windows(3).find_map(|window| match window {
        [TokenTree::Ident(keyword), TokenTree::Ident(found), TokenTree::Group(body)]
            if keyword == "enum" && found == name && body.delimiter() == Delimiter::Brace =>
        {
            Some(body.stream())
        }
        _ => None,
    })?;
    let body: Vec<TokenTree> = body.into_iter().collect();
    let parts = body.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','));
    // The name is the first word: attributes are a punctuation mark and a group.
    let first_word = |part: &[TokenTree]| {
        part.iter().find_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        })
    };
    Some(parts.filter_map(first_word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_read_with_their_fields_and_comments() {
        let text = "struct Before; /// Of many, an enum.\n#[derive(Debug)] pub enum Law { /// A, B.\n A { x: u8, y: u8 }, B(u8, u8), \
                    #[allow(dead_code)] C, } enum Other { D }";
        assert_eq!(variants_of(text.parse().unwrap(), "Law"), Some(vec!["A".into(), "B".into(), "C".into()]));
        assert_eq!(variants_of(text.parse().unwrap(), "Missing"), None);
    }

    #[test]
    fn first_cells_of_rows_are_read() {
        let text = "`No` row\n\n| law | it says |\n| --- | --- |\n| `A`, `B` (new) | `C` |\n";
        assert_eq!(first_cells(text), ["A", "B"]);
    }
}
