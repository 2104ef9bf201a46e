//! A core dump that was written: `runtap.dump/1` and its text.

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::units::{Bytes, Things};
use crate::{Clean, Print, TextOptions};

/// The document `runtap.dump/1`.
#[derive(Debug, Serialize)]
pub struct DumpDocument<'a> {
    schema: &'static str,
    /// Process id of the target.
    pub pid: u32,
    /// Path of the dump.
    pub path: &'a str,
    /// Path of the dump in the target's file system.
    pub target_path: &'a str,
    /// `full`, `heap`, `mini` or `triage`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Duration of writing in nanoseconds.
    pub duration_ns: u64,
    /// Whether the file is a complete core dump of the process.
    pub verified: bool,
    /// Number of threads in the dump; `None` if unknown.
    pub threads: Option<usize>,
    /// Path of the crash report, if there is one.
    pub crash_report: Option<&'a str>,
    /// Name of the program in the dump; `None` if unknown.
    #[serde(skip)]
    pub program: Option<&'a str>,
}

impl<'a> DumpDocument<'a> {
    /// Creates the document for a dump of `bytes` bytes.
    pub fn new(pid: u32, kind: &'static str, path: &'a str, bytes: u64) -> Self {
        Self {
            schema: "runtap.dump/1",
            pid,
            path,
            target_path: path,
            kind,
            bytes,
            duration_ns: 0,
            verified: false,
            threads: None,
            crash_report: None,
            program: None,
        }
    }
}

impl Print for DumpDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        let seconds = Duration::from_nanos(self.duration_ns).as_secs_f64();
        write!(out, "{}  {}  {} dump in {seconds:.1} s", Clean(self.path), Bytes(self.bytes), self.kind)?;
        if let (Some(program), Some(threads)) = (self.program, self.threads) {
            write!(out, "  {}, {}", Clean(program), Things(threads as u64, "thread"))?;
        }
        writeln!(out)?;
        match self.crash_report {
            Some(report) => writeln!(out, "{}", Clean(report)),
            None => Ok(()),
        }
    }
}
