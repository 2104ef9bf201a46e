//! The state of the decoder between blocks and inside a block. Owns no bytes: every call gets the current window of the
//! stream, which begins where the last [`Decoder::shift`] left it and may only have grown since.

mod advance;
mod events;
mod open;
mod part;

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::Counts;
use crate::block::blob::{BlobHeader, Blobs};
use crate::block::guid;
use crate::block::label::LabelTable;
use crate::block::netperf::{self, NetPerfEvent};
use crate::block::stack::StackTable;
use crate::block::thread::ThreadTable;
use crate::metadata::MetadataTable;
use crate::raw::{Format, Framing, ObjectKind};
use crate::sequence::Sequences;
use crate::{Error, Event, Labels, Limits, Partial, SequencePoint, StreamItem, Thread, TraceHeader};

/// Decodes a stream from windows of its bytes.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent of each other")]
pub(crate) struct Decoder {
    framing: Framing,
    state: DecoderState,
    /// Stream offset of the first byte of the window.
    base: u64,
    /// The number of consumed bytes of the window.
    at: usize,
    /// The number of further bytes that the last item borrows, to be consumed by the next call.
    release: usize,
    /// The length of the current block, in the states inside a block.
    block: usize,
    /// The position in a block of events, or of Nettrace 4's definitions.
    blobs: Blobs,
    /// The position in a block of Nettrace 6's definitions or of `NetPerf`'s events.
    row: usize,
    /// The current event of `NetPerf`.
    netperf: NetPerfEvent,
    header: Option<TraceHeader>,
    tables: Tables,
    sequences: Sequences,
    limits: Limits,
    counts: Counts,
    finished: bool,
    complete: bool,
    partial: Option<Partial>,
    /// The offset where the current part of the stream starts.
    part_start: u64,
    /// Whether the stream continues after the current part.
    part_ends: bool,
    /// Whether events are held back, so that everything they refer to must be kept. See [`Step::Waiting`].
    held_back: bool,
    /// The position of the current event in its block if its id has no definition: the event is not returned.
    undefined: Option<usize>,
    /// Whether the stream had unreadable definitions, which events may refer to.
    definitions_lost: bool,
    /// Threads to remove when no more events are held back.
    removed: HashSet<u64, RandomState>,
}

/// The contents of blocks that events refer to.
#[derive(Debug, Clone, Default)]
struct Tables {
    metadata: MetadataTable,
    stacks: StackTable,
    threads: ThreadTable,
    labels: LabelTable,
}

/// The position in the structure of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecoderState {
    /// Between the payloads of two objects.
    Between,
    /// At the first byte of a payload, which may be incomplete.
    Payload { kind: ObjectKind, version: u32, size: usize },
    /// Inside a block of events; `truncated` means that the stream ends inside it.
    Events { truncated: bool },
    /// Inside a block of Nettrace 4's definitions.
    Definitions,
    /// Inside a block of Nettrace 6's definitions.
    Rows,
    /// Inside a block of `NetPerf` 3.
    NetPerf { truncated: bool },
    /// Among the events of `NetPerf` 1 or 2.
    Unframed,
    /// Inside the payload of an object that is not read.
    Skip { left: u64 },
    /// After the end marker, an error that cannot be repaired, or the last byte.
    Ended,
}

