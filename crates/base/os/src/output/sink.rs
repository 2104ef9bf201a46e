//! Output sinks: files that appear when complete, or standard output.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::output::error::Error;
use crate::output::pending_file::PendingFile;

/// The destination of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file with this path.
    File(PathBuf),
}

/// An open output.
#[derive(Debug)]
pub enum OutputSink {
    /// Standard output.
    Stdout,
    /// A file that does not have its final name yet.
    File(PendingFile),
}

impl OutputSink {
    /// Opens the output without changing what exists at its path.
    ///
    /// # Errors
    /// If the destination cannot be written.
    pub fn open(to: &Destination) -> Result<Self, Error> {
        Ok(match to {
            Destination::Stdout => Self::Stdout,
            Destination::File(path) => Self::File(PendingFile::of(path)?),
        })
    }

    /// Starts writing. A file appears only when [finished](Writer::finish); a pipe or a device receives the data at
    /// once.
    ///
    /// # Errors
    /// If the destination cannot be written.
    pub fn begin(self) -> Result<Writer, Error> {
        let (out, draft, path): (Box<dyn Write>, _, _) = match self {
            Self::Stdout => (Box::new(io::stdout().lock()), None, None),
            Self::File(draft) if draft.is_file() => {
                let (file, path) = (draft.file().try_clone(), draft.wanted());
                (Box::new(file.map_err(Error::file(&path))?), Some(draft), Some(path))
            }
            Self::File(draft) => {
                let (file, path) = draft.appear()?;
                (Box::new(file), None, Some(path))
            }
        };
        Ok(Writer { out: BufWriter::with_capacity(1 << 16, out), bytes: 0, draft, path })
    }
}

/// A buffered writer of an output.
pub struct Writer {
    out: BufWriter<Box<dyn Write>>,
    bytes: u64,
    draft: Option<PendingFile>,
    path: Option<PathBuf>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Writer {
    /// Returns the path as specified by the user. `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Converts an I/O error of this output into an [`Error`] that names it.
    pub fn failed(&self, error: io::Error) -> Error {
        Error::file(self.path().unwrap_or_else(|| Path::new("standard output")))(error)
    }

    /// Flushes the output and renames the file into place. Returns the path, `None` for standard output, and the size
    /// in bytes.
    ///
    /// # Errors
    /// If flushing or renaming fails.
    pub fn finish(mut self) -> Result<(Option<PathBuf>, u64), Error> {
        self.out.flush().map_err(|error| self.failed(error))?;
        let path = match self.draft.take() {
            Some(draft) => Some(draft.appear_whole()?),
            None => self.path,
        };
        Ok((path, self.bytes))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns a writer to stdout that may be used beside other writers. Each flush is written under the lock of stdout, so
/// lines stay intact if writers flush between lines only.
pub fn shared_stdout() -> BufWriter<impl Write> {
    struct Stdout;

    impl Write for Stdout {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            io::stdout().lock().write_all(buffer)?;
            Ok(buffer.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            io::stdout().lock().flush()
        }
    }

    BufWriter::with_capacity(1 << 16, Stdout)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn unfinished_output_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let begin = || OutputSink::open(&Destination::File(path.clone())).unwrap().begin().unwrap();
        let mut half = begin();
        half.write_all(b"half").unwrap();
        assert_eq!(half.path(), Some(&*path));
        drop(half);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut whole = begin();
        whole.write_all(b"whole").unwrap();
        assert_eq!(whole.finish().unwrap(), (Some(path.clone()), 5));
        assert_eq!(fs::read(path).unwrap(), b"whole");
    }
}
