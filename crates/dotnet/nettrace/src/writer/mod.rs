//! The writer of Nettrace 4 and 6 and of `NetPerf` 3: accepts events and returns bytes, as the runtime writes and
//! Microsoft's tools read them. Source: nettrace format, sections of the blocks. Does not order events, and reads no clock.

mod block;
mod error;
mod frames;
mod netperf;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use runtap_wire::{Uuid, Writer as Bytes};

use self::block::{BlobBlock, LabelBlock, LabelsToWrite, StackBlock};
pub use self::error::WriteError;
use self::error::check_size;
use self::frames::Frames;
pub use self::frames::Version;
use crate::raw::ObjectKind;
use crate::{Label, Metadata, Thread, TraceHeader};

/// The most bytes in the payload of an event, as in the runtime.
pub const MAX_PAYLOAD: usize = 64 << 10;
/// The most frames of a stack, as in the runtime. Deeper stacks lose frames at the root.
pub const MAX_STACK_DEPTH: usize = 100;

/// The size in bytes beyond which a block is written, as in the runtime.
const BLOCK_TARGET: usize = 100 << 10;
/// The number of bytes of blocks after which a sequence point is due, as in the runtime.
const SEQUENCE_POINT_EVERY: u64 = 10 << 20;

/// Writes a stream: a header, definitions, events, and an end marker.
///
/// Events are written in *runs*: one event, then later events of its capture thread. Times must not decrease within a
/// run, nor from the start of one run to the start of the next. Events whose times never decrease satisfy both;
/// `NetPerf` requires such times.
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
    frames: Frames,
    /// The number of bytes of blocks at the last sequence point.
    last_point: u64,
    pointer_size: u32,
    definitions: BlobBlock,
    /// Definitions in Nettrace 6; definitions and events in `NetPerf`.
    rows: Bytes,
    next_metadata_id: u32,
    stacks: StackBlock,
    labels: LabelBlock,
    events: BlobBlock,
    /// Nettrace 6: the threads that the stream describes.
    described: HashSet<u64>,
    descriptions: Bytes,
    /// The process id for descriptions of threads that the caller did not describe.
    process_id: Option<u64>,
    /// The last sequence number of every capture thread.
    threads: BTreeMap<u64, u32>,
    /// The capture threads that have ended.
    ended: BTreeSet<u64>,
    /// The capture thread of the current run and the time of its last event.
    run: Option<(u64, u64)>,
    /// The least time at which a run may start.
    floor: u64,
    latest: u64,
}

/// An event for [`Writer::event`].
#[derive(Debug, Clone, Copy, Default)]
pub struct EventToWrite<'a> {
    /// The id that [`Writer::define_event`] returned.
    pub metadata_id: u32,
    /// The thread that the event is about: its id, or in Nettrace 6 the index passed to [`Writer::define_thread`], if any.
    pub thread_id: u64,
    /// The thread that writes the event, identified like `thread_id`.
    pub capture_thread_id: u64,
    /// The sequence number of the event in its capture thread, starting at 1. `None` uses the next number. A gap means that
    /// events were dropped.
    pub sequence: Option<u32>,
    /// The processor; `u32::MAX` if unknown.
    pub processor: u32,
    /// Instruction pointers from the leaf to the root.
    pub stack: &'a [u64],
    /// Ticks of the clock in the header.
    pub timestamp: u64,
    /// The activity that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that started `activity_id`.
    pub related_activity_id: Option<Uuid>,
    /// The labels of the event: Nettrace 6 only.
    pub labels: &'a [Label<'a>],
    /// The encoded fields, at most [`MAX_PAYLOAD`] bytes.
    pub payload: &'a [u8],
}

impl Writer {
    /// Starts a stream of Nettrace 4, which every reader supports; see [`Self::with_version`].
    pub fn new(header: &TraceHeader) -> Self {
        Self::with_version(header, Version::Nettrace4)
    }

