//! All events of a stream in the order of time. Source: nettrace format, "order". Never sorts: the stream consists of runs
//! that are in order, and says where no later event is older; what is held back are places in the stream, not events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use runtap_wire::Deframer;

use super::core::{Core, Step};
use super::counts::Counts;
use crate::block::blob::Blobs;
use crate::raw::Format;
use crate::{Error, Item, Limits, Partial, TraceHeader};

/// Reads a stream, piece by piece, as [`Reader`](crate::Reader) does, and gives its events in the order of time; those of
/// the same time in the order of the stream. A definition comes before the events that use it, a sequence point behind
/// all events before it. Stacks, threads and labels of an event are those that its place in the stream had; one that is
/// defined only behind that place, against the rules, may be found or not.
///
/// A run begins with an event that is [`sorted`](crate::Event::sorted): no later one of the stream is older. So all that
/// is not younger than it can be given. What is left waits for the next run or sequence point, of a live stream perhaps
/// for long: see [`Self::hold_nothing_back`]. Memory: the bytes of the stream from the oldest event that waits, within
/// [`Limits::max_held_back`].
///
/// ```
/// use runtap_nettrace::{InOrder, Item};
///
/// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
/// let mut events = InOrder::new();
/// for chunk in file.chunks(1 << 20) {
///     events.feed(chunk);
///     while let Some(item) = events.next()? {
///         if let Item::Event(event) = item {
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
    core: Core,
    queue: Deframer,
    /// As they follow in the stream; the first is not used up.
    runs: VecDeque<Run>,
    /// Number of the first of them.
    first: u64,
    /// Whether the last of them may go on.
    open: bool,
    /// The next event of each of the others, but for the one at hand: time, number of the run.
    heads: BinaryHeap<Reverse<(u64, u64)>>,
    /// The run that the last event came from: the next one often does too.
    at_hand: Option<u64>,
    /// Nothing older comes, says the last run: all up to here may be given. Not known behind a sequence point.
    settled: Option<u64>,
    /// Whether all that is held back is given.
    flush: bool,
    /// What comes behind that.
    then: Option<Step>,
    last: u64,
    out_of_order: u64,
}

/// Events of one run that lie in one block.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Stream offset of the block.
    block: u64,
    /// Its length in bytes.
    size: usize,
    /// On the next event.
    blobs: Blobs,
    /// How many events are to be given, that one included.
    left: usize,
}

impl Default for InOrder {
    fn default() -> Self {
        Self::new()
    }
}

