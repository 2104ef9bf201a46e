//! The incremental reader: bytes in, items out. This file has the interface; the state between blocks is `core`'s, the
//! way from one item to the next `advance`'s, and the hot loop over events `events`'.
//!
//! Memory: the bytes that were fed and not yet used (at most one block, if the caller asks for items after every
//! feed), the definitions, the stacks since the last sequence point; all of it within [`Limits`].

mod advance;
mod core;
mod counts;
mod events;
mod in_order;
mod items;
mod open;
mod part;

use runtap_wire::Deframer;

pub(crate) use self::core::Core;
pub use self::counts::Counts;
pub use self::in_order::InOrder;
pub use self::items::Items;
use crate::{Error, Item, Limits, Metadata, Partial, TraceHeader};

/// Reads a stream, piece by piece.
///
/// ```
/// use runtap_nettrace::{Item, Reader};
///
/// # fn chunks() -> Vec<Vec<u8>> { vec![b"Nettrace\x14\0\0\0!FastSeria".to_vec(), b"lization.1\x01".to_vec()] }
/// let mut reader = Reader::new();
/// let mut events = 0;
/// for chunk in chunks() {
///     reader.feed(&chunk);
///     while let Some(item) = reader.next()? {
///         if let Item::Event(_) = item {
///             events += 1;
///         }
///     }
/// }
/// reader.finish();
/// while let Some(_rest_of_a_cut_stream) = reader.next()? {}
/// assert!(reader.is_complete() && reader.partial().is_none());
/// # Ok::<(), runtap_nettrace::Error>(())
/// ```
///
/// [`Self::items`] does the same without copying what it is given, and is the fastest way through a whole file.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    core: Core,
    queue: Deframer,
}

impl Reader {
    /// A reader with default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader with limits of its own.
    pub fn with_limits(limits: Limits) -> Self {
        Self { core: Core::new(limits), queue: Deframer::new() }
    }

    /// Takes in the next bytes of the stream. Call [`Self::next`] until it gives `None` before the next feed, else
    /// the bytes pile up. Does nothing after [`Self::finish`] or an error that cannot be repaired.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.core.accepts(bytes.len()) {
            self.queue.consume(self.core.shift());
            self.queue.feed(bytes);
        }
    }

    /// Takes in the next bytes of the stream and gives its items one by one, from where they lie: only what belongs to
    /// an item that is not whole yet is copied, and kept for the next call. What the caller leaves in [`Items`] is
    /// copied too.
    ///
    /// ```
    /// use runtap_nettrace::{Item, Reader};
    ///
    /// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
    /// let mut reader = Reader::new();
    /// let mut events = 0;
    /// reader.items(file).for_each(|item| {
    ///     if let Item::Event(_) = item {
    ///         events += 1;
    ///     }
    /// })?;
    /// reader.finish();
    /// reader.items(&[]).for_each(|_rest_of_a_cut_stream| {})?;
    /// # assert!(reader.is_complete());
    /// # Ok::<(), runtap_nettrace::Error>(())
    /// ```
    pub fn items<'a>(&'a mut self, bytes: &'a [u8]) -> Items<'a> {
        Items::new(self, bytes)
    }

    /// Says that no more bytes will come. [`Self::next`] then gives what can be read of a block that is cut.
    pub fn finish(&mut self) {
        self.core.finish();
    }

    /// The next item. `None` means that more bytes are needed; after [`Self::finish`] and after an error that
    /// cannot be repaired it means that there is nothing more.
    ///
    /// Everything in front of a damaged place was delivered when its error comes. An error inside a block is
    /// returned once, and the next call goes on behind that block; after one between blocks, every further call
    /// gives `None`. [`Self::partial`] remembers the first.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let window = self.queue.pending();
        let step = self.core.step(window)?;
        Ok(self.core.item(step, window))
    }

    /// What the stream says about itself, once that was read.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.core.header.as_ref()
    }

    /// Stream offset in bytes of what is read next.
    pub fn offset(&self) -> u64 {
        self.core.offset()
    }

    /// Whether the end marker was seen.
    pub fn is_complete(&self) -> bool {
        self.core.complete
    }

    /// Why the stream is not whole. Known after an error, or when [`Self::next`] gave `None` after
    /// [`Self::finish`].
    pub fn partial(&self) -> Option<&Partial> {
        self.core.partial.as_ref()
    }

    /// Events that the runtime dropped, at least: as gaps in the sequence numbers show. Losses after a thread's last event or
    /// sequence point, (but in Nettrace 6) before its first one, and of a thread that never got a buffer leave no gap.
    /// `NetPerf` has no sequence numbers.
    pub fn lost(&self) -> u64 {
        self.core.sequences.lost()
    }

    /// The definition of `id`, if the stream has brought one so far.
    pub fn metadata(&self, id: u32) -> Option<&Metadata> {
        self.core.tables.metadata.get(id)
    }

    /// Oddities so far.
    pub fn counts(&self) -> Counts {
        Counts { stacks: self.core.tables.stacks.defined(), ..self.core.counts.clone() }
    }
}
