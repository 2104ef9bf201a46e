//! Files that a runtime writes for `perf`: `runtap.perfmap/1`, and a line for each.

use std::io;

use serde::Serialize;

use crate::units::Bytes;
use crate::{Clean, Print, TextOptions};

/// `runtap.perfmap/1`
#[derive(Debug, Serialize)]
pub struct PerfMapDocument {
    schema: &'static str,
    pid: u32,
    enabled: bool,
    /// Those that are there.
    pub files: Vec<MapFile>,
}

/// A file that a runtime writes.
#[derive(Debug, Serialize)]
pub struct MapFile {
    /// Where we see it.
    pub path: String,
    /// Where the target sees it.
    pub target_path: String,
    /// Its size.
    pub bytes: u64,
}

impl PerfMapDocument {
    /// Of a process that writes from now on, or does so no more.
    pub fn new(pid: u32, enabled: bool, files: Vec<MapFile>) -> Self {
        Self { schema: "runtap.perfmap/1", pid, enabled, files }
    }
}

impl Print for PerfMapDocument {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        self.files.iter().try_for_each(|file| writeln!(out, "{}  {}", Clean(&file.path), Bytes(file.bytes)))
    }
}
