//! Generates the CustomResourceDefinitions in `deploy/crds` from the types of `crates/api`. `fix` writes them; `check` fails if one is not
//! current.

use std::fs;
use std::path::PathBuf;

use reprieve_api::crds::crds;

use crate::tasks::root;

/// Fails if a file is not current.
pub fn check() -> Result<(), String> {
    let mut stale = Vec::new();
    for (file, text) in files()? {
        if fs::read_to_string(&file).ok().as_deref() != Some(&text) {
            stale.push(file.display().to_string());
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("not current; run `cargo xtask fix`: {}", stale.join(", ")))
}

/// Writes every file.
pub fn fix() -> Result<(), String> {
    for (file, text) in files()? {
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn files() -> Result<Vec<(PathBuf, String)>, String> {
    let folder = root().join("deploy/crds");
    let text = |(name, crd): (String, _)| {
        let text = serde_saphyr::to_string(&crd).map_err(|error| format!("{name}: {error}"))?;
        Ok((folder.join(name), format!("{}\n", text.trim_end())))
    };
    crds().into_iter().map(text).collect()
}
