//! What can go wrong before a message is sent, and when a request is read.
//!
//! Bytes that do not follow the format are a [`DecodeError`] with offset and field everywhere in this crate.

use runtap_wire::{DecodeError, DecodeErrorKind};
use thiserror::Error;

use crate::{Command, Hresult, message::MAX_FILTER_IDS, message::MAX_MESSAGE, message::MAX_PROVIDERS};

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
    /// A provider without a name.
    #[error("provider name: is empty")]
    EmptyProviderName,
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
    /// An answer to a request that was answered already, or is not there yet.
    #[error("reply: there is no request to answer")]
    NothingToAnswer,
    /// A session with more providers than runtimes take.
    #[error("providers: {count} given, at most {MAX_PROVIDERS} are allowed")]
    TooManyProviders {
        /// Providers given.
        count: usize,
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
    BadEncoding(DecodeError),
    /// The connection ended in the middle of the request.
    #[error("the request ended after {received} bytes")]
    Incomplete {
        /// Bytes that came.
        received: usize,
    },
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
            Self::UnknownCommand(_) => Hresult::UNKNOWN_COMMAND,
            Self::UnknownMagic(_) => Hresult::UNKNOWN_MAGIC,
        }
    }
}

/// An error for a number that is not one of the known ones.
pub(crate) fn unexpected(offset: u64, what: &'static str, value: u32, expected: &'static str) -> DecodeError {
    DecodeError::new(offset, what, DecodeErrorKind::Unexpected { value: u64::from(value), expected })
}
