//! Files that a run produces, and their encoding.

use std::path::{Path, PathBuf};

use runtap_mtp_proto::FileArtifact;

use crate::TestNode;

/// A file that the run produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    path: PathBuf,
    display_name: String,
    description: String,
    kind: Option<String>,
    inputs: Vec<PathBuf>,
}

impl Artifact {
    /// Creates an artifact. A relative path is resolved against the working directory, because the server's directory
    /// may differ.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            path: std::path::absolute(&path).unwrap_or(path),
            display_name: String::new(),
            description: String::new(),
            kind: None,
            inputs: Vec::new(),
        }
    }

    /// Sets the display name.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = name.into();
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Sets the kind of the file, such as `microsoft.testing.trx`. Servers of MTP 2.4 merge files by their kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Adds a file from which this file was made (MTP 2.4).
    #[must_use]
    pub fn made_of(mut self, input: impl Into<PathBuf>) -> Self {
        self.inputs.push(input.into());
        self
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Converts to a protocol message: for a test, for a session, or for neither. Ids that do not apply are empty.
    pub(crate) fn to_message(&self, test: Option<&TestNode>, session: &str) -> FileArtifact {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let inputs = self.inputs.iter().map(|path| text(path)).collect::<Vec<_>>();
        FileArtifact {
            full_path: Some(text(&self.path)),
            display_name: Some(self.display_name.clone()),
            description: Some(self.description.clone()),
            test_uid: Some(test.map_or_else(String::new, |test| test.uid.clone())),
            test_display_name: Some(test.map_or_else(String::new, |test| test.display_name.clone())),
            session_uid: Some(session.to_owned()),
            kind: self.kind.clone(),
            input_artifact_paths: Some(inputs).filter(|inputs| !inputs.is_empty()),
        }
    }
}
