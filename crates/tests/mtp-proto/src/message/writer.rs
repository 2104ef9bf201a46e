//! Incremental encoding of test results and discovered tests: a test is encoded when it is added, and need not be kept.
//! The frame is identical to that of a complete [`TestResults`](super::TestResults) or
//! [`DiscoveredTests`](super::DiscoveredTests).

use runtap_wire::Writer;

use super::{DiscoveredTest, FailedTest, MessageId, SuccessfulTest};
use crate::EncodeError;
use crate::envelope::{Envelope, put_length};
use crate::frame;

/// The encoded elements of one list.
#[derive(Debug, Clone, Default)]
struct Elements {
    count: usize,
    writer: Writer,
}

impl Elements {
    fn push(&mut self, element: &impl Envelope) {
        self.count += 1;
        element.write(&mut self.writer);
    }

    /// Appends the list as a field, or nothing if it is empty.
    fn put(&self, writer: &mut Writer, id: u16) {
        if self.count > 0 {
            writer.u16(id);
            put_length(writer, self.writer.len() + 4);
            put_length(writer, self.count);
            writer.bytes(self.writer.as_bytes());
        }
    }

    /// Removes all elements and keeps the allocation.
    fn clear(&mut self) {
        self.count = 0;
        self.writer.clear();
    }
}

/// Encodes a message with the given ids and lists, reusing the allocation of `memory`.
fn frame_of(
    id: MessageId,
    memory: Vec<u8>,
    ids: [&str; 2],
    lists: &mut [(u16, &mut Elements)],
) -> Result<Vec<u8>, EncodeError> {
    let mut writer = frame::start_in(memory, id);
    let present = lists.iter().filter(|(_, elements)| elements.count > 0).count();
    writer.u16(2 + u16::try_from(present).unwrap_or(u16::MAX));
    for (id, text) in (1..).zip(ids) {
        writer.u16(id);
        put_length(&mut writer, text.len());
        writer.bytes(text.as_bytes());
    }
    for (id, elements) in lists {
        elements.put(&mut writer, *id);
        elements.clear();
    }
    frame::finish(writer)
}

/// A writer of one test results message at a time.
#[derive(Debug, Clone, Default)]
pub struct TestResultsWriter {
    successful: Elements,
    failed: Elements,
}

impl TestResultsWriter {
    /// Creates a writer without results.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a test to the list of [successful](super::TestResults::successful) tests.
    pub fn successful(&mut self, test: &SuccessfulTest) {
        self.successful.push(test);
    }

    /// Adds a test to the list of [failed](super::TestResults::failed) tests.
    pub fn failed(&mut self, test: &FailedTest) {
        self.failed.push(test);
    }

    /// Returns the number of results that were added since the last frame.
    pub fn len(&self) -> usize {
        self.successful.count + self.failed.count
    }

    /// Returns whether no result was added since the last frame.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the encoded results, in bytes.
    pub fn bytes(&self) -> usize {
        self.successful.writer.len() + self.failed.writer.len()
    }

    /// Encodes all results that were added since the last frame, and removes them.
    ///
    /// # Errors
    /// Returns an error if the frame is 2 GiB or larger. Its results are lost.
    pub fn finish(&mut self, execution_id: &str, instance_id: &str) -> Result<Vec<u8>, EncodeError> {
        self.finish_in(Vec::new(), execution_id, instance_id)
    }

    /// Like [`finish`](Self::finish), but reuses the allocation of `memory`, whose content is discarded.
    ///
    /// # Errors
    /// Fails like [`finish`](Self::finish).
    pub fn finish_in(
        &mut self,
        memory: Vec<u8>,
        execution_id: &str,
        instance_id: &str,
    ) -> Result<Vec<u8>, EncodeError> {
        let lists = &mut [(3, &mut self.successful), (4, &mut self.failed)];
        frame_of(MessageId::TEST_RESULTS, memory, [execution_id, instance_id], lists)
    }
}

/// A writer of one discovered tests message at a time.
#[derive(Debug, Clone, Default)]
pub struct DiscoveredTestsWriter {
    tests: Elements,
}

impl DiscoveredTestsWriter {
    /// Creates a writer without tests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a test.
    pub fn push(&mut self, test: &DiscoveredTest) {
        self.tests.push(test);
    }

    /// Returns the number of tests that were added since the last frame.
    pub fn len(&self) -> usize {
        self.tests.count
    }

    /// Returns whether no test was added since the last frame.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the encoded tests, in bytes.
    pub fn bytes(&self) -> usize {
        self.tests.writer.len()
    }

    /// Encodes all tests that were added since the last frame, and removes them.
    ///
    /// # Errors
    /// Returns an error if the frame is 2 GiB or larger. Its tests are lost.
    pub fn finish(&mut self, execution_id: &str, instance_id: &str) -> Result<Vec<u8>, EncodeError> {
        self.finish_in(Vec::new(), execution_id, instance_id)
    }

    /// Like [`finish`](Self::finish), but reuses the allocation of `memory`, whose content is discarded.
    ///
    /// # Errors
    /// Fails like [`finish`](Self::finish).
    pub fn finish_in(
        &mut self,
        memory: Vec<u8>,
        execution_id: &str,
        instance_id: &str,
    ) -> Result<Vec<u8>, EncodeError> {
        let lists = &mut [(3, &mut self.tests)];
        frame_of(MessageId::DISCOVERED_TESTS, memory, [execution_id, instance_id], lists)
    }
}
