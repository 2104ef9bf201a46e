//! Java virtual machines: each keeps its performance counters in `/tmp/hsperfdata_USER/PID`, always in `/tmp`, in a folder
//! of its user's and under the number that it has in its own pid namespace. Both are its user's: whoever else can write to
//! `/tmp` can make any of these names. Folders are not listed, since they may have millions of files.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType};

/// Folders that are looked at: far more than there are users with machines.
const MAX_FOLDERS: usize = 10_000;
/// Of one user, who has one.
const MAX_PER_USER: usize = 4;

/// The folders of counters in a temporary directory, by the user whose they are.
#[derive(Debug, Default)]
pub(super) struct Counters(HashMap<u32, Vec<OsString>>);

impl Counters {
    /// Of these folders, which `open` opens.
    pub(super) fn of(folders: &[OsString], open: impl Fn(&OsStr) -> io::Result<OwnedFd>) -> Self {
        let mut of_users: HashMap<u32, Vec<OsString>> = HashMap::new();
        for name in folders.iter().take(MAX_FOLDERS) {
            let stat = open(name).and_then(|folder| Ok(rustix::fs::fstat(folder)?));
            let Ok(stat) = stat else { continue };
            let theirs = of_users.entry(stat.st_uid).or_default();
            if theirs.len() < MAX_PER_USER {
                theirs.push(name.clone());
            }
        }
        Self(of_users)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a user has such a folder.
    #[cfg(target_os = "linux")]
    pub(super) fn has_of(&self, user: u32) -> bool {
        self.0.contains_key(&user)
    }

    /// Whether a process of this user and number keeps its counters here. A file may have been left behind by an earlier
    /// one of the same number.
    pub(super) fn has(&self, user: u32, pid: u32, open: impl Fn(&OsStr) -> io::Result<OwnedFd>) -> bool {
        let name = pid.to_string();
        let is_there = |folder: &OsString| {
            let folder = open(folder)?;
            // A link may lead to a file of anybody.
            let file = rustix::fs::statat(folder.as_fd(), &name, AtFlags::SYMLINK_NOFOLLOW)?;
            io::Result::Ok(
                FileType::from_raw_mode(file.st_mode) == FileType::RegularFile && file.st_uid == user,
            )
        };
        self.0.get(&user).into_iter().flatten().any(|folder| is_there(folder).unwrap_or(false))
    }
}
