//! The stream as it was received. It is read through the descriptor with which it was written, because another process may have
//! replaced the file with its name.

use std::fs::File;
use std::path::PathBuf;

use runtap_convert::source::Recording;

use crate::Error;
use runtap_convert::{FileFormat, OutputFile};
use runtap_os::output::{PendingFile, is_path_of, reopened};

/// The destination of the stream.
#[derive(Debug)]
pub(crate) enum RawStream {
    Stdout,
    /// A [consumer](crate::StreamConsumer).
    Consumed,
    /// A requested file.
    Asked(PathBuf, File),
    /// A temporary file, which is deleted when the requested files have been created.
    Temporary(PendingFile),
}

impl RawStream {
    /// Whether a reader of the output can close it.
    pub(crate) fn may_be_closed(&self) -> bool {
        matches!(self, Self::Stdout | Self::Consumed)
    }

    fn file(&self) -> Option<&File> {
        match self {
            Self::Stdout | Self::Consumed => None,
            Self::Asked(_, file) => Some(file),
            Self::Temporary(draft) => Some(draft.file()),
        }
    }

    /// Whether it is a file that can be read again, and not a pipe or device.
    pub(crate) fn is_file(&self) -> bool {
        self.file().is_some_and(|file| file.metadata().is_ok_and(|meta| meta.is_file()))
    }

    /// Opens the recording. `None` for standard output and consumers.
    ///
    /// # Errors
    /// Returns an error if it can't be read.
    pub(crate) fn recording(&self) -> Result<Option<Recording>, Error> {
        let Some(file) = self.file() else { return Ok(None) };
        if !self.is_file() {
            return Err(Error::NoFile);
        }
        let shown = match self {
            Self::Asked(path, _) => path.clone(),
            Self::Temporary(draft) => draft.place(),
            Self::Stdout | Self::Consumed => PathBuf::new(),
        };
        Ok(Some(Recording::of(reopened(file, &shown)?, shown)))
    }

    /// Returns the output file, if it was requested.
    ///
    /// # Errors
    /// Returns an error if the file no longer has its name.
    pub(crate) fn asked_for(&self) -> Result<Option<OutputFile>, Error> {
        let Self::Asked(path, file) = self else { return Ok(None) };
        let ours = file.metadata()?;
        if !is_path_of(path, file) {
            return Err(Error::Exchanged(path.clone()));
        }
        Ok(Some(OutputFile::new(path.clone(), FileFormat::Nettrace, ours.len())))
    }

    /// Keeps a temporary file and returns its path.
    pub(crate) fn keep(self) -> Option<PathBuf> {
        match self {
            Self::Temporary(draft) => Some(draft.keep()),
            _ => None,
        }
    }
}
