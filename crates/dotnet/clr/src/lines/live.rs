//! The events of a stream that goes on, as lines: bytes in, lines out, as soon as their order is certain.

use std::io::{self, Write};

use runtap_nettrace::{InOrder, Item, Partial};

use super::{Lines, Matched};

/// Reads a stream piece by piece and writes its events as lines.
#[derive(Debug)]
pub struct Live<W> {
    reader: InOrder,
    lines: Lines<W>,
}

impl<W: Write> Live<W> {
    /// Nothing read yet.
    pub fn new(lines: Lines<W>) -> Self {
        Self { reader: InOrder::new(), lines }
    }

    /// Takes the next bytes of the stream, and writes what can be written by now; `see` sees all that is read.
    ///
    /// # Errors
    /// As writing has.
    pub fn feed(&mut self, bytes: &[u8], see: impl FnMut(&Item<'_>)) -> io::Result<()> {
        self.reader.feed(bytes);
        self.write(see)
    }

    /// Nothing older comes: what waits for its turn is written.
    ///
    /// # Errors
    /// As writing has.
    pub fn nothing_older_comes(&mut self, see: impl FnMut(&Item<'_>)) -> io::Result<()> {
        self.reader.release_all();
        self.write(see)
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// As writing has.
    pub fn finish(&mut self, see: impl FnMut(&Item<'_>)) -> io::Result<()> {
        self.reader.finish();
        self.write(see)
    }

    /// The reader goes on behind a damaged block, and remembers the damage.
    fn write(&mut self, mut see: impl FnMut(&Item<'_>)) -> io::Result<()> {
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

    /// How many of the events so far were written, and which names of the choice nothing has.
    pub fn matched(&self) -> Matched {
        self.lines.matched()
    }

    /// Events that the target dropped.
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }

    /// What is missing, after the end.
    pub fn partial(&self) -> Option<&Partial> {
        self.reader.partial()
    }
}