    /// Starts a stream with `header`. Its date is taken from [`TraceHeader::sync_systemtime`]; a pointer size
    /// other than 4 counts as 8, and a frequency below 1 as 1. The first bytes are available at once.
    pub fn with_version(header: &TraceHeader, version: Version) -> Self {
        let pointer_size = if header.pointer_size == 4 { 4 } else { 8 };
        let header =
            TraceHeader { qpc_frequency: header.qpc_frequency.max(1), pointer_size, ..header.clone() };
        Self {
            frames: Frames::start(&header, version),
            last_point: 0,
            pointer_size,
            definitions: BlobBlock::default(),
            rows: Bytes::new(),
            next_metadata_id: 1,
            stacks: StackBlock::new(pointer_size),
            labels: LabelBlock::default(),
            events: BlobBlock::default(),
            described: HashSet::new(),
            descriptions: Bytes::new(),
            process_id: Some(header.process_id.into()).filter(|id| *id != 0),
            threads: BTreeMap::new(),
            ended: BTreeSet::new(),
            run: None,
            floor: 0,
            latest: u64::try_from(header.sync_qpc).unwrap_or(0),
        }
    }

    /// Defines an event and returns the id for [`EventToWrite::metadata_id`]; ignores [`Metadata::id`].
    pub fn define_event(&mut self, definition: &Metadata) -> Result<u32, WriteError> {
        let id = self.next_metadata_id;
        let mut record = Bytes::new();
        let encoded = match self.frames.version() {
            Version::Nettrace4 | Version::NetPerf3 => definition.encode_v4(id, &mut record),
            Version::Nettrace6 => definition.encode_v6(id, &mut record),
        };
        encoded.map_err(|why| WriteError::definition(&why, record.len()))?;
        check_size("a definition", record.len(), MAX_PAYLOAD)?;
        if self.definitions.len() + self.rows.len() + record.len() > BLOCK_TARGET {
            self.write_blocks();
        }
        match self.frames.version() {
            Version::Nettrace4 => self.definitions.push_record(record.as_bytes(), self.latest),
            Version::Nettrace6 => {
                self.rows.bytes(record.as_bytes());
            }
            Version::NetPerf3 => netperf::push_definition(record.as_bytes(), self.floor, &mut self.rows),
        }
        self.next_metadata_id += 1;
        Ok(id)
    }

    /// Describes the thread that events refer to by [`Thread::index`]: Nettrace 6 only. A thread that was not described before
    /// its first event is described with its number as the operating system's id, in the process of the header.
    pub fn define_thread(&mut self, thread: &Thread) -> Result<(), WriteError> {
        if self.frames.version() != Version::Nettrace6 {
            return Err(WriteError::NeedsVersion6 { what: "descriptions of threads" });
        }
        let index = thread.index;
        if self.described.contains(&index) {
            return Err(WriteError::ThreadKnown { index });
        }
        let mut row = Bytes::new();
        if thread.encode(&mut row).is_none() {
            let limit = usize::from(u16::MAX);
            return Err(WriteError::TooLarge { what: "the description of a thread", size: limit + 1, limit });
        }
        if self.descriptions.len() + row.len() > BLOCK_TARGET {
            self.write_blocks();
        }
        self.descriptions.bytes(row.as_bytes());
        self.described.insert(index);
        Ok(())
    }

    /// Marks that no further event will refer to a thread: Nettrace 6 only. The format then allows reusing the number
    /// for another thread; TraceEvent 4.0 does not.
    pub fn remove_thread(&mut self, index: u64) -> Result<(), WriteError> {
        if self.frames.version() != Version::Nettrace6 {
            return Err(WriteError::NeedsVersion6 { what: "removals of threads" });
        }
        if self.described.remove(&index) {
            self.flush();
            let mut row = Bytes::new();
            row.varu64(index).varu32(self.threads.remove(&index).unwrap_or(0));
            self.frames.block(ObjectKind::RemoveThread, row.as_bytes());
        }
        Ok(())
    }

