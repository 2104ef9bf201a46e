//! The handshake, the first message on a connection in both directions: a map of small numbers to texts.
//!
//! Its layout is its own and fixed for all versions: `u16` count, then for each property `u8` key, `i32` length, UTF-8.
//! Properties keep their order and unknown ones are kept, so that what is read is written again as it was.

use std::fmt;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::{
    Version, Versions,
    envelope::{length, put_length, text},
};

/// Which property of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandshakeKey(pub u8);

macro_rules! keys {
    ($($(#[$meta:meta])* $value:literal $text:literal => $constant:ident,)*) => {
        impl HandshakeKey {
            $($(#[$meta])* pub const $constant: Self = Self($value);)*

            /// The name in the sources of Microsoft.Testing.Platform, if the key is a known one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

keys! {
    /// Process id of the sender, decimal.
    0 "PID" => PID,
    /// Processor architecture of the sender (`X64`, `Arm64`).
    1 "Architecture" => ARCHITECTURE,
    /// The runtime's description of itself (`.NET 8.0.4`).
    2 "Framework" => FRAMEWORK,
    /// The operating system's description.
    3 "OS" => OS,
    /// In a request the versions that the host knows, with `;` between them; in a reply the chosen one, or nothing.
    4 "SupportedProtocolVersions" => SUPPORTED_VERSIONS,
    /// What the process is to the application: see [`HostType`].
    5 "HostType" => HOST_TYPE,
    /// Path of the test application.
    6 "ModulePath" => MODULE_PATH,
    /// Names the run of the application; all its processes have the same.
    7 "ExecutionId" => EXECUTION_ID,
    /// Names the process. From MTP 1.7 on.
    8 "InstanceId" => INSTANCE_ID,
    /// Reply only, `True` if the server wants what development environments want: tests that have begun, and all about
    /// discovered tests. Heard by MTP 1.9 and later.
    9 "IsIDE" => IS_IDE,
    /// What the host was told to do: see [`ExecutionMode`]. From MTP 2.3 on.
    10 "ExecutionMode" => EXECUTION_MODE,
    /// The extension that makes an orchestrator of the process (`RetryOrchestrator`).
    11 "OrchestratorFeature" => ORCHESTRATOR_FEATURE,
    /// Reply only: the name of the control pipe.
    12 "ServerControlPipeName" => SERVER_CONTROL_PIPE,
    /// Which attempt a test host is, from 1 on. From MTP 2.4 on.
    13 "AttemptNumber" => ATTEMPT_NUMBER,
    /// Kinds of artifacts that the application can merge, with `;` between them.
    14 "SupportedPostProcessorKinds" => SUPPORTED_POST_PROCESSOR_KINDS,
    /// The same as file name extensions.
    15 "SupportedPostProcessorExtensionsLegacy" => SUPPORTED_POST_PROCESSOR_EXTENSIONS,
    /// As 14, for runs that were cut short.
    16 "SupportedTruncatedRunPostProcessorKinds" => TRUNCATED_POST_PROCESSOR_KINDS,
    /// As 15, for runs that were cut short.
    17 "SupportedTruncatedRunPostProcessorExtensionsLegacy" => TRUNCATED_POST_PROCESSOR_EXTENSIONS,
    /// Kinds of artifacts that have to be merged.
    18 "RequiredPostProcessorKinds" => REQUIRED_POST_PROCESSOR_KINDS,
    /// Reply only: whether the server does so.
    19 "RequiredPostProcessingSupported" => REQUIRED_POST_PROCESSING_SUPPORTED,
}

impl fmt::Display for HandshakeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "property {}", self.0),
        }
    }
}

macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$of_value:meta])* $text:literal => $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of_value])* $variant,)*
            /// One that this crate does not know.
            Other(String),
        }

        impl $name {
            /// The value as it is on the wire. Upper and lower case count.
            pub fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }

            /// The text on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(other) => other,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What a process is to its application.
    pub enum HostType {
        /// It runs the tests.
        "TestHost" => TestHost,
        /// It has started a test host and watches it.
        "TestHostController" => TestHostController,
        /// It serves a development environment.
        "ServerTestHost" => ServerTestHost,
        /// It starts the application several times, for retries. From MTP 2.3 on.
        "TestHostOrchestrator" => TestHostOrchestrator,
        /// It merges artifacts. From MTP 2.4 on.
        "ArtifactPostProcessor" => ArtifactPostProcessor,
    }
}

words! {
    /// What a host was told to do.
    pub enum ExecutionMode {
        /// Run the tests.
        "run" => Run,
        /// Say which command-line options there are.
        "help" => Help,
        /// Say which tests there are.
        "discover" => Discover,
        /// Run a tool of the application. From MTP 2.4 on.
        "tool" => Tool,
    }
}

/// The first message on a connection, in both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Handshake {
    /// No key is here twice.
    properties: Vec<(HandshakeKey, String)>,
}

impl Handshake {
    /// One without properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// This one and one more property: see [`set`](Self::set).
    #[must_use]
    pub fn with(mut self, key: HandshakeKey, value: impl Into<String>) -> Self {
        self.set(key, value);
        self
    }

