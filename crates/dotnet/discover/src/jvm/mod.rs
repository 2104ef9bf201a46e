//! Java virtual machines: each keeps its performance counters in `/tmp/hsperfdata_USER/PID`, always in `/tmp`, in a folder
//! of its user's and under the number that it has in its own pid namespace. Both are its user's: whoever else can write to
//! `/tmp` can make any of these names. Folders are not listed, since they may have millions of files.

pub(crate) mod counters_file;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Mode, OFlags};

pub use self::java::Java;

mod java;

/// Folders that are looked at: far more than there are users with machines.
const MAX_FOLDERS: usize = 10_000;
/// Of one user, who has one.
const MAX_PER_USER: usize = 4;
/// A machine has 32 KiB of counters, unless it was started with more.
const MAX_FILE: u64 = 256 << 10;
/// Of all machines together. When it is used up, no more is known of a machine than that it is one.
pub(super) const MAX_READ: u64 = 64 << 20;

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

    /// What the counters of the process of this user and number say; `None` if it keeps none here. A file may have been left
    /// behind by an earlier process of the same number. `budget`: bytes that may still be read.
    pub(super) fn of_process(
        &self,
        user: u32,
        pid: u32,
        budget: &mut u64,
        open: impl Fn(&OsStr) -> io::Result<OwnedFd>,
    ) -> Option<Java> {
        let folders = self.0.get(&user)?;
        folders.iter().find_map(|folder| counters(&open(folder).ok()?, user, pid, budget))
    }
}

/// A link may lead to a file of anybody, and a pipe may hold up who opens it.
fn counters(folder: &OwnedFd, user: u32, pid: u32, budget: &mut u64) -> Option<Java> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, pid.to_string(), flags, Mode::empty()).ok()?;
    let file = File::from(file);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != user {
        return None;
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE.min(*budget)).read_to_end(&mut bytes);
    *budget = budget.saturating_sub(bytes.len() as u64);
    Some(read.ok().and_then(|_| counters_file::parse(&bytes)).unwrap_or_default())
}
