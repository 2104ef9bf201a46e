//! Whose we are, on Windows. Users have no numbers there: they are told apart as ours and others'.

use crate::windows::process::is_ours;

/// Stands for our own user.
const OURS: u32 = 1;
/// Stands for every other one, and for those whom the system does not tell.
const ANOTHER: u32 = u32::MAX;

/// The user that this process acts as.
pub fn my_uid() -> u32 {
    OURS
}

/// Whether we are the user who may reach the processes of all: nobody is, by a number.
pub fn is_root() -> bool {
    false
}

/// The user of a process, as far as it concerns us.
pub fn uid_of(pid: u32) -> u32 {
    if is_ours(pid).unwrap_or(false) { OURS } else { ANOTHER }
}
