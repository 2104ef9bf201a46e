//! Files that a run produces, and how they look on the wire.

use std::path::{Path, PathBuf};

use runtap_mtp_proto::FileArtifact;

use crate::TestNode;

/// A file that the run has produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    path: PathBuf,
    display_name: String,
    description: String,
    kind: Option<String>,
    inputs: Vec<PathBuf>,
}

impl Artifact {
    /// A file. A path that is not absolute is taken from the working directory, as servers may have another one.
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

    /// What people call it.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = name.into();
        self
    }

    /// What it is.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// What kind of file it is, such as `microsoft.testing.trx`: by that servers of MTP 2.4 merge them.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// One more file of which it was made (MTP 2.4).
    #[must_use]
    pub fn made_of(mut self, input: impl Into<PathBuf>) -> Self {
        self.inputs.push(input.into());
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Of a test, of a session, or of neither: what does not apply is empty.
    pub(crate) fn on_wire(&self, test: Option<&TestNode>, session: &str) -> FileArtifact {
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
