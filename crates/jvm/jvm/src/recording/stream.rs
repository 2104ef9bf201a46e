//! One recorded stream, read piece by piece with the times of its pieces.
//!
//! Owns: [`Stream`]: how a file with bytes and its index go together, also where one of them is cut. Bytes that the index does
//! not have were written before HQ was killed: they came at the last time that is known. Bytes that the index has and the file
//! has not are missing.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::time::Duration;

use crate::recording::chunks::{Row, Rows, RowsError};
use crate::recording::error::Error;
use crate::recording::find::StreamFiles;

/// The most that is read at once.
pub(crate) const PIECE: usize = 64 << 10;

/// What comes next in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Bytes, of this time.
    Bytes(Duration),
    /// Its end, of this time.
    End(Duration),
    /// The recording ends, and nobody has seen the end of the stream.
    Nothing,
}

/// A stream that is read.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) files: StreamFiles,
    bytes: File,
    rows: Option<Rows<BufReader<File>>>,
    /// Where in the file the next bytes are.
    pub(crate) offset: u64,
    size: u64,
    next: Next,
    /// Bytes of the row that is read.
    left: u64,
    at: Duration,
    /// What is wrong with the files, and at which offset of the bytes.
    pub(crate) damage: Option<(u64, String)>,
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

    /// What comes next.
    pub(crate) fn next(&self) -> Next {
        self.next
    }

    /// Whether times are known.
    pub(crate) fn has_index(&self) -> bool {
        self.files.index.is_some()
    }

    /// To the next row.
    fn advance(&mut self) {
        let row = match &mut self.rows {
            // Without an index all of it is one row, and its end the end of the stream.
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
                // Files of others may have times that go back; those of one stream do not.
                self.at = self.at.max(at);
                self.left = bytes;
                self.next = Next::Bytes(self.at);
                if self.offset >= self.size {
                    self.missing();
                }
            }
            Ok(Some(Row::End { at })) => {
                self.at = self.at.max(at);
                self.next = if self.offset < self.size { self.surplus() } else { Next::End(self.at) };
            }
            Ok(None) => {
                let ended = self.rows.as_ref().is_some_and(Rows::has_ended);
                self.next = match self.surplus() {
                    Next::Nothing if ended => Next::End(self.at),
                    next => next,
                };
            }
            Err(error) => {
                self.damage = Some((self.offset, index_trouble(&error)));
                self.rows = None;
                self.next = Next::Nothing;
            }
        }
    }

    /// Bytes that the index does not have.
    fn surplus(&mut self) -> Next {
        self.left = self.size.saturating_sub(self.offset);
        if self.left > 0 { Next::Bytes(self.at) } else { Next::Nothing }
    }

    fn missing(&mut self) {
        let reason = format!("the index goes on, but the file ends {} bytes before", self.left);
        self.damage = Some((self.offset, reason));
        self.next = Next::Nothing;
        self.rows = None;
    }

    /// Reads the next bytes, at most [`PIECE`].
    ///
    /// # Errors
    /// The file's.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let wanted = buffer.get_mut(..most).unwrap_or_default();
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

    /// Reads no more of it: its end was taken, or there is no use in the rest.
    pub(crate) fn stop(&mut self) {
        self.rows = None;
        self.next = Next::Nothing;
    }
}

fn index_trouble(error: &RowsError) -> String {
    format!("its index can't be read: {error}")
}
