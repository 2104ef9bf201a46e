//! What a recording lacks.

use std::io::{self, ErrorKind};

use runtap_diag::Error;
use runtap_nettrace::Partial;
use runtap_wire::DecodeError;

use crate::recorder::Recorded;

/// Why something is missing from a recording. What was received is kept.
#[derive(Debug)]
pub enum Missing {
    /// The recording was abandoned before the stream had ended.
    Abandoned {
        /// Whether the runtime sends the names of methods at the end.
        sends_names: bool,
    },
    /// The recording was stopped before the program had started.
    NotBegun,
    /// The runtime failed to stop the session.
    Unfinished(Error),
    /// The disk is full.
    DiskFull,
    /// The output could not be written.
    NotWritten(io::Error),
    /// The connection broke.
    Broken(Error),
    /// The target exited, or closed the connection, before the stream was complete.
    MidStream(Partial),
    /// Some performance counters of a Java program can't be read.
    Damaged(DecodeError),
    /// The data is not an event stream.
    NoStream(Partial),
}

/// Determines what a recording lacks if no other reason is known.
pub(crate) fn missing(recorded: &mut Recorded) -> Option<Missing> {
    if let Some(error) = recorded.write_error.take() {
        return Some(match error.kind() {
            ErrorKind::StorageFull => Missing::DiskFull,
            _ => Missing::NotWritten(error),
        });
    }
    if let Some(error) = recorded.read_error.take() {
        return Some(Missing::Broken(error));
    }
    let partial = recorded.partial.clone()?;
    Some(if recorded.readable { Missing::MidStream(partial) } else { Missing::NoStream(partial) })
}
