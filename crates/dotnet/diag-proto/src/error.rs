//! Errors of encoding messages and of reading requests.
//!
//! Bytes that do not follow the format are a [`DecodeError`] with offset and field.

use runtap_wire::{DecodeError, DecodeErrorKind};
use thiserror::Error;

use crate::{
    Command, Hresult, TracepointError,
    message::{MAX_FILTER_IDS, MAX_MESSAGE, MAX_PROVIDERS},
};

/// A reason why a message is not sent: a runtime would reject or misread it, or crash.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A provider occurs twice with different arguments, but only one argument string can be sent.
    #[error("arguments of provider {provider:?}: specified twice with different values")]
    ConflictingArguments {
        /// The provider.
        provider: String,
    },
    /// A session into user_events has no descriptor to send: the runtime would stop answering other clients.
    #[error("user_events session: no descriptor of user_events_data to send")]
    DescriptorMissing,
    /// Dump flags that the command cannot carry.
    #[error("dump flags: {flags:#x} need GenerateCoreDump2, since .NET 6")]
    DumpFlags {
        /// The flags.
        flags: u32,
    },
    /// A provider occurs twice: runtimes use the first entry and silently drop the second.
    #[error("providers: {provider:?} is specified twice; merge the entries")]
    DuplicateProvider {
        /// The provider.
        provider: String,
    },
    /// A NUL inside a string: runtimes truncate the string there.
    #[error("{field}: contains a NUL character")]
    EmbeddedNul {
        /// The field.
        field: &'static str,
    },
    /// A required text is empty.
    #[error("{field}: is empty")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A provider without a name.
    #[error("provider name: is empty")]
    EmptyProviderName,
    /// An equals sign in the name of an environment variable.
    #[error("{field}: contains an equals sign")]
    EqualsSign {
        /// The field.
        field: &'static str,
    },
    /// An event filter longer than the longest known to work.
    #[error("event filter of provider {provider:?}: {ids} event ids, at most {MAX_FILTER_IDS} are allowed")]
    FilterTooLong {
        /// The provider.
        provider: String,
        /// The number of ids in its filter.
        ids: usize,
    },
    /// A message that does not fit in its 16-bit size field.
    #[error("message size: {size} bytes, at most {MAX_MESSAGE} are allowed")]
    MessageTooLong {
        /// The number of bytes of the message.
        size: usize,
    },
    /// A session without providers.
    #[error("providers: none specified")]
    NoProviders,
    /// A session into user_events in a command that is too old.
    #[error("user_events session: {command} cannot start one, CollectTracing5 can")]
    NoSessionType {
        /// The command.
        command: Command,
    },
    /// A reply without a pending request.
    #[error("reply: no request to answer")]
    NothingToAnswer,
    /// More providers than runtimes accept in a session.
    #[error("providers: {count} given, at most {MAX_PROVIDERS} are allowed")]
    TooManyProviders {
        /// The number of providers.
        count: usize,
    },
    /// Tracepoints that a runtime would reject or crash on.
    #[error("tracepoints of provider {provider:?}: {source}")]
    Tracepoints {
        /// The provider.
        provider: String,
        /// The reason.
        source: TracepointError,
    },
    /// A reply that does not belong to the request.
    #[error("reply: does not belong to the command {command}")]
    WrongReply {
        /// The command of the request.
        command: Command,
    },
    /// A session buffer of 0 MB, which crashes .NET 8 and 9.
    #[error("circular buffer size: is 0 MB")]
    ZeroBuffer,
}

/// A reason why a server does not carry out a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The payload or the header's size is malformed, or holds a value that is not allowed.
    #[error(transparent)]
    BadEncoding(#[from] DecodeError),
    /// The connection was closed in the middle of the request.
    #[error("the request ended after {received} bytes")]
    Incomplete {
        /// The number of bytes that were received.
        received: usize,
    },
    /// A well-formed value that no runtime accepts.
    #[error("{source}")]
    NotAccepted {
        /// The code that runtimes answer with.
        hresult: Hresult,
        /// The invalid field and its offset.
        source: DecodeError,
    },
    /// A session into user_events, which needs a descriptor that this server cannot receive.
    #[error("{0} requests a session into user_events, which is not supported")]
    NotSupported(Command),
    /// A command that this crate does not know.
    #[error("unknown command {0}")]
    UnknownCommand(Command),
    /// The bytes do not begin with the magic of this protocol.
    #[error(transparent)]
    UnknownMagic(DecodeError),
}

impl RequestError {
    /// Returns the code that a runtime answers with.
    pub fn hresult(&self) -> Hresult {
        match self {
            Self::BadEncoding(_) | Self::Incomplete { .. } => Hresult::BAD_ENCODING,
            Self::NotAccepted { hresult, .. } => *hresult,
            Self::NotSupported(_) => Hresult::NOTSUPPORTED,
            Self::UnknownCommand(_) => Hresult::UNKNOWN_COMMAND,
            Self::UnknownMagic(_) => Hresult::UNKNOWN_MAGIC,
        }
    }
}

/// Creates an error for a number that is not among the expected ones.
pub(crate) fn unexpected(offset: u64, what: &'static str, value: u32, expected: &'static str) -> DecodeError {
    DecodeError::new(offset, what, DecodeErrorKind::Unexpected { value: u64::from(value), expected })
}
