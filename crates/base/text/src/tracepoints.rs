//! Sessions that wrote to kernel tracepoints.

use std::time::Duration;

use serde::Serialize;

/// A variant of `runtap.trace/1` for sessions that wrote to kernel tracepoints instead of a file.
#[derive(Debug, Serialize)]
pub struct TracepointsDocument {
    schema: &'static str,
    pid: u64,
    outputs: [(); 0],
    events: Option<u64>,
    lost: Option<u64>,
    bytes: Option<u64>,
    duration_ns: u64,
    partial: Option<()>,
    command: &'static str,
    downgrades: [(); 0],
    tracepoints: Vec<String>,
}

impl TracepointsDocument {
    /// Creates the document for a process.
    pub fn new(pid: u32, tracepoints: Vec<String>, duration: Duration, command: &'static str) -> Self {
        Self {
            schema: "runtap.trace/1",
            pid: u64::from(pid),
            outputs: [],
            events: None,
            lost: None,
            bytes: None,
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            partial: None,
            command,
            downgrades: [],
            tracepoints,
        }
    }
}
