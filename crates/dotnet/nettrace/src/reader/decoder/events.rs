//! The hot path of the reader: from one event of a block to the next.

use super::{Decoder, DecoderState, Step};
use crate::block::blob::flag;
use crate::raw::Format;
use crate::{Error, StreamItem};

impl Decoder {
    /// Advances to the next event of the current block. `false` if there is none, it cannot be read, or its id has no
    /// definition.
    #[inline]
    pub(super) fn next_event(&mut self, window: &[u8]) -> bool {
        let block = self.payload(window);
        let start = self.blobs.position();
        // `next_event_or_close` reads the event again to report the fault.
        let advanced = match self.framing.format() {
            Format::Nettrace6 => self.blobs.advance::<true>(block),
            _ => self.blobs.advance::<false>(block),
        };
        if !matches!(advanced, Ok(true)) {
            return false;
        }
        let head = &self.blobs.head;
        if self.tables.metadata.get(head.metadata_id).is_none() {
            self.undefined = Some(start);
            return false;
        }
        self.sequences.event(head.capture_thread_id, head.sequence);
        true
    }

    /// Passes all items of the window to `visit`.
    #[inline]
    pub(in crate::reader) fn for_each(
        &mut self,
        window: &[u8],
        visit: &mut impl FnMut(StreamItem<'_>),
    ) -> Result<(), Error> {
        loop {
            if matches!(self.state, DecoderState::Events { .. }) {
                match self.framing.format() {
                    Format::Nettrace6 => self.all_events::<true>(window, visit),
                    _ => self.all_events::<false>(window, visit),
                }
            }
            match self.advance(window)? {
                Step::NeedsInput => return Ok(()),
                step => {
                    if let Some(item) = self.item(step, window) {
                        visit(item);
                    }
                }
            }
        }
    }

    /// Passes the events of the current block to `visit`, until the end of the block or an event that cannot be read or
    /// has no definition.
    ///
    /// Equivalent to [`Self::next_event`] and [`Self::item`], but keeps all changing values in local variables, and looks
    /// up what an event refers to only if the reference differs from that of the previous event.
    #[inline(never)]
    fn all_events<const V6: bool>(&mut self, window: &[u8], visit: &mut impl FnMut(StreamItem<'_>)) {
        let block = window.get(self.at..).and_then(|pending| pending.get(..self.block)).unwrap_or_default();
        let Self { blobs, tables, sequences, undefined, .. } = self;
        let tables = &*tables;
        let mut head = blobs.head;
        let mut next = blobs.place.next();
        let quick_part = blobs.quick_part(block);
        let mut metadata = tables.metadata.get(head.metadata_id);
        let mut threads = [head.thread_id, head.capture_thread_id]
            .map(|index| if V6 { tables.threads.get(index) } else { None });
        let mut labels = tables.labels.list(head.label_list_id);
        // Whether the previous event was counted; an event without a number of its own then follows it.
        let mut counted = false;
        loop {
            let (before, start) = (head.sequence, next);
            let rest = quick_part.get(next..).unwrap_or_default();
            let (flags, payload) = if let Some((flags, length, payload)) = head.read_quickly::<V6>(rest) {
                next += length + payload.len();
                (flags, payload)
            } else if next < block.len()
                && let Ok(cursor) = blobs.at(head, next).advance_carefully::<V6>(block)
            {
                // By value: an argument passed by reference to a function that is not inlined must be in memory.
                head = cursor.head;
                next = cursor.place.next();
                (cursor.place.flags, cursor.place.payload(block))
            } else {
                if counted {
                    sequences.run_to(before);
                }
                break;
            };
            if flags & flag::METADATA_ID != 0 {
                metadata = tables.metadata.get(head.metadata_id);
            }
            if metadata.is_none() {
                if counted {
                    sequences.run_to(before);
                }
                *undefined = Some(start);
                break;
            }
            if !counted || flags & flag::CAPTURE_THREAD != 0 {
                if counted {
                    sequences.run_to(before);
                }
                counted = true;
                sequences.event(head.capture_thread_id, head.sequence);
            }
            let event = if V6 {
                if flags & flag::THREAD_ID != 0 {
                    threads[0] = tables.threads.get(head.thread_id);
                }
                if flags & flag::CAPTURE_THREAD != 0 {
                    threads[1] = tables.threads.get(head.capture_thread_id);
                }
                if flags & flag::LABEL_LIST_ID != 0 {
                    labels = tables.labels.list(head.label_list_id);
                }
                tables.event_v6(&head, metadata, threads, labels, payload)
            } else {
                tables.event_v4(&head, metadata, payload)
            };
            visit(StreamItem::Event(event));
        }
        *blobs = blobs.at(head, next);
    }
}
