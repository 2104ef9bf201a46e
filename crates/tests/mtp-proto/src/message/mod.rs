//! The messages, one file each, and the enum of all messages.

mod azure_devops_log;
mod command_line_options;
mod discovered_tests;
mod display;
mod file_artifacts;
mod id;
mod server_control;
mod session_event;
mod test_host_completed;
mod test_host_process_id;
mod test_results;
mod tests_in_progress;
mod writer;

use runtap_wire::{DecodeError, Writer};

pub use azure_devops_log::AzureDevOpsLog;
pub use command_line_options::{CommandLineOption, CommandLineOptions};
pub use discovered_tests::{DiscoveredTest, DiscoveredTests, TestTrait};
pub use display::{Display, DisplayLevel};
pub use file_artifacts::{FileArtifact, FileArtifacts};
pub use id::MessageId;
pub use server_control::{ControlKind, ServerControl};
pub use session_event::{SessionEvent, SessionEventType};
pub use test_host_completed::TestHostCompleted;
pub use test_host_process_id::TestHostProcessId;
pub use test_results::{FailedTest, SuccessfulTest, TestException, TestResults, TestState};
pub use tests_in_progress::{TestInProgress, TestsInProgress};
pub use writer::{DiscoveredTestsWriter, TestResultsWriter};

use crate::{
    EncodeError, Frame, Handshake, Limits,
    envelope::{Budget, Envelope},
    frame,
    schema::Schema,
};

/// Any message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Message {
    /// Id 0: the reply to all requests that have no specific reply.
    Void,
    /// Id 1.
    TestHostCompleted(TestHostCompleted),
    /// Id 2.
    TestHostProcessId(TestHostProcessId),
    /// Id 3.
    CommandLineOptions(CommandLineOptions),
    /// Id 5.
    DiscoveredTests(DiscoveredTests),
    /// Id 6.
    TestResults(TestResults),
    /// Id 7.
    FileArtifacts(FileArtifacts),
    /// Id 8.
    SessionEvent(SessionEvent),
    /// Id 9.
    Handshake(Handshake),
    /// Id 10.
    TestsInProgress(TestsInProgress),
    /// Id 11.
    AzureDevOpsLog(AzureDevOpsLog),
    /// Id 12.
    Display(Display),
    /// Id 13: a request on the control pipe that the server answers when it has a command for the host.
    WaitForServerControl,
    /// Id 14.
    ServerControl(ServerControl),
    /// A message that is unknown to this crate, undecoded.
    Unknown {
        /// The id, which is not in [`MessageId::ALL`].
        id: MessageId,
        /// The body.
        body: Vec<u8>,
    },
}

impl Message {
    /// Returns the id on the wire.
    pub fn id(&self) -> MessageId {
        match self {
            Self::Void => MessageId::VOID,
            Self::TestHostCompleted(_) => MessageId::TEST_HOST_COMPLETED,
            Self::TestHostProcessId(_) => MessageId::TEST_HOST_PROCESS_ID,
            Self::CommandLineOptions(_) => MessageId::COMMAND_LINE_OPTIONS,
            Self::DiscoveredTests(_) => MessageId::DISCOVERED_TESTS,
            Self::TestResults(_) => MessageId::TEST_RESULTS,
            Self::FileArtifacts(_) => MessageId::FILE_ARTIFACTS,
            Self::SessionEvent(_) => MessageId::SESSION_EVENT,
            Self::Handshake(_) => MessageId::HANDSHAKE,
            Self::TestsInProgress(_) => MessageId::TESTS_IN_PROGRESS,
            Self::AzureDevOpsLog(_) => MessageId::AZURE_DEVOPS_LOG,
            Self::Display(_) => MessageId::DISPLAY,
            Self::WaitForServerControl => MessageId::WAIT_FOR_SERVER_CONTROL,
            Self::ServerControl(_) => MessageId::SERVER_CONTROL,
            Self::Unknown { id, .. } => *id,
        }
    }

    /// Returns the InstanceId of the sending process, or `None` if the message has none.
    pub fn instance_id(&self) -> Option<&str> {
        match self {
            Self::Handshake(message) => message.instance_id(),
            Self::DiscoveredTests(message) => message.instance_id.as_deref(),
            Self::TestResults(message) => message.instance_id.as_deref(),
            Self::FileArtifacts(message) => message.instance_id.as_deref(),
            Self::TestsInProgress(message) => message.instance_id.as_deref(),
            Self::AzureDevOpsLog(message) => message.instance_id.as_deref(),
            Self::Display(message) => message.instance_id.as_deref(),
            _ => None,
        }
    }

