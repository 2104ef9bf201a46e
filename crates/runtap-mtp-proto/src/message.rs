//! All messages, by their serializer ids.

use runtap_wire::{DecodeError, Reader, Writer};

use crate::code::id;
use crate::frame::{Frame, encode_frame};
use crate::handshake::Handshake;
use crate::messages::{
    AzureDevOpsLog, CommandLineOptions, DiscoveredTests, DisplayMessage, FileArtifacts, ServerControl,
    SessionEvent, TestResults, TestsInProgress,
};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// 0: the reply to everything that has no reply of its own.
    VoidResponse,
    /// 1, on a controller's private pipe: the test host is done.
    TestHostCompleted {
        /// With this code.
        exit_code: i32,
        /// And this one before policies changed it; newer ones only.
        unfiltered_exit_code: Option<i32>,
    },
    /// 2, on a controller's private pipe: the test host's process id.
    TestHostPid(i32),
    /// 3: the options that an application knows.
    CommandLineOptions(CommandLineOptions),
    /// 5: tests that were found.
    DiscoveredTests(DiscoveredTests),
    /// 6: results.
    TestResults(TestResults),
    /// 7: files.
    FileArtifacts(FileArtifacts),
    /// 8: a session begins or ends.
    SessionEvent(SessionEvent),
    /// 9: who a process is; and the reply.
    Handshake(Handshake),
    /// 10: tests that have begun.
    TestsInProgress(TestsInProgress),
    /// 11: a line for the log of Azure DevOps.
    AzureDevOpsLog(AzureDevOpsLog),
    /// 12: a text for the screen.
    DisplayMessage(DisplayMessage),
    /// 13, on the control pipe: a process waits for what it is to do.
    WaitForServerControl,
    /// 14: the reply to that.
    ServerControl(ServerControl),
    /// Any other id: to be skipped, and answered by 0.
    Unknown {
        /// The serializer id.
        id: i32,
        /// The body.
        body: Vec<u8>,
    },
}

impl Message {
    /// Reads the body of a frame. What follows the known part is ignored.
    ///
    /// # Errors
    /// With the offset within the connection and the field.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, DecodeError> {
        let reader = &mut Reader::at(frame.body, frame.offset);
        Ok(match frame.id {
            id::VOID_RESPONSE => Self::VoidResponse,
            id::TEST_HOST_COMPLETED => {
                let exit_code = reader.i32("exit code")?;
                let unfiltered_exit_code =
                    if reader.is_empty() { None } else { Some(reader.i32("unfiltered exit code")?) };
                Self::TestHostCompleted { exit_code, unfiltered_exit_code }
            }
            id::TEST_HOST_PID => Self::TestHostPid(reader.i32("process id")?),
            id::COMMAND_LINE_OPTIONS => Self::CommandLineOptions(CommandLineOptions::read(reader)?),
            id::DISCOVERED_TESTS => Self::DiscoveredTests(DiscoveredTests::read(reader)?),
            id::TEST_RESULTS => Self::TestResults(TestResults::read(reader)?),
            id::FILE_ARTIFACTS => Self::FileArtifacts(FileArtifacts::read(reader)?),
            id::SESSION_EVENT => Self::SessionEvent(SessionEvent::read(reader)?),
            id::HANDSHAKE => Self::Handshake(Handshake::read(reader)?),
            id::TESTS_IN_PROGRESS => Self::TestsInProgress(TestsInProgress::read(reader)?),
            id::AZURE_DEVOPS_LOG => Self::AzureDevOpsLog(AzureDevOpsLog::read(reader)?),
            id::DISPLAY_MESSAGE => Self::DisplayMessage(DisplayMessage::read(reader)?),
            id::WAIT_FOR_SERVER_CONTROL => Self::WaitForServerControl,
            id::SERVER_CONTROL => Self::ServerControl(ServerControl::read(reader)?),
            id => Self::Unknown { id, body: frame.body.to_vec() },
        })
    }

    /// Its serializer id.
    pub fn id(&self) -> i32 {
        match self {
            Self::VoidResponse => id::VOID_RESPONSE,
            Self::TestHostCompleted { .. } => id::TEST_HOST_COMPLETED,
            Self::TestHostPid(_) => id::TEST_HOST_PID,
            Self::CommandLineOptions(_) => id::COMMAND_LINE_OPTIONS,
            Self::DiscoveredTests(_) => id::DISCOVERED_TESTS,
            Self::TestResults(_) => id::TEST_RESULTS,
            Self::FileArtifacts(_) => id::FILE_ARTIFACTS,
            Self::SessionEvent(_) => id::SESSION_EVENT,
            Self::Handshake(_) => id::HANDSHAKE,
            Self::TestsInProgress(_) => id::TESTS_IN_PROGRESS,
            Self::AzureDevOpsLog(_) => id::AZURE_DEVOPS_LOG,
            Self::DisplayMessage(_) => id::DISPLAY_MESSAGE,
            Self::WaitForServerControl => id::WAIT_FOR_SERVER_CONTROL,
            Self::ServerControl(_) => id::SERVER_CONTROL,
            Self::Unknown { id, .. } => *id,
        }
    }

    /// Its frame, byte for byte as the platform writes it.
    pub fn encode(&self) -> Vec<u8> {
        let writer = &mut Writer::new();
        match self {
            Self::VoidResponse | Self::WaitForServerControl => {}
            Self::TestHostCompleted { exit_code, unfiltered_exit_code } => {
                writer.i32(*exit_code);
                if let Some(code) = unfiltered_exit_code {
                    writer.i32(*code);
                }
            }
            Self::TestHostPid(pid) => drop(writer.i32(*pid)),
            Self::CommandLineOptions(message) => message.write(writer),
            Self::DiscoveredTests(message) => message.write(writer),
            Self::TestResults(message) => message.write(writer),
            Self::FileArtifacts(message) => message.write(writer),
            Self::SessionEvent(message) => message.write(writer),
            Self::Handshake(message) => message.write(writer),
            Self::TestsInProgress(message) => message.write(writer),
            Self::AzureDevOpsLog(message) => message.write(writer),
            Self::DisplayMessage(message) => message.write(writer),
            Self::ServerControl(message) => message.write(writer),
            Self::Unknown { body, .. } => drop(writer.bytes(body)),
        }
        // A body of 2 GiB can't be had from what was received, and is nothing that we send.
        encode_frame(self.id(), writer.as_bytes()).unwrap_or_default()
    }

    /// What the protocol calls it.
    pub fn name(id: i32) -> Option<&'static str> {
        Some(match id {
            id::VOID_RESPONSE => "VoidResponse",
            id::TEST_HOST_COMPLETED => "TestHostCompletedRequest",
            id::TEST_HOST_PID => "TestHostProcessPIDRequest",
            id::COMMAND_LINE_OPTIONS => "CommandLineOptionMessages",
            id::DISCOVERED_TESTS => "DiscoveredTestMessages",
            id::TEST_RESULTS => "TestResultMessages",
            id::FILE_ARTIFACTS => "FileArtifactMessages",
            id::SESSION_EVENT => "TestSessionEvent",
            id::HANDSHAKE => "HandshakeMessage",
            id::TESTS_IN_PROGRESS => "TestInProgressMessages",
            id::AZURE_DEVOPS_LOG => "AzureDevOpsLogMessage",
            id::DISPLAY_MESSAGE => "DisplayMessage",
            id::WAIT_FOR_SERVER_CONTROL => "WaitForServerControlRequest",
            id::SERVER_CONTROL => "ServerControlMessage",
            _ => return None,
        })
    }
}