impl InOrder {
    /// With default limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// With limits of its own.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            core: Core::new(limits),
            queue: Deframer::new(),
            runs: VecDeque::new(),
            first: 0,
            open: false,
            heads: BinaryHeap::new(),
            at_hand: None,
            settled: None,
            flush: false,
            then: None,
            last: 0,
            out_of_order: 0,
        }
    }

    /// [`Reader::feed`](crate::Reader::feed).
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.core.accepts(bytes.len()) {
            let done = match self.runs.front() {
                Some(oldest) => self.core.shift_to(oldest.block),
                None => self.core.shift(),
            };
            self.queue.consume(done);
            self.queue.feed(bytes);
        }
    }

    /// [`Reader::finish`](crate::Reader::finish).
    pub fn finish(&mut self) {
        self.core.finish();
    }

    /// Lets [`Self::next`] give everything that was read so far, for somebody who does not want to wait any longer for the
    /// proof that nothing older comes.
    pub fn hold_nothing_back(&mut self) {
        self.close_run();
        self.flush = true;
    }

    /// The next item. `None` means that more bytes are needed, perhaps only to know that nothing older comes; after
    /// [`Self::finish`] it means that there is nothing more. Errors are those of [`Reader::next`](crate::Reader::next),
    /// and come when the damage is read: events from before it may follow.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        loop {
            if let Some(number) = self.next_run() {
                return Ok(self.give(number));
            }
            self.flush = false;
            if let Some(step) = self.then.take() {
                return Ok(self.core.item(step, self.queue.pending()));
            }
            self.core.held_back = !self.runs.is_empty();
            let step = match self.core.step(self.queue.pending()) {
                Ok(step) => step,
                Err(error) => {
                    // What it left out is no part of a run.
                    self.close_run();
                    return Err(error);
                }
            };
            match step {
                Step::Event if matches!(self.core.framing.format(), Format::NetPerf1 | Format::NetPerf3) => {
                    // In order as it stands.
                    self.told(self.core.netperf.timestamp);
                    return Ok(self.core.item(step, self.queue.pending()));
                }
                Step::Event => self.hold_back(),
                Step::Waiting => self.hold_nothing_back(),
                Step::End => {
                    self.hold_nothing_back();
                    self.then = Some(step);
                }
                Step::Starved if self.core.is_over() && !self.runs.is_empty() => self.hold_nothing_back(),
                Step::Starved | Step::Again => return Ok(None),
                Step::Header | Step::Metadata(_) | Step::SequencePoint => {
                    if matches!(step, Step::SequencePoint) {
                        self.settled = None;
                    }
                    return Ok(self.core.item(step, self.queue.pending()));
                }
            }
        }
    }

    /// [`Reader::header`](crate::Reader::header).
    pub fn header(&self) -> Option<&TraceHeader> {
        self.core.header.as_ref()
    }

    /// [`Reader::is_complete`](crate::Reader::is_complete).
    pub fn is_complete(&self) -> bool {
        self.core.complete
    }

    /// [`Reader::partial`](crate::Reader::partial).
    pub fn partial(&self) -> Option<&Partial> {
        self.core.partial.as_ref()
    }

    /// [`Reader::lost`](crate::Reader::lost).
    pub fn lost(&self) -> u64 {
        self.core.sequences.lost()
    }

    /// [`Reader::counts`](crate::Reader::counts).
    pub fn counts(&self) -> Counts {
        Counts { stacks: self.core.tables.stacks.defined(), ..self.core.counts.clone() }
    }

    /// Events that were given behind a later one: 0 for every stream that keeps the rules and fits the limits, if nobody
    /// was in a hurry.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The event that was just read belongs to a run.
    #[inline]
    fn hold_back(&mut self) {
        let (block, head) = (self.core.here(), &self.core.blobs.head);
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
        if held_back > self.core.limits.max_held_back as u64 {
            self.flush = true;
        }
        self.runs.push_back(Run { block, size: self.core.block, blobs: self.core.blobs, left: 1 });
        self.open = true;
    }

    /// The last run does not go on.
    fn close_run(&mut self) {
        if std::mem::take(&mut self.open)
            && let Some(run) = self.runs.back()
        {
            let number = self.first + self.runs.len() as u64 - 1;
            self.heads.push(Reverse((run.time(), number)));
        }
    }

    /// The number of the run whose event comes next, if that may be given.
    #[inline]
    fn next_run(&mut self) -> Option<u64> {
        let at_hand = self.at_hand.and_then(|number| Some((self.run(number)?.time(), number)));
        let best = self.heads.peek().map(|Reverse(head)| *head);
        let next = match (at_hand, best) {
            (Some(at_hand), Some(best)) => at_hand.min(best),
            (at_hand, best) => at_hand.or(best)?,
        };
        let (time, number) = next;
        if !self.flush && Some(time) > self.settled {
            return None;
        }
        if at_hand != Some(next) {
            self.heads.pop();
            self.heads.extend(at_hand.map(Reverse));
            self.at_hand = Some(number);
        }
        Some(number)
    }

    fn run(&self, number: u64) -> Option<&Run> {
        self.runs.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Gives the next event of a run, and goes on in it.
    fn give(&mut self, number: u64) -> Option<Item<'_>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let Self { core, queue, runs, .. } = self;
        let run = runs.get_mut(index)?;
        let block = run.bytes(queue.pending(), core.base);
        let event = core.event_of(&run.blobs, block);
        run.go_on(core.framing.format(), block);
        if run.left == 0 {
            self.at_hand = None;
            while runs.front().is_some_and(|run| run.left == 0) {
                runs.pop_front();
                self.first += 1;
            }
        }
        self.out_of_order += u64::from(event.timestamp < self.last);
        self.last = event.timestamp;
        Some(Item::Event(event))
    }

    fn told(&mut self, time: u64) {
        self.out_of_order += u64::from(time < self.last);
        self.last = time;
    }
}

impl Run {
    /// Time of the next event.
    fn time(&self) -> u64 {
        self.blobs.head.timestamp
    }

    /// The block in a window that begins at a stream offset.
    fn bytes<'a>(&self, window: &'a [u8], base: u64) -> &'a [u8] {
        let start = usize::try_from(self.block.saturating_sub(base)).unwrap_or(usize::MAX);
        window.get(start..).and_then(|rest| rest.get(..self.size)).unwrap_or_default()
    }

    /// Goes behind the next event, which is in `block`.
    fn go_on(&mut self, format: Format, block: &[u8]) {
        self.left -= 1;
        if self.left > 0 {
            let advanced = match format {
                Format::Nettrace6 => self.blobs.advance::<true>(block),
                _ => self.blobs.advance::<false>(block),
            };
            // They were read once before.
            debug_assert!(matches!(advanced, Ok(true)));
        }
    }
}
