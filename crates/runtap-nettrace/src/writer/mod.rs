//! The writer of Nettrace 4: events in, bytes out, as the runtime itself writes them and Microsoft's tools read
//! them. Source: nettrace format, sections of the blocks. It does not put events into order, and it counts no time.

mod block;

use std::collections::BTreeMap;

use runtap_wire::{Uuid, Writer as Bytes};
use thiserror::Error;

use self::block::{BlobBlock, StackBlock};
use crate::metadata::Unwritable;
use crate::raw::envelope::{self, name};
use crate::{Metadata, TraceHeader};

/// Most bytes in the payload of an event; the runtime has the same limit.
pub const MAX_PAYLOAD: usize = 64 << 10;
/// Most frames of a stack that are kept; the runtime has the same limit. Deeper ones lose frames at the root.
pub const MAX_STACK_DEPTH: usize = 100;

/// A block is written when the next event would take it beyond this, as the runtime does.
const BLOCK_TARGET: usize = 100 << 10;
/// Bytes of blocks after which the runtime makes a sequence point.
const SEQUENCE_POINT_EVERY: u64 = 10 << 20;

/// Writes a stream: a header, definitions, events, and at last an end marker.
///
/// Events come in *runs*: one event, then later ones of the same capture thread. Times may not go back inside a
/// run, nor from the start of one run to the start of the next. Events whose times never go back at all satisfy
/// that.
///
/// ```
/// use runtap_nettrace::{EventToWrite, Metadata, TraceHeader, Writer};
///
/// let mut header = TraceHeader::new(1_700_000_000_000_000_000, 1_000, 1_000_000_000);
/// header.process_id = 42;
/// let mut writer = Writer::new(&header);
/// let tick = writer.define_event(&Metadata::new("Demo", 1, "Tick"))?;
/// let mut event = EventToWrite { metadata_id: tick, thread_id: 7, capture_thread_id: 7, ..Default::default() };
/// event.timestamp = 2_000;
/// writer.event(&event)?;
/// writer.flush();
/// let sent_now = writer.take_output();
/// let sent_later = writer.finish();
/// # assert!(sent_now.starts_with(b"Nettrace") && sent_later.ends_with(&[6, 1]));
/// # Ok::<(), runtap_nettrace::WriteError>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    output: Bytes,
    /// Stream offset of the first byte of `output`.
    taken: u64,
    /// Number of bytes of blocks at the last sequence point.
    last_point: u64,
    pointer_size: u32,
    definitions: BlobBlock,
    next_metadata_id: u32,
    stacks: StackBlock,
    events: BlobBlock,
    /// The last sequence number of every capture thread.
    threads: BTreeMap<u64, u32>,
    /// Capture thread of the run at hand and time of its last event.
    run: Option<(u64, u64)>,
    /// No run may start before this.
    floor: u64,
    latest: u64,
}

/// An event for [`Writer::event`].
#[derive(Debug, Clone, Copy, Default)]
pub struct EventToWrite<'a> {
    /// What [`Writer::define_event`] returned.
    pub metadata_id: u32,
    /// The thread that the event is about.
    pub thread_id: u64,
    /// The thread that writes the event.
    pub capture_thread_id: u64,
    /// Number of the event among those of its capture thread; `None` takes the next one, which begins at 1. A gap
    /// says that events were dropped.
    pub sequence: Option<u32>,
    /// Processor; `u32::MAX` if not known.
    pub processor: u32,
    /// Instruction pointers from the leaf to the root.
    pub stack: &'a [u64],
    /// Ticks of the clock that the header names.
    pub timestamp: u64,
    /// The activity that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that started that one.
    pub related_activity_id: Option<Uuid>,
    /// The fields, at most [`MAX_PAYLOAD`] bytes.
    pub payload: &'a [u8],
}

