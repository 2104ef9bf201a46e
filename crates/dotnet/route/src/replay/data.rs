//! Data that the runtime has sent: bytes in memory, or a part of a file that is read when sent. Links and files that are not
//! regular are rejected.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use super::talk::TalkError;

/// Bytes that a side has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    Held(Vec<u8>),
    /// A part of a stream's file.
    Beside {
        path: PathBuf,
        offset: u64,
        length: u64,
    },
}

impl Data {
    /// Returns the bytes part by part.
    ///
    /// # Errors
    /// Reading a part fails if the stream's file can't be read, or is too short.
    pub(crate) fn parts(&self) -> DataParts<'_> {
        DataParts { data: self, at: 0, file: None }
    }
}

/// An iterator over the parts of [`Data`].
pub(crate) struct DataParts<'a> {
    data: &'a Data,
    at: u64,
    file: Option<File>,
}

/// The maximum size of a part read from a file, in bytes.
const PART_SIZE: u64 = 1 << 16;

impl DataParts<'_> {
    /// Returns the next part; empty at the end.
    pub(crate) fn next(&mut self) -> Result<Vec<u8>, TalkError> {
        match self.data {
            Data::Held(bytes) => {
                let rest = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                self.at = bytes.len() as u64;
                Ok(rest.to_vec())
            }
            Data::Beside { path, offset, length } => {
                let failed = |source| TalkError::Stream { path: path.clone(), source };
                let size = length.saturating_sub(self.at).min(PART_SIZE);
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
