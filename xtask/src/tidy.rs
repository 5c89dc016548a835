//! `cargo xtask tidy`: rules about the source that the compiler does not enforce. It reads files and compiles nothing.
//!
//! Each rule returns its violations as text. `check` fails on any of them; `report` prints them and succeeds.

mod crates;
mod doc_links;
mod documented;
mod files;
mod modules;
mod rule_links;
mod size;
mod tenant_fields;
mod words;

use std::path::Path;

use crate::kinds;
use crate::tasks::root;

/// Fails if any rule is violated.
pub fn check() -> Result<(), String> {
    match print_violations()? {
        0 => Ok(()),
        count => Err(format!("violations: {count}")),
    }
}

/// Prints the violations and succeeds.
pub fn report() -> Result<(), String> {
    let count = print_violations()?;
    eprintln!("violations: {count}");
    Ok(())
}

fn print_violations() -> Result<usize, String> {
    let root = root();
    let mut count = 0;
    for (rule, violations) in [
        ("crate arrows", crates::violations()?),
        ("module cycles", modules::violations(root)?),
        ("file size", files::violations(root)?),
        ("item size", size::violations(root)?),
        ("documented enums", documented::violations(root)?),
        ("kinds", kinds::violations()?),
        ("rule links", rule_links::violations(root)?),
        ("tenants' fields", tenant_fields::violations(root)?),
        ("document links", doc_links::violations(root)?),
        ("retired words", words::violations(root)?),
    ] {
        for violation in &violations {
            eprintln!("{rule}: {violation}");
        }
        count += violations.len();
    }
    Ok(count)
}

/// The path relative to the root of the repository.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
