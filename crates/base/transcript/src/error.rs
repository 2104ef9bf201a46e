//! Errors of transcripts, with the line and the field.

use std::io;

use thiserror::Error;

/// An error that prevents reading or writing more of a transcript.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A line is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// The problem of the line.
        #[source]
        problem: Problem,
    },
    /// The transcript exceeds the maximum size.
    #[error("line {line}: the transcript has more than {limit} bytes")]
    TooMuch {
        /// The line that exceeds the limit.
        line: u64,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file can't be created.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// An earlier line was written incompletely, so no line can follow.
    #[error("an earlier line could not be written")]
    Broken,
}

/// The problem of an invalid line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The line exceeds the maximum length.
    #[error("is longer than {limit} bytes")]
    TooLong {
        /// The maximum length in bytes.
        limit: usize,
    },
    /// The line exceeds the maximum number of values.
    #[error("has more than {limit} values")]
    TooMany {
        /// The maximum number.
        limit: usize,
    },
    /// The transcript exceeds the maximum number of connections with this line.
    #[error("with this line the transcript has more than {limit} connections")]
    TooManyConnections {
        /// The maximum number.
        limit: usize,
    },
    /// The names of the transcript's connections exceed the maximum length with this line.
    #[error("with this line the names of the transcript's connections have more than {limit} bytes")]
    LongNames {
        /// The maximum total length in bytes.
        limit: usize,
    },
    /// The line is not a JSON object.
    #[error("not a JSON object: {reason}")]
    Json {
        /// The reason, with the column.
        reason: String,
    },
    /// A required key is missing.
    #[error("field '{field}': is missing")]
    Missing {
        /// The key.
        field: &'static str,
    },
    /// A value has the wrong type.
    #[error("field '{field}': is {found}, not {expected}")]
    Type {
        /// The key.
        field: &'static str,
        /// The type found.
        found: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A text is not an even number of hexadecimal digits.
    #[error("field '{field}': is not an even number of hexadecimal digits (the first {at} are valid)")]
    Hex {
        /// The key.
        field: &'static str,
        /// The number of valid digits before the error.
        at: usize,
    },
}
