//! Events that occur while a dump is written.

use std::path::Path;
use std::time::Duration;

/// An event that occurs while a dump is written, in the order of occurrence.
#[derive(Debug)]
pub enum Event<'a> {
    /// The target writes to its own directory, from which the file will be copied.
    Fetching {
        /// The path of the file, as seen by the target.
        theirs: &'a Path,
        /// Why the target can't write to the destination.
        why: &'a str,
    },
    /// The preparations are complete, and the dump is about to be requested.
    Writing {
        /// The process id of the target.
        pid: u32,
        /// The path of the dump.
        ours: &'a Path,
    },
    /// The request was sent. From now on the target writes, even if the caller stops waiting.
    Asked,
    /// The runtime is older than .NET 6, so the dump is requested without a crash report.
    NoCrashReport,
    /// The target is writing.
    Progress {
        /// The time since the request.
        elapsed: Duration,
        /// The number of bytes written so far.
        written: u64,
    },
    /// The target has answered, or is no longer waited for. A copy may follow, which may take long.
    Over,
    /// The dump failed, and what the target has written, or may still write, is left in place.
    Left {
        /// The path of the file, as seen by the target.
        theirs: &'a Path,
    },
}
