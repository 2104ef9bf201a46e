//! Writing of transcripts: each line is passed to the system before the next.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use runtap_os::output::PendingFile;

use crate::Entry;
use crate::error::Error;

/// Writes entries, each in a single write.
#[derive(Debug)]
pub struct Writer<W> {
    inner: W,
    is_broken: bool,
}

impl<W: Write> Writer<W> {
    /// Creates a writer. It does not buffer, so that written lines survive if the program is killed.
    pub fn new(inner: W) -> Self {
        Self { inner, is_broken: false }
    }

    /// Writes a line and flushes.
    ///
    /// # Errors
    /// Fails if the line was not written completely. No further lines are written then, because readers only accept an
    /// incomplete line at the end.
    pub fn write(&mut self, entry: &Entry) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let written = self.inner.write_all(&entry.to_line()).and_then(|()| self.inner.flush());
        self.is_broken = written.is_err();
        Ok(written?)
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

/// Creates a file for a transcript or part of one, readable only by its owner, replacing an existing file. The file appears
/// immediately. Returns the file and its path.
///
/// # Errors
/// Fails if the file can't be created.
pub fn create(path: &Path) -> Result<(File, PathBuf), Error> {
    Ok(PendingFile::of(path)?.appear()?)
}
