//! Transcripts being written: each line is with the system before the next one is begun.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use runtap_os::output::PendingFile;

use crate::Entry;
use crate::error::Error;

/// Writes entries, each in one write.
#[derive(Debug)]
pub struct Writer<W> {
    inner: W,
    is_broken: bool,
}

impl<W: Write> Writer<W> {
    /// Writes there. It is not buffered: what was written is to survive the program.
    pub fn new(inner: W) -> Self {
        Self { inner, is_broken: false }
    }

    /// Writes a line, and hands it to the system.
    ///
    /// # Errors
    /// It could not be written whole. Then nothing more is written: a reader takes the rest of a line for the last one.
    pub fn write(&mut self, entry: &Entry) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let written = self.inner.write_all(&entry.to_line()).and_then(|()| self.inner.flush());
        self.is_broken = written.is_err();
        Ok(written?)
    }

    /// Where it writes.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

/// Makes a file for a transcript, or for a part of one, that is there at once, for its owner alone: in place of what has
/// its name. Gives its path.
///
/// # Errors
/// It can't be made there.
pub fn create(path: &Path) -> Result<(File, PathBuf), Error> {
    Ok(PendingFile::of(path)?.appear()?)
}