/// What cannot be written. The stream is as if the call had not been.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A payload or a definition is too large.
    #[error("{what} has {size} bytes, more than {limit}")]
    TooLarge {
        /// Which of the two.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The largest that can be written.
        limit: usize,
    },
    /// An event names a definition that was not made.
    #[error("metadata id {id} is not defined")]
    UnknownMetadata {
        /// The id.
        id: u32,
    },
    /// Names end with the first NUL, so that they cannot have one.
    #[error("a name contains a NUL character")]
    NulInName,
    /// A field has a type that the version of the format does not know.
    #[error("field type {code} is not known in this version of the format")]
    FieldType {
        /// Its code.
        code: u32,
    },
    /// A stack of a 32-bit target has a wider address.
    #[error("address {address:#x} does not fit into 32 bits")]
    WideAddress {
        /// The address.
        address: u64,
    },
    /// The event is older than what was written before allows.
    #[error("time stamp {timestamp} is before {least}")]
    TimeGoesBack {
        /// Time stamp of the event.
        timestamp: u64,
        /// The least that could be written here.
        least: u64,
    },
}

impl WriteError {
    fn definition(why: &Unwritable, size: usize, limit: usize) -> Self {
        match why {
            Unwritable::Nul => Self::NulInName,
            Unwritable::Type(code) => Self::FieldType { code: *code },
            Unwritable::TooLong => Self::TooLarge { what: "a definition", size, limit },
        }
    }
}

impl Writer {
    /// A stream that begins with `header`. Of its date, [`TraceHeader::sync_systemtime`] is written; a pointer size
    /// that is not 4 counts as 8, and a frequency below 1 as 1. The first bytes can be taken at once.
    pub fn new(header: &TraceHeader) -> Self {
        let pointer_size = if header.pointer_size == 4 { 4 } else { 8 };
        let mut writer = Self {
            output: Bytes::new(),
            taken: 0,
            last_point: 0,
            pointer_size,
            definitions: BlobBlock::default(),
            next_metadata_id: 1,
            stacks: StackBlock::new(pointer_size),
            events: BlobBlock::default(),
            threads: BTreeMap::new(),
            run: None,
            floor: 0,
            latest: u64::try_from(header.sync_qpc).unwrap_or(0),
        };
        writer.output.bytes(envelope::MAGIC).bytes(envelope::SERIALIZER);
        writer.begin_object(name::TRACE, envelope::TRACE_VERSION);
        let qpc_frequency = header.qpc_frequency.max(1);
        TraceHeader { qpc_frequency, pointer_size, ..header.clone() }.encode_v4(&mut writer.output);
        writer.output.u8(envelope::END_OBJECT);
        writer
    }

    /// Defines an event and returns the id for [`EventToWrite::metadata_id`]; [`Metadata::id`] is not looked at.
    pub fn define_event(&mut self, definition: &Metadata) -> Result<u32, WriteError> {
        let id = self.next_metadata_id;
        let mut record = Bytes::new();
        definition
            .encode_v4(id, &mut record)
            .map_err(|why| WriteError::definition(&why, record.len(), MAX_PAYLOAD))?;
        check_size("a definition", record.len(), MAX_PAYLOAD)?;
        if self.definitions.len() + record.len() > BLOCK_TARGET {
            self.write_blocks();
        }
        self.definitions.push_record(record.as_bytes(), self.latest);
        self.next_metadata_id += 1;
        Ok(id)
    }

    /// Writes an event; it may stay in the block at hand until that is full, or [`Self::flush`] is called.
    pub fn event(&mut self, event: &EventToWrite<'_>) -> Result<(), WriteError> {
        check_size("a payload", event.payload.len(), MAX_PAYLOAD)?;
        if event.metadata_id == 0 || event.metadata_id >= self.next_metadata_id {
            return Err(WriteError::UnknownMetadata { id: event.metadata_id });
        }
        let stack = event.stack.get(..MAX_STACK_DEPTH).unwrap_or(event.stack);
        if let Some(address) = stack.iter().find(|ip| self.pointer_size == 4 && **ip > u64::from(u32::MAX)) {
            return Err(WriteError::WideAddress { address: *address });
        }
        let run = self.run.filter(|(thread, _)| *thread == event.capture_thread_id);
        let least = run.map_or(self.floor, |(_, last)| last);
        if event.timestamp < least {
            return Err(WriteError::TimeGoesBack { timestamp: event.timestamp, least });
        }

        let room = BLOCK_TARGET.saturating_sub(block::MAX_HEADER + event.payload.len());
        if self.events.len() > room || self.stacks.len() > BLOCK_TARGET - MAX_STACK_DEPTH * 8 {
            self.write_blocks();
        }
        let stack_id = self.stacks.intern(stack);
        let sequence = self.threads.entry(event.capture_thread_id).or_default();
        *sequence = event.sequence.unwrap_or_else(|| sequence.wrapping_add(1));
        self.events.push_event(event, *sequence, stack_id, run.is_none());
        if run.is_none() {
            self.floor = event.timestamp;
        }
        self.run = Some((event.capture_thread_id, event.timestamp));
        self.latest = self.latest.max(event.timestamp);
        Ok(())
    }

