//! What a recording lacks, and why.

use std::io::{self, ErrorKind};

use runtap_diag::Error;
use runtap_nettrace::Partial;

use crate::recorder::Recorded;

/// Why something is missing from a recording. What was received is there.
#[derive(Debug)]
pub enum Missing {
    /// It was given up before the runtime had told its last names.
    Abandoned,
    /// It was ended before the program had begun.
    NotBegun,
    /// The runtime refused to end the session.
    Unfinished(Error),
    /// There is no room on the disk.
    DiskFull,
    /// It could not be written any further.
    NotWritten(io::Error),
    /// The connection broke.
    Broken(Error),
    /// The target ended, or closed the connection, in mid-stream.
    MidStream(Partial),
    /// What came is no event stream.
    NoStream(Partial),
}

/// Takes what a recording lacks out of what is known of it, when nothing else was noticed.
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
