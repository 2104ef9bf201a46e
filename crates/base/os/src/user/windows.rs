//! The current user on Windows, where users have no numeric ids: two constants stand for the current user and for all
//! others.

use crate::windows::process::is_ours;

/// Stands for the current user.
const CURRENT_USER: u32 = 1;
/// Stands for all other users, and for unknown ones.
const ANOTHER_USER: u32 = u32::MAX;

/// Returns the number that stands for the current user.
pub fn my_uid() -> u32 {
    CURRENT_USER
}

/// Returns false: Windows has no root user.
pub fn is_root() -> bool {
    false
}

/// Returns the number that stands for the user of a process: the current one or another.
pub fn uid_of(pid: u32) -> u32 {
    if is_ours(pid).unwrap_or(false) { CURRENT_USER } else { ANOTHER_USER }
}
