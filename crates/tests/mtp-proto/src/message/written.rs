//! Results and discovered tests that are written one by one, as they come: a test needs to be nowhere but in the bytes of the
//! message that it is going to be in. The frame is the same as that of the whole [`TestResults`](super::TestResults) or
//! [`DiscoveredTests`](super::DiscoveredTests).

use runtap_wire::Writer;

use super::{DiscoveredTest, FailedTest, MessageId, SuccessfulTest};
use crate::EncodeError;
use crate::envelope::{Envelope, put_length};
use crate::frame;

/// The elements of one list.
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

    /// Appends the list as a field. No list is written for no elements.
    fn put(&self, writer: &mut Writer, id: u16) {
        if self.count > 0 {
            writer.u16(id);
            put_length(writer, self.writer.len() + 4);
            put_length(writer, self.count);
            writer.bytes(self.writer.as_bytes());
        }
    }

    /// The memory is kept.
    fn clear(&mut self) {
        self.count = 0;
        self.writer.clear();
    }
}

/// The head of both messages, and their lists, in memory that is used again.
fn frame_of(
    id: MessageId,
    memory: Vec<u8>,
    ids: [&str; 2],
    lists: &mut [(u16, &mut Elements)],
) -> Result<Vec<u8>, EncodeError> {
    let mut writer = frame::start_in(memory, id);
    let there = lists.iter().filter(|(_, elements)| elements.count > 0).count();
    writer.u16(2 + u16::try_from(there).unwrap_or(u16::MAX));
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

/// A message of results in the making.
#[derive(Debug, Clone, Default)]
pub struct TestResultsWriter {
    successful: Elements,
    failed: Elements,
}

impl TestResultsWriter {
    /// A message without results.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more for the list of [successful](super::TestResults::successful) tests.
    pub fn successful(&mut self, test: &SuccessfulTest) {
        self.successful.push(test);
    }

    /// One more for the list of [failed](super::TestResults::failed) tests, which comes behind the other.
    pub fn failed(&mut self, test: &FailedTest) {
        self.failed.push(test);
    }

    /// How many results it has.
    pub fn len(&self) -> usize {
        self.successful.count + self.failed.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes the results have.
    pub fn bytes(&self) -> usize {
        self.successful.writer.len() + self.failed.writer.len()
    }

    /// The frame of all that was added since the last one; the next has none of it.
    ///
    /// # Errors
    /// A frame of 2 GiB and more, whose results are lost.
    pub fn finish(&mut self, execution_id: &str, instance_id: &str) -> Result<Vec<u8>, EncodeError> {
        self.finish_in(Vec::new(), execution_id, instance_id)
    }

    /// As [`finish`](Self::finish), in the memory of a frame that is no longer needed.
    ///
    /// # Errors
    /// As of [`finish`](Self::finish).
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

/// A message of discovered tests in the making.
#[derive(Debug, Clone, Default)]
pub struct DiscoveredTestsWriter {
    tests: Elements,
}

impl DiscoveredTestsWriter {
    /// A message without tests.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more test.
    pub fn push(&mut self, test: &DiscoveredTest) {
        self.tests.push(test);
    }

    /// How many tests it has.
    pub fn len(&self) -> usize {
        self.tests.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes the tests have.
    pub fn bytes(&self) -> usize {
        self.tests.writer.len()
    }

    /// The frame of all that was added since the last one; the next has none of it.
    ///
    /// # Errors
    /// A frame of 2 GiB and more, whose tests are lost.
    pub fn finish(&mut self, execution_id: &str, instance_id: &str) -> Result<Vec<u8>, EncodeError> {
        self.finish_in(Vec::new(), execution_id, instance_id)
    }

    /// As [`finish`](Self::finish), in the memory of a frame that is no longer needed.
    ///
    /// # Errors
    /// As of [`finish`](Self::finish).
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
