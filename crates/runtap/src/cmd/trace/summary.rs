//! What `trace` says when it is over.

use serde::Serialize;

use super::session::Ended;
use crate::cmd::recording::Partial;
use crate::output::Output;
use crate::units::{Bytes, Clock, Count};

/// `runtap.trace/1`
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: &'static str,
    pid: u64,
    pub(super) outputs: Vec<OutputFile>,
    events: u64,
    lost: u64,
    bytes: u64,
    duration_ns: u64,
    partial: Option<Partial>,
    command: String,
    downgrades: Vec<String>,
    #[serde(skip)]
    why_partial: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutputFile {
    pub(super) path: String,
    pub(super) format: &'static str,
    pub(super) bytes: u64,
}

impl Summary {
    pub(super) fn new(pid: u64, ended: &Ended) -> Self {
        Self {
            schema: "runtap.trace/1",
            pid,
            outputs: Vec::new(),
            events: ended.recorded.events,
            lost: ended.recorded.lost,
            bytes: ended.recorded.bytes,
            duration_ns: u64::try_from(ended.duration.as_nanos()).unwrap_or(u64::MAX),
            partial: ended.recorded.partial.clone(),
            command: ended.command.clone(),
            downgrades: ended.downgrades.clone(),
            why_partial: ended.why_partial.clone(),
        }
    }

    pub(super) fn is_partial(&self) -> bool {
        self.partial.is_some() || self.why_partial.is_some()
    }

    /// Prints it: JSON on stdout; as text the files on stdout, the figures on stderr.
    pub(super) fn print(&self, output: Output, stdout_is_taken: bool) -> anyhow::Result<()> {
        if self.is_partial() {
            let why = self.why_partial.as_deref().unwrap_or("the stream has no end marker");
            output.warning(format_args!("the recording is partial: {why}; what was received is readable"));
        }
        if self.lost > 0 {
            output.warning(format_args!(
                "{} events were dropped by the target, because its buffer was full: a larger --buffersize or fewer events help",
                Count(self.lost)
            ));
        }
        if output.json() && !stdout_is_taken {
            return output.document(self);
        }
        let duration = Clock(std::time::Duration::from_nanos(self.duration_ns));
        output.note(format_args!(
            "{} events, {} lost, {} in {duration}",
            Count(self.events),
            Count(self.lost),
            Bytes(self.bytes)
        ));
        if !stdout_is_taken {
            let lines = self
                .outputs
                .iter()
                .map(|file| format!("{}  {}  {}\n", file.path, file.format, Bytes(file.bytes)));
            output.text(lines.collect::<String>())?;
        }
        Ok(())
    }
}
