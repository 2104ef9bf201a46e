//! The open file with the performance counters of a running virtual machine, which the machine changes in place.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};

/// The maximum size of a file. A virtual machine has 32 KiB of counters by default.
pub(crate) const MAX_FILE: u64 = 256 << 10;

/// The performance counters of a virtual machine. The file was opened once, so its name may lead elsewhere later.
#[derive(Debug)]
pub struct PerfFile(File);

impl PerfFile {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "opened on Linux only"))]
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    /// Reads the current counters into `bytes`, at most 256 KiB. [`PerfData`](crate::PerfData) parses them. After the machine has
    /// exited, they are its last ones.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        self.0.seek(SeekFrom::Start(0))?;
        Read::by_ref(&mut self.0).take(MAX_FILE).read_to_end(bytes).map(drop)
    }
}
