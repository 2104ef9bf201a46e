//! What can be wrong with a transcript: where, and with which field.

use std::io;

use thiserror::Error;

/// A transcript that can't be read on, or written on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A line that is none of a transcript.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1 on.
        line: u64,
        /// What is wrong with it.
        #[source]
        problem: Problem,
    },
    /// More bytes than are read.
    #[error("line {line}: the transcript has more than {limit} bytes")]
    TooMuch {
        /// The line at which it was too much.
        line: u64,
        /// How many are read.
        limit: u64,
    },
    /// The system can't read or write it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file can't be made.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// An earlier line could not be written whole: nothing can follow it.
    #[error("an earlier line could not be written")]
    Broken,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is longer than is read.
    #[error("is longer than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// It has more values than are held.
    #[error("has more than {limit} values")]
    TooMany {
        /// How many it may have.
        limit: usize,
    },
    /// With it the transcript has more connections than are held.
    #[error("with this line the transcript has more than {limit} connections")]
    TooManyConnections {
        /// How many it may have.
        limit: usize,
    },
    /// With it the names of connections are longer than is held.
    #[error("with this line the names of the transcript's connections have more than {limit} bytes")]
    LongNames {
        /// How many bytes they may have.
        limit: usize,
    },
    /// It is not a JSON object.
    #[error("not a JSON object: {reason}")]
    Json {
        /// Why, and in which column.
        reason: String,
    },
    /// A key that has to be there.
    #[error("field '{field}': is missing")]
    Missing {
        /// The key.
        field: &'static str,
    },
    /// A value of another type than this key has.
    #[error("field '{field}': is {found}, not {expected}")]
    Type {
        /// The key.
        field: &'static str,
        /// What is there.
        found: &'static str,
        /// What is to be there.
        expected: &'static str,
    },
    /// Digits that are none.
    #[error("field '{field}': is no even number of hexadecimal digits, from digit {at} on")]
    Hex {
        /// The key.
        field: &'static str,
        /// How many are good.
        at: usize,
    },
}
