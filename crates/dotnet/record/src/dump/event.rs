//! What happens while a dump is written.

use std::path::Path;
use std::time::Duration;

/// What happens while a dump is written, in this order.
#[derive(Debug)]
pub enum Event<'a> {
    /// The target writes into a folder of its own, and the file is going to be fetched from there.
    Fetching {
        /// Where, as the target sees it.
        theirs: &'a Path,
        /// Why it can't be given a file of ours.
        why: &'a str,
    },
    /// There is room and a place; it is asked for now.
    Writing {
        /// Who is asked.
        pid: u32,
        /// Where it is going to be.
        ours: &'a Path,
    },
    /// The request has gone out: from now on the target writes, whether we wait or not.
    Asked,
    /// The runtime is too old for a crash report (.NET 6 has them), and is asked for a dump without.
    NoCrashReport,
    /// The target is still at it.
    Progress {
        /// Since it was asked.
        elapsed: Duration,
        /// Bytes that are there by now.
        written: u64,
    },
    /// The target has answered, or is not waited for any more. What follows is ours: maybe a long copy.
    Over,
    /// It failed, and what the target has written, or may still write, stays where it is.
    Left {
        /// Where, as the target sees it.
        theirs: &'a Path,
    },
}
