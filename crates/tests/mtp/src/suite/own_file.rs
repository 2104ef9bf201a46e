//! Trusted files: files that were found, not specified by the user, are used only if no other user except root can have
//! written them.

#[cfg_attr(unix, path = "own_file/unix.rs")]
#[cfg_attr(windows, path = "own_file/windows.rs")]
mod system;

use std::fs::File;

pub(crate) use self::system::{open, owner_of};

/// The result of opening a file.
#[derive(Debug)]
pub(crate) enum OpenedFile {
    /// The file does not exist.
    Nothing,
    /// Another user may have written the file. Holds the owner.
    #[cfg_attr(windows, expect(dead_code, reason = "Windows users have no numeric ids"))]
    Foreign(u32),
    /// The file, open for reading.
    File(File),
}
