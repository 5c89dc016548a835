//! Every decision as a PreemptionTest file of its own, so that it can be asked again.

use std::fs;
use std::path::{Path, PathBuf};

use reprieve_scheduler::RecordedDecision;
use tracing::error;

use crate::error::Error;

/// A folder of decisions.
pub struct Audit {
    folder: PathBuf,
}

impl Audit {
    /// In a folder, which is made where it is missing.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|error| Error::File { path: folder.to_owned(), error })?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Writes a decision: first beside its name, so that a file that is there is whole.
    pub fn write(&mut self, record: &RecordedDecision) {
        let file = self.folder.join(format!("{}.yaml", record.name));
        let draft = file.with_extension("yaml.part");
        if let Err(error) = fs::write(&draft, &record.text).and_then(|()| fs::rename(&draft, &file)) {
            error!(file = %file.display(), %error, "a decision could not be recorded");
        }
    }
}
