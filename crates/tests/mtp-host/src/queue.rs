//! The queue of outgoing messages, which combines several results in one message. Sans-I/O: time is an argument.
//!
//! Every message needs a reply, so sending 100,000 tests one by one would need that number of round trips. Results are
//! kept until there are [`Batching::results`] results or [`Batching::bytes`] bytes, until the first result is
//! [`Batching::delay`] old, or until another message must be sent. While the server has not answered the previous
//! message, further results are added, up to a size limit. SDK 10.0.401 and MTP's own decoder accept any number of
//! results in one message (measured).
//!
//! A result is encoded immediately: the queue holds bytes.
//!
//! Within a message, the list of successful tests precedes the list of failed tests. Therefore a success after a
//! failure of the same test, which is a retry, starts a new message, so that the results of one test arrive in order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use runtap_mtp_proto::{
    DiscoveredTest, DiscoveredTestsWriter, EncodeError, FailedTest, Message, MessageId, SuccessfulTest,
    TestResultsWriter,
};

/// While the server is busy, a message grows up to this multiple of [`Batching::bytes`], because a reply costs two
/// context switches regardless of the size.
const BUSY_FACTOR: usize = 4;

/// The maximum capacity of a buffer that is reused, in bytes.
const MAX_REUSED: usize = 1 << 20;

/// The limits that determine when results are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// The number of results that are sent without further delay. More results may be added until the server is ready.
    pub results: usize,
    /// The size of results, in bytes, that are sent without further delay. A message is at most four times as large,
    /// plus the last result.
    pub bytes: usize,
    /// The maximum delay of a result.
    pub delay: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self { results: 64, bytes: 64 << 10, delay: Duration::from_millis(50) }
    }
}

impl Batching {
    /// Sends each result in its own message, like the platform's own hosts.
    pub const NONE: Self = Self { results: 1, bytes: 0, delay: Duration::ZERO };
}

/// An entry of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Successful(SuccessfulTest),
    Failed(FailedTest),
    Discovered(DiscoveredTest),
    /// Any other message; sent without delay.
    Other(Message),
}

/// An encoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: MessageId,
    pub(crate) frame: Vec<u8>,
}

/// When the next message is due; see [`take`](Queue::take).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    At(Instant),
    /// The queue is empty.
    Never,
}

#[derive(Debug)]
pub(crate) struct Queue {
    batching: Batching,
    execution_id: String,
    instance_id: String,
    /// The messages that are complete.
    complete: VecDeque<Request>,
    complete_bytes: usize,
    /// The open message: results or discovered tests, not both.
    results: TestResultsWriter,
    discovered: DiscoveredTestsWriter,
    /// The ids of the failed tests in the open message.
    failed: Vec<Option<String>>,
    /// When the first test was added to the open message.
    since: Option<Instant>,
    /// The buffer of the last frame: allocating and touching new memory takes longer than encoding.
    memory: Vec<u8>,
}

impl Queue {
    pub(crate) fn new(batching: Batching, execution_id: String, instance_id: String) -> Self {
        Self {
            batching,
            execution_id,
            instance_id,
            complete: VecDeque::new(),
            complete_bytes: 0,
            results: TestResultsWriter::new(),
            discovered: DiscoveredTestsWriter::new(),
            failed: Vec::new(),
            since: None,
            memory: Vec::new(),
        }
    }

    /// Adds an entry. `now` is only called if there is no open message.
    ///
    /// # Errors
    /// Returns an error if the entry, or the message before it, does not fit into a frame. The message is lost.
    pub(crate) fn push(&mut self, entry: Entry, now: impl FnOnce() -> Instant) -> Result<(), EncodeError> {
        if !self.fits_open_message(&entry) {
            self.close()?;
        }
        match entry {
            Entry::Successful(test) => self.results.successful(&test),
            Entry::Failed(test) => {
                self.results.failed(&test);
                self.failed.push(test.uid);
            }
            Entry::Discovered(test) => self.discovered.push(&test),
            Entry::Other(message) => {
                let request = Request { id: message.id(), frame: message.to_frame()? };
                self.add(request);
                return Ok(());
            }
        }
        self.since.get_or_insert_with(now);
        if self.open_bytes() >= self.batching.bytes.saturating_mul(BUSY_FACTOR) {
            self.close()
        } else {
            Ok(())
        }
    }

    /// Returns whether the entry can be added to the open message without changing the order of results of one test.
    fn fits_open_message(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Successful(test) => self.discovered.is_empty() && !self.failed.contains(&test.uid),
            Entry::Failed(_) => self.discovered.is_empty(),
            Entry::Discovered(_) => self.results.is_empty(),
            Entry::Other(_) => self.since.is_none(),
        }
    }

    /// Completes the open message.
    fn close(&mut self) -> Result<(), EncodeError> {
        if self.since.take().is_none() {
            return Ok(());
        }
        self.failed.clear();
        let (execution_id, instance_id) = (&self.execution_id, &self.instance_id);
        let memory = std::mem::take(&mut self.memory);
        let request = if self.results.is_empty() {
            let frame = self.discovered.finish_in(memory, execution_id, instance_id)?;
            Request { id: MessageId::DISCOVERED_TESTS, frame }
        } else {
            let frame = self.results.finish_in(memory, execution_id, instance_id)?;
            Request { id: MessageId::TEST_RESULTS, frame }
        };
        self.add(request);
        Ok(())
    }

    fn add(&mut self, request: Request) {
        self.complete_bytes += request.frame.len();
        self.complete.push_back(request);
    }

    fn open_bytes(&self) -> usize {
        self.results.bytes() + self.discovered.bytes()
    }

    /// Returns the number of queued bytes, without message headers.
    pub(crate) fn bytes(&self) -> usize {
        self.complete_bytes + self.open_bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.since.is_none()
    }

    /// Makes all queued entries due.
    pub(crate) fn flush(&mut self) -> Result<(), EncodeError> {
        self.close()
    }

    pub(crate) fn clear(&mut self) {
        let ids = (std::mem::take(&mut self.execution_id), std::mem::take(&mut self.instance_id));
        *self = Self::new(self.batching, ids.0, ids.1);
    }

    pub(crate) fn due(&self) -> Due {
        let is_full = || {
            self.results.len().max(self.discovered.len()) >= self.batching.results
                || self.open_bytes() >= self.batching.bytes
        };
        match self.since {
            _ if !self.complete.is_empty() => Due::Now,
            None => Due::Never,
            Some(_) if is_full() => Due::Now,
            Some(since) => Due::At(since + self.batching.delay),
        }
    }

    /// Returns the buffer of a sent frame for reuse.
    pub(crate) fn reuse(&mut self, frame: Vec<u8>) {
        if frame.capacity() <= MAX_REUSED {
            self.memory = frame;
        }
    }

    /// Removes and returns the next message, even if it is not due yet.
    pub(crate) fn take(&mut self) -> Result<Option<Request>, EncodeError> {
        if self.complete.is_empty() {
            self.close()?;
        }
        let request = self.complete.pop_front();
        self.complete_bytes -= request.as_ref().map_or(0, |request| request.frame.len());
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