    /// Decodes the message in a frame. See [the crate documentation](crate#accepted-input) for malformed input that is
    /// accepted.
    ///
    /// # Errors
    /// Returns an error if a field is truncated, too short for its type or of negative size, if there are more list
    /// elements than [`Limits::elements`], or if a handshake has a property twice.
    pub fn decode(frame: &Frame<'_>, limits: Limits) -> Result<Self, DecodeError> {
        let mut reader = frame.reader();
        let reader = &mut reader;
        let budget = &mut Budget::new(limits.elements);
        Ok(match frame.id {
            MessageId::VOID => Self::Void,
            MessageId::TEST_HOST_COMPLETED => Self::TestHostCompleted(TestHostCompleted::read(reader)?),
            MessageId::TEST_HOST_PROCESS_ID => Self::TestHostProcessId(TestHostProcessId::read(reader)?),
            MessageId::COMMAND_LINE_OPTIONS => Self::CommandLineOptions(Envelope::read(reader, budget)?),
            MessageId::DISCOVERED_TESTS => Self::DiscoveredTests(Envelope::read(reader, budget)?),
            MessageId::TEST_RESULTS => Self::TestResults(Envelope::read(reader, budget)?),
            MessageId::FILE_ARTIFACTS => Self::FileArtifacts(Envelope::read(reader, budget)?),
            MessageId::SESSION_EVENT => Self::SessionEvent(Envelope::read(reader, budget)?),
            MessageId::HANDSHAKE => Self::Handshake(Handshake::read(reader)?),
            MessageId::TESTS_IN_PROGRESS => Self::TestsInProgress(Envelope::read(reader, budget)?),
            MessageId::AZURE_DEVOPS_LOG => Self::AzureDevOpsLog(Envelope::read(reader, budget)?),
            MessageId::DISPLAY => Self::Display(Envelope::read(reader, budget)?),
            MessageId::WAIT_FOR_SERVER_CONTROL => Self::WaitForServerControl,
            MessageId::SERVER_CONTROL => Self::ServerControl(Envelope::read(reader, budget)?),
            id => Self::Unknown { id, body: frame.body.to_vec() },
        })
    }

    /// Encodes the message as a complete frame, which must be written in one operation: MTP 1.8 crashes if the length
    /// word arrives in parts.
    ///
    /// # Errors
    /// Returns an error if the frame is 2 GiB or larger.
    pub fn to_frame(&self) -> Result<Vec<u8>, EncodeError> {
        let mut writer = frame::start(self.id());
        self.write(&mut writer);
        frame::finish(writer)
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Void | Self::WaitForServerControl => {}
            Self::TestHostCompleted(message) => message.write(writer),
            Self::TestHostProcessId(message) => message.write(writer),
            Self::CommandLineOptions(message) => message.write(writer),
            Self::DiscoveredTests(message) => message.write(writer),
            Self::TestResults(message) => message.write(writer),
            Self::FileArtifacts(message) => message.write(writer),
            Self::SessionEvent(message) => message.write(writer),
            Self::Handshake(message) => message.write(writer),
            Self::TestsInProgress(message) => message.write(writer),
            Self::AzureDevOpsLog(message) => message.write(writer),
            Self::Display(message) => message.write(writer),
            Self::ServerControl(message) => message.write(writer),
            Self::Unknown { body, .. } => {
                writer.bytes(body);
            }
        }
    }
}

/// Returns the schema of a message whose body is an envelope.
pub(crate) fn schema(id: MessageId) -> Option<&'static Schema> {
    Some(match id {
        MessageId::COMMAND_LINE_OPTIONS => CommandLineOptions::SCHEMA,
        MessageId::DISCOVERED_TESTS => DiscoveredTests::SCHEMA,
        MessageId::TEST_RESULTS => TestResults::SCHEMA,
        MessageId::FILE_ARTIFACTS => FileArtifacts::SCHEMA,
        MessageId::SESSION_EVENT => SessionEvent::SCHEMA,
        MessageId::TESTS_IN_PROGRESS => TestsInProgress::SCHEMA,
        MessageId::AZURE_DEVOPS_LOG => AzureDevOpsLog::SCHEMA,
        MessageId::DISPLAY => Display::SCHEMA,
        MessageId::SERVER_CONTROL => ServerControl::SCHEMA,
        _ => return None,
    })
}
