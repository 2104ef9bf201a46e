//! An output from its opening to its last byte.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::output::draft::Draft;
use crate::output::error::Error;

/// Where a result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file under this path.
    File(PathBuf),
}

/// An output that is open.
#[derive(Debug)]
pub enum Outlet {
    /// Standard output.
    Stdout,
    /// A file in the making.
    File(Draft),
}

impl Outlet {
    /// Opens it, without a change to what is there.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn open(to: &Destination) -> Result<Self, Error> {
        Ok(match to {
            Destination::Stdout => Self::Stdout,
            Destination::File(path) => Self::File(Draft::of(path)?),
        })
    }

    /// Begins to write. A file is there only when it is [finished](Writer::finish); a pipe or a device gets what is
    /// written at once.
    ///
    /// # Errors
    /// The output does not take anything.
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

/// An output that is being written, through a buffer.
pub struct Writer {
    out: BufWriter<Box<dyn Write>>,
    bytes: u64,
    draft: Option<Draft>,
    path: Option<PathBuf>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Writer {
    /// The path that was asked for; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What a failure to write into it means.
    pub fn failed(&self, error: io::Error) -> Error {
        Error::file(self.path().unwrap_or_else(|| Path::new("standard output")))(error)
    }

    /// All of it is written: a file gets its name. Gives its path, if it is one, and its size in bytes.
    ///
    /// # Errors
    /// The rest could not be written, or the file could not get its name.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_not_finished_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let begin = || Outlet::open(&Destination::File(path.clone())).unwrap().begin().unwrap();
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