/// The result of one step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// No item yet; advance again.
    Continue,
    /// The window is too short.
    NeedsInput,
    Header,
    Metadata(u32),
    Event,
    SequencePoint,
    /// The next block would remove or replace data that held-back events refer to. Occurs only while
    /// [`Decoder::held_back`] is set.
    Waiting,
    End,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Decoder {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            framing: Framing::default(),
            state: DecoderState::Between,
            base: 0,
            at: 0,
            release: 0,
            block: 0,
            blobs: Blobs::default(),
            row: 0,
            netperf: NetPerfEvent::default(),
            header: None,
            tables: Tables::default(),
            sequences: Sequences::new(limits.max_threads),
            limits,
            counts: Counts::default(),
            finished: false,
            complete: false,
            partial: None,
            part_start: 0,
            part_ends: false,
            held_back: false,
            undefined: None,
            definitions_lost: false,
            removed: HashSet::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the format, which is known once the first bytes were read.
    pub(super) fn format(&self) -> Format {
        self.framing.format()
    }

    /// Returns the header. `None` until it was read.
    pub(super) fn header(&self) -> Option<&TraceHeader> {
        self.header.as_ref()
    }

    /// Returns whether the end marker was found.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns why the stream is incomplete. `None` if no reason is known.
    pub(super) fn partial(&self) -> Option<&Partial> {
        self.partial.as_ref()
    }

    /// Returns the least number of events that the runtime dropped.
    pub(super) fn lost(&self) -> u64 {
        self.sequences.lost()
    }

    /// Returns the latest definition of `id`. `None` if the stream had none so far.
    pub(super) fn metadata(&self, id: u32) -> Option<&crate::Metadata> {
        self.tables.metadata.get(id)
    }

    /// Returns the counts of unusual data so far.
    pub(super) fn counts(&self) -> Counts {
        Counts { stacks: self.tables.stacks.defined(), ..self.counts.clone() }
    }

    /// Sets whether events are held back, so that everything they refer to must be kept. See [`Step::Waiting`].
    pub(super) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Returns the length of the current block of events, and the position of the current event in it.
    #[inline]
    pub(super) fn block_of_event(&self) -> (usize, &Blobs) {
        (self.block, &self.blobs)
    }

    /// Returns the time of the current event of `NetPerf`.
    pub(super) fn netperf_timestamp(&self) -> u64 {
        self.netperf.timestamp
    }

    /// Returns the stream offset of the first byte of the window.
    pub(super) fn window_offset(&self) -> u64 {
        self.base
    }

    /// Marks the end of the stream.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns whether nothing more can be read.
    pub(super) fn is_over(&self) -> bool {
        self.state == DecoderState::Ended
    }

    /// Returns whether further bytes are accepted; counts bytes after the end.
    pub(super) fn accepts(&mut self, bytes: usize) -> bool {
        if self.complete {
            self.counts.trailing_bytes += bytes as u64;
        }
        !self.finished && self.state != DecoderState::Ended
    }

    /// Returns the number of consumed bytes of the window; the next window begins after them.
    pub(super) fn shift(&mut self) -> usize {
        let done = self.at + std::mem::take(&mut self.release);
        self.at = 0;
        self.base += done as u64;
        done
    }

    /// Like [`shift`](Self::shift), while bytes from the stream offset `kept` on are still needed.
    pub(super) fn shift_to(&mut self, kept: u64) -> usize {
        let ahead = usize::try_from(kept.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let done = self.at.min(ahead);
        self.at -= done;
        self.base += done as u64;
        done
    }

    /// Returns how many bytes to add to a window with `pending` bytes that was too short. At least 1; more may be needed
    /// after that.
    pub(super) fn wanted(&self, pending: usize) -> usize {
        match self.state {
            DecoderState::Payload { size, .. } => size.saturating_sub(pending).max(1),
            // The approximate size of a frame.
            _ => 64,
        }
    }

    /// Returns the stream offset of the next data to read.
    pub(super) fn offset(&self) -> u64 {
        let inside = match self.state {
            DecoderState::Events { .. } | DecoderState::Definitions => self.blobs.position(),
            DecoderState::Rows | DecoderState::NetPerf { .. } => self.row,
            _ => self.release,
        };
        self.base + (self.at + inside) as u64
    }

    /// Returns the stream offset of the first unconsumed byte.
    pub(super) fn here(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Returns the unconsumed bytes.
    #[inline]
    pub(super) fn pending<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        window.get(self.at..).unwrap_or_default()
    }

    /// Returns the current payload.
    #[inline]
    pub(super) fn payload<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        self.pending(window).get(..self.block).unwrap_or_default()
    }

    /// Advances to the next item.
    #[inline]
    pub(super) fn step(&mut self, window: &[u8]) -> Result<Step, Error> {
        if matches!(self.state, DecoderState::Events { .. }) && self.next_event(window) {
            return Ok(Step::Event);
        }
        self.advance(window)
    }

    /// Returns the item that a step led to.
    #[inline]
    pub(super) fn item<'a>(&'a self, step: Step, window: &'a [u8]) -> Option<StreamItem<'a>> {
        match step {
            Step::Event => Some(StreamItem::Event(self.event(window))),
            Step::Header => self.header.as_ref().map(StreamItem::Header),
            Step::Metadata(id) => self.tables.metadata.get(id).map(StreamItem::Metadata),
            // Validated before, when its threads were counted.
            Step::SequencePoint => {
                let mut r = runtap_wire::Reader::new(self.payload(window));
                SequencePoint::decode(&mut r, self.framing.format()).ok().map(StreamItem::SequencePoint)
            }
            Step::End => Some(StreamItem::End),
            Step::Continue | Step::NeedsInput | Step::Waiting => None,
        }
    }

    /// Returns the current event.
    #[inline]
    fn event<'a>(&'a self, window: &'a [u8]) -> Event<'a> {
        match self.framing.format() {
            Format::Nettrace4 | Format::Nettrace6 => self.event_of(&self.blobs, self.payload(window)),
            Format::NetPerf1 | Format::NetPerf3 => self.netperf_event(self.payload(window)),
        }
    }

    /// Returns the Nettrace event at a cursor.
    #[inline]
    pub(super) fn event_of<'a>(&'a self, blobs: &Blobs, block: &'a [u8]) -> Event<'a> {
        let head = &blobs.head;
        let metadata = self.tables.metadata.get(head.metadata_id);
        let payload = blobs.place.payload(block);
        if self.framing.format() != Format::Nettrace6 {
            return self.tables.event_v4(head, metadata, payload);
        }
        let threads = [head.thread_id, head.capture_thread_id].map(|index| self.tables.threads.get(index));
        let labels = self.tables.labels.list(head.label_list_id);
        self.tables.event_v6(head, metadata, threads, labels, payload)
    }

    fn netperf_event<'a>(&'a self, block: &'a [u8]) -> Event<'a> {
        let event = &self.netperf;
        let stack = block.get(event.stack.clone()).unwrap_or_default();
        Event {
            metadata_id: event.metadata_id,
            metadata: self.tables.metadata.get(event.metadata_id),
            thread_id: event.thread_id.into(),
            capture_thread_id: event.thread_id.into(),
            process_id: None,
            thread: None,
            capture_thread: None,
            processor: u32::MAX,
            sequence: 0,
            stack_id: u32::MAX,
            stack: self.tables.stacks.inline_stack(stack),
            timestamp: event.timestamp,
            activity_id: event.activity_id,
            related_activity_id: event.related_activity_id,
            labels: Labels::default(),
            // The runtime wrote the events in order of time.
            sorted: true,
            payload: block.get(event.payload.clone()).unwrap_or_default(),
        }
    }

    /// Returns whether the tail of `NetPerf` 1 and 2 is next. `None` if more bytes are needed.
    fn is_tail(&self, window: &[u8]) -> Option<bool> {
        let tail = self.pending(window).get(..netperf::TAIL)?;
        Some(netperf::is_tail(tail, self.here()))
    }
}