    /// Sets a property: in its place if it is there already, at the end otherwise.
    pub fn set(&mut self, key: HandshakeKey, value: impl Into<String>) {
        match self.properties.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value.into(),
            None => self.properties.push((key, value.into())),
        }
    }

    /// Takes a property away.
    pub fn remove(&mut self, key: HandshakeKey) -> Option<String> {
        let at = self.properties.iter().position(|(known, _)| *known == key)?;
        Some(self.properties.remove(at).1)
    }

    /// The value of a property. Empty is not absent.
    pub fn get(&self, key: HandshakeKey) -> Option<&str> {
        self.properties.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }

    /// All properties in their order.
    pub fn iter(&self) -> impl Iterator<Item = (HandshakeKey, &str)> + '_ {
        self.properties.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// The process id of the sender, if it is a number.
    pub fn pid(&self) -> Option<u32> {
        self.get(HandshakeKey::PID)?.parse().ok()
    }

    /// [`ARCHITECTURE`](HandshakeKey::ARCHITECTURE).
    pub fn architecture(&self) -> Option<&str> {
        self.get(HandshakeKey::ARCHITECTURE)
    }

    /// [`FRAMEWORK`](HandshakeKey::FRAMEWORK).
    pub fn framework(&self) -> Option<&str> {
        self.get(HandshakeKey::FRAMEWORK)
    }

    /// [`OS`](HandshakeKey::OS).
    pub fn os(&self) -> Option<&str> {
        self.get(HandshakeKey::OS)
    }

    /// The versions that a request offers. None if the property is not there.
    pub fn versions(&self) -> Option<Versions> {
        self.get(HandshakeKey::SUPPORTED_VERSIONS).map(Versions::parse)
    }

    /// The version that a reply has chosen. None is a rejection.
    pub fn chosen_version(&self) -> Option<Version> {
        self.get(HandshakeKey::SUPPORTED_VERSIONS).and_then(Version::parse)
    }

    /// [`HOST_TYPE`](HandshakeKey::HOST_TYPE).
    pub fn host_type(&self) -> Option<HostType> {
        self.get(HandshakeKey::HOST_TYPE).map(HostType::parse)
    }

    /// [`MODULE_PATH`](HandshakeKey::MODULE_PATH).
    pub fn module_path(&self) -> Option<&str> {
        self.get(HandshakeKey::MODULE_PATH)
    }

    /// [`EXECUTION_ID`](HandshakeKey::EXECUTION_ID).
    pub fn execution_id(&self) -> Option<&str> {
        self.get(HandshakeKey::EXECUTION_ID)
    }

    /// [`INSTANCE_ID`](HandshakeKey::INSTANCE_ID).
    pub fn instance_id(&self) -> Option<&str> {
        self.get(HandshakeKey::INSTANCE_ID)
    }

    /// Whether a reply asks for what development environments want. `true` in any case of letters.
    pub fn is_ide(&self) -> bool {
        self.get(HandshakeKey::IS_IDE).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// [`EXECUTION_MODE`](HandshakeKey::EXECUTION_MODE).
    pub fn execution_mode(&self) -> Option<ExecutionMode> {
        self.get(HandshakeKey::EXECUTION_MODE).map(ExecutionMode::parse)
    }

    /// [`ORCHESTRATOR_FEATURE`](HandshakeKey::ORCHESTRATOR_FEATURE).
    pub fn orchestrator_feature(&self) -> Option<&str> {
        self.get(HandshakeKey::ORCHESTRATOR_FEATURE)
    }

    /// The control pipe that a reply offers, if it offers one.
    pub fn server_control_pipe(&self) -> Option<&str> {
        self.get(HandshakeKey::SERVER_CONTROL_PIPE).filter(|name| !name.is_empty())
    }

    /// Which attempt this is, from 1 on, if the value is such a number.
    pub fn attempt_number(&self) -> Option<u32> {
        self.get(HandshakeKey::ATTEMPT_NUMBER)?.parse().ok().filter(|number| *number > 0)
    }

    /// Whether this is the request of a platform older than MTP 1.7: it has a host type and an execution id and no
    /// InstanceId. Such a host lays its messages out in another way ([`is_old_layout`](crate::is_old_layout)), which
    /// `dotnet test` of .NET 10 does not read either (dotnet/sdk#48912).
    pub fn is_older_than_1_7(&self) -> bool {
        self.host_type().is_some() && self.execution_id().is_some() && self.instance_id().is_none()
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut handshake = Self::default();
        for _ in 0..reader.u16("handshake property count")? {
            let start = reader.clone();
            let key = HandshakeKey(reader.u8("handshake property key")?);
            let size = length(reader, "handshake property length")?;
            let value = text(reader.bytes(size, "handshake property")?);
            if handshake.get(key).is_some() {
                return Err(start.error("handshake property key", DecodeErrorKind::Invalid("is there twice")));
            }
            handshake.properties.push((key, value));
        }
        Ok(handshake)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        // Keys are bytes and no key is there twice: 256 at most.
        writer.u16(u16::try_from(self.properties.len()).unwrap_or(u16::MAX));
        for (key, value) in &self.properties {
            writer.u8(key.0);
            put_length(writer, value.len());
            writer.bytes(value.as_bytes());
        }
    }
}
