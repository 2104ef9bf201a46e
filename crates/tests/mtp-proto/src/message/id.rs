//! The ids of messages. Ids are stable: later versions add ids and never reuse one.

use std::fmt;

use crate::Version;

/// The id of a message ("serializer id" in the sources of Microsoft.Testing.Platform).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub i32);

macro_rules! ids {
    ($($value:literal $text:literal => $constant:ident,)*) => {
        impl MessageId {
            $(#[doc = concat!("`", $text, "`.")] pub const $constant: Self = Self($value);)*

            /// All ids that this crate implements.
            pub const ALL: &[Self] = &[$(Self::$constant),*];

            /// Returns the name in the sources of Microsoft.Testing.Platform, or `None` if the id is unknown.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

ids! {
    0 "VoidResponse" => VOID,
    1 "TestHostCompletedRequest" => TEST_HOST_COMPLETED,
    2 "TestHostProcessPIDRequest" => TEST_HOST_PROCESS_ID,
    3 "CommandLineOptionMessages" => COMMAND_LINE_OPTIONS,
    5 "DiscoveredTestMessages" => DISCOVERED_TESTS,
    6 "TestResultMessages" => TEST_RESULTS,
    7 "FileArtifactMessages" => FILE_ARTIFACTS,
    8 "TestSessionEvent" => SESSION_EVENT,
    9 "HandshakeMessage" => HANDSHAKE,
    10 "TestInProgressMessages" => TESTS_IN_PROGRESS,
    11 "AzureDevOpsLogMessage" => AZURE_DEVOPS_LOG,
    12 "DisplayMessage" => DISPLAY,
    13 "WaitForServerControlRequest" => WAIT_FOR_SERVER_CONTROL,
    14 "ServerControlMessage" => SERVER_CONTROL,
}

impl MessageId {
    /// Returns the protocol version that must be negotiated before a host may send the message. `None` if every version
    /// includes the message, or the id is unknown.
    pub fn since(self) -> Option<Version> {
        match self {
            Self::AZURE_DEVOPS_LOG => Some(Version::V1_2_0),
            Self::DISPLAY => Some(Version::V1_3_0),
            Self::WAIT_FOR_SERVER_CONTROL | Self::SERVER_CONTROL => Some(Version::V1_4_0),
            _ => None,
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "message {}", self.0),
        }
    }
}
