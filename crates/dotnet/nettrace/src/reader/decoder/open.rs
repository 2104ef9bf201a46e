//! Adds the contents of a complete block to the tables, and determines where reading continues in a block with several
//! items. Does not consume bytes of the stream.

use runtap_wire::{DecodeError, Reader as Bytes};

use super::{Decoder, DecoderState, Step, Tables};
use crate::block::blob::Blobs;
use crate::block::point::removed_thread;
use crate::raw::{Format, ObjectKind};
use crate::{Error, SequencePoint, Thread, TraceHeader};

impl Decoder {
    /// Reads a complete payload, or the start of a payload with several items.
    pub(super) fn open(
        &mut self,
        window: &[u8],
        kind: ObjectKind,
        version: u32,
        size: usize,
    ) -> Result<Step, Error> {
        let offset = self.here();
        let Some(payload) = self.pending(window).get(..size) else { return Ok(Step::NeedsInput) };
        if !self.held_back {
            self.removed.drain().for_each(|index| self.tables.threads.remove(index));
        } else if self.tables.are_changed_by(kind, Bytes::at(payload, offset)) {
            return Ok(Step::Waiting);
        }
        self.block = size;
        self.row = 0;
        let mut r = Bytes::at(payload, offset);
        match self.open_payload(&mut r, kind, version) {
            Ok((state, step)) => {
                self.state = state;
                match (state, step) {
                    (DecoderState::Between, Step::Continue) => self.at += size,
                    (DecoderState::Between | DecoderState::Unframed, _) => self.release = size,
                    _ => {}
                }
                Ok(step)
            }
            // Nothing can be read without the pointer size and the clock.
            Err(error) if kind == ObjectKind::Trace => Err(self.give_up(window, offset, error.into())),
            Err(error) => {
                self.definitions_lost |= kind == ObjectKind::Metadata;
                Err(self.leave_block(window, offset, error, false))
            }
        }
    }

    /// Returns where reading continues, and what was read.
    fn open_payload(
        &mut self,
        r: &mut Bytes<'_>,
        kind: ObjectKind,
        version: u32,
    ) -> Result<(DecoderState, Step), DecodeError> {
        let format = self.framing.format();
        let step = match kind {
            ObjectKind::Trace => {
                let header = TraceHeader::decode(r, format, version)?;
                self.tables.stacks.set_pointer_size(header.pointer_size);
                if format == Format::Nettrace6 {
                    self.sequences.threads_are_introduced();
                }
                self.header = Some(header);
                let bare = format == Format::NetPerf1;
                return Ok((if bare { DecoderState::Unframed } else { DecoderState::Between }, Step::Header));
            }
            ObjectKind::Event if format == Format::NetPerf3 => {
                return Ok((DecoderState::NetPerf { truncated: false }, Step::Continue));
            }
            ObjectKind::Event => {
                self.blobs = Blobs::start(r.rest(), r.offset())?;
                return Ok((DecoderState::Events { truncated: false }, Step::Continue));
            }
            ObjectKind::Metadata if format == Format::Nettrace6 => {
                let header = usize::from(r.u16("size of the block header")?);
                r.bytes(header, "block header")?;
                self.row = 2 + header;
                return Ok((DecoderState::Rows, Step::Continue));
            }
            ObjectKind::Metadata => {
                self.blobs = Blobs::start(r.rest(), r.offset())?;
                return Ok((DecoderState::Definitions, Step::Continue));
            }
            ObjectKind::Stack => {
                self.tables.stacks.add_block(r, self.limits.max_stack_bytes)?;
                Step::Continue
            }
            ObjectKind::LabelList => {
                let known = self.tables.labels.add_block(r, self.limits.max_label_bytes)?;
                self.counts.unknown_labels += u64::from(!known);
                Step::Continue
            }
            ObjectKind::SequencePoint => {
                // Ids are reassigned, even if the rest of the point is invalid.
                self.tables.stacks.next_epoch();
                self.tables.labels.next_epoch();
                self.sequence_point(r, format)?;
                Step::SequencePoint
            }
            ObjectKind::Thread => {
                self.introduce_threads(r)?;
                Step::Continue
            }
            ObjectKind::RemoveThread => {
                while !r.is_empty() {
                    let (index, sequence) = removed_thread(r)?;
                    self.sequences.remove(index, sequence);
                    if !self.held_back {
                        self.tables.threads.remove(index);
                    } else if self.tables.threads.get(index).is_some() {
                        self.removed.insert(index);
                    }
                }
                Step::Continue
            }
            // Unreachable.
            ObjectKind::Unknown => Step::Continue,
        };
        Ok((DecoderState::Between, step))
    }

    fn sequence_point(&mut self, r: &mut Bytes<'_>, format: Format) -> Result<(), DecodeError> {
        let point = SequencePoint::decode(r, format)?;
        for (thread, sequence) in point.threads.iter() {
            self.sequences.point(thread, sequence);
        }
        if point.flushes_threads() {
            self.sequences.clear();
            self.tables.threads.clear();
        }
        if point.flushes_metadata() {
            self.tables.metadata.clear();
        }
        Ok(())
    }

    fn introduce_threads(&mut self, r: &mut Bytes<'_>) -> Result<(), DecodeError> {
        while !r.is_empty() {
            let size = usize::from(r.u16("size of a thread")?);
            let row = r.sub(size, "thread")?;
            let offset = row.offset();
            let Ok(thread) = Thread::decode(row) else {
                self.counts.damaged_threads += 1;
                continue;
            };
            let index = thread.index;
            match self.tables.threads.insert(thread, size, self.limits.max_thread_bytes) {
                // The event numbers continue: a writer may describe a known thread again.
                Ok(true) => self.counts.redefined_threads += 1,
                Ok(false) => self.sequences.introduce(index),
                Err(kind) => return Err(DecodeError::new(offset, "threads", kind)),
            }
        }
        Ok(())
    }
}

impl Tables {
    /// Returns whether a block would remove or replace an entry of these tables.
    fn are_changed_by(&self, kind: ObjectKind, mut r: Bytes<'_>) -> bool {
        match kind {
            ObjectKind::SequencePoint => true,
            ObjectKind::Stack => ids(&mut r).is_some_and(|mut ids| ids.any(|id| self.stacks.is_defined(id))),
            ObjectKind::LabelList => {
                ids(&mut r).is_some_and(|mut ids| ids.any(|id| self.labels.is_defined(id)))
            }
            ObjectKind::Thread => std::iter::from_fn(|| {
                let size = usize::from(r.u16("size of a thread").ok()?);
                r.sub(size, "thread").ok()?.varu64("thread index").ok()
            })
            .any(|index| self.threads.get(index).is_some()),
            _ => false,
        }
    }
}

/// Returns the ids that a block of stacks or labels assigns; at most one per byte of the block.
fn ids(r: &mut Bytes<'_>) -> Option<impl Iterator<Item = u32>> {
    let first = r.u32("first id").ok()?;
    let count = r.u32("count").ok()?.min(u32::try_from(r.remaining()).unwrap_or(u32::MAX));
    Some((0..count).map(move |n| first.wrapping_add(n)))
}