    /// Describes a thread at its first use.
    fn introduce(&mut self, index: u64) {
        if self.frames.version() == Version::Nettrace6 && !self.described.contains(&index) {
            let thread = Thread { thread_id: Some(index), process_id: self.process_id, ..Thread::new(index) };
            // The description is short and the thread is new: it is accepted.
            let _ = self.define_thread(&thread);
        }
    }

    /// Writes an event. It may stay in the current block until the block is full, or until [`Self::flush`] is called.
    pub fn event(&mut self, event: &EventToWrite<'_>) -> Result<(), WriteError> {
        check_size("a payload", event.payload.len(), MAX_PAYLOAD)?;
        if event.metadata_id == 0 || event.metadata_id >= self.next_metadata_id {
            return Err(WriteError::UnknownMetadata { id: event.metadata_id });
        }
        let stack = event.stack.get(..MAX_STACK_DEPTH).unwrap_or(event.stack);
        if let Some(address) = stack.iter().find(|ip| self.pointer_size == 4 && **ip > u64::from(u32::MAX)) {
            return Err(WriteError::WideAddress { address: *address });
        }
        let version = self.frames.version();
        let same_run =
            |(thread, _): &(u64, u64)| version != Version::NetPerf3 && *thread == event.capture_thread_id;
        let run = self.run.filter(same_run);
        let least = run.map_or(self.floor, |(_, last)| last);
        if event.timestamp < least {
            return Err(WriteError::TimeGoesBack { timestamp: event.timestamp, least });
        }

        if version == Version::NetPerf3 {
            return self.event_of_netperf(event, stack);
        }
        let (v6, list) = (version == Version::Nettrace6, LabelBlock::encode(event));
        if !v6 && !event.labels.is_empty() {
            return Err(WriteError::NeedsVersion6 { what: "labels" });
        }
        check_size("a list of labels", list.len(), MAX_PAYLOAD)?;

        let room = BLOCK_TARGET.saturating_sub(block::MAX_HEADER + event.payload.len());
        if self.events.len() > room
            || self.stacks.len() > BLOCK_TARGET - MAX_STACK_DEPTH * 8
            || self.labels.len() + list.len() > BLOCK_TARGET
        {
            self.write_blocks();
        }
        self.introduce(event.thread_id);
        self.introduce(event.capture_thread_id);
        // The id 0 means no stack in Nettrace 6; in Nettrace 4 the empty stack gets an id, as in the runtime.
        let stack_id = if v6 && stack.is_empty() { 0 } else { self.stacks.intern(stack) };
        let labels = if v6 {
            LabelsToWrite::List(self.labels.intern(list.as_bytes()))
        } else {
            LabelsToWrite::Activities(event.activity_id, event.related_activity_id)
        };
        self.ended.remove(&event.capture_thread_id);
        let sequence = self.threads.entry(event.capture_thread_id).or_default();
        *sequence = event.sequence.unwrap_or_else(|| sequence.wrapping_add(1));
        self.events.push_event(event, *sequence, stack_id, labels, run.is_none());
        if run.is_none() {
            self.floor = event.timestamp;
        }
        self.run = Some((event.capture_thread_id, event.timestamp));
        self.latest = self.latest.max(event.timestamp);
        Ok(())
    }

    /// Writes an event that was checked. `NetPerf` has no sequence numbers.
    fn event_of_netperf(&mut self, event: &EventToWrite<'_>, stack: &[u64]) -> Result<(), WriteError> {
        if !event.labels.is_empty() {
            return Err(WriteError::NeedsVersion6 { what: "labels" });
        }
        let size = netperf::HEADER + event.payload.len() + 8 * stack.len();
        if self.rows.len() + size > BLOCK_TARGET {
            self.write_blocks();
        }
        netperf::push_event(event, stack, self.pointer_size, &mut self.rows);
        self.floor = event.timestamp;
        self.latest = self.latest.max(event.timestamp);
        Ok(())
    }

    /// Counts `count` events of a thread as dropped: their sequence numbers are skipped, and a reader reports them as lost
    /// at the next event or sequence point. In Nettrace 4 only if the thread has written before, in `NetPerf` never.
    pub fn drop_events(&mut self, capture_thread_id: u64, count: u32) {
        self.introduce(capture_thread_id);
        let sequence = self.threads.entry(capture_thread_id).or_default();
        *sequence = sequence.wrapping_add(count);
    }

