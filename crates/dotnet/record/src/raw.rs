//! The stream as it was received: where it is, and whether it stays. It is read by the descriptor that it was written by:
//! under its name somebody else may have put another file by then.

use std::fs::File;
use std::path::PathBuf;

use runtap_convert::source::Recording;

use crate::Error;
use runtap_convert::{FileFormat, OutputFile};
use runtap_os::output::{PendingFile, is_path_of, reopened};

/// Where the stream goes.
#[derive(Debug)]
pub(crate) enum Raw {
    Stdout,
    /// Into a file that was asked for.
    Asked(PathBuf, File),
    /// Nobody asked for it: it goes when the files made from it are there.
    Temporary(PendingFile),
}

impl Raw {
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    fn file(&self) -> Option<&File> {
        match self {
            Self::Stdout => None,
            Self::Asked(_, file) => Some(file),
            Self::Temporary(draft) => Some(draft.file()),
        }
    }

    /// Whether it goes into what can be read again: no pipe, no device.
    pub(crate) fn is_file(&self) -> bool {
        self.file().is_some_and(|file| file.metadata().is_ok_and(|meta| meta.is_file()))
    }

    /// What was recorded; `None` for what went to stdout.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn recording(&self) -> Result<Option<Recording>, Error> {
        let Some(file) = self.file() else { return Ok(None) };
        if !self.is_file() {
            return Err(Error::NoFile);
        }
        let shown = match self {
            Self::Asked(path, _) => path.clone(),
            Self::Temporary(draft) => draft.place(),
            Self::Stdout => PathBuf::new(),
        };
        Ok(Some(Recording::of(reopened(file, &shown)?, shown)))
    }

    /// Itself as one of the files that were asked for, if it is.
    ///
    /// # Errors
    /// It does not have its name any more.
    pub(crate) fn asked_for(&self) -> Result<Option<OutputFile>, Error> {
        let Self::Asked(path, file) = self else { return Ok(None) };
        let ours = file.metadata()?;
        if !is_path_of(path, file) {
            return Err(Error::Exchanged(path.clone()));
        }
        Ok(Some(OutputFile::new(path.clone(), FileFormat::Nettrace, ours.len())))
    }

    /// Keeps it although nobody asked for it; its path then.
    pub(crate) fn keep(self) -> Option<PathBuf> {
        match self {
            Self::Temporary(draft) => Some(draft.keep()),
            _ => None,
        }
    }
}
