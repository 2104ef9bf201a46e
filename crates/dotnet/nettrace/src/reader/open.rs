//! What a whole block puts into the tables, and where reading goes on in one that holds several items. Refuses to take
//! anything off the stream.

use runtap_wire::{DecodeError, Reader as Bytes};

use super::core::{Core, State, Step, Tables};
use crate::block::blob::Blobs;
use crate::block::point::removed_thread;
use crate::raw::{Format, Kind};
use crate::{Error, SequencePoint, Thread, TraceHeader};

impl Core {
    /// Reads a payload, or the first bytes of one that holds several items, if it is there as a whole.
    pub(super) fn open(
        &mut self,
        window: &[u8],
        kind: Kind,
        version: u32,
        size: usize,
    ) -> Result<Step, Error> {
        let offset = self.here();
        let Some(payload) = self.pending(window).get(..size) else { return Ok(Step::Starved) };
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
                    (State::Between, Step::Again) => self.at += size,
                    (State::Between | State::Bare, _) => self.release = size,
                    _ => {}
                }
                Ok(step)
            }
            // Nothing can be read without the pointer size and the clock.
            Err(error) if kind == Kind::Trace => Err(self.give_up(window, offset, error.into())),
            Err(error) => {
                self.definitions_lost |= kind == Kind::Metadata;
                Err(self.leave_block(window, offset, error, false))
            }
        }
    }

    /// Where reading goes on, and what was read.
    fn open_payload(
        &mut self,
        r: &mut Bytes<'_>,
        kind: Kind,
        version: u32,
    ) -> Result<(State, Step), DecodeError> {
        let format = self.framing.format();
        let step = match kind {
            Kind::Trace => {
                let header = TraceHeader::decode(r, format, version)?;
                self.tables.stacks.set_pointer_size(header.pointer_size);
                if format == Format::Nettrace6 {
                    self.sequences.threads_are_introduced();
                }
                self.header = Some(header);
                let bare = format == Format::NetPerf1;
                return Ok((if bare { State::Bare } else { State::Between }, Step::Header));
            }
            Kind::Event if format == Format::NetPerf3 => {
                return Ok((State::NetPerf { cut: false }, Step::Again));
            }
            Kind::Event => {
                self.blobs = Blobs::start(r.rest(), r.offset())?;
                return Ok((State::Events { cut: false }, Step::Again));
            }
            Kind::Metadata if format == Format::Nettrace6 => {
                let header = usize::from(r.u16("size of the block header")?);
                r.bytes(header, "block header")?;
                self.row = 2 + header;
                return Ok((State::Rows, Step::Again));
            }
            Kind::Metadata => {
                self.blobs = Blobs::start(r.rest(), r.offset())?;
                return Ok((State::Definitions, Step::Again));
            }
            Kind::Stack => {
                self.tables.stacks.add_block(r, self.limits.max_stack_bytes)?;
                Step::Again
            }
            Kind::LabelList => {
                let known = self.tables.labels.add_block(r, self.limits.max_label_bytes)?;
                self.counts.unknown_labels += u64::from(!known);
                Step::Again
            }
            Kind::SequencePoint => {
                // Whatever is wrong with the rest of it, ids start anew.
                self.tables.stacks.next_epoch();
                self.tables.labels.next_epoch();
                self.sequence_point(r, format)?;
                Step::SequencePoint
            }
            Kind::Thread => {
                self.introduce_threads(r)?;
                Step::Again
            }
            Kind::RemoveThread => {
                while !r.is_empty() {
                    let (index, sequence) = removed_thread(r)?;
                    self.sequences.remove(index, sequence);
                    if !self.held_back {
                        self.tables.threads.remove(index);
                    } else if self.tables.threads.get(index).is_some() {
                        self.removed.insert(index);
                    }
                }
                Step::Again
            }
            // Never gets here.
            Kind::Unknown => Step::Again,
        };
        Ok((State::Between, step))
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
                // The numbers of its events go on: a writer may say more about a thread that is there.
                Ok(true) => self.counts.redefined_threads += 1,
                Ok(false) => self.sequences.introduce(index),
                Err(kind) => return Err(DecodeError::new(offset, "threads", kind)),
            }
        }
        Ok(())
    }
}

impl Tables {
    /// Whether a block of these takes away what it finds here, or puts something else in its place.
    fn are_changed_by(&self, kind: Kind, mut r: Bytes<'_>) -> bool {
        match kind {
            Kind::SequencePoint => true,
            Kind::Stack => ids(&mut r).is_some_and(|mut ids| ids.any(|id| self.stacks.is_defined(id))),
            Kind::LabelList => ids(&mut r).is_some_and(|mut ids| ids.any(|id| self.labels.is_defined(id))),
            Kind::Thread => std::iter::from_fn(|| {
                let size = usize::from(r.u16("size of a thread").ok()?);
                r.sub(size, "thread").ok()?.varu64("thread index").ok()
            })
            .any(|index| self.threads.get(index).is_some()),
            _ => false,
        }
    }
}

/// The ids that a block of stacks or labels gives out; at most one a byte of it.
fn ids(r: &mut Bytes<'_>) -> Option<impl Iterator<Item = u32>> {
    let first = r.u32("first id").ok()?;
    let count = r.u32("count").ok()?.min(u32::try_from(r.remaining()).unwrap_or(u32::MAX));
    Some((0..count).map(move |n| first.wrapping_add(n)))
}
