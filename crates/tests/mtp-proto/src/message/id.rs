//! The ids of messages. They are frozen: later versions add ids and never reuse one.

use std::fmt;

use crate::Version;

/// Which message a frame carries ("serializer id" in the sources of Microsoft.Testing.Platform).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub i32);

macro_rules! ids {
    ($($value:literal $text:literal => $constant:ident,)*) => {
        impl MessageId {
            $(#[doc = concat!("`", $text, "`.")] pub const $constant: Self = Self($value);)*

            /// All ids that this crate has a message for.
            pub const ALL: &[Self] = &[$(Self::$constant),*];

            /// The name in the sources of Microsoft.Testing.Platform, if the id is a known one.
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
    /// The version that has to be negotiated before a host may send it. None for what any version has, and for unknown ids.
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