    /// Sets the number of the last event that a thread has tried to write: events after the last written one were dropped.
    /// The next sequence point contains the number.
    pub fn attempted(&mut self, capture_thread_id: u64, sequence: u32) {
        self.introduce(capture_thread_id);
        self.threads.insert(capture_thread_id, sequence);
    }

    /// Marks a thread as ended: the next sequence point is the last one that lists it, unless the thread writes again.
    pub fn end_thread(&mut self, capture_thread_id: u64) {
        self.ended.insert(capture_thread_id);
    }

    /// Moves everything written so far to the output. The next event starts a run, so that a reader of the live stream can
    /// return the events that it holds back.
    pub fn flush(&mut self) {
        self.write_blocks();
        self.run = None;
    }

    /// Returns whether a [`Self::sequence_point`] is due: the runtime writes one every 10 MB, which allows both sides to
    /// discard stacks.
    pub fn needs_sequence_point(&self) -> bool {
        self.frames.version() != Version::NetPerf3
            && self.frames.offset() - self.last_point >= SEQUENCE_POINT_EVERY
    }

    /// Flushes and writes a sequence point: all events before it have times up to `timestamp`, and all events after it are
    /// not older. If an event was later than `timestamp`, its time is used. `NetPerf` has no sequence points and is only
    /// flushed.
    pub fn sequence_point(&mut self, timestamp: u64) {
        self.flush();
        self.latest = self.latest.max(timestamp);
        self.floor = self.latest;
        let mut payload = Bytes::new();
        payload.u64(self.latest);
        let count = size_u32(self.threads.len());
        match self.frames.version() {
            Version::NetPerf3 => {
                self.threads.clear();
                self.ended.clear();
                return;
            }
            Version::Nettrace4 => {
                payload.u32(count);
                for (thread, sequence) in &self.threads {
                    payload.u64(*thread).u32(*sequence);
                }
            }
            Version::Nettrace6 => {
                payload.u32(0).u32(count);
                for (thread, sequence) in &self.threads {
                    payload.varu64(*thread).varu32(*sequence);
                }
            }
        }
        self.frames.block(ObjectKind::SequencePoint, payload.as_bytes());
        for thread in std::mem::take(&mut self.ended) {
            self.threads.remove(&thread);
        }
        self.stacks.next_epoch();
        self.labels.next_epoch();
        self.last_point = self.frames.offset();
    }

    /// Takes the bytes that are ready to be sent.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.frames.take()
    }

    /// Ends the stream and returns the bytes that were not taken yet.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.sequence_point(self.latest);
        self.frames.end();
        self.frames.take()
    }

    /// Writes the current blocks: definitions, stacks and labels before the events that refer to them.
    fn write_blocks(&mut self) {
        if self.frames.version() == Version::NetPerf3 {
            if !self.rows.is_empty() {
                self.frames.block(ObjectKind::Event, self.rows.as_bytes());
                self.rows.clear();
            }
            return;
        }
        if !self.rows.is_empty() {
            // After a header of no bytes.
            let mut payload = Bytes::new();
            payload.u16(0).bytes(self.rows.as_bytes());
            self.rows.clear();
            self.frames.block(ObjectKind::Metadata, payload.as_bytes());
        }
        if !self.descriptions.is_empty() {
            self.frames.block(ObjectKind::Thread, self.descriptions.as_bytes());
            self.descriptions.clear();
        }
        let blocks = [
            (ObjectKind::Metadata, self.definitions.take()),
            (ObjectKind::Stack, self.stacks.take()),
            (ObjectKind::LabelList, self.labels.take()),
            (ObjectKind::Event, self.events.take()),
        ];
        for (kind, payload) in blocks {
            if let Some(payload) = payload {
                self.frames.block(kind, &payload);
            }
        }
    }
}

/// Converts a size, which is far below the limit.
fn size_u32(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
