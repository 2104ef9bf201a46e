//! Incremental decoding of transcripts: splits bytes into lines and parses entries, in bounded memory.
//!
//! A recorder that was killed may have written only part of its last line, which is reported as [`Cut`] and is not an error.
//! Invalid lines are never skipped.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read};

use crate::Entry;
use crate::error::{Error, Problem};

/// Limits on the size of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a line in bytes, without its line feed.
    pub line: usize,
    /// The maximum size of the transcript in bytes.
    pub total: u64,
    /// The maximum number of JSON values in a line. In memory a value takes far more than the two or three bytes of its text.
    pub values: usize,
    /// The maximum number of connections, because state is kept for each.
    pub connections: usize,
    /// The maximum total length of all connection names, in bytes.
    pub names: usize,
}

impl Default for Limits {
    /// Returns the default limits: lines of 64 MiB, more than the largest message of any recorded protocol; 64 GiB in total;
    /// 131,072 values in a line, which take less than 100 MiB of memory; 262,144 connections with names of 16 MiB in total.
    fn default() -> Self {
        let (connections, names) = (1 << 18, 16 << 20);
        Self { line: 64 << 20, total: 64 << 30, values: 1 << 17, connections, names }
    }
}

/// The incomplete last line of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The number of the line, from 1.
    pub line: u64,
    /// The offset of the line in bytes.
    pub offset: u64,
    /// The number of bytes of the incomplete line.
    pub bytes: usize,
}

/// An entry with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The number of the line, from 1.
    pub line: u64,
    /// The length of the line in bytes.
    pub bytes: usize,
    /// The parsed entry.
    pub entry: Entry,
}

/// Decodes a transcript incrementally, without I/O.
///
/// After each [`feed`](Self::feed), call [`poll`](Self::poll) until it returns `None`; after the last one, call
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    pending: Vec<u8>,
    /// The number of pending bytes known to contain no further line feed.
    searched: usize,
    /// The number of pending bytes that were already decoded.
    consumed: usize,
    line: u64,
    /// The offset of the most recent line in bytes.
    start: u64,
    /// The total number of bytes fed.
    total: u64,
    connections: Connections,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Decoder {
    /// Creates a decoder with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            pending: Vec::new(),
            searched: 0,
            consumed: 0,
            line: 0,
            start: 0,
            total: 0,
            connections: Connections::default(),
        }
    }

    /// Adds bytes of the transcript.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.pending.drain(..self.consumed);
        self.searched = self.searched.saturating_sub(self.consumed);
        self.consumed = 0;
        self.pending.extend_from_slice(bytes);
        self.total = self.total.saturating_add(bytes.len() as u64);
    }

    /// Returns the next entry; `None` if its line is incomplete. Skips empty lines.
    ///
    /// # Errors
    /// Fails if a line is invalid or too long. The next call continues after this line.
    pub fn poll(&mut self) -> Result<Option<Located>, Error> {
        loop {
            self.start = self.total.saturating_sub(self.pending.len().saturating_sub(self.consumed) as u64);
            let from = self.searched.max(self.consumed);
            let rest = self.pending.get(from..).unwrap_or_default();
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.pending.len();
                let held = self.searched.saturating_sub(self.consumed);
                self.check(held)?;
                return Ok(None);
            };
            let end = from.saturating_add(length);
            let (start, line) = (self.consumed, self.line.saturating_add(1));
            self.check(end.saturating_sub(start))?;
            (self.consumed, self.searched, self.line) = (end.saturating_add(1), end.saturating_add(1), line);
            let text = self.pending.get(start..end).unwrap_or_default().trim_ascii();
            if !text.is_empty() {
                let (bytes, entry) = (text.len(), self.parse(text));
                let entry = entry.map_err(|problem| Error::Line { line, problem })?;
                self.connections
                    .count(&entry, &self.limits)
                    .map_err(|problem| Error::Line { line, problem })?;
                return Ok(Some(Located { line, bytes, entry }));
            }
        }
    }

    /// Ends the transcript. The pending bytes are an entry without a line feed, nothing, or an incomplete line.
    ///
    /// # Errors
    /// Fails if the last line is complete and invalid.
    pub fn finish(&mut self) -> Result<Result<Option<Located>, Cut>, Error> {
        let rest = self.pending.get(self.consumed..).unwrap_or_default();
        let line = self.line.saturating_add(1);
        let cut = Cut { line, offset: self.total.saturating_sub(rest.len() as u64), bytes: rest.len() };
        let text = rest.trim_ascii();
        let parsed = if text.is_empty() { None } else { Some(self.parse(text)) };
        self.consumed = self.pending.len();
        match parsed {
            None => Ok(Ok(None)),
            Some(Ok(entry)) => {
                self.connections
                    .count(&entry, &self.limits)
                    .map_err(|problem| Error::Line { line, problem })?;
                Ok(Ok(Some(Located { line, bytes: cut.bytes, entry })))
            }
            Some(Err(Problem::Json { .. })) => Ok(Err(cut)),
            Some(Err(problem)) => Err(Error::Line { line, problem }),
        }
    }

    /// Returns the offset in bytes of the most recent line, which was decoded or is invalid.
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// Parses a line after checking its number of values.
    fn parse(&self, text: &[u8]) -> Result<Entry, Problem> {
        let limit = self.limits.values;
        if has_more_values(text, limit) { Err(Problem::TooMany { limit }) } else { Entry::parse(text) }
    }

    fn check(&self, length: usize) -> Result<(), Error> {
        let line = self.line.saturating_add(1);
        if length > self.limits.line {
            let problem = Problem::TooLong { limit: self.limits.line };
            return Err(Error::Line { line, problem });
        }
        if self.total > self.limits.total {
            return Err(Error::TooMuch { line, limit: self.limits.total });
        }
        Ok(())
    }
}

