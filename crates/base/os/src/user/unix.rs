//! The current user on Unix: the effective user id.

use rustix::process::geteuid;

/// Returns the effective user id of this process.
pub fn my_uid() -> u32 {
    geteuid().as_raw()
}

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}
