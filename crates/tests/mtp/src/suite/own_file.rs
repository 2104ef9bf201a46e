//! Files that are found, not named: only those that nobody but this user and root can have written are believed.

#[cfg_attr(unix, path = "own_file/unix.rs")]
#[cfg_attr(windows, path = "own_file/windows.rs")]
mod system;

use std::fs::File;

pub(crate) use self::system::{open, owner_of};

/// What is there.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// A file that somebody else may have written: the user who owns it.
    #[cfg_attr(windows, expect(dead_code, reason = "users have no numbers there"))]
    Foreign(u32),
    /// The file, open for reading.
    File(File),
}
