//! Files that a runtime writes for `perf`: `runtap.perfmap/1` and its text.

use std::io;

use serde::Serialize;

use crate::units::Bytes;
use crate::{Clean, Print, TextOptions};

/// The document `runtap.perfmap/1`.
#[derive(Debug, Serialize)]
pub struct PerfMapDocument {
    schema: &'static str,
    pid: u32,
    enabled: bool,
    /// The existing files.
    pub files: Vec<MapFile>,
}

/// A file that a runtime writes for `perf`.
#[derive(Debug, Serialize)]
pub struct MapFile {
    /// Path in the file system of this process.
    pub path: String,
    /// Path in the target's file system.
    pub target_path: String,
    /// Size in bytes.
    pub bytes: u64,
}

impl PerfMapDocument {
    /// Creates the document for a process in which the files were enabled or disabled.
    pub fn new(pid: u32, enabled: bool, files: Vec<MapFile>) -> Self {
        Self { schema: "runtap.perfmap/1", pid, enabled, files }
    }
}

impl Print for PerfMapDocument {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        self.files.iter().try_for_each(|file| writeln!(out, "{}  {}", Clean(&file.path), Bytes(file.bytes)))
    }
}
