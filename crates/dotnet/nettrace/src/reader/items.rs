//! Items from bytes that stay where they are. Owns the decision which bytes are copied: those of an item that began in
//! one piece and ends in another.

use super::Reader;
use super::core::Step;
use crate::{Error, Item, TraceHeader};

/// The items of a piece of a stream; see [`Reader::items`].
#[derive(Debug)]
pub struct Items<'a> {
    reader: &'a mut Reader,
    bytes: &'a [u8],
    /// How many of `bytes` are in the reader's queue, or were read before it was empty.
    used: usize,
    /// Whether items come from `bytes` itself, from `used` on, and not from the queue.
    direct: bool,
}

impl<'a> Items<'a> {
    pub(super) fn new(reader: &'a mut Reader, bytes: &'a [u8]) -> Self {
        let mut items = Self { reader, bytes, used: 0, direct: false };
        items.reader.queue.consume(items.reader.core.shift());
        if !items.reader.core.accepts(bytes.len()) {
            items.used = bytes.len();
        } else if items.reader.queue.pending().is_empty() {
            items.direct = true;
        }
        items
    }

    /// The next item, as [`Reader::next`] gives it. `None` means that the bytes are used up.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let step = loop {
            let window = window(self.direct, self.bytes, self.used, &self.reader.queue);
            match self.reader.core.step(window)? {
                Step::Starved if self.more() => {}
                step => break step,
            }
        };
        Ok(self.reader.core.item(step, window(self.direct, self.bytes, self.used, &self.reader.queue)))
    }

    /// Hands all items to `visit`. An error is one of [`Reader::next`]; call it again to go on behind the damage.
    #[inline]
    pub fn for_each(&mut self, mut visit: impl FnMut(Item<'_>)) -> Result<(), Error> {
        loop {
            let window = window(self.direct, self.bytes, self.used, &self.reader.queue);
            self.reader.core.for_each(window, &mut visit)?;
            if !self.more() {
                return Ok(());
            }
        }
    }

    /// [`Reader::header`].
    pub fn header(&self) -> Option<&TraceHeader> {
        self.reader.header()
    }

    /// The reader needs more than it has: gets it some. `false` if there is nothing more.
    fn more(&mut self) -> bool {
        if self.direct || self.used >= self.bytes.len() {
            return false;
        }
        let Reader { core, queue } = &mut *self.reader;
        queue.consume(core.shift());
        let pending = queue.pending().len();
        if pending == 0 {
            self.direct = true;
            return true;
        }
        // No more than completes what is in the queue, so that the next item is read where it lies.
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let piece = rest.get(..core.wanted(pending)).unwrap_or(rest);
        queue.feed(piece);
        self.used += piece.len();
        true
    }
}

/// Where the reader reads.
#[inline]
fn window<'a>(direct: bool, bytes: &'a [u8], used: usize, queue: &'a runtap_wire::Deframer) -> &'a [u8] {
    if direct { bytes.get(used..).unwrap_or_default() } else { queue.pending() }
}

impl Drop for Items<'_> {
    fn drop(&mut self) {
        let Reader { core, queue } = &mut *self.reader;
        let shifted = core.shift();
        let rest = if self.direct {
            self.bytes.get(self.used.saturating_add(shifted)..)
        } else {
            queue.consume(shifted);
            self.bytes.get(self.used..)
        };
        let rest = rest.unwrap_or_default();
        if core.accepts(rest.len()) {
            queue.feed(rest);
        }
    }
}
