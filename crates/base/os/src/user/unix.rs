//! Whose we are, on Unix: the effective user id.

use rustix::process::geteuid;

/// The user that this process acts as.
pub fn my_uid() -> u32 {
    geteuid().as_raw()
}

/// Whether we are the user who may reach the processes of all.
pub fn is_root() -> bool {
    geteuid().is_root()
}
