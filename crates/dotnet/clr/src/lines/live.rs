//! Events of a live stream as lines, written as soon as their order is certain.

use std::io::{self, Write};

use runtap_nettrace::{InOrder, Partial, StreamItem};

use super::{Lines, Matched};

/// Reads a stream in pieces and writes its events as lines.
#[derive(Debug)]
pub struct LiveLines<W> {
    reader: InOrder,
    lines: Lines<W>,
}

impl<W: Write> LiveLines<W> {
    /// Creates a reader at the start of a stream.
    pub fn new(lines: Lines<W>) -> Self {
        Self { reader: InOrder::new(), lines }
    }

    /// Processes the next bytes of the stream, and writes what can be written. `see` is called for each item.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn feed(&mut self, bytes: &[u8], see: impl FnMut(&StreamItem<'_>)) -> io::Result<()> {
        self.reader.feed(bytes);
        self.write(see)
    }

    /// Writes the pending events. Must be called only if no older event can follow.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn nothing_older_comes(&mut self, see: impl FnMut(&StreamItem<'_>)) -> io::Result<()> {
        self.reader.release_all();
        self.write(see)
    }

    /// Finishes the stream.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn finish(&mut self, see: impl FnMut(&StreamItem<'_>)) -> io::Result<()> {
        self.reader.finish();
        self.write(see)
    }

    /// After a damaged block, reading continues; the reader remembers the damage.
    fn write(&mut self, mut see: impl FnMut(&StreamItem<'_>)) -> io::Result<()> {
        loop {
            match self.reader.next() {
                Ok(Some(item)) => {
                    see(&item);
                    self.lines.item(&item)?;
                }
                Err(_) => {}
                Ok(None) => return self.lines.flush(),
            }
        }
    }

    /// Returns how many events were written, and which names of the selection did not occur.
    pub fn matched(&self) -> Matched {
        self.lines.matched()
    }

    /// Returns the number of events that the target dropped.
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }

    /// Returns what is missing, after the end of the stream.
    pub fn partial(&self) -> Option<&Partial> {
        self.reader.partial()
    }
}
