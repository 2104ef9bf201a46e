//! A core dump that was written: `runtap.dump/1`, and its lines.

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::units::{Bytes, Things};
use crate::{Clean, Print, TextOptions};

/// `runtap.dump/1`
#[derive(Debug, Serialize)]
pub struct DumpDocument<'a> {
    schema: &'static str,
    /// Of which process.
    pub pid: u32,
    /// Where we have it.
    pub path: &'a str,
    /// Where the target wrote it, or sees it now.
    pub target_path: &'a str,
    /// `full`, `heap`, `mini` or `triage`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its size.
    pub bytes: u64,
    /// How long that took.
    pub duration_ns: u64,
    /// Whether it is a whole core dump of that process.
    pub verified: bool,
    /// How many threads it has, as far as it can be read.
    pub threads: Option<usize>,
    /// The crash report beside it.
    pub crash_report: Option<&'a str>,
    /// Name of the program in it.
    #[serde(skip)]
    pub program: Option<&'a str>,
}

impl<'a> DumpDocument<'a> {
    /// Of a process, at a path, so large.
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
