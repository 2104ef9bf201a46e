//! What can go wrong before a message is sent, and when a request is read.
//!
//! Bytes that do not follow the format are a [`DecodeError`] with offset and field everywhere in this crate.

use runtap_wire::{DecodeError, DecodeErrorKind};
use thiserror::Error;

use crate::{
    Command, Hresult, TracepointError,
    message::{MAX_FILTER_IDS, MAX_MESSAGE, MAX_PROVIDERS},
};

/// A value that is not sent, because a runtime would refuse it, misread it, or die of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The same provider twice with different arguments: there is only one argument string to send.
    #[error("arguments of provider {provider:?}: given twice with different values")]
    ConflictingArguments {
        /// The provider.
        provider: String,
    },
    /// A session into user_events without a descriptor to send after it: the runtime would answer nobody any more.
    #[error("user_events session: there is no descriptor of user_events_data to send")]
    DescriptorMissing,
    /// Flags of a dump that the command can't carry.
    #[error("dump flags: {flags:#x} need GenerateCoreDump2, since .NET 6")]
    DumpFlags {
        /// The flags.
        flags: u32,
    },
    /// The same provider twice: runtimes take the first entry and silently drop the other.
    #[error("providers: {provider:?} is there twice, merge the entries")]
    DuplicateProvider {
        /// The provider.
        provider: String,
    },
    /// A NUL inside a string: runtimes cut it there.
    #[error("{field}: contains a NUL character")]
    EmbeddedNul {
        /// The field.
        field: &'static str,
    },
    /// A text that has to be there.
    #[error("{field}: is empty")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A provider without a name.
    #[error("provider name: is empty")]
    EmptyProviderName,
    /// An equals sign in the name of a variable.
    #[error("{field}: contains an equals sign")]
    EqualsSign {
        /// The field.
        field: &'static str,
    },
    /// An event filter longer than what runtimes are known to take.
    #[error("event filter of provider {provider:?}: {ids} event ids, at most {MAX_FILTER_IDS} are allowed")]
    FilterTooLong {
        /// The provider.
        provider: String,
        /// Ids in its filter.
        ids: usize,
    },
    /// A message that does not fit in its 16-bit size field.
    #[error("message size: {size} bytes, at most {MAX_MESSAGE} are allowed")]
    MessageTooLong {
        /// Bytes of the message.
        size: usize,
    },
    /// A session without a provider.
    #[error("providers: none given")]
    NoProviders,
    /// A session into user_events in a command that is too old for it.
    #[error("user_events session: {command} has none, CollectTracing5 has")]
    NoSessionType {
        /// The command.
        command: Command,
    },
    /// An answer to a request that was answered already, or is not there yet.
    #[error("reply: there is no request to answer")]
    NothingToAnswer,
    /// A session with more providers than runtimes take.
    #[error("providers: {count} given, at most {MAX_PROVIDERS} are allowed")]
    TooManyProviders {
        /// Providers given.
        count: usize,
    },
    /// Tracepoints that a runtime would refuse or die of.
    #[error("tracepoints of provider {provider:?}: {source}")]
    Tracepoints {
        /// The provider.
        provider: String,
        /// What is wrong.
        source: TracepointError,
    },
    /// A reply that does not belong to the request.
    #[error("reply: does not belong to the command {command}")]
    WrongReply {
        /// What was asked.
        command: Command,
    },
    /// A session buffer of 0 MB: kills .NET 8 and 9.
    #[error("circular buffer size: is 0 MB")]
    ZeroBuffer,
}

/// Why a server does not carry out a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The payload or the header's size does not follow the format, or holds a value that is not allowed.
    #[error(transparent)]
    BadEncoding(#[from] DecodeError),
    /// The connection ended in the middle of the request.
    #[error("the request ended after {received} bytes")]
    Incomplete {
        /// Bytes that came.
        received: usize,
    },
    /// A value that can be read and that no runtime takes.
    #[error("{source}")]
    NotAccepted {
        /// The code that runtimes answer with.
        hresult: Hresult,
        /// Where and what.
        source: DecodeError,
    },
    /// A session into user_events, which needs a descriptor that this server can't receive.
    #[error("{0} asks for a session into user_events")]
    NotSupported(Command),
    /// A command that this crate has no message for.
    #[error("unknown command {0}")]
    UnknownCommand(Command),
    /// Not this protocol.
    #[error(transparent)]
    UnknownMagic(DecodeError),
}

impl RequestError {
    /// The code that a runtime answers with.
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

/// An error for a number that is not one of the known ones.
pub(crate) fn unexpected(offset: u64, what: &'static str, value: u32, expected: &'static str) -> DecodeError {
    DecodeError::new(offset, what, DecodeErrorKind::Unexpected { value: u64::from(value), expected })
}
