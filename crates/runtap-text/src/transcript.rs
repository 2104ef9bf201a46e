//! Recorded conversations: what `record` has written, what `inspect` shows of it, what `replay` has found.

use serde::Serialize;

use crate::units::{Bytes, Count, Things};

/// `runtap.record/1`
#[derive(Debug, Serialize)]
pub struct RecordDocument {
    schema: &'static str,
    path: String,
    /// How many connections were made.
    pub connections: u64,
    /// How many messages and parts of streams passed.
    pub frames: u64,
    /// How many bytes they had.
    pub bytes: u64,
    streams: Vec<String>,
    /// Whether the transcript could not be written to its end.
    pub partial: bool,
}

impl RecordDocument {
    /// Of a transcript with these files for streams.
    pub fn new(path: String, streams: Vec<String>) -> Self {
        let (connections, frames, bytes) = (0, 0, 0);
        Self { schema: "runtap.record/1", path, connections, frames, bytes, streams, partial: false }
    }

    /// What was recorded, in one line.
    pub fn remark(&self) -> String {
        let Self { path, connections, frames, bytes, .. } = self;
        let (connections, bytes) = (Things(*connections, "connection"), Bytes(*bytes));
        format!("{path}: {connections}, {} messages and parts of streams, {bytes}", Count(*frames))
    }
}
