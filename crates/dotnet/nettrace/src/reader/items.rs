//! Items from bytes that are borrowed. Only the bytes of an item that spans two pieces are copied.

use super::Reader;
use super::decoder::Step;
use crate::{Error, StreamItem, TraceHeader};

/// The items of a piece of a stream, created by [`Reader::items`].
#[derive(Debug)]
pub struct Items<'a> {
    reader: &'a mut Reader,
    bytes: &'a [u8],
    /// The number of `bytes` that are in the reader's queue, or were read before it was empty.
    used: usize,
    /// Whether items are read from `bytes`, from `used` on, instead of from the queue.
    direct: bool,
}

impl<'a> Items<'a> {
    pub(super) fn new(reader: &'a mut Reader, bytes: &'a [u8]) -> Self {
        let mut items = Self { reader, bytes, used: 0, direct: false };
        items.reader.queue.consume(items.reader.decoder.shift());
        if !items.reader.decoder.accepts(bytes.len()) {
            items.used = bytes.len();
        } else if items.reader.queue.pending().is_empty() {
            items.direct = true;
        }
        items
    }

    /// Returns the next item, like [`Reader::next`]. `None` means that the bytes are consumed.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<StreamItem<'_>>, Error> {
        let step = loop {
            let window = window(self.direct, self.bytes, self.used, &self.reader.queue);
            match self.reader.decoder.step(window)? {
                Step::NeedsInput if self.more() => {}
                step => break step,
            }
        };
        Ok(self.reader.decoder.item(step, window(self.direct, self.bytes, self.used, &self.reader.queue)))
    }

    /// Passes all items to `visit`. Errors are those of [`Reader::next`]; call this again to continue after the damage.
    #[inline]
    pub fn for_each(&mut self, mut visit: impl FnMut(StreamItem<'_>)) -> Result<(), Error> {
        loop {
            let window = window(self.direct, self.bytes, self.used, &self.reader.queue);
            self.reader.decoder.for_each(window, &mut visit)?;
            if !self.more() {
                return Ok(());
            }
        }
    }

    /// Returns the header; see [`Reader::header`].
    pub fn header(&self) -> Option<&TraceHeader> {
        self.reader.header()
    }

    /// Provides more bytes to the reader. `false` if there are none.
    fn more(&mut self) -> bool {
        if self.direct || self.used >= self.bytes.len() {
            return false;
        }
        let Reader { decoder, queue } = &mut *self.reader;
        queue.consume(decoder.shift());
        let pending = queue.pending().len();
        if pending == 0 {
            self.direct = true;
            return true;
        }
        // Add only what completes the data in the queue, so that the next item is read in place.
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let piece = rest.get(..decoder.wanted(pending)).unwrap_or(rest);
        queue.feed(piece);
        self.used += piece.len();
        true
    }
}

/// Returns the window of the reader.
#[inline]
fn window<'a>(direct: bool, bytes: &'a [u8], used: usize, queue: &'a runtap_wire::Deframer) -> &'a [u8] {
    if direct { bytes.get(used..).unwrap_or_default() } else { queue.pending() }
}

impl Drop for Items<'_> {
    fn drop(&mut self) {
        let Reader { decoder, queue } = &mut *self.reader;
        let shifted = decoder.shift();
        let rest = if self.direct {
            self.bytes.get(self.used.saturating_add(shifted)..)
        } else {
            queue.consume(shifted);
            self.bytes.get(self.used..)
        };
        let rest = rest.unwrap_or_default();
        if decoder.accepts(rest.len()) {
            queue.feed(rest);
        }
    }
}
