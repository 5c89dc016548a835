//! No cycles between the top-level modules of a crate.
//!
//! A module refers to another one by a path that begins with `crate` or `super`, in a `use` or inline. Paths are read from tokens, so
//! comments and strings do not count, but paths in the arguments of macros do. Code that is compiled only for tests does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::files::{crate_folders, read, sources};
use super::relative;

/// One violation for each group of modules that reach each other, in any crate.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for folder in crate_folders(root)? {
        let source = folder.join("src");
        let mut files = Vec::new();
        for file in sources(&source)? {
            let inside = file.strip_prefix(&source).expect("a file of this folder");
            // Each program in `bin` is a crate of its own.
            if inside.starts_with("bin") || inside == Path::new("main.rs") && source.join("lib.rs").exists() {
                continue;
            }
            files.push((module_path(inside), relative(&file), read(&file)?));
        }
        for cycle in cycles(&references(&files)?) {
            violations.push(format!("{}: {cycle}", relative(&folder)));
        }
    }
    Ok(violations)
}

/// The module that a file contains: its path from the root of the crate, which is empty for the root itself.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> =
        file.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

/// For each top-level module the modules it refers to, each with the `file:line` of one reference.
type References = BTreeMap<String, BTreeMap<String, String>>;

/// The references between the top-level modules of a crate of these files: module path, name and text of each.
fn references(files: &[(Vec<String>, String, String)]) -> Result<References, String> {
    let mut modules: BTreeSet<&String> = files.iter().filter_map(|(path, ..)| path.first()).collect();
    let mut scans = Vec::new();
    for (path, name, text) in files {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{name}: {error}"))?;
        let mut scan = Scan { module: path.clone(), ..Scan::default() };
        scan.read(tokens);
        scans.push((name, scan));
    }
    let test_modules: BTreeSet<Vec<String>> = scans.iter().flat_map(|(_, scan)| scan.test_modules.clone()).collect();
    modules.retain(|module| !test_modules.contains(&vec![(*module).clone()]));
    // `crate::Item` is a reference to the module that the root re-exports it from. What the root neither declares nor re-exports by name
    // may come from each module that it re-exports with `*`, and `crate::*` from every module that it re-exports from.
    let mut exported: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    let mut declared: BTreeSet<&String> = BTreeSet::new();
    for (_, scan) in scans.iter().filter(|(_, scan)| scan.module.is_empty()) {
        declared.extend(&scan.declared);
        for (item, from) in scan.exports.iter().filter(|(_, from)| modules.contains(from)) {
            exported.entry(item).or_default().push(from);
        }
    }
    let all: Vec<&String> = exported.values().flatten().copied().collect();
    let by_glob: &[&String] = exported.get(GLOB).map_or(&[], Vec::as_slice);
    let mut references = References::new();
    for (name, scan) in &scans {
        let Some(from) = scan.module.first() else { continue };
        if (1..=scan.module.len()).any(|length| test_modules.contains(&scan.module[..length])) {
            continue;
        }
        for (target, line) in &scan.targets {
            let own = [target];
            let to: &[&String] = match exported.get(target.as_str()) {
                _ if target == GLOB => &all,
                _ if modules.contains(target) => &own,
                Some(from) => from,
                None if declared.contains(target) => &[],
                None => by_glob,
            };
            for &to in to.iter().filter(|to| **to != from) {
                let places = references.entry(from.clone()).or_default();
                places.entry(to.clone()).or_insert_with(|| format!("{name}:{line}"));
            }
        }
    }
    Ok(references)
}

/// The name for all items of a module in a `use`.
const GLOB: &str = "*";

/// The references of one file.
#[derive(Default)]
struct Scan {
    /// The module that is being read: the file's module or an inline one.
    module: Vec<String>,
    /// The referenced names in the root of the crate, with the line.
    targets: Vec<(String, usize)>,
    /// In the root of the crate: names that a `use` brings in, with the first segment of their path.
    exports: Vec<(String, String)>,
    /// In the root of the crate: the names of the items that it declares itself.
    declared: Vec<String>,
    /// Modules that are compiled only for tests.
    test_modules: Vec<Vec<String>>,
}

