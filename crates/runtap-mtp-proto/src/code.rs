//! Numbers and words with a meaning. All are open: one that is not known is kept as it is.

use runtap_wire::{DecodeError, Reader, Writer};

use crate::field::Value;

macro_rules! codes {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$code_meta:meta])* $code:ident = $value:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u8);

        impl $name {
            $( $(#[$code_meta])* pub const $code: Self = Self($value); )*

            /// Its name; `None` for one that is not known.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $( Self::$code => Some(stringify!($code)), )*
                    _ => None,
                }
            }
        }

        impl Value for $name {
            fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
                reader.u8(what).map(Self)
            }

            fn write(&self, writer: &mut Writer) {
                writer.u8(self.0);
            }
        }
    };
}

codes! {
    /// What became of a test.
    pub struct State {
        /// Found, or over without an outcome.
        DISCOVERED = 0,
        /// As expected.
        PASSED = 1,
        /// Not run on purpose.
        SKIPPED = 2,
        /// An assertion did not hold.
        FAILED = 3,
        /// It failed by something else.
        ERROR = 4,
        /// It took too long.
        TIMEOUT = 5,
        /// It was stopped.
        CANCELLED = 6,
        /// It has begun.
        IN_PROGRESS = 7,
    }
}

codes! {
    /// Whether a session begins or ends.
    pub struct SessionKind {
        /// It begins.
        START = 0,
        /// It ends.
        END = 1,
    }
}

codes! {
    /// How important a text is.
    pub struct Level {
        /// To be known.
        INFORMATION = 0,
        /// To be looked at.
        WARNING = 1,
        /// Something failed.
        ERROR = 2,
    }
}

codes! {
    /// What a process is told on its control pipe.
    pub struct ControlKind {
        /// End the session in good order.
        CANCEL_SESSION = 1,
        /// There will be nothing more; since MTP 2.4.
        CLOSE_CHANNEL = 2,
    }
}

/// The serializer ids of the messages.
pub mod id {
    #![allow(missing_docs, reason = "the messages are documented")]
    pub const VOID_RESPONSE: i32 = 0;
    pub const TEST_HOST_COMPLETED: i32 = 1;
    pub const TEST_HOST_PID: i32 = 2;
    pub const COMMAND_LINE_OPTIONS: i32 = 3;
    pub const DISCOVERED_TESTS: i32 = 5;
    pub const TEST_RESULTS: i32 = 6;
    pub const FILE_ARTIFACTS: i32 = 7;
    pub const SESSION_EVENT: i32 = 8;
    pub const HANDSHAKE: i32 = 9;
    pub const TESTS_IN_PROGRESS: i32 = 10;
    pub const AZURE_DEVOPS_LOG: i32 = 11;
    pub const DISPLAY_MESSAGE: i32 = 12;
    pub const WAIT_FOR_SERVER_CONTROL: i32 = 13;
    pub const SERVER_CONTROL: i32 = 14;
}

/// Host types: what a process is within its application.
pub mod host_type {
    /// It runs tests.
    pub const TEST_HOST: &str = "TestHost";
    /// It watches the process that runs them.
    pub const TEST_HOST_CONTROLLER: &str = "TestHostController";
    /// It starts others again and again.
    pub const TEST_HOST_ORCHESTRATOR: &str = "TestHostOrchestrator";
    /// It serves an IDE.
    pub const SERVER_TEST_HOST: &str = "ServerTestHost";
    /// It merges files; since MTP 2.4.
    pub const ARTIFACT_POST_PROCESSOR: &str = "ArtifactPostProcessor";
}

/// Execution modes: what a process was asked to do.
pub mod execution_mode {
    /// Run tests.
    pub const RUN: &str = "run";
    /// Tell which there are.
    pub const DISCOVER: &str = "discover";
    /// Tell its options.
    pub const HELP: &str = "help";
    /// Something else.
    pub const TOOL: &str = "tool";
}
