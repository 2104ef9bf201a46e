//! The handshake, the first message on a connection in both directions: a map of numeric keys to texts.
//!
//! The layout is not an envelope and is fixed for all versions: `u16` count, then for each property `u8` key, `i32`
//! length, UTF-8. Properties keep their order, and unknown properties are kept, so that a handshake that was read is
//! written unchanged.

use std::fmt;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::{
    Version, Versions,
    envelope::{length, put_length, text},
};

/// The key of a handshake property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandshakeKey(pub u8);

macro_rules! keys {
    ($($(#[$meta:meta])* $value:literal $text:literal => $constant:ident,)*) => {
        impl HandshakeKey {
            $($(#[$meta])* pub const $constant: Self = Self($value);)*

            /// Returns the name in the sources of Microsoft.Testing.Platform, or `None` if the key is unknown.
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
    /// The process id of the sender, in decimal.
    0 "PID" => PID,
    /// The processor architecture of the sender (`X64`, `Arm64`).
    1 "Architecture" => ARCHITECTURE,
    /// The runtime's description of itself (for example `.NET 8.0.4`).
    2 "Framework" => FRAMEWORK,
    /// The operating system's description.
    3 "OS" => OS,
    /// In a request, the versions that the host supports, separated by `;`. In a reply, the chosen version; empty if
    /// the handshake is rejected.
    4 "SupportedProtocolVersions" => SUPPORTED_VERSIONS,
    /// The role of the process in the application; see [`HostType`].
    5 "HostType" => HOST_TYPE,
    /// The path of the test application.
    6 "ModulePath" => MODULE_PATH,
    /// The id of the application's run, shared by all of its processes.
    7 "ExecutionId" => EXECUTION_ID,
    /// The id of the process. Since MTP 1.7.
    8 "InstanceId" => INSTANCE_ID,
    /// `True` if the server requests the events that development environments use: started tests, and all details of
    /// discovered tests. Only in replies; used by MTP 1.9 and later.
    9 "IsIDE" => IS_IDE,
    /// The mode in which the host was started; see [`ExecutionMode`]. Since MTP 2.3.
    10 "ExecutionMode" => EXECUTION_MODE,
    /// The extension that makes the process an orchestrator (`RetryOrchestrator`).
    11 "OrchestratorFeature" => ORCHESTRATOR_FEATURE,
    /// The name of the control pipe. Only in replies.
    12 "ServerControlPipeName" => SERVER_CONTROL_PIPE,
    /// The attempt that a test host runs, starting at 1. Since MTP 2.4.
    13 "AttemptNumber" => ATTEMPT_NUMBER,
    /// The kinds of artifacts that the application can merge, separated by `;`.
    14 "SupportedPostProcessorKinds" => SUPPORTED_POST_PROCESSOR_KINDS,
    /// The file name extensions of artifacts that the application can merge, separated by `;`.
    15 "SupportedPostProcessorExtensionsLegacy" => SUPPORTED_POST_PROCESSOR_EXTENSIONS,
    /// The kinds of artifacts that the application can merge after a run that was stopped early, separated by `;`.
    16 "SupportedTruncatedRunPostProcessorKinds" => TRUNCATED_POST_PROCESSOR_KINDS,
    /// The file name extensions of artifacts that the application can merge after a run that was stopped early,
    /// separated by `;`.
    17 "SupportedTruncatedRunPostProcessorExtensionsLegacy" => TRUNCATED_POST_PROCESSOR_EXTENSIONS,
    /// The kinds of artifacts that must be merged.
    18 "RequiredPostProcessorKinds" => REQUIRED_POST_PROCESSOR_KINDS,
    /// Whether the server merges the artifacts that must be merged. Only in replies.
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

macro_rules! text_values {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$of_value:meta])* $text:literal => $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of_value])* $variant,)*
            /// A value that is unknown to this crate.
            Other(String),
        }

        impl $name {
            /// Converts the text on the wire, which is case-sensitive.
            pub fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }

            /// Returns the text on the wire.
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

text_values! {
    /// The role of a process in its application.
    pub enum HostType {
        /// The process runs the tests.
        "TestHost" => TestHost,
        /// The process started a test host and monitors it.
        "TestHostController" => TestHostController,
        /// The process serves a development environment.
        "ServerTestHost" => ServerTestHost,
        /// The process starts the application several times, for retries. Since MTP 2.3.
        "TestHostOrchestrator" => TestHostOrchestrator,
        /// The process merges artifacts. Since MTP 2.4.
        "ArtifactPostProcessor" => ArtifactPostProcessor,
    }
}

text_values! {
    /// The mode in which a host was started.
    pub enum ExecutionMode {
        /// Run the tests.
        "run" => Run,
        /// List the command-line options.
        "help" => Help,
        /// List the tests.
        "discover" => Discover,
        /// Run a tool of the application. Since MTP 2.4.
        "tool" => Tool,
    }
}

/// The first message on a connection, in both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Handshake {
    /// Keys are unique.
    properties: Vec<(HandshakeKey, String)>,
}

impl Handshake {
    /// Creates a handshake without properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the handshake with the property set; see [`set`](Self::set).
    #[must_use]
    pub fn with(mut self, key: HandshakeKey, value: impl Into<String>) -> Self {
        self.set(key, value);
        self
    }

    /// Sets a property. An existing property keeps its position; a new one is appended.
    pub fn set(&mut self, key: HandshakeKey, value: impl Into<String>) {
        match self.properties.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value.into(),
            None => self.properties.push((key, value.into())),
        }
    }

    /// Removes a property and returns its value.
    pub fn remove(&mut self, key: HandshakeKey) -> Option<String> {
        let at = self.properties.iter().position(|(known, _)| *known == key)?;
        Some(self.properties.remove(at).1)
    }

    /// Returns the value of a property, or `None` if the property is absent. An empty value is not absent.
    pub fn get(&self, key: HandshakeKey) -> Option<&str> {
        self.properties.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }

    /// Returns all properties in order.
    pub fn iter(&self) -> impl Iterator<Item = (HandshakeKey, &str)> + '_ {
        self.properties.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Returns the process id of the sender, or `None` if it is not a number.
    pub fn pid(&self) -> Option<u32> {
        self.get(HandshakeKey::PID)?.parse().ok()
    }

    /// Returns the value of [`ARCHITECTURE`](HandshakeKey::ARCHITECTURE).
    pub fn architecture(&self) -> Option<&str> {
        self.get(HandshakeKey::ARCHITECTURE)
    }

    /// Returns the value of [`FRAMEWORK`](HandshakeKey::FRAMEWORK).
    pub fn framework(&self) -> Option<&str> {
        self.get(HandshakeKey::FRAMEWORK)
    }

    /// Returns the value of [`OS`](HandshakeKey::OS).
    pub fn os(&self) -> Option<&str> {
        self.get(HandshakeKey::OS)
    }

    /// Returns the versions that a request offers, or `None` if the property is absent.
    pub fn versions(&self) -> Option<Versions> {
        self.get(HandshakeKey::SUPPORTED_VERSIONS).map(Versions::parse)
    }

    /// Returns the version that a reply has chosen, or `None` if the reply is a rejection.
    pub fn chosen_version(&self) -> Option<Version> {
        self.get(HandshakeKey::SUPPORTED_VERSIONS).and_then(Version::parse)
    }

    /// Returns the value of [`HOST_TYPE`](HandshakeKey::HOST_TYPE).
    pub fn host_type(&self) -> Option<HostType> {
        self.get(HandshakeKey::HOST_TYPE).map(HostType::parse)
    }

    /// Returns the value of [`MODULE_PATH`](HandshakeKey::MODULE_PATH).
    pub fn module_path(&self) -> Option<&str> {
        self.get(HandshakeKey::MODULE_PATH)
    }

    /// Returns the value of [`EXECUTION_ID`](HandshakeKey::EXECUTION_ID).
    pub fn execution_id(&self) -> Option<&str> {
        self.get(HandshakeKey::EXECUTION_ID)
    }

    /// Returns the value of [`INSTANCE_ID`](HandshakeKey::INSTANCE_ID).
    pub fn instance_id(&self) -> Option<&str> {
        self.get(HandshakeKey::INSTANCE_ID)
    }

    /// Returns whether a reply requests the events that development environments use. The value `true` is not
    /// case-sensitive.
    pub fn is_ide(&self) -> bool {
        self.get(HandshakeKey::IS_IDE).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Returns the value of [`EXECUTION_MODE`](HandshakeKey::EXECUTION_MODE).
    pub fn execution_mode(&self) -> Option<ExecutionMode> {
        self.get(HandshakeKey::EXECUTION_MODE).map(ExecutionMode::parse)
    }

    /// Returns the value of [`ORCHESTRATOR_FEATURE`](HandshakeKey::ORCHESTRATOR_FEATURE).
    pub fn orchestrator_feature(&self) -> Option<&str> {
        self.get(HandshakeKey::ORCHESTRATOR_FEATURE)
    }

    /// Returns the name of the control pipe that a reply offers, or `None` if it offers none.
    pub fn server_control_pipe(&self) -> Option<&str> {
        self.get(HandshakeKey::SERVER_CONTROL_PIPE).filter(|name| !name.is_empty())
    }

    /// Returns the number of the attempt, or `None` if the value is not a positive number.
    pub fn attempt_number(&self) -> Option<u32> {
        self.get(HandshakeKey::ATTEMPT_NUMBER)?.parse().ok().filter(|number| *number > 0)
    }

    /// Returns whether this is the request of a platform older than MTP 1.7: it has a host type and an execution id but
    /// no InstanceId. Such a host uses another layout for its messages ([`is_old_layout`](crate::is_old_layout)), which
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
                return Err(start.error("handshake property key", DecodeErrorKind::Invalid("appears twice")));
            }
            handshake.properties.push((key, value));
        }
        Ok(handshake)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        // Keys are unique bytes: at most 256 properties.
        writer.u16(u16::try_from(self.properties.len()).unwrap_or(u16::MAX));
        for (key, value) in &self.properties {
            writer.u8(key.0);
            put_length(writer, value.len());
            writer.bytes(value.as_bytes());
        }
    }
}
