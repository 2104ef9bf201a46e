//! What the runtime has sent: bytes that are held, or a part of a file, read when it is sent. Refuses a link, and whatever
//! else is not a regular file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use super::talk::TalkError;

/// Bytes that a side has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    Held(Vec<u8>),
    /// In the file of a stream.
    Beside {
        path: PathBuf,
        offset: u64,
        length: u64,
    },
}

impl Data {
    /// Hands the bytes out, a part at a time.
    ///
    /// # Errors
    /// The file of the stream can't be read, or is shorter than the transcript says.
    pub(crate) fn parts(&self) -> Parted<'_> {
        Parted { data: self, at: 0, file: None }
    }
}

/// Bytes that are handed out.
pub(crate) struct Parted<'a> {
    data: &'a Data,
    at: u64,
    file: Option<File>,
}

/// How much is read at a time.
const PART: u64 = 1 << 16;

impl Parted<'_> {
    /// The next part; empty at the end.
    pub(crate) fn next(&mut self) -> Result<Vec<u8>, TalkError> {
        match self.data {
            Data::Held(bytes) => {
                let rest = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                self.at = bytes.len() as u64;
                Ok(rest.to_vec())
            }
            Data::Beside { path, offset, length } => {
                let failed = |source| TalkError::Stream { path: path.clone(), source };
                let size = length.saturating_sub(self.at).min(PART);
                let mut part = vec![0; usize::try_from(size).unwrap_or(0)];
                if part.is_empty() {
                    return Ok(part);
                }
                let mut file = match self.file.take() {
                    Some(file) => file,
                    None => runtap_os::output::open_ordinary(path).map_err(failed)?,
                };
                let at =
                    offset.checked_add(self.at).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
                file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut part)).map_err(failed)?;
                (self.file, self.at) = (Some(file), self.at.saturating_add(size));
                Ok(part)
            }
        }
    }
}