impl Scan {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        let mut for_tests = false;
        while index < tokens.len() {
            let rest = &tokens[index..];
            if let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = rest
                && hash.as_char() == '#'
                && attribute.delimiter() == Delimiter::Bracket
            {
                for_tests |= is_cfg_test(attribute.stream());
                index += 2;
            } else if for_tests {
                let length = item_length(rest);
                if let Some(name) = module_declared(&rest[..length]) {
                    self.test_modules.push(self.child(&name));
                }
                for_tests = false;
                index += length;
            } else if self.module.is_empty()
                && let Some(name) = declared(rest)
            {
                self.declared.push(name);
                index += 1;
            } else if let Some((name, body)) = inline_module(rest) {
                self.module = self.child(&name);
                self.read(body);
                self.module.pop();
                index += 3;
            } else if is_ident(rest, "use") && self.module.is_empty() {
                let length = item_length(rest);
                self.read_use(&rest[1..length], None);
                index += length;
            } else if let Some(length) = self.read_path(rest) {
                index += length;
            } else {
                if let TokenTree::Group(group) = &tokens[index] {
                    self.read(group.stream());
                }
                index += 1;
            }
        }
    }

    fn child(&self, name: &str) -> Vec<String> {
        let mut path = self.module.clone();
        path.push(name.to_owned());
        path
    }

    /// Reads a path that begins with `crate` or `super`, if there is one here, and returns the number of tokens before its first other
    /// segment.
    fn read_path(&mut self, tokens: &[TokenTree]) -> Option<usize> {
        let start = tokens.first()?;
        let line = start.span().start().line;
        let mut depth = match start.to_string().as_str() {
            "crate" => 0,
            "super" => self.module.len().checked_sub(1)?,
            _ => return None,
        };
        let mut index = 1;
        while is_path_separator(&tokens[index..]) && is_ident(&tokens[index + 2..], "super") {
            depth = depth.checked_sub(1)?;
            index += 3;
        }
        if !is_path_separator(&tokens[index..]) {
            return None;
        }
        if depth == 0 {
            for name in first_segments(&tokens[index + 2..]) {
                self.targets.push((name, line));
            }
        }
        Some(index + 2)
    }

    /// Reads a `use` in the root of the crate: which name comes from which first segment.
    fn read_use(&mut self, tokens: &[TokenTree], first: Option<&str>) {
        let parts = tokens.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','));
        for part in parts {
            let mut own_first = first.map(str::to_owned);
            let mut last = None;
            for token in part {
                match token {
                    TokenTree::Ident(name) if name == "crate" || name == "self" || name == "as" => (),
                    TokenTree::Ident(name) => {
                        last = Some(name.to_string());
                        own_first.get_or_insert_with(|| name.to_string());
                    }
                    TokenTree::Punct(star) if star.as_char() == '*' => last = Some(GLOB.to_owned()),
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.read_use(&inner, own_first.as_deref());
                        last = None;
                    }
                    _ => (),
                }
            }
            if let (Some(from), Some(item)) = (own_first, last) {
                self.exports.push((item, from));
            }
        }
    }
}

/// The first segments of what follows `crate::`: one name, or each of a list in braces.
fn first_segments(tokens: &[TokenTree]) -> Vec<String> {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => vec![name.to_string()],
        Some(TokenTree::Punct(star)) if star.as_char() == '*' => vec![GLOB.to_owned()],
        Some(TokenTree::Group(list)) => {
            let tokens: Vec<TokenTree> = list.stream().into_iter().collect();
            let parts = tokens.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','));
            parts.flat_map(first_segments).collect()
        }
        _ => Vec::new(),
    }
}

fn is_ident(tokens: &[TokenTree], name: &str) -> bool {
    matches!(tokens.first(), Some(TokenTree::Ident(ident)) if ident == name)
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), TokenTree::Punct(second), ..] if first.as_char() == ':' && second.as_char() == ':')
}

