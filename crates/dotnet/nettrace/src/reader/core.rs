//! The state of a reading between two blocks and inside one. Owns no bytes: every call gets the window of the stream
//! that is at hand, which begins where the last [`Core::shift`] left it and may only have grown since.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::counts::Counts;
use crate::block::blob::{Blobs, Head};
use crate::block::guid;
use crate::block::label::LabelTable;
use crate::block::netperf::{self, NetPerfEvent};
use crate::block::stack::StackTable;
use crate::block::thread::ThreadTable;
use crate::metadata::MetadataTable;
use crate::raw::{Format, Framing, Kind};
use crate::sequence::Sequences;
use crate::{Error, Event, Item, Labels, Limits, Partial, SequencePoint, Thread, TraceHeader};

/// A reading.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Core {
    pub(super) framing: Framing,
    pub(super) state: State,
    /// Stream offset of the first byte of the window.
    pub(super) base: u64,
    /// How many bytes of the window are done with.
    pub(super) at: usize,
    /// Bytes behind those that the item handed out last borrows; they go with the next call.
    pub(super) release: usize,
    /// Length of the block at hand, in the states that are inside one.
    pub(super) block: usize,
    /// Place in a block of events, or of Nettrace 4's definitions.
    pub(super) blobs: Blobs,
    /// Place in a block of Nettrace 6's definitions or of `NetPerf`'s events.
    pub(super) row: usize,
    /// The event at hand of `NetPerf`.
    pub(super) netperf: NetPerfEvent,
    pub(super) header: Option<TraceHeader>,
    pub(super) tables: Tables,
    pub(super) sequences: Sequences,
    pub(super) limits: Limits,
    pub(super) counts: Counts,
    pub(super) finished: bool,
    pub(super) complete: bool,
    pub(super) partial: Option<Partial>,
    /// Where the own bytes of the part that is read begin.
    pub(super) part_start: u64,
    /// Whether the stream goes on behind the part that is read.
    pub(super) part_ends: bool,
    /// Whether events that were read are still to be looked at: what they name must stay. See [`Step::Waiting`].
    pub(super) held_back: bool,
    /// Where the event at hand begins in its block, if no definition has its id: it is not handed out.
    pub(super) undefined: Option<usize>,
    /// Whether the stream had definitions that could not be read: events may name them.
    pub(super) definitions_lost: bool,
    /// Threads to be removed when nothing is held back any more.
    pub(super) removed: HashSet<u64, RandomState>,
}

/// What blocks define and events name.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) metadata: MetadataTable,
    pub(super) stacks: StackTable,
    pub(super) threads: ThreadTable,
    pub(super) labels: LabelTable,
}

/// Where in the stream the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Between the payloads of two objects.
    Between,
    /// At the first byte of a payload, which may not be there as a whole.
    Payload { kind: Kind, version: u32, size: usize },
    /// Inside a block of events; `cut` means that the stream ends inside it.
    Events { cut: bool },
    /// Inside a block of Nettrace 4's definitions.
    Definitions,
    /// Inside a block of Nettrace 6's definitions.
    Rows,
    /// Inside a block of `NetPerf` 3.
    NetPerf { cut: bool },
    /// Among the events of `NetPerf` 1 or 2.
    Bare,
    /// Inside the payload of an object that is not read.
    Skip { left: u64 },
    /// After the end marker, an error that cannot be repaired, or the last byte.
    Over,
}

/// What one step led to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Again,
    Starved,
    Header,
    Metadata(u32),
    Event,
    SequencePoint,
    /// What comes next would take away or replace what events that are held back name. Comes only while
    /// [`Core::held_back`].
    Waiting,
    End,
}

impl Default for Core {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Core {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            framing: Framing::default(),
            state: State::Between,
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

    /// No more bytes will come.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether nothing more can be read.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether further bytes have a place in the reading; counts those behind the end.
    pub(super) fn accepts(&mut self, bytes: usize) -> bool {
        if self.complete {
            self.counts.trailing_bytes += bytes as u64;
        }
        !self.finished && self.state != State::Over
    }

