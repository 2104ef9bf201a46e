//! A session that wrote into tracepoints of the kernel.

use std::time::Duration;

use serde::Serialize;

/// What takes part of the members of `runtap.trace/1` that are there for a recording into a file.
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
    /// Of a process whose events went into these, so long, by this command.
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