/// Whether an attribute is `cfg(test)`, perhaps with further conditions.
fn is_cfg_test(attribute: TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// The number of tokens of the item that begins here, up to its semicolon or body.
fn item_length(tokens: &[TokenTree]) -> usize {
    let end = tokens.iter().position(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_ident(tokens, "use"),
        _ => false,
    });
    end.map_or(tokens.len(), |index| index + 1)
}

/// The name in `mod name`.
fn module_declared(item: &[TokenTree]) -> Option<String> {
    let index = item.iter().position(|token| matches!(token, TokenTree::Ident(ident) if ident == "mod"))?;
    match item.get(index + 1)? {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    }
}

/// The name of an item, other than a module, that is declared here. `macro_rules! name` has a token between.
fn declared(tokens: &[TokenTree]) -> Option<String> {
    const KEYWORDS: [&str; 7] = ["struct", "enum", "trait", "type", "fn", "const", "static"];
    match tokens {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), ..] if KEYWORDS.contains(&keyword.to_string().as_str()) => {
            Some(name.to_string())
        }
        [TokenTree::Ident(keyword), TokenTree::Punct(_), TokenTree::Ident(name), ..] if keyword == "macro_rules" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// The name and the body of `mod name { … }`.
fn inline_module(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    match tokens {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..]
            if keyword == "mod" && body.delimiter() == Delimiter::Brace =>
        {
            Some((name.to_string(), body.stream()))
        }
        _ => None,
    }
}

/// Each group of modules that reach each other, with the references inside it.
fn cycles(references: &References) -> Vec<String> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        references.keys().map(|module| (module, reachable(references, module))).collect();
    let mut remaining: BTreeSet<&String> = references.keys().collect();
    let mut cycles = Vec::new();
    while let Some(module) = remaining.pop_first() {
        let same = |other: &&&String| {
            reached[module].contains(**other) && reached.get(**other).is_some_and(|back| back.contains(module))
        };
        let mut group: Vec<&String> = remaining.iter().filter(same).copied().collect();
        if group.is_empty() {
            continue;
        }
        remaining.retain(|other| !group.contains(other));
        group.insert(0, module);
        let names: Vec<&str> = group.iter().map(|name| name.as_str()).collect();
        let mut text = format!("{} modules form a cycle: {}", group.len(), names.join(", "));
        for from in &group {
            for (to, place) in references[*from].iter().filter(|(to, _)| group.contains(to)) {
                text.push_str(&format!("\n    {from} → {to}  {place}"));
            }
        }
        cycles.push(text);
    }
    cycles
}