    /// Says how many bytes of the window are done with; the next window begins behind them.
    pub(super) fn shift(&mut self) -> usize {
        let done = self.at + std::mem::take(&mut self.release);
        self.at = 0;
        self.base += done as u64;
        done
    }

    /// The same while bytes from the stream offset `kept` on are still needed.
    pub(super) fn shift_to(&mut self, kept: u64) -> usize {
        let ahead = usize::try_from(kept.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let done = self.at.min(ahead);
        self.at -= done;
        self.base += done as u64;
        done
    }

    /// How many bytes to add to a window of `pending` bytes that was not enough. At least 1; more than that may be
    /// needed then.
    pub(super) fn wanted(&self, pending: usize) -> usize {
        match self.state {
            State::Payload { size, .. } => size.saturating_sub(pending).max(1),
            // About a frame.
            _ => 64,
        }
    }

    /// Stream offset of what is read next.
    pub(super) fn offset(&self) -> u64 {
        let inside = match self.state {
            State::Events { .. } | State::Definitions => self.blobs.position(),
            State::Rows | State::NetPerf { .. } => self.row,
            _ => self.release,
        };
        self.base + (self.at + inside) as u64
    }

    /// Stream offset of the first byte that is not done with.
    pub(super) fn here(&self) -> u64 {
        self.base + self.at as u64
    }

    /// What is not done with.
    #[inline]
    pub(super) fn pending<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        window.get(self.at..).unwrap_or_default()
    }

    /// The payload at hand.
    #[inline]
    pub(super) fn payload<'w>(&self, window: &'w [u8]) -> &'w [u8] {
        self.pending(window).get(..self.block).unwrap_or_default()
    }

    /// Goes to the next item.
    #[inline]
    pub(super) fn step(&mut self, window: &[u8]) -> Result<Step, Error> {
        if matches!(self.state, State::Events { .. }) && self.next_event(window) {
            return Ok(Step::Event);
        }
        self.advance(window)
    }

    /// The item that a step led to.
    #[inline]
    pub(super) fn item<'a>(&'a self, step: Step, window: &'a [u8]) -> Option<Item<'a>> {
        match step {
            Step::Event => Some(Item::Event(self.event(window))),
            Step::Header => self.header.as_ref().map(Item::Header),
            Step::Metadata(id) => self.tables.metadata.get(id).map(Item::Metadata),
            // Decoded once before, when its threads were counted.
            Step::SequencePoint => {
                let mut r = runtap_wire::Reader::new(self.payload(window));
                SequencePoint::decode(&mut r, self.framing.format()).ok().map(Item::SequencePoint)
            }
            Step::End => Some(Item::End),
            Step::Again | Step::Starved | Step::Waiting => None,
        }
    }

    /// The event at hand.
    #[inline]
    fn event<'a>(&'a self, window: &'a [u8]) -> Event<'a> {
        match self.framing.format() {
            Format::Nettrace4 | Format::Nettrace6 => self.event_of(&self.blobs, self.payload(window)),
            Format::NetPerf1 | Format::NetPerf3 => self.netperf_event(self.payload(window)),
        }
    }

    /// The event of Nettrace that a cursor stands on.
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
            stack: self.tables.stacks.stack_here(stack),
            timestamp: event.timestamp,
            activity_id: event.activity_id,
            related_activity_id: event.related_activity_id,
            labels: Labels::default(),
            // The runtime wrote them in the order of time.
            sorted: true,
            payload: block.get(event.payload.clone()).unwrap_or_default(),
        }
    }

    /// Whether the tail of `NetPerf` 1 and 2 is next; `None` if there are too few bytes to tell.
    pub(super) fn is_tail(&self, window: &[u8]) -> Option<bool> {
        let tail = self.pending(window).get(..netperf::TAIL)?;
        Some(netperf::is_tail(tail, self.here()))
    }
}

impl Tables {
    /// An event of Nettrace 4.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps what it changes in registers only if it sees all of it"
    )]
    pub(super) fn event_v4<'a>(
        &'a self,
        head: &Head,
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

    /// An event of Nettrace 6. `threads` are the one that the event is about, and the one
    /// that wrote it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps what it changes in registers only if it sees all of it"
    )]
    pub(super) fn event_v6<'a>(
        &'a self,
        head: &Head,
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