    /// Counts `count` events of a thread as dropped: their numbers are left out, and a reader reports them as lost
    /// when it sees the next event or sequence point. It does so only if it has seen the thread before.
    pub fn drop_events(&mut self, capture_thread_id: u64, count: u32) {
        let sequence = self.threads.entry(capture_thread_id).or_default();
        *sequence = sequence.wrapping_add(count);
    }

    /// Puts everything written so far into the output. The next event starts a run, so that a reader of the live
    /// stream can show what it holds back.
    pub fn flush(&mut self) {
        self.write_blocks();
        self.run = None;
    }

    /// Whether a [`Self::sequence_point`] is due: the runtime makes one for every 10 MB, and both sides can forget
    /// the stacks then.
    pub fn wants_sequence_point(&self) -> bool {
        self.offset() - self.last_point >= SEQUENCE_POINT_EVERY
    }

    /// Flushes and writes a sequence point: all events before it are older than `timestamp`, or as old, and all
    /// that follow are not older. A time before that of an event counts as that event's.
    pub fn sequence_point(&mut self, timestamp: u64) {
        self.flush();
        self.latest = self.latest.max(timestamp);
        self.floor = self.latest;
        let mut payload = Bytes::new();
        payload.u64(self.latest).u32(size_u32(self.threads.len()));
        for (thread, sequence) in &self.threads {
            payload.u64(*thread).u32(*sequence);
        }
        self.object(name::SEQUENCE_POINT, payload.as_bytes());
        self.stacks.next_epoch();
        self.last_point = self.offset();
    }

    /// Takes the bytes that are ready to be sent.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.taken = self.offset();
        std::mem::take(&mut self.output).into_bytes()
    }

    /// Ends the stream and gives the bytes that were not taken yet.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.sequence_point(self.latest);
        self.output.u8(envelope::NULL_REFERENCE);
        self.output.into_bytes()
    }

    /// Stream offset of the next byte of the output.
    fn offset(&self) -> u64 {
        self.taken + self.output.len() as u64
    }

    /// Writes the blocks at hand: definitions and stacks before the events that use them.
    fn write_blocks(&mut self) {
        if let Some(payload) = self.definitions.take() {
            self.object(name::METADATA, &payload);
        }
        if let Some(payload) = self.stacks.take() {
            self.object(name::STACK, &payload);
        }
        if let Some(payload) = self.events.take() {
            self.object(name::EVENT, &payload);
        }
    }

    fn begin_object(&mut self, name: &[u8], version: u32) {
        self.output
            .bytes(&[
                envelope::BEGIN_PRIVATE_OBJECT,
                envelope::BEGIN_PRIVATE_OBJECT,
                envelope::NULL_REFERENCE,
            ])
            .u32(version)
            .u32(version)
            .u32(size_u32(name.len()))
            .bytes(name)
            .u8(envelope::END_OBJECT);
    }

    fn object(&mut self, name: &[u8], payload: &[u8]) {
        self.begin_object(name, envelope::BLOCK_VERSION);
        self.output.u32(size_u32(payload.len()));
        for _ in 0..envelope::padding(self.offset()) {
            self.output.u8(0);
        }
        self.output.bytes(payload).u8(envelope::END_OBJECT);
    }
}

/// Sizes of what this writer makes are far below the limit.
fn size_u32(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn check_size(what: &'static str, size: usize, limit: usize) -> Result<(), WriteError> {
    if size > limit { Err(WriteError::TooLarge { what, size, limit }) } else { Ok(()) }
}