/// Counts the connections of a transcript.
#[derive(Debug, Default)]
struct Connections {
    /// The hashes of known names. The hasher has random keys, so that collisions cannot be provoked.
    seen: HashSet<u64>,
    hasher: RandomState,
    count: usize,
    names: usize,
}

impl Connections {
    /// Counts a connection that a line opens, explicitly or by first naming it.
    fn count(&mut self, entry: &Entry, limits: &Limits) -> Result<(), Problem> {
        let (name, opens) = match entry {
            Entry::Open(open) => (&open.conn, true),
            Entry::Frame(frame) => (&frame.conn, false),
            Entry::Close(close) => (&close.conn, false),
            _ => return Ok(()),
        };
        let is_new = self.seen.insert(self.hasher.hash_one(name));
        if !is_new && !opens {
            return Ok(());
        }
        self.count = self.count.saturating_add(1);
        self.names = self.names.saturating_add(name.len());
        if self.count > limits.connections {
            return Err(Problem::TooManyConnections { limit: limits.connections });
        }
        if self.names > limits.names {
            return Err(Problem::LongNames { limit: limits.names });
        }
        Ok(())
    }
}

/// Returns whether a line has more than `limit` values. Every value but the first follows a comma or opens a list or object.
fn has_more_values(text: &[u8], limit: usize) -> bool {
    let (mut values, mut in_text, mut is_escaped) = (1_usize, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values = values.saturating_add(1),
            _ => {}
        }
    }
    values > limit
}

/// Reads the entries of a transcript from a file.
#[derive(Debug)]
pub struct Reader<R> {
    inner: R,
    decoder: Decoder,
    buffer: Vec<u8>,
    cut: Option<Cut>,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// Creates a reader with the default limits.
    pub fn new(inner: R) -> Self {
        Self::with_limits(inner, Limits::default())
    }

    /// Creates a reader with other limits.
    pub fn with_limits(inner: R, limits: Limits) -> Self {
        let buffer = vec![0; 1 << 16];
        Self { inner, decoder: Decoder::new(limits), buffer, cut: None, is_over: false }
    }

    /// Reads the next entry; `None` at the end, even if the last line is incomplete ([`cut`](Self::cut)).
    ///
    /// # Errors
    /// Fails if reading fails or a line is invalid. No further entries are returned then.
    pub fn read(&mut self) -> Result<Option<Located>, Error> {
        let read = self.advance();
        self.is_over |= read.is_err();
        read
    }

    fn advance(&mut self) -> Result<Option<Located>, Error> {
        while !self.is_over {
            if let Some(located) = self.decoder.poll()? {
                return Ok(Some(located));
            }
            match self.inner.read(&mut self.buffer) {
                Ok(0) => {
                    self.is_over = true;
                    return match self.decoder.finish()? {
                        Ok(last) => Ok(last),
                        Err(cut) => {
                            self.cut = Some(cut);
                            Ok(None)
                        }
                    };
                }
                Ok(n) => self.decoder.feed(self.buffer.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Returns the offset in bytes of the most recent line, which was decoded or is invalid.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Returns the incomplete last line, if any. Known at the end.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Located, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
