//! The handshake (id 9), the same in both directions: who a process is, and which versions are spoken.
//!
//! | bytes | |
//! | --- | --- |
//! | `u16` | number of entries |
//! | `u8` | an entry's key |
//! | `i32` | size of its value |
//! | … | value, UTF-8 |

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::field::{Value, size, sized};

/// The known keys.
pub mod key {
    /// Process id, decimal.
    pub const PID: u8 = 0;
    /// `X64`, `Arm64`, …
    pub const ARCHITECTURE: u8 = 1;
    /// `.NET 10.0.12`, or whatever a program without .NET calls its own.
    pub const FRAMEWORK: u8 = 2;
    /// The operating system.
    pub const OS: u8 = 3;
    /// A `;`-list in the request, one version in the reply; empty in the reply: none is known.
    pub const SUPPORTED_PROTOCOL_VERSIONS: u8 = 4;
    /// See [`host_type`](crate::host_type).
    pub const HOST_TYPE: u8 = 5;
    /// The application's file.
    pub const MODULE_PATH: u8 = 6;
    /// The application.
    pub const EXECUTION_ID: u8 = 7;
    /// The process; since MTP 1.7.
    pub const INSTANCE_ID: u8 = 8;
    /// Reply only: `True` asks for starts of tests and for all that is known of them; since MTP 1.9.
    pub const IS_IDE: u8 = 9;
    /// See [`execution_mode`](crate::execution_mode); since MTP 2.3.
    pub const EXECUTION_MODE: u8 = 10;
    /// Which orchestrator, such as `RetryOrchestrator`.
    pub const ORCHESTRATOR_FEATURE: u8 = 11;
    /// Reply only: the socket of the control pipe; since 1.4.0.
    pub const SERVER_CONTROL_PIPE_NAME: u8 = 12;
    /// Which attempt a test host is, from 1 on; since MTP 2.4.
    pub const ATTEMPT_NUMBER: u8 = 13;
    /// A `;`-list of kinds of files that it can merge.
    pub const SUPPORTED_POST_PROCESSOR_KINDS: u8 = 14;
    /// The same as extensions.
    pub const SUPPORTED_POST_PROCESSOR_EXTENSIONS: u8 = 15;
    /// As 14, for runs that were cut short.
    pub const TRUNCATED_POST_PROCESSOR_KINDS: u8 = 16;
    /// As 15, for runs that were cut short.
    pub const TRUNCATED_POST_PROCESSOR_EXTENSIONS: u8 = 17;
    /// Kinds that must be merged.
    pub const REQUIRED_POST_PROCESSOR_KINDS: u8 = 18;
    /// Reply only: they will be.
    pub const REQUIRED_POST_PROCESSING_SUPPORTED: u8 = 19;

    /// The name of a key.
    pub fn name(key: u8) -> Option<&'static str> {
        const NAMES: [&str; 20] = [
            "PID",
            "Architecture",
            "Framework",
            "OS",
            "SupportedProtocolVersions",
            "HostType",
            "ModulePath",
            "ExecutionId",
            "InstanceId",
            "IsIDE",
            "ExecutionMode",
            "OrchestratorFeature",
            "ServerControlPipeName",
            "AttemptNumber",
            "SupportedPostProcessorKinds",
            "SupportedPostProcessorExtensions",
            "TruncatedPostProcessorKinds",
            "TruncatedPostProcessorExtensions",
            "RequiredPostProcessorKinds",
            "RequiredPostProcessingSupported",
        ];
        NAMES.get(usize::from(key)).copied()
    }
}

/// A handshake: keys and values in their order, each key once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handshake {
    entries: Vec<(u8, String)>,
}

impl Handshake {
    /// Without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more entry, in place of an earlier one with the same key.
    #[must_use]
    pub fn with(mut self, key: u8, value: impl Into<String>) -> Self {
        self.entries.retain(|(other, _)| *other != key);
        self.entries.push((key, value.into()));
        self
    }

    /// The value of a key.
    pub fn get(&self, key: u8) -> Option<&str> {
        self.entries.iter().find(|(other, _)| *other == key).map(|(_, value)| value.as_str())
    }

    /// All of them, in order.
    pub fn entries(&self) -> impl Iterator<Item = (u8, &str)> {
        self.entries.iter().map(|(key, value)| (*key, value.as_str()))
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.u16("number of entries")?;
        let mut handshake = Self::new();
        for _ in 0..count {
            let place = reader.clone();
            let key = reader.u8("key")?;
            if handshake.get(key).is_some() {
                return Err(place.error("key", DecodeErrorKind::Invalid("it is there twice")));
            }
            let size = size(reader, "size of an entry")?;
            let value = String::read(&mut reader.sub(size, "entry")?, "entry")?;
            handshake.entries.push((key, value));
        }
        Ok(handshake)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u16(u16::try_from(self.entries.len()).unwrap_or(u16::MAX));
        for (key, value) in &self.entries {
            writer.u8(*key);
            sized(writer, |writer| value.write(writer));
        }
    }
}
