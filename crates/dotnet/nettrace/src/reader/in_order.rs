//! All events of a stream in order of time. Source: nettrace format, "order". Never sorts: the stream consists of ordered
//! runs, and marks where no later event is older. Held-back events are stored as positions in the stream.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use runtap_wire::Deframer;

use super::counts::Counts;
use super::decoder::{Decoder, Step};
use crate::block::blob::Blobs;
use crate::raw::Format;
use crate::{Error, Limits, Partial, StreamItem, TraceHeader};

/// Reads a stream incrementally, like [`Reader`](crate::Reader), and returns its events in order of time; events of
/// equal time keep the order of the stream. A definition is returned before the events that use it, a sequence point
/// after all events before it. An event has the stacks, threads and labels that were defined at its position in the
/// stream; definitions after that position, which violate the format, may or may not be used.
///
/// A run starts with a [`sorted`](crate::Event::sorted) event: no later event of the stream is older, so all events up
/// to its time can be returned. Later events wait for the next run or sequence point, which may take long in a live
/// stream: see [`Self::release_all`]. Memory: the bytes of the stream from the oldest waiting event on, within
/// [`Limits::max_held_back`].
///
/// ```
/// use runtap_nettrace::{InOrder, StreamItem};
///
/// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
/// let mut events = InOrder::new();
/// for chunk in file.chunks(1 << 20) {
///     events.feed(chunk);
///     while let Some(item) = events.next()? {
///         if let StreamItem::Event(event) = item {
///             println!("{}", event.timestamp);
///         }
///     }
/// }
/// events.finish();
/// while let Some(_the_last_ones) = events.next()? {}
/// # assert!(events.is_complete());
/// # Ok::<(), runtap_nettrace::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InOrder {
    decoder: Decoder,
    queue: Deframer,
    /// The runs in the order of the stream; the first has events left.
    runs: VecDeque<Run>,
    /// The number of the first run.
    first: u64,
    /// Whether the last run may continue.
    open: bool,
    /// The next event of each run except the current one: time and number of the run.
    heads: BinaryHeap<Reverse<(u64, u64)>>,
    /// The run of the last event, which often has the next one, too.
    get_dense: Option<u64>,
    /// Events up to this time can be returned, according to the last run. `None` after a sequence point.
    settled: Option<u64>,
    /// Whether to return everything that is held back.
    flush: bool,
    /// The step after the held-back events.
    then: Option<Step>,
    last: u64,
    out_of_order: u64,
}

/// Events of one run in one block.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The stream offset of the block.
    block: u64,
    /// The length of the block in bytes.
    size: usize,
    /// A cursor on the next event.
    blobs: Blobs,
    /// The number of events to return, including the next one.
    left: usize,
}

impl Default for InOrder {
    fn default() -> Self {
        Self::new()
    }
}