/// The modules that `module` refers to, directly or through others.
fn reachable<'r>(references: &'r References, module: &'r String) -> BTreeSet<&'r String> {
    let mut reached = BTreeSet::new();
    let mut to_visit = vec![module];
    while let Some(next) = to_visit.pop() {
        for to in references.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to) {
                to_visit.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The references of a crate of these files, as `from → to` in order.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let all = found(files);
        all.iter().flat_map(|(from, to)| to.keys().map(move |to| format!("{from} → {to}"))).collect()
    }

    fn found(files: &[(&str, &str)]) -> References {
        let file = |&(name, text): &(&str, &str)| (module_path(Path::new(name)), name.to_owned(), text.to_owned());
        references(&files.iter().map(file).collect::<Vec<_>>()).expect("valid sources")
    }

    #[test]
    fn uses_and_inline_paths_are_references() {
        for text in [
            "use crate::b::Item;",
            "use crate::{b::Item, Other};",
            "use crate::{Other, b};",
            "pub use super::b;",
            "fn f() { crate::b::g() }",
            "fn f() { println!(\"{}\", super::b::g()) }",
            "mod inner { use super::super::b::Item; }",
            "impl crate::b::Trait for X {}",
        ] {
            assert_eq!(edges(&[("a.rs", text), ("b.rs", "")]), ["a → b"], "{text}");
        }
    }

    #[test]
    fn children_count_as_their_parent() {
        let below = ("a/inner.rs", "use super::Item; use super::super::b; fn f() { crate::a::g() }");
        assert_eq!(edges(&[("a.rs", "mod inner;"), below, ("b/mod.rs", "")]), ["a → b"]);
    }

    #[test]
    fn comments_strings_and_tests_are_no_references() {
        for text in [
            "// crate::b::Item",
            "/// [`crate::b::Item`]\nfn f() {}",
            "const TEXT: &str = \"crate::b::Item\";",
            "pub(crate) fn b() {}",
            "#[cfg(test)] use crate::b::Item;",
            "#[cfg(test)] mod tests { use crate::b::Item; }",
            "#[cfg(test)] #[allow(unused)] fn f() { crate::b::g() }",
            "mod inner { use super::b; } mod b {}",
        ] {
            assert_eq!(edges(&[("a.rs", text), ("b.rs", "")]), <[&str; 0]>::default(), "{text}");
        }
    }

    #[test]
    fn test_files_are_no_references() {
        let files = [("a.rs", "#[cfg(test)]\nmod tests;"), ("a/tests.rs", "use crate::b;"), ("b.rs", "")];
        assert_eq!(edges(&files), <[&str; 0]>::default());
    }

    #[test]
    fn item_exported_by_the_root_belongs_to_its_module() {
        for root in ["pub use b::Item;", "pub use crate::b::{Other, Item};", "mod b; pub use b::Inner as Item;"] {
            let files = [("lib.rs", root), ("a.rs", "use crate::Item;"), ("b.rs", "")];
            assert_eq!(edges(&files), ["a → b"], "{root}");
        }
    }

    #[test]
    fn item_exported_with_all_others_belongs_to_its_module() {
        for (root, edges_of_a) in [
            ("mod b; mod c; pub use b::*;", &["a → b"][..]),
            ("mod b; mod c; pub use crate::{b::{inner::*}, c::Other};", &["a → b"]),
            ("mod b; mod c; pub use b::*; pub use c::Item;", &["a → c"]),
            ("mod b; mod c; pub use b::*; pub struct Item;", &[]),
            ("mod b; mod c; pub use b::*; macro_rules! Item { () => {} }", &[]),
        ] {
            let files = [("lib.rs", root), ("a.rs", "use crate::Item;"), ("b.rs", ""), ("c.rs", "")];
            assert_eq!(edges(&files), edges_of_a, "{root}");
        }
    }

    #[test]
    fn all_items_of_the_root_belong_to_the_modules_that_it_exports_from() {
        for text in ["use crate::*;", "use super::*;", "use crate::{*, Item};"] {
            let files = [("lib.rs", "mod b; mod c; mod d; pub use b::Item; pub use c::*;"), ("a.rs", text)];
            let others = [("b.rs", ""), ("c.rs", ""), ("d.rs", "")];
            assert_eq!(edges(&[&files[..], &others].concat()), ["a → b", "a → c"], "{text}");
        }
    }

    #[test]
    fn cycle_is_reported_with_its_references() {
        let files = [
            ("a.rs", "use crate::b::Item;"),
            ("b.rs", "\n\nuse crate::c::Item;"),
            ("c.rs", "fn f() { crate::a::g(); crate::d::g() }"),
            ("d.rs", ""),
            ("e.rs", "use crate::a;"),
        ];
        let found = cycles(&found(&files));
        assert_eq!(found, ["3 modules form a cycle: a, b, c\n    a → b  a.rs:1\n    b → c  b.rs:3\n    c → a  c.rs:1"]);
    }

    #[test]
    fn separate_cycles_are_reported_separately() {
        let files = [
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::a; use crate::c;"),
            ("c.rs", "use crate::d;"),
            ("d.rs", "use crate::c;"),
        ];
        assert_eq!(cycles(&found(&files)).len(), 2);
    }

    #[test]
    fn modules_in_one_direction_form_no_cycle() {
        let files = [("a.rs", "use crate::b; use crate::c;"), ("b.rs", "use crate::c;"), ("c.rs", "")];
        assert_eq!(cycles(&found(&files)), <[&str; 0]>::default());
    }
}