impl Tables {
    /// Creates an event of Nettrace 4.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps what it changes in registers only if it sees all of it"
    )]
    fn event_v4<'a>(
        &'a self,
        head: &BlobHeader,
        metadata: Option<&'a crate::Metadata>,
        payload: &'a [u8],
    ) -> Event<'a> {
        Event {
            metadata_id: head.metadata_id,
            metadata,
            thread_id: head.thread_id,
            capture_thread_id: head.capture_thread_id,
            process_id: None,
            thread: None,
            capture_thread: None,
            processor: head.processor,
            sequence: head.sequence,
            stack_id: head.stack_id,
            stack: self.stacks.stack(head.stack_id),
            timestamp: head.timestamp,
            activity_id: guid(head.activity_id),
            related_activity_id: guid(head.related_activity_id),
            labels: Labels::default(),
            sorted: head.sorted,
            payload,
        }
    }

    /// Creates an event of Nettrace 6. The two threads are the one that the event is about and the one that wrote it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps what it changes in registers only if it sees all of it"
    )]
    fn event_v6<'a>(
        &'a self,
        head: &BlobHeader,
        metadata: Option<&'a crate::Metadata>,
        [thread, capture_thread]: [Option<&'a Thread>; 2],
        labels: Labels<'a>,
        payload: &'a [u8],
    ) -> Event<'a> {
        Event {
            thread_id: thread.and_then(|thread| thread.thread_id).unwrap_or(head.thread_id),
            capture_thread_id: capture_thread
                .and_then(|thread| thread.thread_id)
                .unwrap_or(head.capture_thread_id),
            process_id: thread.and_then(|thread| thread.process_id),
            thread,
            capture_thread,
            activity_id: labels.activity_id(),
            related_activity_id: labels.related_activity_id(),
            labels,
            ..self.event_v4(head, metadata, payload)
        }
    }
}
