//! A recorded stream, read piece by piece with the times of its pieces.
//!
//! [`Stream`] combines a file of bytes with its index, even if one of them is truncated. Bytes that are not in the
//! index were written before HQ was killed: they get the last known time. Bytes that are in the index but not in
//! the file are missing.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::time::Duration;

use crate::recording::chunks::{Row, Rows, RowsError};
use crate::recording::error::Error;
use crate::recording::find::StreamFiles;
use crate::recording::replay::Damage;

/// The maximum number of bytes that are read at once.
pub(crate) const READ_SIZE: usize = 64 << 10;

/// The next item of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Bytes that arrived at this time.
    Bytes(Duration),
    /// The end of the stream, at this time.
    End(Duration),
    /// Nothing: the recording ends before the end of the stream.
    Nothing,
}

/// A reader of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) files: StreamFiles,
    bytes: File,
    rows: Option<Rows<BufReader<File>>>,
    /// The offset of the next bytes in the file.
    pub(crate) offset: u64,
    size: u64,
    next: Next,
    /// The number of remaining bytes of the current row.
    left: u64,
    at: Duration,
    /// The problem of the files, and its offset in the bytes.
    damage: Option<(u64, String)>,
}

impl Stream {
    pub(crate) fn open(files: &StreamFiles) -> Result<Self, Error> {
        let read = |path: &std::path::Path, error| Error::Read { path: path.to_owned(), error };
        let open = |path: &std::path::Path| {
            runtap_os::output::open_ordinary(path).map_err(|error| read(path, error))
        };
        let bytes = open(&files.bytes)?;
        let size = bytes.metadata().map_err(|error| read(&files.bytes, error))?.len();
        let rows = files.index.as_deref().map(open).transpose()?;
        let mut stream = Self {
            files: files.clone(),
            bytes,
            rows: rows.map(|file| Rows::new(BufReader::new(file))),
            offset: 0,
            size,
            next: Next::Nothing,
            left: 0,
            at: Duration::ZERO,
            damage: None,
        };
        stream.advance();
        Ok(stream)
    }

    /// Returns the next item.
    pub(crate) fn next(&self) -> Next {
        self.next
    }

    /// Returns whether the times are known.
    pub(crate) fn has_index(&self) -> bool {
        self.files.index.is_some()
    }

    /// Advances to the next row.
    fn advance(&mut self) {
        let row = match &mut self.rows {
            // Without an index, the whole file is one row, and its end is the end of the stream.
            None if self.offset < self.size => {
                self.left = self.size - self.offset;
                self.next = Next::Bytes(self.at);
                return;
            }
            None => {
                self.next = Next::End(self.at);
                return;
            }
            Some(rows) => rows.read(),
        };
        match row {
            Ok(Some(Row::Bytes { at, bytes })) => {
                // Times in foreign files may decrease; those of a stream must not.
                self.at = self.at.max(at);
                self.left = bytes;
                self.next = Next::Bytes(self.at);
                if self.offset >= self.size {
                    self.missing();
                }
            }
            Ok(Some(Row::End { at })) => {
                self.at = self.at.max(at);
                self.next = if self.offset < self.size { self.unindexed() } else { Next::End(self.at) };
            }
            Ok(None) => {
                let ended = self.rows.as_ref().is_some_and(Rows::has_ended);
                self.next = match self.unindexed() {
                    Next::Nothing if ended => Next::End(self.at),
                    next => next,
                };
            }
            Err(error) => {
                self.damage = Some((self.offset, index_problem(&error)));
                self.rows = None;
                self.next = Next::Nothing;
            }
        }
    }

    /// Returns the bytes after the last row of the index as the next item, if there are any.
    fn unindexed(&mut self) -> Next {
        self.left = self.size.saturating_sub(self.offset);
        if self.left > 0 { Next::Bytes(self.at) } else { Next::Nothing }
    }

    fn missing(&mut self) {
        let reason =
            format!("the index covers more bytes than the file contains: {} bytes are missing", self.left);
        self.damage = Some((self.offset, reason));
        self.next = Next::Nothing;
        self.rows = None;
    }

    /// Reads the next bytes, at most [`READ_SIZE`].
    ///
    /// # Errors
    /// Returns the errors of the file.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let wanted = buffer.get_mut(..size).unwrap_or_default();
        let size = loop {
            match self.bytes.read(wanted) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.offset += size as u64;
        self.left -= size as u64;
        if size == 0 {
            self.size = self.offset;
            self.missing();
        } else if self.left == 0 {
            self.advance();
        }
        Ok(buffer.get(..size).unwrap_or_default())
    }

    /// Returns the damage that was found.
    pub(crate) fn damage(&self) -> Option<Damage> {
        let (offset, reason) = self.damage.clone()?;
        Some(Damage { stream: self.files.name.clone(), offset, reason })
    }

    /// Stops reading: the end was handled, or the rest is not needed.
    pub(crate) fn stop(&mut self) {
        self.rows = None;
        self.next = Next::Nothing;
    }
}

fn index_problem(error: &RowsError) -> String {
    format!("the index cannot be read: {error}")
}
