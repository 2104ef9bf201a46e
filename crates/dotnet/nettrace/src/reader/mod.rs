//! The incremental reader. This file has the public interface; `decoder` has the state between blocks and, in its modules, the
//! steps from one item to the next (`advance`) and the hot loop over events (`events`).
//!
//! Memory: the bytes that were fed and not yet used (at most one block, if the caller requests items after every
//! feed), the definitions, and the stacks since the last sequence point; all within [`Limits`].

mod counts;
mod decoder;
mod in_order;
mod items;

use runtap_wire::Deframer;

pub use self::counts::Counts;
pub(crate) use self::decoder::Decoder;
pub use self::in_order::InOrder;
pub use self::items::Items;
use crate::{Error, Limits, Metadata, Partial, StreamItem, TraceHeader};

/// Reads a stream incrementally.
///
/// ```
/// use runtap_nettrace::{Reader, StreamItem};
///
/// # fn chunks() -> Vec<Vec<u8>> { vec![b"Nettrace\x14\0\0\0!FastSeria".to_vec(), b"lization.1\x01".to_vec()] }
/// let mut reader = Reader::new();
/// let mut events = 0;
/// for chunk in chunks() {
///     reader.feed(&chunk);
///     while let Some(item) = reader.next()? {
///         if let StreamItem::Event(_) = item {
///             events += 1;
///         }
///     }
/// }
/// reader.finish();
/// while let Some(_rest_of_a_truncated_stream) = reader.next()? {}
/// assert!(reader.is_complete() && reader.partial().is_none());
/// # Ok::<(), runtap_nettrace::Error>(())
/// ```
///
/// [`Self::items`] does so without copying its input, and is the fastest way to read a whole file.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    decoder: Decoder,
    queue: Deframer,
}

impl Reader {
    /// Creates a reader with default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader with custom limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { decoder: Decoder::new(limits), queue: Deframer::new() }
    }

    /// Appends the next bytes of the stream. Call [`Self::next`] until it returns `None` before the next call, or the bytes
    /// accumulate. Does nothing after [`Self::finish`] or an error that cannot be repaired.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.decoder.accepts(bytes.len()) {
            self.queue.consume(self.decoder.shift());
            self.queue.feed(bytes);
        }
    }

    /// Appends the next bytes of the stream and returns its items one by one without copying the bytes: only the bytes of an
    /// incomplete item are copied, and kept for the next call. If [`Items`] is dropped before its end, the remaining bytes
    /// are copied, too.
    ///
    /// ```
    /// use runtap_nettrace::{Reader, StreamItem};
    ///
    /// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
    /// let mut reader = Reader::new();
    /// let mut events = 0;
    /// reader.items(file).for_each(|item| {
    ///     if let StreamItem::Event(_) = item {
    ///         events += 1;
    ///     }
    /// })?;
    /// reader.finish();
    /// reader.items(&[]).for_each(|_rest_of_a_truncated_stream| {})?;
    /// # assert!(reader.is_complete());
    /// # Ok::<(), runtap_nettrace::Error>(())
    /// ```
    pub fn items<'a>(&'a mut self, bytes: &'a [u8]) -> Items<'a> {
        Items::new(self, bytes)
    }

    /// Marks the end of the stream. [`Self::next`] then returns what can be read of a truncated block.
    pub fn finish(&mut self) {
        self.decoder.finish();
    }

    /// Returns the next item. `None` means that more bytes are needed; after [`Self::finish`] and after an error that
    /// cannot be repaired it means the end.
    ///
    /// All items before the damage are returned before its error. An error inside a block is returned once, and the next
    /// call continues after that block; after an error between blocks, every further call returns `None`.
    /// [`Self::partial`] returns the first error.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<StreamItem<'_>>, Error> {
        let window = self.queue.pending();
        let step = self.decoder.step(window)?;
        Ok(self.decoder.item(step, window))
    }

    /// Returns the header. `None` until it was read.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.decoder.header()
    }

    /// Returns the stream offset in bytes of the next data to read.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Returns whether the end marker was found.
    pub fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Returns why the stream is incomplete. Known after an error, or after [`Self::next`] returned `None` after
    /// [`Self::finish`].
    pub fn partial(&self) -> Option<&Partial> {
        self.decoder.partial()
    }

    /// Returns the least number of events that the runtime dropped, according to gaps in the sequence numbers. There is no
    /// gap after a thread's last event or sequence point, before its first one (except in Nettrace 6), and for a thread that
    /// never got a buffer. `NetPerf` has no sequence numbers.
    pub fn lost(&self) -> u64 {
        self.decoder.lost()
    }

    /// Returns the latest definition of `id`. `None` if the stream had none so far.
    pub fn metadata(&self, id: u32) -> Option<&Metadata> {
        self.decoder.metadata(id)
    }

    /// Returns the counts of unusual data so far.
    pub fn counts(&self) -> Counts {
        self.decoder.counts()
    }
}
