//! The stream as it was received: where it is, and whether it stays.

use std::fs;
use std::path::{Path, PathBuf};

use super::summary::OutputFile;
use crate::cli::FileFormat;
use crate::files::Draft;

/// Where the stream goes.
#[derive(Debug)]
pub(super) enum Raw {
    Stdout,
    /// Into a file that was asked for.
    Asked(PathBuf),
    /// Nobody asked for it: it goes when the files made from it are there.
    Temporary(Draft, PathBuf),
}

impl Raw {
    pub(super) fn temporary(draft: Draft) -> Self {
        let place = draft.place();
        Self::Temporary(draft, place)
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Its path, unless it is stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::Asked(path) | Self::Temporary(_, path) => Some(path),
        }
    }

    /// Itself as one of the files that were asked for, if it is.
    pub(super) fn asked_for(&self) -> anyhow::Result<Option<OutputFile>> {
        let Self::Asked(path) = self else { return Ok(None) };
        let bytes = fs::metadata(path)?.len();
        Ok(Some(OutputFile::new(path, FileFormat::Nettrace, bytes)))
    }

    /// Keeps it although nobody asked for it; its path then.
    pub(super) fn keep(self) -> Option<PathBuf> {
        match self {
            Self::Temporary(draft, _) => Some(draft.keep()),
            _ => None,
        }
    }
}
