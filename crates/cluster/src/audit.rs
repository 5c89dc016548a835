//! Writes every decision as a PreemptionTest file, so that `reprieve plan` and `reprieve test` can repeat it.

use std::fs;
use std::path::{Path, PathBuf};

use reprieve_scheduler::RecordedDecision;
use tracing::error;

use crate::error::Error;

/// The folder of the recorded decisions.
pub struct Audit {
    folder: PathBuf,
}

impl Audit {
    /// Creates the folder if it does not exist.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|error| Error::File { path: folder.to_owned(), error })?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Writes a decision to a temporary file and renames it, so that every `.yaml` file is complete.
    pub fn write(&mut self, record: &RecordedDecision) {
        let file = self.folder.join(format!("{}.yaml", record.name));
        let draft = file.with_extension("yaml.part");
        if let Err(error) = fs::write(&draft, &record.text).and_then(|()| fs::rename(&draft, &file)) {
            error!(file = %file.display(), %error, "cannot record a decision");
        }
    }
}
