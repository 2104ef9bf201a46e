//! Transcripts as they come: lines out of bytes in any pieces, entries out of lines, in bounded memory.
//!
//! A recorder that was killed may have written a part of its last line: that is no error, but said ([`Cut`]). Refuses to
//! skip a line that is wrong.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read};

use crate::Entry;
use crate::error::{Error, Problem};

/// How much of a transcript is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the longest line, without its end.
    pub line: usize,
    /// Bytes of all lines.
    pub total: u64,
    /// Values of one line: each takes up many times the two or three bytes that it may be written with.
    pub values: usize,
    /// Connections of all lines: something is kept of each, and a line of few bytes makes one.
    pub connections: usize,
    /// Bytes of the names of all connections.
    pub names: usize,
}

impl Default for Limits {
    /// Lines of 64 MiB, more than the largest message of any protocol that is recorded, and 64 GiB in all; 131,072 values a
    /// line, which take up less than 100 MiB whatever they are; 262,144 connections, with names of 16 MiB.
    fn default() -> Self {
        let (connections, names) = (1 << 18, 16 << 20);
        Self { line: 64 << 20, total: 64 << 30, values: 1 << 17, connections, names }
    }
}

/// What is left of the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its number, from 1 on.
    pub line: u64,
    /// Where it begins, in bytes from the start.
    pub offset: u64,
    /// How many bytes there are.
    pub bytes: usize,
}

/// An entry, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The number of its line, from 1 on.
    pub line: u64,
    /// The length of its line in bytes.
    pub bytes: usize,
    /// What it says.
    pub entry: Entry,
}

/// Takes bytes, gives entries.
///
/// After each [`feed`](Self::feed) call [`poll`](Self::poll) until it gives nothing; after the last one
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    pending: Vec<u8>,
    /// How much of it was looked through and has no end of a line.
    searched: usize,
    /// How much of it was given out.
    consumed: usize,
    line: u64,
    /// Where the last line begins that was looked at, in bytes from the start.
    start: u64,
    /// Bytes that were fed.
    total: u64,
    connections: Connections,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Decoder {
    /// One for a transcript that is within these limits.
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

    /// Takes some bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.pending.drain(..self.consumed);
        self.searched = self.searched.saturating_sub(self.consumed);
        self.consumed = 0;
        self.pending.extend_from_slice(bytes);
        self.total = self.total.saturating_add(bytes.len() as u64);
    }

    /// The next entry, if all of its line is there. Empty lines are passed over.
    ///
    /// # Errors
    /// A line that is wrong or too long. It is not given again; the next call goes on behind it.
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

    /// Nothing more comes. What was held back is an entry that only lacks the end of its line, or nothing, or a line that
    /// was cut off.
    ///
    /// # Errors
    /// A last line that is whole, and wrong all the same.
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

    /// Where the last line begins that was read, or is wrong, in bytes from the start.
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// Reads a line, if it has not more values than are held.
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

/// The connections that a transcript has, counted.
#[derive(Debug, Default)]
struct Connections {
    /// Names that were seen, as their hashes: keys of the hasher are random, so nobody can make two names have one.
    seen: HashSet<u64>,
    hasher: RandomState,
    count: usize,
    names: usize,
}

impl Connections {
    /// Counts the connection that a line makes: by itself, or because none before has named it.
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

/// Whether there are more values in a line than so many. Each but the first follows a comma, or is the first of a list or an
/// object.
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

/// Reads a transcript from a file, entry by entry.
#[derive(Debug)]
pub struct Reader<R> {
    inner: R,
    decoder: Decoder,
    buffer: Vec<u8>,
    cut: Option<Cut>,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// Reads from here.
    pub fn new(inner: R) -> Self {
        Self::with_limits(inner, Limits::default())
    }

    /// The same within other limits.
    pub fn with_limits(inner: R, limits: Limits) -> Self {
        let buffer = vec![0; 1 << 16];
        Self { inner, decoder: Decoder::new(limits), buffer, cut: None, is_over: false }
    }

    /// The next entry; `None` at the end, also where the last line was cut off ([`cut`](Self::cut)).
    ///
    /// # Errors
    /// What can't be read, and a line that is wrong: nothing comes behind it.
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

    /// Where the last line begins that was read, or is wrong, in bytes from the start.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// What is left of the last line, if that was cut off. Known at the end.
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
