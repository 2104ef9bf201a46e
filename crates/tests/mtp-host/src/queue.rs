//! What is to be sent, in its order, and when: several results in one message. Sans-I/O: time is an argument.
//!
//! A message takes a reply, so 100,000 tests in as many messages are as many round trips. Results are kept until there are
//! [`Batching::results`] of them, or [`Batching::bytes`] bytes, or the first of them is [`Batching::delay`] old, or something
//! else has to be sent. If the server has not answered the message before by then, others join them, up to as many bytes. SDK
//! 10.0.401 and MTP's own decoder take any number of results in one message (measured).
//!
//! A result is written into its message at once: what waits is bytes.
//!
//! Within a message the list of successful tests comes before that of failed ones. So a success after a failure of the same
//! test, which is a retry, begins a new message: what a server hears of one test is always in order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use runtap_mtp_proto::{
    DiscoveredTest, DiscoveredTestsWriter, EncodeError, FailedTest, Message, MessageId, SuccessfulTest,
    TestResultsWriter,
};

/// While the server is busy, a message grows to so many times [`Batching::bytes`]: a reply costs a switch to the server and
/// back, whatever the size.
const JOINED: usize = 4;

/// Memory beyond that is given back.
const MAX_REUSED: usize = 1 << 20;

/// When results are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// So many results wait for no others. They are joined by those that come before the server is free.
    pub results: usize,
    /// So many bytes of results wait for no others. A message never has more than four times as many, and the last result.
    pub bytes: usize,
    /// No result waits longer for others.
    pub delay: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self { results: 64, bytes: 64 << 10, delay: Duration::from_millis(50) }
    }
}

impl Batching {
    /// Each result in a message of its own, as the platform's own hosts send them.
    pub const NONE: Self = Self { results: 1, bytes: 0, delay: Duration::ZERO };
}

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Successful(SuccessfulTest),
    Failed(FailedTest),
    Discovered(DiscoveredTest),
    /// It waits for nothing.
    Other(Message),
}

/// A message as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: MessageId,
    pub(crate) frame: Vec<u8>,
}

/// When to [`take`](Queue::take).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    At(Instant),
    /// There is nothing.
    Never,
}

#[derive(Debug)]
pub(crate) struct Queue {
    batching: Batching,
    execution_id: String,
    instance_id: String,
    /// Messages that nothing is added to.
    whole: VecDeque<Request>,
    whole_bytes: usize,
    /// The message after them: results or discovered tests, not both.
    results: TestResultsWriter,
    discovered: DiscoveredTestsWriter,
    /// Which of its tests have failed.
    failed: Vec<Option<String>>,
    /// When it got its first test.
    since: Option<Instant>,
    /// The frame that was sent last: to get and touch new memory for each takes longer than to write it.
    memory: Vec<u8>,
}

impl Queue {
    pub(crate) fn new(batching: Batching, execution_id: String, instance_id: String) -> Self {
        Self {
            batching,
            execution_id,
            instance_id,
            whole: VecDeque::new(),
            whole_bytes: 0,
            results: TestResultsWriter::new(),
            discovered: DiscoveredTestsWriter::new(),
            failed: Vec::new(),
            since: None,
            memory: Vec::new(),
        }
    }

    /// Adds an entry. `now` is asked only if there is nothing that it could wait with.
    ///
    /// # Errors
    /// It, or what it would have been behind, fits into no frame and is lost.
    pub(crate) fn push(&mut self, entry: Entry, now: impl FnOnce() -> Instant) -> Result<(), EncodeError> {
        if !self.may_have(&entry) {
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
        if self.open_bytes() >= self.batching.bytes.saturating_mul(JOINED) { self.close() } else { Ok(()) }
    }

    /// Whether it can be in the open message, and nothing is told in another order of one test.
    fn may_have(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Successful(test) => self.discovered.is_empty() && !self.failed.contains(&test.uid),
            Entry::Failed(_) => self.discovered.is_empty(),
            Entry::Discovered(_) => self.results.is_empty(),
            Entry::Other(_) => self.since.is_none(),
        }
    }

    /// Nothing is added to the open message any more.
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
        self.whole_bytes += request.frame.len();
        self.whole.push_back(request);
    }

    fn open_bytes(&self) -> usize {
        self.results.bytes() + self.discovered.bytes()
    }

    /// How many bytes there are to send, but for the heads of messages.
    pub(crate) fn bytes(&self) -> usize {
        self.whole_bytes + self.open_bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.since.is_none()
    }

    /// What is there now waits no longer.
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
            _ if !self.whole.is_empty() => Due::Now,
            None => Due::Never,
            Some(_) if is_full() => Due::Now,
            Some(since) => Due::At(since + self.batching.delay),
        }
    }

    /// A frame that was sent, and is not needed any more.
    pub(crate) fn reuse(&mut self, frame: Vec<u8>) {
        if frame.capacity() <= MAX_REUSED {
            self.memory = frame;
        }
    }

    /// The next message, whether it is due or not.
    pub(crate) fn take(&mut self) -> Result<Option<Request>, EncodeError> {
        if self.whole.is_empty() {
            self.close()?;
        }
        let request = self.whole.pop_front();
        self.whole_bytes -= request.as_ref().map_or(0, |request| request.frame.len());
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