impl InOrder {
    /// Creates a reader with default limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// Creates a reader with custom limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            decoder: Decoder::new(limits),
            queue: Deframer::new(),
            runs: VecDeque::new(),
            first: 0,
            open: false,
            heads: BinaryHeap::new(),
            get_dense: None,
            settled: None,
            flush: false,
            then: None,
            last: 0,
            out_of_order: 0,
        }
    }

    /// Appends bytes; see [`Reader::feed`](crate::Reader::feed).
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.decoder.accepts(bytes.len()) {
            let done = match self.runs.front() {
                Some(oldest) => self.decoder.shift_to(oldest.block),
                None => self.decoder.shift(),
            };
            self.queue.consume(done);
            self.queue.feed(bytes);
        }
    }

    /// Marks the end of the stream; see [`Reader::finish`](crate::Reader::finish).
    pub fn finish(&mut self) {
        self.decoder.finish();
    }

    /// Makes [`Self::next`] return everything that was read so far, without waiting for the proof that no older event
    /// follows.
    pub fn release_all(&mut self) {
        self.close_run();
        self.flush = true;
    }

    /// Returns the next item. `None` means that more bytes are needed, perhaps only to prove that no older event follows;
    /// after [`Self::finish`] it means the end. Errors are those of [`Reader::next`](crate::Reader::next), and are returned
    /// when the damage is read: events from before it may follow.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<StreamItem<'_>>, Error> {
        loop {
            if let Some(number) = self.next_run() {
                return Ok(self.give(number));
            }
            self.flush = false;
            if let Some(step) = self.then.take() {
                return Ok(self.decoder.item(step, self.queue.pending()));
            }
            self.decoder.hold_back(!self.runs.is_empty());
            let step = match self.decoder.step(self.queue.pending()) {
                Ok(step) => step,
                Err(error) => {
                    // Skipped data is not part of a run.
                    self.close_run();
                    return Err(error);
                }
            };
            match step {
                Step::Event if matches!(self.decoder.format(), Format::NetPerf1 | Format::NetPerf3) => {
                    // Events in the order of the stream.
                    self.note_returned(self.decoder.netperf_timestamp());
                    return Ok(self.decoder.item(step, self.queue.pending()));
                }
                Step::Event => self.hold_back(),
                Step::Waiting => self.release_all(),
                Step::End => {
                    self.release_all();
                    self.then = Some(step);
                }
                Step::NeedsInput if self.decoder.is_over() && !self.runs.is_empty() => self.release_all(),
                Step::NeedsInput | Step::Continue => return Ok(None),
                Step::Header | Step::Metadata(_) | Step::SequencePoint => {
                    if matches!(step, Step::SequencePoint) {
                        self.settled = None;
                    }
                    return Ok(self.decoder.item(step, self.queue.pending()));
                }
            }
        }
    }

    /// Returns the header; see [`Reader::header`](crate::Reader::header).
    pub fn header(&self) -> Option<&TraceHeader> {
        self.decoder.header()
    }

    /// Returns whether the end marker was found; see [`Reader::is_complete`](crate::Reader::is_complete).
    pub fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Returns why the stream is incomplete; see [`Reader::partial`](crate::Reader::partial).
    pub fn partial(&self) -> Option<&Partial> {
        self.decoder.partial()
    }

    /// Returns the number of lost events; see [`Reader::lost`](crate::Reader::lost).
    pub fn lost(&self) -> u64 {
        self.decoder.lost()
    }

    /// Returns the counts of unusual data; see [`Reader::counts`](crate::Reader::counts).
    pub fn counts(&self) -> Counts {
        self.decoder.counts()
    }

    /// Returns the number of events that were returned after a later one: 0 for every valid stream within the limits,
    /// unless [`Self::release_all`] was called.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Adds the current event to a run.
    #[inline]
    fn hold_back(&mut self) {
        let (block, (size, blobs)) = (self.decoder.here(), self.decoder.block_of_event());
        let (head, blobs) = (&blobs.head, *blobs);
        if !head.sorted
            && self.open
            && let Some(run) = self.runs.back_mut()
            && run.block == block
        {
            run.left += 1;
            return;
        }
        if head.sorted {
            self.settled = Some(head.timestamp);
        }
        let oldest = self.runs.front().map_or(block, |run| run.block);
        let held_back = (block - oldest).saturating_add((self.runs.len() * size_of::<Run>()) as u64);
        self.close_run();
        if held_back > self.decoder.limits().max_held_back as u64 {
            self.flush = true;
        }
        self.runs.push_back(Run { block, size, blobs, left: 1 });
        self.open = true;
    }

    /// Ends the last run.
    fn close_run(&mut self) {
        if std::mem::take(&mut self.open)
            && let Some(run) = self.runs.back()
        {
            let number = self.first + self.runs.len() as u64 - 1;
            self.heads.push(Reverse((run.time(), number)));
        }
    }

    /// Returns the number of the run with the next event. `None` if the event must wait.
    #[inline]
    fn next_run(&mut self) -> Option<u64> {
        let get_dense = self.get_dense.and_then(|number| Some((self.run(number)?.time(), number)));
        let best = self.heads.peek().map(|Reverse(head)| *head);
        let next = match (get_dense, best) {
            (Some(get_dense), Some(best)) => get_dense.min(best),
            (get_dense, best) => get_dense.or(best)?,
        };
        let (time, number) = next;
        if !self.flush && Some(time) > self.settled {
            return None;
        }
        if get_dense != Some(next) {
            self.heads.pop();
            self.heads.extend(get_dense.map(Reverse));
            self.get_dense = Some(number);
        }
        Some(number)
    }

    fn run(&self, number: u64) -> Option<&Run> {
        self.runs.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Returns the next event of a run and advances the run.
    fn give(&mut self, number: u64) -> Option<StreamItem<'_>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let Self { decoder, queue, runs, .. } = self;
        let run = runs.get_mut(index)?;
        let block = run.bytes(queue.pending(), decoder.window_offset());
        let event = decoder.event_of(&run.blobs, block);
        run.go_on(decoder.format(), block);
        if run.left == 0 {
            self.get_dense = None;
            while runs.front().is_some_and(|run| run.left == 0) {
                runs.pop_front();
                self.first += 1;
            }
        }
        self.out_of_order += u64::from(event.timestamp < self.last);
        self.last = event.timestamp;
        Some(StreamItem::Event(event))
    }

    fn note_returned(&mut self, time: u64) {
        self.out_of_order += u64::from(time < self.last);
        self.last = time;
    }
}

impl Run {
    /// Returns the time of the next event.
    fn time(&self) -> u64 {
        self.blobs.head.timestamp
    }

    /// Returns the block in a window that begins at the stream offset `base`.
    fn bytes<'a>(&self, window: &'a [u8], base: u64) -> &'a [u8] {
        let start = usize::try_from(self.block.saturating_sub(base)).unwrap_or(usize::MAX);
        window.get(start..).and_then(|rest| rest.get(..self.size)).unwrap_or_default()
    }

    /// Advances to the next event, which is in `block`.
    fn go_on(&mut self, format: Format, block: &[u8]) {
        self.left -= 1;
        if self.left > 0 {
            let advanced = match format {
                Format::Nettrace6 => self.blobs.advance::<true>(block),
                _ => self.blobs.advance::<false>(block),
            };
            // The events were validated before.
            debug_assert!(matches!(advanced, Ok(true)));
        }
    }
}
